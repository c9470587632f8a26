//! Runs that never were, with numbers that are the same every time.

use std::{
    net::SocketAddr,
    time::{Duration, UNIX_EPOCH},
};

use inrush_common::{
    assign::{Offer, split},
    id::{Epoch, SnapshotSeq},
    outcome::{ErrorClass, NotStarted, Outcome},
    plan::{
        AgentsPolicy, ClosedLoad, ConnectionPolicy, Expect, Load, OnLoss, Phase, Plan, Request,
        ThinkTime, Workload,
    },
    report::{AgentFacts, ClockOffset, Loss, Report, RunFacts, RunOutcome, build},
    schedule::{ConnectionProfile, Interleave},
    stats::{
        AddressCount, Completion, Gauges, Interval, Sample, Snapshot, SnapshotKey, Stats, Totals,
    },
    threshold::{self, Known},
};

use crate::loads;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// The facts of a run and its snapshots.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) facts: RunFacts,
    pub(crate) snapshots: Vec<Snapshot>,
}

impl Run {
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for snapshot in &self.snapshots {
            totals.add(snapshot);
        }
        totals
    }

    /// With these thresholds in its plan.
    pub(crate) fn with_thresholds(mut self, thresholds: &[&str]) -> Self {
        let known = Known::default();
        let read = thresholds.iter().map(|text| threshold::parse(text, &known).unwrap());
        self.facts.plan.thresholds = read.collect();
        self
    }

    pub(crate) fn report(&self) -> Report {
        build(&self.facts, &self.totals())
    }
}

pub(crate) fn request(name: &str) -> Request {
    Request {
        name: name.to_owned(),
        method: http::Method::GET,
        url: http::Uri::from_static("http://example.test/"),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
        expect: Expect::default(),
    }
}

pub(crate) fn closed(connections: u64, requests: Option<u64>, duration: Option<Duration>) -> Load {
    Load::Closed(ClosedLoad {
        profile: ConnectionProfile::constant(connections, 0).unwrap(),
        lanes: Interleave::whole(requests.map_or(connections, |count| count.min(connections))),
        requests,
        duration,
        think_time: ThinkTime::None,
    })
}

pub(crate) fn phase(name: &str, measure: bool, starts_at_s: u64, load: Load) -> Phase {
    Phase { name: name.to_owned(), measure, starts_at: Duration::from_secs(starts_at_s), load }
}

/// A run of one closed phase over as many agents as there are names, split evenly, in which nothing has happened.
pub(crate) fn run(
    names: &[&str],
    connections: u64,
    requests: Option<u64>,
    duration: Option<Duration>,
) -> Run {
    let load = closed(connections, requests, duration);
    run_of(names, vec![request("hello")], vec![phase(Phase::ONLY, true, 0, load)])
}

/// The same of any phases.
pub(crate) fn run_of(names: &[&str], requests: Vec<Request>, phases: Vec<Phase>) -> Run {
    let plan = Plan {
        name: "hello".to_owned(),
        workload: Workload {
            requests,
            phases,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            give_up_after: Duration::from_secs(10),
            connections: ConnectionPolicy::default(),
            seed: 1,
        },
        agents: AgentsPolicy { min: 1, on_loss: OnLoss::Continue },
        thresholds: Vec::new(),
        stop_when: Vec::new(),
    };
    let offers: Vec<Offer> = names
        .iter()
        .map(|name| Offer { agent: name.parse().unwrap(), workers: 2, max_connections: 1_000_000 })
        .collect();
    let shares = split(&plan.workload, &offers).unwrap();
    let agents = names.iter().enumerate().map(|(index, name)| {
        let share = shares.iter().find(|share| share.agent.as_str() == *name).unwrap();
        AgentFacts {
            name: share.agent.clone(),
            version: "0.1.0".to_owned(),
            hostname: format!("{name}.example.test"),
            workers: 2,
            connections: share.workload.peak_connections(),
            requested: share.workload.requested_connections(),
            planned: share.workload.phases.iter().map(|phase| phase.load.planned()).collect(),
            not_ready: None,
            lost: None,
            clock: Some(ClockOffset { offset_ns: -400_000 * index as i64, bound_ns: 300_000 }),
            started_after_ns: Some(900_000 * index as i64 - 100_000),
        }
    });
    let agents = agents.collect();
    let submitted_at = UNIX_EPOCH + Duration::from_secs(1_772_373_725);
    Run {
        facts: RunFacts {
            run: "20260301-140205-7f3c".parse().unwrap(),
            plan,
            plan_sha256: "9a1e63f5c7b2d84e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f70"
                .to_owned(),
            submitted_at,
            started_at: Some(submitted_at + Duration::from_secs(6)),
            outcome: RunOutcome::Finished,
            detail: None,
            version: "0.1.0".to_owned(),
            agents,
        },
        snapshots: Vec::new(),
    }
}

