//! Runs an engine to its end and checks its accounts.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use inrush_agent::{
    clock,
    engine::{Engine, EngineInterval, Job},
};
use inrush_common::{
    outcome::{ErrorClass, NotStarted},
    plan::{
        ArrivalProcess, ClosedLoad, ConnectionPolicy, Expect, Header, Load, OpenLoad, Overflow,
        Phase, Request, ThinkTime, Workload,
    },
    schedule::{ConnectionProfile, Interleave, Rate, RateProfile},
    stats::{Completion, RequestStats, Stats},
};
use inrush_testkit::Target;

/// No run of these tests takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// A workload of one GET, by count.
pub(crate) fn workload(requests: u64, connections: u64) -> Workload {
    closed(closed_load(connections, Some(requests), None))
}

/// A workload of one GET, by time.
pub(crate) fn lasting(duration: Duration, connections: u64) -> Workload {
    closed(closed_load(connections, None, Some(duration)))
}

/// Connections that are all there from the start.
pub(crate) fn closed_load(
    connections: u64,
    requests: Option<u64>,
    duration: Option<Duration>,
) -> ClosedLoad {
    let lanes = requests.map_or(connections, |requests| requests.min(connections));
    ClosedLoad {
        profile: ConnectionProfile::constant(connections, 0).unwrap(),
        lanes: Interleave::whole(lanes),
        requests,
        duration,
        think_time: ThinkTime::None,
    }
}

fn closed(load: ClosedLoad) -> Workload {
    phased(vec![phase("main", Duration::ZERO, Load::Closed(load))])
}

/// Requests at a rate, evenly.
pub(crate) fn open_load(per_second: u64, duration: Duration, max_in_flight: u64) -> OpenLoad {
    let rate = Rate::from_micro(per_second * 1_000_000).unwrap();
    of_profile(RateProfile::constant(rate, nanos(duration)).unwrap(), max_in_flight)
}

/// Requests as a profile has them, evenly.
pub(crate) fn of_profile(profile: RateProfile, max_in_flight: u64) -> OpenLoad {
    OpenLoad {
        slots: Interleave::whole(profile.count()),
        profile,
        arrivals: ArrivalProcess::Uniform,
        max_in_flight,
        on_overflow: Overflow::Queue,
    }
}

/// A workload of one GET in one phase of the open model.
pub(crate) fn open(load: OpenLoad) -> Workload {
    phased(vec![phase("main", Duration::ZERO, Load::Open(load))])
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

/// A measured phase.
pub(crate) fn phase(name: &str, starts_at: Duration, load: Load) -> Phase {
    Phase { name: name.to_owned(), measure: true, starts_at, load }
}

/// A workload of one GET in these phases.
pub(crate) fn phased(phases: Vec<Phase>) -> Workload {
    Workload {
        requests: vec![Request {
            name: "it".to_owned(),
            method: http::Method::GET,
            url: "http://127.0.0.1/path?q=1".parse().unwrap(),
            headers: Vec::new(),
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        }],
        phases,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
        grace: Duration::from_secs(5),
        give_up_after: Duration::from_secs(10),
        connections: ConnectionPolicy::default(),
        seed: 1,
    }
}

/// Opens the connections of a workload evenly over a time.
pub(crate) fn with_ramp(workload: Workload, ramp: Duration) -> Workload {
    with_load(workload, |load| {
        load.profile = ConnectionProfile::constant(load.profile.peak(), nanos(ramp)).unwrap();
    })
}

/// Changes the load of a workload.
pub(crate) fn with_load(mut workload: Workload, change: impl FnOnce(&mut ClosedLoad)) -> Workload {
    let Load::Closed(load) = &mut workload.phases[0].load else { panic!("a closed load") };
    change(load);
    workload
}

/// Adds a header to the workload's request.
pub(crate) fn with_header(mut workload: Workload, name: &str, value: &str) -> Workload {
    let (name, value) = (name.parse().unwrap(), value.parse().unwrap());
    workload.requests[0].headers.push(Header { name, value });
    workload
}

/// A job for one target.
pub(crate) fn job(workload: Workload, addr: SocketAddr, workers: usize) -> Job {
    Job {
        bounds: inrush_agent::bounds::Bounds::default(),
        workload,
        addresses: vec![addr],
        sources: Vec::new(),
        workers: NonZeroUsize::new(workers).unwrap(),
        first_connection: None,
    }
}

/// Starts a job at once.
pub(crate) fn started(job: Job) -> Running {
    let planned = job.workload.planned_requests();
    // What a phase left in flight may be there still when the next one has all of its own.
    let phases = job.workload.phases.iter().map(|phase| phase.load.connections());
    let connections = phases.sum::<u64>() + job.workload.connections.hold;
    let engine = Engine::spawn(job).unwrap();
    engine.start(clock::now());
    Running::of(engine, planned, connections)
}

/// Runs a job to its end.
pub(crate) fn run(job: Job) -> Outcome {
    started(job).finish()
}

/// Runs a workload against a target to its end, with one worker.
pub(crate) fn against(target: &Target, workload: Workload) -> Outcome {
    run(job(workload, target.addr(), 1))
}

/// An engine at work.
pub(crate) struct Running {
    pub(crate) engine: Engine,
    planned: Option<u64>,
    connections: u64,
    began: Instant,
    intervals: Vec<EngineInterval>,
}

impl Running {
    /// A run of an engine that is started otherwise.
    pub(crate) fn of(engine: Engine, planned: Option<u64>, connections: u64) -> Self {
        Self { engine, planned, connections, began: clock::now(), intervals: Vec::new() }
    }

    /// Waits for the next interval.
    pub(crate) fn next(&mut self) -> EngineInterval {
        let interval = self.collect().expect("the run goes on");
        self.intervals.push(interval.clone());
        interval
    }

    fn collect(&mut self) -> Option<EngineInterval> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let next = async { tokio::time::timeout(LIMIT, self.engine.next()).await };
        runtime.block_on(next).expect("intervals come every second")
    }

    /// Collects all intervals and checks the accounts.
    pub(crate) fn finish(mut self) -> Outcome {
        while let Some(interval) = self.collect() {
            self.intervals.push(interval);
            assert!(clock::now() - self.began < LIMIT, "a run ends");
        }
        let intervals = self.intervals;
        let took = clock::now() - self.began;
        let mut stats = Stats::default();
        for interval in &intervals {
            stats.add_interval(&interval.stats);
        }
        let outcome = Outcome { total: stats.total(), stats, intervals, took };
        outcome.check(self.planned, self.connections);
        outcome
    }
}

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) intervals: Vec<EngineInterval>,
    pub(crate) stats: Stats,
    pub(crate) total: RequestStats,
    pub(crate) took: Duration,
}

