//! A worker: one thread, one runtime, its part of the load.

use std::{
    any::Any,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use inrush_common::{
    outcome::NotStarted,
    plan::Workload,
    stats::{Completion, Stats},
};
use tokio::{
    runtime::Runtime,
    sync::watch,
    time::{Sleep, sleep_until},
};

use super::{
    collector::{End, Reporter},
    command::{Command, Stop, StopMode},
    job::FirstConnection,
    lookup::Lookups,
    pace::Pace,
    pacer::{Pacer, Wait},
    phase::Stage,
    reach::Reach,
    share::Share,
    traffic::Traffic,
};
use crate::{clock, timeline::Timeline};

/// A worker looks at deadlines, orders and its own lateness this often, or more often where a timeout of the plan is short:
/// timeouts are kept to 1/64 of their length or to 1 ms, whichever is longer.
const LONGEST_TICK: Duration = Duration::from_millis(10);
const SHORTEST_TICK: Duration = Duration::from_millis(1);
const TICKS_PER_TIMEOUT: u32 = 64;

/// The runtime's timer counts whole milliseconds: to be late by less is not the worker's doing.
const TIMER_STEP: Duration = Duration::from_millis(1);

/// The runtime's timer is left for an exact one so long before the start.
const EXACT_WAIT: Duration = Duration::from_millis(2);

/// So many sockets at most are attended to in one turn of a worker. Between turns connection attempts are found to be done and
/// others begun, and the clock is looked at: with thousands of busy connections long turns would hold up both.
const EVENTS_PER_TURN: usize = 128;

const SECOND_NS: u64 = 1_000_000_000;

/// What the workers of one engine have in common. No request writes to it, but for [`Reach`].
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) workload: Workload,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) sources: Vec<IpAddr>,
    /// Where the plan wants the name looked up for every connection.
    pub(super) lookups: Option<Lookups>,
    pub(super) pace: Option<Arc<Pace>>,
    pub(super) reach: Reach,
    /// A worker has failed: the others stop.
    pub(super) failed: AtomicBool,
    /// When the first worker really began.
    pub(super) began: watch::Sender<Option<Instant>>,
}

impl Shared {
    /// A worker begins: the earliest one counts.
    fn has_begun(&self, now: Instant) {
        self.began.send_if_modified(|began| {
            let first = began.is_none_or(|earlier| now < earlier);
            if first {
                *began = Some(now);
            }
            first
        });
    }
}

/// Everything one worker needs.
#[derive(Debug)]
pub(super) struct Assigned {
    pub(super) share: Share,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: watch::Receiver<Command>,
    pub(super) reporter: Reporter,
    pub(super) first: Option<FirstConnection>,
}

impl Assigned {
    /// Starts the thread.
    pub(super) fn spawn(self) -> io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // All work is in one future: after each of its turns it is the driver's turn.
            .event_interval(1)
            .max_io_events_per_tick(EVENTS_PER_TURN)
            .build()?;
        std::thread::Builder::new()
            .name(format!("worker-{}", self.share.worker()))
            .spawn(move || self.run(&runtime))
    }

    fn run(mut self, runtime: &Runtime) {
        let Some(start) = runtime.block_on(self.wait_for_start()) else {
            return self.end_before_start();
        };
        self.shared.has_begun(clock::now());
        let _runtime = runtime.enter();
        let timeline = Timeline::new(start);
        let mut reporter = self.reporter;
        let mut worker = Worker::new(&self.shared, &self.share, self.commands, timeline);
        let ran = worker.run(&mut reporter, self.first);
        let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(ran)));
        let failure = match ran {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(words(&*panic).to_owned()),
        };
        if failure.is_some() {
            self.shared.failed.store(true, Relaxed);
        }
        reporter.end(worker.end(failure));
    }

    /// The start instant, when it has come; `None` when there is a stop before.
    async fn wait_for_start(&mut self) -> Option<Instant> {
        let command = self.commands.wait_for(|it| it.start.is_some() || it.stop.is_some()).await;
        let command = command.map(|command| *command).unwrap_or(ABANDONED);
        let start = command.start.filter(|_| command.stop.is_none())?;
        let almost = start.checked_sub(EXACT_WAIT).unwrap_or(start);
        tokio::select! {
            biased;
            _ = self.commands.wait_for(|command| command.stop.is_some()) => return None,
            () = sleep_until(almost.into()) => {}
        }
        std::thread::sleep(start.saturating_duration_since(clock::now()));
        Some(start)
    }

    fn end_before_start(mut self) {
        let command = self.commands.borrow_and_update().to_owned();
        let reason = command.stop.map_or(NotStarted::Aborted, |stop| stop.reason);
        let timeline = Timeline::new(clock::now());
        let mut worker = Worker::new(&self.shared, &self.share, self.commands, timeline);
        worker.stop(0, Stopping { until_ns: 0, reason, completion: stopped(reason) });
        self.reporter.end(worker.end(None));
    }
}

