//! Fixed runs of phases and open loads.

use std::time::Duration;

use inrush_common::{
    outcome::{NotStarted, Outcome},
    plan::{ArrivalProcess, Load, OpenLoad, Overflow, Phase},
    report::ReasonCode,
    schedule::{Interleave, Random, Rate, RateProfile},
    stats::{Completion, Gauges, Interval, Sample, Snapshot, SnapshotKey, Stats},
};

use crate::fixtures::{Run, SECOND, closed, phase, request, run_of};

/// An open load of whole requests per second, from one rate to another.
pub(crate) fn open(from: u64, to: u64, seconds: u64, max_in_flight: u64) -> OpenLoad {
    let rate = |per_second| Rate::per_second(per_second).unwrap();
    let profile = RateProfile::ramp(rate(from), rate(to), seconds * SECOND).unwrap();
    OpenLoad {
        slots: Interleave::whole(profile.count()),
        profile,
        arrivals: ArrivalProcess::Uniform,
        max_in_flight,
        on_overflow: Overflow::Queue,
    }
}

/// What one agent does in one interval of one phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    pub(crate) phase: usize,
    /// Requests that begin; they go round the plan's requests.
    pub(crate) started: u64,
    /// Requests that end, and how many of them badly.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Their schedule lag, and their service time.
    pub(crate) lag_ns: u64,
    pub(crate) service_ns: u64,
    pub(crate) not_started: Option<(NotStarted, u64)>,
}

impl Work {
    /// So many requests that begin and end well, in about 2 ms.
    pub(crate) fn well(phase: usize, count: u64) -> Self {
        Self {
            phase,
            started: count,
            completed: count,
            lag_ns: 40_000,
            service_ns: 2_000_000,
            ..Self::default()
        }
    }
}

/// The numbers of one agent as they come in, interval by interval.
pub(crate) struct Agent {
    agent: usize,
    at_ns: u64,
    seq: u64,
    in_flight: u64,
    random: Random,
}

impl Agent {
    pub(crate) fn new(agent: usize) -> Self {
        let random = Random::stream(agent as u64, &[]);
        Self { agent, at_ns: 0, seq: 0, in_flight: 0, random }
    }

    /// The next interval.
    pub(crate) fn interval<'a>(
        &mut self,
        run: &'a mut Run,
        length_ns: u64,
        work: &[Work],
    ) -> &'a mut Snapshot {
        let from_ns = self.at_ns;
        self.at_ns += length_ns;
        self.seq += 1;
        let workload = run.facts.plan.workload.clone();
        let mut stats = Stats::new(workload.phases.len(), workload.requests.len());
        for work in work {
            self.record(&workload.phases, work, &mut stats);
        }
        if from_ns == 0 {
            let connections = run.facts.agents[self.agent].requested;
            stats.connections.opened = connections;
            stats.connections.established = connections;
            (0..connections).for_each(|_| stats.connections.connect.record(90_000));
        }
        stats.connections.peak = run.facts.agents[self.agent].connections.min(40);
        for tick in 0..length_ns / 10_000_000 {
            stats.worker_lag.record(20_000 + tick * 500);
        }
        run.snapshots.push(Snapshot {
            run: run.facts.run.clone(),
            key: SnapshotKey {
                agent: run.facts.agents[self.agent].name.clone(),
                epoch: inrush_common::id::Epoch(7),
                seq: inrush_common::id::SnapshotSeq(self.seq),
            },
            interval: Interval { from_ns, to_ns: self.at_ns },
            stats,
            gauges: Gauges {
                open_connections: 40,
                in_flight: self.in_flight,
                cpu_ns: length_ns / 2,
                cpu_capacity_ns: length_ns * 2,
                resident_bytes: 40_000_000,
                throttled_ns: 0,
            },
            completion: None,
        });
        run.snapshots.last_mut().unwrap()
    }

    fn record(&mut self, phases: &[Phase], work: &Work, stats: &mut Stats) {
        self.in_flight += work.started;
        self.in_flight -= work.completed;
        let poisson = matches!(
            &phases[work.phase].load,
            Load::Open(open) if open.arrivals == ArrivalProcess::Poisson
        );
        let phase = &mut stats.phases[work.phase];
        phase.until_ns = self.at_ns;
        let requests = phase.requests.len() as u64;
        for number in 0..work.started {
            phase.requests[(number % requests) as usize].started += 1;
            if let Load::Open(_) = &phases[work.phase].load {
                let ratio = if poisson { self.random.exponential() } else { 1.0 };
                let late = ((self.random.bits() % 20_000_000) as f64 - 10_000_000.0).round();
                phase.gaps.record((ratio * 1e9 + late).max(0.0) as u64);
            }
        }
        for number in 0..work.completed {
            let service = work.service_ns + self.random.bits() % (work.service_ns / 2 + 1);
            let failed = number < work.failed;
            let status = if failed { 503 } else { 200 };
            phase.requests[(number % requests) as usize].record(&Sample {
                outcome: Outcome::Response { status, success: !failed },
                response_time: work.lag_ns + service,
                service_time: Some(service),
                schedule_lag: Some(work.lag_ns),
                ttfb: Some(service - service / 10),
                bytes_out: 78,
                bytes_in: 238,
            });
        }
        if let Some((reason, count)) = work.not_started {
            phase.requests[0].not_started[reason as usize] += count;
        }
    }
}

fn one_open(name: &'static str, load: OpenLoad) -> Run {
    run_of(&[name], vec![request("hello")], vec![phase(Phase::ONLY, true, 0, Load::Open(load))])
}