impl Outcome {
    pub(crate) fn completion(&self) -> &Completion {
        self.intervals.last().unwrap().completion.as_ref().unwrap()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.intervals.last().unwrap().in_flight
    }

    pub(crate) fn errors(&self, class: ErrorClass) -> u64 {
        self.total.errors[class as usize]
    }

    /// The accounts of a phase.
    pub(crate) fn phase(&self, index: usize) -> RequestStats {
        self.stats.phases[index].total()
    }

    pub(crate) fn not_started(&self, reason: NotStarted) -> u64 {
        self.total.not_started[reason as usize]
    }

    /// Requests that the target must have seen, or at least have been sent.
    pub(crate) fn sent(&self) -> u64 {
        self.total.started - self.connect_failures()
    }

    pub(crate) fn connect_failures(&self) -> u64 {
        let classes = ErrorClass::ALL.into_iter().filter(|class| class.is_connect());
        classes.map(|class| self.errors(class)).sum()
    }

    /// That all was answered as the plan wants it.
    #[track_caller]
    pub(crate) fn assert_all_succeeded(&self, requests: u64) {
        let total = &self.total;
        assert_eq!((total.succeeded, total.failed), (requests, 0), "{:?}", total.examples);
        assert_eq!(self.completion(), &Completion::Finished);
    }

    fn check(&self, planned: Option<u64>, connections: u64) {
        let total = &self.total;
        let completed = total.completed();
        assert_eq!(total.started, completed + self.in_flight(), "started = completed + in flight");
        match planned {
            Some(planned) => assert_eq!(planned, total.started + total.not_started_total()),
            None => assert_eq!(total.not_started_total(), 0),
        }
        let answered = total.statuses.values();
        let answered: u64 = answered.map(|count| count.succeeded + count.failed).sum();
        assert_eq!(completed, answered + total.errors.iter().sum::<u64>());

        assert_eq!(total.succeeded_times.response_time.count(), total.succeeded);
        assert_eq!(total.succeeded_times.service_time.count(), total.succeeded);
        assert_eq!(total.succeeded_times.schedule_lag.count(), total.succeeded);
        assert_eq!(total.succeeded_times.ttfb.count(), total.succeeded);
        assert_eq!(total.failed_times.response_time.count(), total.failed);
        let sent_and_failed = total.failed - self.connect_failures();
        assert_eq!(total.failed_times.service_time.count(), sent_and_failed);
        assert_eq!(total.failed_times.schedule_lag.count(), sent_and_failed);

        let made = &self.stats.connections;
        assert_eq!(made.opened, made.closed, "all is closed at the end");
        assert_eq!(made.opened, made.connect.count());
        assert_eq!(made.failed, self.connect_failures());
        assert!(made.established <= connections && made.peak <= connections, "{made:?}");

        let last = self.intervals.last().unwrap();
        assert_eq!(last.open_connections, 0);
        let mut end = 0;
        for (place, interval) in self.intervals.iter().enumerate() {
            assert_eq!(interval.interval.from_ns, end, "intervals have no gap");
            assert!(interval.interval.to_ns >= end);
            end = interval.interval.to_ns;
            assert_eq!(interval.completion.is_some(), place + 1 == self.intervals.len());
            assert!(interval.stats.connections.peak >= interval.open_connections);
        }
    }
}