/// The engine is gone and cannot be asked, or another worker has failed.
const ABANDONED: Command = Command {
    start: None,
    stop: Some(Stop { mode: StopMode::Abort, reason: NotStarted::Aborted }),
};

/// How a run is coming to its end.
#[derive(Debug)]
struct Stopping {
    until_ns: u64,
    reason: NotStarted,
    completion: Completion,
}

fn stopped(reason: NotStarted) -> Completion {
    match reason {
        NotStarted::LeaseExpired => Completion::LeaseExpired,
        _ => Completion::Stopped,
    }
}

struct Worker {
    traffic: Traffic,
    commands: watch::Receiver<Command>,
    shared: Arc<Shared>,
    timeline: Timeline,
    tick: Duration,
    next_tick_ns: u64,
    next_report_ns: u64,
    stopping: Option<Stopping>,
}

impl Worker {
    fn new(
        shared: &Arc<Shared>,
        share: &Share,
        commands: watch::Receiver<Command>,
        timeline: Timeline,
    ) -> Self {
        let workload = &shared.workload;
        let tick = workload.timeout.min(workload.connect_timeout) / TICKS_PER_TIMEOUT;
        Self {
            traffic: Traffic::new(shared, share, timeline)
                .expect("arrivals are checked before there are workers"),
            commands,
            shared: Arc::clone(shared),
            timeline,
            tick: tick.clamp(SHORTEST_TICK, LONGEST_TICK),
            next_tick_ns: 0,
            next_report_ns: SECOND_NS,
            stopping: None,
        }
    }

