//! The run at hand: what is being prepared, the engine, the results, and what is to be said about it.

use std::{
    collections::VecDeque,
    future::pending,
    time::{Duration, Instant},
};

use inrush_common::{
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    outcome::NotStarted,
    stats::{Completion, Gauges, Interval, Stats},
};
use inrush_proto::v1::{self, agent_message};
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle},
};

use super::{
    Config, Held, MARGIN,
    clock_sync::Offset,
    owned::Owned,
    prepare::{Means, Prepared, Unprepared, prepare},
    state::{Event, Fault},
    uplink::Uplink,
};
use crate::{
    clock,
    engine::{Engine, EngineInterval, StopMode},
    selfcheck::SelfCheck,
};

/// Messages about runs that wait for room in the stream. A coordinator that asks more than this without reading the
/// answers gets the newest ones.
const OUTBOX: usize = 64;

/// The task that prepares.
pub(super) type Preparing = JoinHandle<Result<Prepared, Unprepared>>;

/// How preparing ended.
pub(super) type PreparingEnd = Result<Result<Prepared, Unprepared>, JoinError>;

/// When the engine began, once it has.
pub(super) type Began = watch::Receiver<Option<Instant>>;

/// The run at hand, if any.
pub(super) struct Run {
    agent: AgentName,
    epoch: Epoch,
    means: Means,
    /// Assigned, and handed to preparing at once.
    assigned: Option<v1::Assign>,
    preparing: Option<(RunId, Preparing)>,
    load: Option<Load>,
    uplink: Option<Uplink>,
    outbox: VecDeque<agent_message::Kind>,
    grace: Duration,
    started: Started,
}

struct Load {
    engine: Owned,
    /// When it really began.
    began: Began,
    selfcheck: SelfCheck,
    /// Where its last interval ended, and how things stood then.
    last: (u64, Gauges),
    /// It was told to stop and must be through by then.
    stop_by: Option<Instant>,
}

/// What the session waits for on behalf of a run.
pub(super) struct Sources<'a> {
    pub(super) engine: Option<&'a mut Engine>,
    /// Until the start has come.
    pub(super) began: Option<&'a mut Began>,
    pub(super) preparing: Option<&'a mut Preparing>,
}

/// The start, and whether the coordinator was told of it on the present stream.
#[derive(Clone, Copy)]
enum Started {
    /// It has not come yet.
    Ahead,
    /// It came at this time of the agent's clock.
    Passed(u64),
    /// The same, and the coordinator was told.
    Told(u64),
}

