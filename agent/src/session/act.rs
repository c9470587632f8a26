//! From what happens to events, and from actions to deeds.

use inrush_common::{id::RunId, outcome::NotStarted, units::Nanos};
use inrush_proto::v1::{self, agent_message, coordinator_message::Kind as Message, not_ready};

use super::{
    Session,
    link::LinkEvent,
    state::{Action, Event, Fault, Refusal},
};
use crate::{
    clock,
    engine::{EngineInterval, StopMode},
};

impl Session {
    /// Lets an event change the state and does what follows.
    pub(super) fn step(&mut self, event: Event) {
        let (state, actions) = std::mem::take(&mut self.state).step(event);
        self.state = state;
        for action in actions {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Prepare => {
                if let Some(run) = self.state.phase().run().cloned() {
                    self.since = clock::now();
                    tracing::info!("run {run}: preparing");
                    self.run.prepare(run);
                }
            }
            Action::AbandonPreparing => self.run.abandon(),
            Action::SendReady(run) => {
                tracing::info!("run {run}: ready");
                self.run.say(agent_message::Kind::Ready(v1::Ready { run: run.to_string() }));
            }
            Action::SendNotReady { run, why } => {
                let (kind, detail) = self.words(why);
                self.refuse(run.to_string(), kind, detail);
            }
            Action::StartEngine { at_ns } => match self.pulse.offset() {
                Some(offset) => self.run.start(at_ns, offset),
                None => tracing::error!("a start before the clocks were compared"),
            },
            Action::StopEngine { mode, reason } => {
                let how = match mode {
                    StopMode::Drain => "draining",
                    StopMode::Abort => "aborting",
                };
                tracing::info!("{how} the load ({reason})");
                self.run.stop(mode, reason);
            }
            Action::GiveUpEngine => self.run.give_up(),
            Action::DropRun => self.run.forget(),
            Action::Exit => self.exit = true,
        }
    }

    fn refuse(&mut self, run: String, kind: not_ready::Kind, detail: String) {
        tracing::warn!("run {run}: not ready: {detail}");
        let kind = kind.into();
        self.run.say(agent_message::Kind::NotReady(v1::NotReady { run, kind, detail }));
    }

    fn words(&self, why: Refusal) -> (not_ready::Kind, String) {
        match why {
            Refusal::Failed { fault, detail } => (wire(fault), detail),
            Refusal::Busy => {
                let phase = self.state.phase();
                let run = phase.run().map_or("", RunId::as_str);
                let since = Nanos::from(clock::now().saturating_duration_since(self.since));
                let detail = format!("busy with run {run} ({}) for {since}", phase.name());
                (not_ready::Kind::Busy, detail)
            }
            Refusal::Executed => {
                let detail = "this run was executed here before, and a run is executed once";
                (not_ready::Kind::Internal, detail.to_owned())
            }
            Refusal::Leaving => {
                (not_ready::Kind::Busy, "the agent was told to leave and takes no work".to_owned())
            }
            Refusal::Stopped => {
                (not_ready::Kind::Internal, "stopped before it was ready".to_owned())
            }
        }
    }

    pub(super) fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Up(welcome) => {
                self.pulse.welcomed(&welcome, clock::now());
                let forget = welcome.forget_run;
                self.step(if forget { Event::WelcomedForget } else { Event::Welcomed });
            }
            LinkEvent::Message(message) => {
                self.pulse.heard(clock::now());
                self.on_message(message);
            }
            LinkEvent::Writable => {
                if let Some(message) = self.next_message() {
                    self.send(message);
                }
            }
            LinkEvent::Lost => self.on_lost(),
            // It ends the session before it comes here.
            LinkEvent::Refused(_) => {}
        }
    }

    pub(super) fn on_lost(&mut self) {
        self.run.stream_lost();
        self.pulse.lost();
        self.early_start = None;
    }

    pub(super) fn has_something_to_send(&self) -> bool {
        self.run.has_control()
            || self.pulse.is_due()
            || self.run.has_news(self.pulse.is_synchronised())
    }

    fn next_message(&mut self) -> Option<agent_message::Kind> {
        if let Some(heartbeat) = self.pulse.take_due() {
            return Some(agent_message::Kind::Heartbeat(heartbeat));
        }
        self.run.next_control().or_else(|| self.run.next_news(self.pulse.offset()))
    }

    pub(super) fn send(&mut self, message: agent_message::Kind) {
        // Room was reported just now and nobody else sends; a stream that broke since is told by the link, and what is
        // not acknowledged goes out again.
        if self.link.send(message).is_err() {
            tracing::debug!("a message was overtaken by the end of the stream");
        }
    }

    pub(super) fn on_interval(&mut self, interval: Option<EngineInterval>) {
        let Some(interval) = interval else {
            return self.step(Event::EngineStuck);
        };
        if let Some(completion) = &interval.completion {
            tracing::info!("the load ended: {completion:?}");
        }
        if self.run.interval(interval) {
            self.step(Event::Completed);
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::HeartbeatReply(reply) => {
                self.pulse.answered(reply);
                if let Some(start) = self.early_start.take() {
                    self.step(start);
                }
            }
            Message::Assign(assign) => self.on_assign(assign),
            Message::Start(v1::Start { run, at_ns }) => {
                let Some(run) = run_id(&run) else { return };
                let start = Event::Start { run, at_ns };
                if self.pulse.is_synchronised() {
                    self.step(start);
                } else {
                    self.early_start = Some(start);
                }
            }
            Message::Stop(v1::Stop { run, mode, reason }) => {
                let Some(run) = run_id(&run) else { return };
                let mode = match v1::stop::Mode::try_from(mode) {
                    Ok(v1::stop::Mode::Drain) => StopMode::Drain,
                    // What is not understood about a stop must not keep load going.
                    _ => StopMode::Abort,
                };
                let reason = NotStarted::from_name(&reason).unwrap_or(NotStarted::Aborted);
                self.early_start = None;
                self.step(Event::Stop { run, mode, reason });
            }
            Message::SnapshotAck(v1::SnapshotAck { run, seq }) => {
                if self.run.ack(&run, seq) {
                    tracing::info!("run {run}: all results handed in");
                    self.step(Event::Stored);
                }
            }
            Message::Release(v1::Release { run }) => {
                if let Some(run) = run_id(&run) {
                    self.step(Event::Release(run));
                }
            }
            Message::Welcome(_) => tracing::warn!("a second welcome is ignored"),
        }
    }

    fn on_assign(&mut self, assign: v1::Assign) {
        match assign.run.parse::<RunId>() {
            Ok(run) => {
                self.run.assign(assign);
                self.step(Event::Assign(run));
            }
            Err(error) => self.refuse(assign.run, not_ready::Kind::Internal, error.to_string()),
        }
    }
}

fn wire(fault: Fault) -> not_ready::Kind {
    match fault {
        Fault::TargetUnreachable => not_ready::Kind::TargetUnreachable,
        Fault::Capacity => not_ready::Kind::Capacity,
        Fault::Forbidden => not_ready::Kind::Forbidden,
        Fault::Internal => not_ready::Kind::Internal,
    }
}

fn run_id(text: &str) -> Option<RunId> {
    let run = text.parse::<RunId>();
    if let Err(error) = &run {
        tracing::warn!("a message is ignored: {error}");
    }
    run.ok()
}