    /// Within the runtime.
    async fn run(
        &mut self,
        reporter: &mut Reporter,
        first: Option<FirstConnection>,
    ) -> io::Result<()> {
        let mut pacer = Pacer::new(self.timeline)?;
        if let Some(first) = first {
            self.traffic.take_over(first);
            // The runtime looks at it once: the target may have closed it meanwhile.
            tokio::task::yield_now().await;
        }
        let mut timer = pin!(sleep_until(self.timeline.at(0).into()));
        let turns = poll_fn(|cx| self.turn(cx, timer.as_mut(), &mut pacer, reporter));
        // Fairness between the connections is the turn's business; there is nothing else on this thread.
        tokio::task::unconstrained(turns).await
    }

    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
        pacer: &mut Pacer,
        reporter: &mut Reporter,
    ) -> Poll<io::Result<()>> {
        while timer.as_mut().poll(cx).is_ready() {
            self.tick(reporter);
            timer.as_mut().reset(self.timeline.at(self.next_tick_ns).into());
        }
        // The clock is read once a turn, and only where something is due at an instant.
        let now = self.traffic.next_due().map(|_| self.timeline.now_ns());
        let mut again = match self.traffic.turn(cx.waker(), now) {
            Ok(again) => again,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if self.traffic.is_done() {
            return Poll::Ready(Ok(()));
        }
        if !again && let Some(due) = self.traffic.next_due() {
            let now = now.unwrap_or_else(|| self.timeline.now_ns());
            match pacer.wait_for(due, now, cx) {
                Ok(wait) => again = wait == Wait::Awake,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if again {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn tick(&mut self, reporter: &mut Reporter) {
        let now = self.timeline.now_ns();
        self.record_lag(now);
        if self.shared.failed.load(Relaxed) {
            self.obey(now, ABANDONED);
        } else if self.commands.has_changed().unwrap_or(true) {
            let command = self.commands.has_changed().map(|_| *self.commands.borrow_and_update());
            self.obey(now, command.unwrap_or(ABANDONED));
        }
        if self.stopping.is_none() {
            self.give_up_when_hopeless(now);
        }
        self.traffic.sweep(now);
        if self.stopping.as_ref().is_some_and(|stopping| stopping.until_ns <= now) {
            self.traffic.abandon(now);
        }
        if now >= self.next_report_ns {
            let second = now / SECOND_NS;
            self.next_report_ns = (second + 1) * SECOND_NS;
            let (open, in_flight) = self.traffic.gauges();
            self.traffic.mark_time(now);
            reporter.report(second, &mut self.traffic.stats, open, in_flight);
        }
    }

    /// Each tick that should have been is recorded: one long stall is many late ticks.
    fn record_lag(&mut self, now: u64) {
        let (step, tick) = (clock::nanos(TIMER_STEP), clock::nanos(self.tick));
        while self.next_tick_ns <= now {
            let late = (now - self.next_tick_ns).saturating_sub(step);
            self.traffic.stats.worker_lag.record(late);
            self.next_tick_ns += tick;
        }
    }

    fn obey(&mut self, now: u64, command: Command) {
        let Some(Stop { mode, reason }) = command.stop else { return };
        let until_ns = match mode {
            StopMode::Drain => self.grace_from(now),
            StopMode::Abort => now,
        };
        match &mut self.stopping {
            Some(stopping) => stopping.until_ns = stopping.until_ns.min(until_ns),
            None => self.stop(now, Stopping { until_ns, reason, completion: stopped(reason) }),
        }
    }

    fn give_up_when_hopeless(&mut self, now: u64) {
        let limit = self.shared.workload.give_up_after;
        let at_work = self.traffic.phases.iter().any(|phase| phase.stage == Stage::On);
        if at_work && self.shared.reach.is_hopeless(now, limit) {
            let last = self.traffic.last_connect_error.clone();
            let text = last.unwrap_or_else(|| {
                format!("{}: no answer to a connection attempt", self.shared.addresses[0])
            });
            let completion = Completion::TargetUnreachable(text);
            let reason = NotStarted::TargetUnreachable;
            self.stop(now, Stopping { until_ns: now, reason, completion });
        }
    }

    fn grace_from(&self, now: u64) -> u64 {
        now.saturating_add(clock::nanos(self.shared.workload.grace))
    }

    fn stop(&mut self, now: u64, stopping: Stopping) {
        self.traffic.stop(stopping.reason, now);
        self.stopping = Some(stopping);
    }

    /// Closes the accounts.
    fn end(mut self, failure: Option<String>) -> End {
        let now = self.timeline.now_ns();
        let traffic = &mut self.traffic;
        traffic.abandon(now);
        traffic.close_all();
        let completion = match (failure, self.stopping) {
            (Some(text), _) => Completion::Internal(format!("a worker failed: {text}")),
            (None, Some(stopping)) if traffic.interrupted => stopping.completion,
            (None, _) => Completion::Finished,
        };
        let (_, in_flight) = traffic.gauges();
        let stats: Stats = std::mem::take(&mut traffic.stats);
        End { at_ns: now, stats, in_flight, completion }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}

#[cfg(test)]
mod tests {
    use http::{Method, Uri};
    use inrush_common::{
        plan::{ClosedLoad, ConnectionPolicy, Expect, Load, Phase, Request, ThinkTime},
        schedule::{ConnectionProfile, Interleave},
    };

    use super::*;
    use crate::engine::collector::{Collector, EngineInterval, link};

    fn shared(addresses: Vec<SocketAddr>) -> Arc<Shared> {
        let hour_ns = 3_600 * SECOND_NS;
        let load = ClosedLoad {
            profile: ConnectionProfile::constant(2, hour_ns).unwrap(),
            lanes: Interleave::whole(2),
            requests: Some(10),
            duration: None,
            think_time: ThinkTime::None,
        };
        let phase = Phase {
            name: Phase::ONLY.to_owned(),
            measure: true,
            starts_at: Duration::ZERO,
            load: Load::Closed(load),
        };
        let request = Request {
            name: "it".to_owned(),
            method: Method::GET,
            url: Uri::from_static("http://127.0.0.1/"),
            headers: Vec::new(),
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        };
        let second = Duration::from_secs(1);
        let workload = Workload {
            requests: vec![request],
            phases: vec![phase],
            timeout: second,
            connect_timeout: second,
            grace: second,
            give_up_after: second,
            connections: ConnectionPolicy::default(),
            seed: 0,
        };
        let failed = AtomicBool::new(false);
        Arc::new(Shared {
            workload,
            addresses,
            sources: Vec::new(),
            lookups: None,
            pace: None,
            reach: Reach::default(),
            failed,
            began: watch::Sender::default(),
        })
    }

    /// The last interval of two workers that were started at once, with the sum over all.
    fn run(shared: &Arc<Shared>) -> EngineInterval {
        let (command, commands) = watch::channel(Command::default());
        command.send_modify(|command| {
            command.start(clock::now());
        });
        let mut links = Vec::new();
        for share in Share::split(&shared.workload, 2) {
            let (reporter, link) = link();
            links.push(link);
            let (shared, commands) = (Arc::clone(shared), commands.clone());
            let assigned = Assigned { share, shared, commands, reporter, first: None };
            assigned.spawn().unwrap().join().unwrap();
        }
        let mut collector = Collector::new(links, (1, 1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        // To print where a worker panicked may take longer than a second.
        let mut sum = Stats::default();
        loop {
            let mut interval = runtime.block_on(collector.next()).unwrap();
            sum.add_interval(&interval.stats);
            if interval.completion.is_some() {
                interval.stats = sum;
                return interval;
            }
        }
    }

    #[test]
    fn a_worker_that_panics_says_so_and_its_accounts_are_kept() {
        // Nowhere to connect to: the engine refuses such a job, a worker stumbles over it.
        let shared = shared(Vec::new());
        let last = run(&shared);
        let Some(Completion::Internal(text)) = &last.completion else { panic!("{last:?}") };
        assert!(text.starts_with("a worker failed: index out of bounds"), "{text}");
        assert_eq!(last.stats.total().not_started_total(), 10);
        assert!(shared.failed.load(Relaxed));
    }

    #[test]
    fn the_other_workers_stop_when_one_has_failed() {
        let shared = shared(vec![SocketAddr::from(([127, 0, 0, 1], 9))]);
        shared.failed.store(true, Relaxed);
        let last = run(&shared);
        assert_eq!(last.completion, Some(Completion::Stopped));
        let total = last.stats.total();
        assert_eq!(total.started + total.not_started_total(), 10);
    }
}