/// What happens on one agent, interval by interval.
pub(crate) struct Script {
    seed: u64,
    agent: usize,
    at_ns: u64,
    seq: u64,
}

impl Script {
    pub(crate) fn new(agent: usize) -> Self {
        Self { seed: 0x9e37_79b9_7f4a_7c15 ^ (agent as u64 + 1), agent, at_ns: 0, seq: 0 }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    fn sample(&mut self) -> Sample {
        let service = 8_000_000 + self.random() % 9_000_000 * (self.random() % 10) / 4;
        let lag = self.random() % 60_000;
        let lot = self.random() % 1_000;
        let outcome = match lot {
            0 => Outcome::Error(ErrorClass::Reset),
            1 => Outcome::Error(ErrorClass::ClosedOnReuse),
            2..=4 => Outcome::Response { status: 503, success: false },
            _ => Outcome::Response { status: 200, success: true },
        };
        Sample {
            outcome,
            response_time: service + lag,
            service_time: Some(service),
            schedule_lag: Some(lag),
            ttfb: matches!(outcome, Outcome::Response { .. }).then_some(service - 100_000),
            bytes_out: 78,
            bytes_in: if lot < 2 { 0 } else { 238 },
        }
    }

    /// One interval in which `count` requests begin and end, and `connections` are made.
    pub(crate) fn interval<'a>(
        &mut self,
        run: &'a mut Run,
        length_ns: u64,
        count: u64,
        connections: u64,
    ) -> &'a mut Snapshot {
        let from_ns = self.at_ns;
        self.at_ns += length_ns;
        self.seq += 1;
        let mut stats = Stats::new(1, 1);
        stats.phases[0].until_ns = self.at_ns;
        stats.phases[0].requests[0].started = count;
        for _ in 0..count {
            let sample = self.sample();
            stats.phases[0].requests[0].record(&sample);
            if let Outcome::Error(class) = sample.outcome {
                let text = || match class {
                    ErrorClass::Reset => "read: connection reset by peer (os error 104)".to_owned(),
                    _ => "the target closed the connection before the response".to_owned(),
                };
                stats.phases[0].requests[0].keep_example(class, from_ns, text);
            }
        }
        for _ in 0..connections {
            stats.connections.connect.record(90_000 + self.seed % 700_000);
            self.random();
        }
        stats.connections.opened = connections;
        let address = SocketAddr::from(([192, 0, 2, 10], 80));
        if connections > 0 {
            let count = AddressCount { opened: connections, failed: 0 };
            stats.connections.addresses.count(address, count);
        }
        stats.connections.established = connections;
        stats.connections.peak = run.facts.agents[self.agent].connections;
        for tick in 0..length_ns / 10_000_000 {
            stats.worker_lag.record(20_000 + tick * 1_000);
        }
        let facts = &run.facts;
        run.snapshots.push(Snapshot {
            run: facts.run.clone(),
            key: SnapshotKey {
                agent: facts.agents[self.agent].name.clone(),
                epoch: Epoch(7),
                seq: SnapshotSeq(self.seq),
            },
            interval: Interval { from_ns, to_ns: self.at_ns },
            stats,
            gauges: Gauges {
                open_connections: facts.agents[self.agent].connections,
                in_flight: 0,
                cpu_ns: length_ns,
                cpu_capacity_ns: length_ns * 2,
                resident_bytes: 40_000_000 + self.seq * 1_000_000,
                throttled_ns: 0,
            },
            completion: None,
        });
        run.snapshots.last_mut().unwrap()
    }
}

