//! What agents do, and what becomes of it.

use std::time::{Duration, Instant};

use inrush_common::{
    id::{AgentName, RunId},
    outcome::NotStarted,
    units::Nanos,
};
use inrush_proto::v1::{self, coordinator_message::Kind};

use super::{super::event::Hello, Driver};
use crate::{
    aggregate::Digest,
    clock,
    registry::Work,
    run::{Event, NotReadyKind, StopMode},
    server::Refusal,
    store::{Change, Written},
};

/// How long an agent may take to hand in the results of a run that is over, or went on without it.
const LEFTOVER_WITHIN: Duration = Duration::from_secs(15);

/// A start farther from the agreed one than an hour is a clock gone wrong: the figure says enough.
const LATEST_START_NS: i64 = 3_600_000_000_000;

impl Driver {
    pub(super) async fn hello(&mut self, hello: Hello) -> Result<(), Refusal> {
        let Hello { identity, vitals, link, holds, renew_in } = hello;
        let name = identity.name.clone();
        let (now, now_ns) = (clock::now(), clock::monotonic_ns());
        self.registry.admit(identity, vitals, link, now, now_ns)?;
        let welcome = v1::Welcome {
            lease_ns: clock::nanos(self.config.lease),
            heartbeat_ns: clock::nanos(self.config.heartbeat),
            forget_run: matches!(holds, Some((_, false))),
            renew_in_s: renew_in.map(|renew_in| renew_in.as_secs()),
        };
        self.registry.send(&name, Kind::Welcome(welcome));
        self.resume(&name, holds, now).await;
        Ok(())
    }

    /// Takes up with an agent where its last stream ended.
    async fn resume(&mut self, name: &AgentName, holds: Option<(RunId, bool)>, now: Instant) {
        let held = holds.filter(|(_, known)| *known).map(|(run, _)| run);
        let awaited = self.awaiting(name);
        match (held, awaited) {
            (Some(held), awaited) if awaited.as_ref() != Some(&held) => {
                let done =
                    self.runs.iter().any(|entry| entry.id == held && entry.machine.is_done(name));
                // One that is done is released with the others at the end.
                if !done {
                    self.let_hand_in(name, held, now);
                }
                if awaited.is_some() {
                    self.came_without_its_share(name, now).await;
                }
            }
            (held, Some(run)) => {
                let entry = self.runs.front().expect("an awaited agent has a run");
                match entry.machine.again(name, held.is_some()) {
                    Some(actions) => {
                        self.registry.occupy(name, Work::Busy(run));
                        self.carry_out(actions).await;
                    }
                    None => self.came_without_its_share(name, now).await,
                }
            }
            (None, None) => self.registry.occupy(name, Work::Idle),
            (Some(_), None) => {}
        }
    }

    async fn came_without_its_share(&mut self, name: &AgentName, now: Instant) {
        let evidence = "it came back without its share of the run".to_owned();
        self.step_front(Event::Lost { now, heard: now, agent: name.clone(), evidence }).await;
    }

    /// The run that still expects something of this agent.
    fn awaiting(&self, name: &AgentName) -> Option<RunId> {
        let front = self.runs.front().filter(|entry| entry.machine.awaits(name));
        front.map(|entry| entry.id.clone())
    }

    /// An agent holds results of a run that went on, or ended, without it: they are taken, for the record.
    pub(super) fn let_hand_in(&mut self, name: &AgentName, run: RunId, now: Instant) {
        let stop = v1::Stop {
            run: run.to_string(),
            mode: v1::stop::Mode::Abort.into(),
            reason: NotStarted::Aborted.name().to_owned(),
        };
        self.registry.send(name, Kind::Stop(stop));
        self.registry.occupy(name, Work::Leftover { run, until: now + LEFTOVER_WITHIN });
    }

    pub(super) fn release(&mut self, name: &AgentName, run: &RunId) {
        self.registry.send(name, Kind::Release(v1::Release { run: run.to_string() }));
        self.registry.occupy(name, Work::Idle);
    }

    pub(super) async fn ready(&mut self, agent: AgentName, run: RunId) {
        let clock = self.registry.get(&agent).and_then(|known| known.vitals.clock());
        let half = clock.map_or(0, |clock| clock.bound_ns);
        let round_trip = Duration::from_nanos(half.saturating_mul(2));
        self.step(&run, Event::Ready { now: clock::now(), agent, round_trip }).await;
    }