impl Run {
    /// None yet.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            agent: config.name.clone(),
            epoch: config.epoch,
            means: config.means.clone(),
            assigned: None,
            preparing: None,
            load: None,
            uplink: None,
            outbox: VecDeque::new(),
            grace: Duration::ZERO,
            started: Started::Ahead,
        }
    }

    /// What there is to wait for.
    pub(super) fn sources(&mut self) -> Sources<'_> {
        let (engine, began) =
            self.load.as_mut().map(|load| (&mut *load.engine, &mut load.began)).unzip();
        let ahead = matches!(self.started, Started::Ahead);
        let preparing = self.preparing.as_mut().map(|(_, task)| task);
        Sources { engine, began: began.filter(|_| ahead), preparing }
    }

    /// Keeps an assignment for [`prepare`](Self::prepare).
    pub(super) fn assign(&mut self, assign: v1::Assign) {
        self.assigned = Some(assign);
    }

    /// Begins to prepare the run assigned last.
    pub(super) fn prepare(&mut self, run: RunId) {
        if let Some(assign) = self.assigned.take() {
            let task = tokio::spawn(prepare(assign, self.means.clone()));
            self.preparing = Some((run, task));
        }
    }

    /// Ends preparing, whatever it was about to do.
    pub(super) fn abandon(&mut self) {
        if let Some((_, task)) = self.preparing.take() {
            task.abort();
        }
    }

    /// Preparing ended.
    pub(super) fn prepared(&mut self, end: PreparingEnd) -> Event {
        let run = self.preparing.take().map(|(run, _)| run);
        match (end, run) {
            (Ok(Ok(Prepared { engine, grace })), Some(run)) => {
                let selfcheck = SelfCheck::start(self.means.workers.get());
                let last = (0, Gauges::default());
                let began = engine.began();
                self.load = Some(Load { engine, began, selfcheck, last, stop_by: None });
                self.uplink = Some(Uplink::new(run, self.agent.clone(), self.epoch));
                self.grace = grace;
                self.started = Started::Ahead;
                Event::Prepared
            }
            (Ok(Err(Unprepared { fault, detail })), _) => Event::Unprepared { fault, detail },
            (Err(error), _) => Event::Unprepared {
                fault: Fault::Internal,
                detail: format!("preparing failed: {error}"),
            },
            (Ok(Ok(_)), None) => Event::Unprepared {
                fault: Fault::Internal,
                detail: "preparing ended for no run".to_owned(),
            },
        }
    }

    /// Starts the load at an instant of the coordinator's clock.
    pub(super) fn start(&mut self, at_ns: u64, offset: Offset) {
        let Some(load) = &mut self.load else { return };
        load.selfcheck.restart();
        load.engine.start(clock::at_monotonic_ns(offset.to_agent(at_ns)));
    }

    /// Stops the load.
    pub(super) fn stop(&mut self, mode: StopMode, reason: NotStarted) {
        let Some(load) = &mut self.load else { return };
        load.engine.stop(mode, reason);
        let within = match mode {
            StopMode::Drain => self.grace + MARGIN,
            StopMode::Abort => MARGIN,
        };
        let by = clock::now() + within;
        load.stop_by = Some(load.stop_by.map_or(by, |before| before.min(by)));
    }

    /// When the engine must be through.
    pub(super) fn stop_by(&self) -> Option<Instant> {
        self.load.as_ref().and_then(|load| load.stop_by)
    }

    /// How long the run at hand may drain.
    pub(super) const fn grace(&self) -> Duration {
        self.grace
    }

    /// Takes an interval of the engine. Tells whether it was the last.
    pub(super) fn interval(&mut self, interval: EngineInterval) -> bool {
        let EngineInterval { interval, stats, open_connections, in_flight, completion } = interval;
        let last = completion.is_some();
        // The start is told before any result, and not at all if the run was stopped before it.
        let began = self.load.as_ref().and_then(|load| *load.began.borrow());
        if let Some(at) = began {
            self.began(at);
        }
        if let Some(load) = &mut self.load {
            let gauges = load.selfcheck.gauges(interval, open_connections, in_flight);
            load.last = (interval.to_ns, gauges);
            if let Some(uplink) = &mut self.uplink {
                uplink.push(interval, stats, gauges, completion);
            }
        }
        if last {
            self.load = None;
        }
        last
    }

    /// The engine ended, or has to, without a last interval.
    pub(super) fn give_up(&mut self) {
        let Some(load) = self.load.take() else { return };
        let detail = if load.stop_by.is_some() {
            format!("the workers did not end within {:?} of the stop", self.grace + MARGIN)
        } else {
            "the workers ended without their last numbers".to_owned()
        };
        tracing::error!("{detail}");
        if let Some(uplink) = &mut self.uplink {
            let (at, gauges) = load.last;
            let interval = Interval { from_ns: at, to_ns: at };
            let gauges = Gauges { cpu_ns: 0, cpu_capacity_ns: 0, throttled_ns: 0, ..gauges };
            let completion = Some(Completion::Internal(detail));
            uplink.push(interval, Stats::default(), gauges, completion);
        }
    }

    /// Forgets all of it: the load ends, and the results are nobody's.
    pub(super) fn forget(&mut self) {
        if let Some(held) = self.held() {
            tracing::info!("{} interval(s) of run {} are not wanted", held.snapshots, held.run);
        }
        self.load = None;
        self.uplink = None;
        self.started = Started::Ahead;
    }

    /// The coordinator has this on disk. Tells whether it has all there is and will be.
    pub(super) fn ack(&mut self, run: &str, seq: u64) -> bool {
        let Some(uplink) = self.uplink.as_mut().filter(|uplink| uplink.run().as_str() == run)
        else {
            return false;
        };
        uplink.ack(SnapshotSeq(seq));
        uplink.is_handed_in()
    }

    /// Results the coordinator does not have.
    pub(super) fn held(&self) -> Option<Held> {
        let uplink = self.uplink.as_ref().filter(|uplink| uplink.unacknowledged() > 0)?;
        Some(Held { run: uplink.run().clone(), snapshots: uplink.unacknowledged() })
    }

    /// The stream is gone. Results and refusals are said again on the next one; readiness is the state's to say again.
    pub(super) fn stream_lost(&mut self) {
        self.outbox.retain(|message| matches!(message, agent_message::Kind::NotReady(_)));
        if let Some(uplink) = &mut self.uplink {
            uplink.stream_lost();
        }
        if let Started::Told(at_ns) = self.started {
            self.started = Started::Passed(at_ns);
        }
    }

    /// Something to say about a run.
    pub(super) fn say(&mut self, message: agent_message::Kind) {
        if self.outbox.len() == OUTBOX {
            self.outbox.pop_front();
        }
        self.outbox.push_back(message);
    }

    /// The engine has begun.
    pub(super) fn began(&mut self, at: Instant) {
        if matches!(self.started, Started::Ahead) {
            self.started = Started::Passed(clock::to_monotonic_ns(at));
        }
    }

    /// Whether something waits to be said, other than results.
    pub(super) fn has_control(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next thing to say, other than results.
    pub(super) fn next_control(&mut self) -> Option<agent_message::Kind> {
        self.outbox.pop_front()
    }

    /// Whether there are results, or a start, to be told.
    pub(super) fn has_news(&self, synchronised: bool) -> bool {
        synchronised && matches!(self.started, Started::Passed(_))
            || self.uplink.as_ref().is_some_and(Uplink::has_unsent)
    }

    /// The start, or the next results.
    pub(super) fn next_news(&mut self, offset: Option<Offset>) -> Option<agent_message::Kind> {
        let uplink = self.uplink.as_mut()?;
        if let (Started::Passed(at_ns), Some(offset)) = (self.started, offset) {
            self.started = Started::Told(at_ns);
            return Some(agent_message::Kind::Started(v1::Started {
                run: uplink.run().to_string(),
                at_ns: offset.to_coordinator(at_ns),
                bound_ns: offset.bound,
            }));
        }
        uplink.take_unsent().map(agent_message::Kind::Snapshot)
    }
}

/// The engine's next interval; never, without an engine. Cancel safe.
pub(super) async fn next_interval(engine: Option<&mut Engine>) -> Option<EngineInterval> {
    match engine {
        Some(engine) => engine.next().await,
        None => pending().await,
    }
}

/// When the engine began, once it has; never, without an engine or when it is known. Cancel safe.
pub(super) async fn beginning(began: Option<&mut Began>) -> Instant {
    if let Some(began) = began
        && let Ok(at) = began.wait_for(Option::is_some).await
        && let Some(at) = *at
    {
        return at;
    }
    pending().await
}

/// The end of preparing; never, when nothing is being prepared. Cancel safe.
pub(super) async fn end_of(preparing: Option<&mut Preparing>) -> PreparingEnd {
    match preparing {
        Some(task) => task.await,
        None => pending().await,
    }
}