/// 20,000 requests on 100 connections of two agents in 4.5 s, a few of them failed.
pub(crate) fn normal() -> Run {
    let mut run = run(&["lab1", "lab2"], 100, Some(20_000), None);
    for agent in 0..2 {
        let mut script = Script::new(agent);
        for second in 0..4 {
            let snapshot =
                script.interval(&mut run, SECOND, 2_200, if second == 0 { 50 } else { 3 });
            if second > 0 {
                // Reconnects.
                snapshot.stats.connections.established = 0;
            }
        }
        let last = script.interval(&mut run, SECOND / 2, 1_200, 0);
        last.completion = Some(Completion::Finished);
        last.gauges.open_connections = 0;
    }
    run
}

/// Three agents; the third is lost in mid-run, the second reported a limit of its machine.
pub(crate) fn lost_agent() -> Run {
    let mut run = run(&["lab1", "lab2", "lab-with-a-rather-long-name-3"], 30, Some(9_000), None);
    run.facts.agents[2].lost =
        Some(Loss { at_ns: 2_400_000_000, evidence: "its process ended (signal 9)".to_owned() });
    for agent in 0..3 {
        let mut script = Script::new(agent);
        let seconds = if agent == 2 { 2 } else { 3 };
        for second in 0..seconds {
            script.interval(&mut run, SECOND, 1_000, if second == 0 { 10 } else { 0 });
        }
        let last = run.snapshots.last_mut().unwrap();
        if agent == 2 {
            last.stats.phases[0].requests[0].started += 10;
            last.gauges.in_flight = 10;
        } else {
            last.completion = Some(Completion::Finished);
        }
    }
    let second: SocketAddr = "[2001:db8::10]:80".parse().unwrap();
    let made = AddressCount { opened: 0, failed: 5 };
    run.snapshots[3].stats.connections.addresses.count(second, made);
    run.snapshots[3].stats.connections.failed = 5;
    run.snapshots[3].gauges.throttled_ns = 3_400_000;
    let limited = &mut run.snapshots[3].stats.phases[0].requests[0];
    limited.started += 5;
    for _ in 0..5 {
        limited.record(&Sample {
            outcome: Outcome::Error(ErrorClass::FdExhausted),
            response_time: 30_000,
            service_time: None,
            schedule_lag: None,
            ttfb: None,
            bytes_out: 0,
            bytes_in: 0,
        });
    }
    limited.keep_example(ErrorClass::FdExhausted, 5, || {
        "socket: too many open files\u{1b}[31m".to_owned()
    });
    for (agent, count) in [(0, 3_000), (1, 3_005), (2, 2_995)] {
        run.facts.agents[agent].planned = vec![Some(count)];
    }
    run
}

/// A run that never started: one agent did not get ready.
pub(crate) fn empty() -> Run {
    let mut run = run(&["lab1", "lab2"], 100, Some(20_000), None);
    run.facts.outcome = RunOutcome::Failed;
    run.facts.detail = Some("lab2 did not report ready within 30 s".to_owned());
    run.facts.started_at = None;
    for agent in &mut run.facts.agents {
        agent.started_after_ns = None;
    }
    run.facts.agents[1].clock = None;
    run.facts.agents[1].not_ready = Some("nothing heard within 30 s".to_owned());
    run
}