    pub(super) async fn not_ready(
        &mut self,
        agent: AgentName,
        run: RunId,
        kind: NotReadyKind,
        detail: String,
    ) {
        if self.holds_leftover(&agent, &run) {
            // It had not begun when it was told to stop: there is nothing to hand in.
            return self.registry.occupy(&agent, Work::Idle);
        }
        self.step(&run, Event::NotReady { agent, kind, detail }).await;
    }

    fn holds_leftover(&self, agent: &AgentName, run: &RunId) -> bool {
        let work = self.registry.get(agent).map(|known| &known.work);
        matches!(work, Some(Work::Leftover { run: left, .. }) if left == run)
    }

    pub(super) async fn started(&mut self, agent: AgentName, run: RunId, at_ns: u64) {
        let entry =
            self.runs.front().filter(|entry| entry.id == run && entry.machine.awaits(&agent));
        let Some(agreed) = entry.and_then(|entry| entry.machine.start()) else { return };
        let after_ns = at_ns.wrapping_sub(clock::ns_at(agreed)).cast_signed();
        let after_ns = after_ns.clamp(-LATEST_START_NS, LATEST_START_NS);
        self.store.note(Change::StartedAfter { run, agent, after_ns }).await;
    }

    pub(super) async fn stored(&mut self, digest: &Digest, written: Written) {
        let Digest { run, agent, last, .. } = digest;
        if written == Written::NotAssigned {
            // Nothing is kept of it, so it moves nothing. Its session has told the agent to drop the run.
            if self.holds_leftover(agent, run) {
                self.registry.occupy(agent, Work::Idle);
            }
            return;
        }
        if written == Written::New
            && let Some(entry) = self.runs.front_mut().filter(|entry| entry.id == *run)
        {
            entry.live.add(digest);
            if let Some(watchdog) = &entry.watchdog {
                watchdog.snapshot(digest.encoded.clone());
            }
        }
        if last.is_some() && self.holds_leftover(agent, run) {
            self.release(agent, run);
        }
        let event = Event::Stored { now: clock::now(), agent: agent.clone(), last: last.clone() };
        self.step(run, event).await;
    }

    /// The one place where an agent is given up, `silent` after it was last known to live.
    pub(super) async fn lose(&mut self, agent: &AgentName, silent: Duration, evidence: String) {
        let Some(known) = self.registry.get(agent).filter(|known| !known.is_gone()) else { return };
        tracing::warn!(%agent, run = ?known.work, "an agent is gone: {evidence}");
        self.registry.remove(agent);
        let now = clock::now();
        let heard = now.checked_sub(silent).unwrap_or(now);
        let event = Event::Lost { now, heard, agent: agent.clone(), evidence };
        self.step_front(event).await;
    }

    pub(super) async fn tick(&mut self) {
        let (now, now_ns) = (clock::now(), clock::monotonic_ns());
        // After a stop of this whole process (SIGSTOP, a paused machine) messages may lie unread: the silence is ours.
        let paused = now.saturating_duration_since(self.looked_at) >= self.config.lease / 2;
        self.looked_at = now;
        if !paused {
            for (agent, silent) in self.registry.silent(now_ns, self.config.lease) {
                let evidence = format!("nothing heard for {}", Nanos::from(silent));
                self.lose(&agent, silent, evidence).await;
            }
        }
        for (agent, run, until) in self.registry.leftovers() {
            if now >= until {
                tracing::warn!(%agent, %run, "an agent kept old results for too long: it drops them");
                self.release(&agent, &run);
            }
        }
        self.step_front(Event::Tick { now }).await;
        self.look_at_the_rules(now).await;
        self.start_next().await;
        // Closed once the last update is out.
        self.finishing.retain(|(_, updates)| updates.has_changed().is_ok());
    }

    /// Whether a stop is meant for the agents, as the wire has it.
    pub(super) const fn wire_mode(mode: StopMode) -> v1::stop::Mode {
        match mode {
            StopMode::Drain => v1::stop::Mode::Drain,
            StopMode::Abort => v1::stop::Mode::Abort,
        }
    }
}