/// Requests that are due in a second of an open phase that starts with the run.
pub(crate) fn due(load: &OpenLoad, second: u64) -> u64 {
    load.profile.planned_between(second * SECOND, (second + 1) * SECOND)
}

/// 2,000/s for 6 s by two agents, as planned.
pub(crate) fn open_valid() -> Run {
    let load = Load::Open(open(2_000, 2_000, 6, 400));
    let mut run =
        run_of(&["lab1", "lab2"], vec![request("hello")], vec![phase(Phase::ONLY, true, 0, load)]);
    for agent in 0..2 {
        let mut agent = Agent::new(agent);
        for _ in 0..6 {
            agent.interval(&mut run, SECOND, &[Work::well(0, 1_000)]);
        }
        let last = run.snapshots.last_mut().unwrap();
        last.completion = Some(Completion::Finished);
    }
    run
}

/// Twice what the target can do, and what is too much dropped.
pub(crate) fn overload_drop() -> Run {
    let load = OpenLoad { on_overflow: Overflow::Drop, ..open(1_000, 1_000, 5, 20) };
    let mut run = one_open("lab1", load);
    let mut agent = Agent::new(0);
    for second in 0..5 {
        let begun = if second == 0 { 520 } else { 500 };
        let work = Work {
            started: begun,
            completed: 500,
            service_ns: 36_000_000,
            not_started: Some((NotStarted::Dropped, 1_000 - begun)),
            ..Work::well(0, 0)
        };
        agent.interval(&mut run, SECOND, &[work]);
    }
    let rest = Work { started: 0, completed: 20, service_ns: 36_000_000, ..Work::well(0, 0) };
    let last = agent.interval(&mut run, SECOND / 20, &[rest]);
    last.completion = Some(Completion::Finished);
    run
}

/// Twice what the target can do, and what is too much waits.
pub(crate) fn overload_queue() -> Run {
    let mut run = one_open("lab1", open(1_000, 1_000, 4, 20));
    let mut agent = Agent::new(0);
    for second in 0..6 {
        let begun = if second == 0 { 520 } else { 500 };
        let work = Work {
            started: begun,
            completed: 500,
            lag_ns: second * SECOND / 2,
            service_ns: 30_000_000,
            ..Work::well(0, 0)
        };
        agent.interval(&mut run, SECOND, &[work]);
    }
    let rest = Work {
        completed: 20,
        lag_ns: 3 * SECOND,
        service_ns: 30_000_000,
        not_started: Some((NotStarted::StillQueued, 980)),
        ..Work::well(0, 0)
    };
    let last = agent.interval(&mut run, SECOND / 20, &[rest]);
    last.completion = Some(Completion::Finished);
    run
}

/// A closed warm-up of 2 s whose last answers come when the measured phase is at work; two agents and two requests.
pub(crate) fn warm_up() -> Run {
    let phases = vec![
        phase("warm-up", false, 0, closed(10, None, Some(Duration::from_secs(2)))),
        phase("peak", true, 2, closed(40, Some(6_000), None)),
    ];
    let requests = vec![request("read"), request("write")];
    let mut run = run_of(&["lab1", "lab2"], requests, phases);
    for number in 0..2 {
        let mut agent = Agent::new(number);
        let slow = Work { completed: 290, failed: 3, service_ns: 9_000_000, ..Work::well(0, 300) };
        agent.interval(&mut run, SECOND, &[slow]);
        agent.interval(&mut run, SECOND, &[slow]);
        let rest = Work { started: 0, completed: 20, failed: 20, ..slow };
        agent.interval(&mut run, SECOND, &[rest, Work::well(1, 2_000)]);
        let last = agent.interval(&mut run, SECOND / 2, &[Work::well(1, 1_000)]);
        last.completion = Some(Completion::Finished);
    }
    run
}

/// A ramp of Poisson arrivals.
pub(crate) fn poisson() -> Run {
    let load = OpenLoad { arrivals: ArrivalProcess::Poisson, ..open(100, 300, 8, 500) };
    let mut run = one_open("lab1", load.clone());
    let mut agent = Agent::new(0);
    let mut left = load.slots.count();
    let chance = [4, -9, 12, -20, 15, 3, -11, 0];
    for (second, chance) in (0..8).zip(chance) {
        let count = due(&load, second).saturating_add_signed(chance).min(left);
        let count = if second == 7 { left } else { count };
        left -= count;
        agent.interval(&mut run, SECOND, &[Work::well(0, count)]);
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    run
}

/// A closed phase, then an open ramp while another closed one goes on beside it; all measured.
pub(crate) fn mixed() -> Run {
    let ramp = open(200, 1_000, 5, 300);
    let phases = vec![
        phase("steady", true, 0, closed(10, None, Some(Duration::from_secs(3)))),
        phase("ramp", true, 2, Load::Open(ramp.clone())),
    ];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    for second in 0..7 {
        let closed = (second < 3).then(|| Work::well(0, 800));
        let open = (second >= 2).then(|| Work::well(1, due(&ramp, second - 2)));
        let work: Vec<Work> = closed.into_iter().chain(open).collect();
        agent.interval(&mut run, SECOND, &work);
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    run
}

/// All of them, by name, with what their verdicts say.
pub(crate) fn all() -> Vec<(&'static str, Run, &'static [ReasonCode])> {
    vec![
        ("open_valid", open_valid(), &[]),
        ("overload_drop", overload_drop(), &[ReasonCode::Overload]),
        ("overload_queue", overload_queue(), &[ReasonCode::Overload]),
        ("warm_up", warm_up(), &[]),
        ("poisson", poisson(), &[]),
        ("mixed", mixed(), &[]),
    ]
}