/// One request that took two seconds.
pub(crate) fn one_request() -> Run {
    let mut run = run(&["lab1"], 1, Some(1), None);
    let mut script = Script::new(0);
    let first = script.interval(&mut run, SECOND, 0, 1);
    first.stats.phases[0].requests[0].started = 1;
    first.gauges.in_flight = 1;
    let last = script.interval(&mut run, SECOND + 1_000_000, 0, 0);
    last.completion = Some(Completion::Finished);
    last.stats.phases[0].requests[0].record(&Sample {
        outcome: Outcome::Response { status: 200, success: true },
        response_time: 2_000_000_000,
        service_time: Some(2_000_000_000),
        schedule_lag: Some(0),
        ttfb: Some(1_999_000_000),
        bytes_out: 78,
        bytes_in: 238,
    });
    run
}

/// A look at a run under way.
pub(crate) fn running() -> Run {
    let mut run = run(&["lab1", "lab2"], 100, Some(20_000), None);
    run.facts.outcome = RunOutcome::Running;
    for agent in 0..2 {
        let snapshot = Script::new(agent).interval(&mut run, SECOND, 2_000, 50);
        snapshot.stats.phases[0].requests[0].started += 50;
        snapshot.gauges.in_flight = 50;
    }
    run
}

/// A run by duration, cancelled.
pub(crate) fn cancelled() -> Run {
    let mut run = run(&["lab1"], 10, None, Some(Duration::from_secs(60)));
    run.facts.outcome = RunOutcome::Cancelled;
    let mut script = Script::new(0);
    script.interval(&mut run, SECOND, 500, 10);
    // A second in which the target stood still.
    let stalled = script.interval(&mut run, SECOND, 0, 0);
    stalled.stats.phases[0].requests[0].started = 10;
    stalled.gauges.in_flight = 10;
    let last = script.interval(&mut run, SECOND, 0, 0);
    last.completion = Some(Completion::Stopped);
    last.gauges.in_flight = 10;
    run
}

/// A run in which every answer is an error.
pub(crate) fn all_failed() -> Run {
    let mut run = run(&["lab1"], 10, Some(2_000), None);
    let snapshot = Script::new(0).interval(&mut run, SECOND, 0, 10);
    snapshot.completion =
        Some(Completion::TargetUnreachable("connect: connection refused".to_owned()));
    let stats = &mut snapshot.stats.phases[0].requests[0];
    stats.started = 1_500;
    stats.not_started[NotStarted::TargetUnreachable as usize] = 500;
    for number in 0..1_500 {
        stats.record(&Sample {
            outcome: Outcome::Response { status: 500, success: false },
            response_time: 400_000 + number,
            service_time: Some(400_000),
            schedule_lag: Some(number),
            ttfb: Some(300_000),
            bytes_out: 78,
            bytes_in: 100,
        });
    }
    run
}

/// All of them, by name.
pub(crate) fn all() -> Vec<(&'static str, Run)> {
    let mut runs = vec![
        (
            "normal",
            normal().with_thresholds(&[
                "p99(response_time) < 30ms",
                "p98(service_time{outcome='succeeded'}) < 25ms",
                "p99.99(response_time) < 1s",
                "failed_ratio <= 0.1%",
                "throughput{phase='main'} > 4000/s",
                "count(errors.reset) == 0",
                "count(status.5xx{request='hello'}) < 1_000",
            ]),
        ),
        ("lost_agent", lost_agent()),
        ("empty", empty().with_thresholds(&["p50(response_time) < 1s", "failed_ratio < 1%"])),
        ("one_request", one_request()),
        ("running", running().with_thresholds(&["max(connect) < 1s", "p99(ttfb) <= 10ms"])),
        ("cancelled", cancelled()),
        ("all_failed", all_failed().with_thresholds(&["failed_ratio < 1%"])),
    ];
    runs.extend(loads::all().into_iter().map(|(name, run, _)| (name, run)));
    runs
}
