//! The open model: requests start on a schedule.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use inrush_agent::{clock, engine::Engine};
use inrush_common::{
    outcome::{ErrorClass, NotStarted},
    plan::{ArrivalProcess, OpenLoad, Overflow},
    schedule::{Interleave, Rate, RateProfile, critical_distance, distance_of_buckets},
};
use inrush_testkit::{LONG, Received, Refusing, Script, Step, Target};

use crate::support::{
    Outcome, Running, against, job, lasting, nanos, of_profile, open, open_load, run,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: u64 = 1_000_000;

/// Says hello and keeps when each request came.
#[derive(Clone, Default)]
struct Arrivals(Arc<Mutex<Vec<Instant>>>);

impl Script for Arrivals {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        self.0.lock().unwrap().push(clock::now());
        vec![Step::hello()]
    }
}

impl Arrivals {
    fn since(&self, start: Instant) -> Vec<u64> {
        let mut times: Vec<u64> =
            self.0.lock().unwrap().iter().map(|at| nanos(*at - start)).collect();
        times.sort_unstable();
        times
    }
}

#[test]
fn an_open_run_starts_exactly_the_requests_of_its_schedule() {
    for arrivals in [ArrivalProcess::Uniform, ArrivalProcess::Poisson] {
        for workers in [1, 2] {
            let target = Target::hello();
            let load = OpenLoad { arrivals, ..open_load(1_000, SECOND, 100) };
            let outcome = run(job(open(load), target.addr(), workers));
            outcome.assert_all_succeeded(1_000);
            assert_eq!(target.counts().requests, 1_000);
            assert!(outcome.took >= SECOND, "the time after the last request is part of the run");
            let until = outcome.stats.phases[0].until_ns;
            assert!((nanos(SECOND)..3 * nanos(SECOND)).contains(&until), "{until}");
            let gaps = outcome.stats.phases[0].gaps.count();
            assert!(gaps > 800 && gaps <= 1_000 - workers as u64, "{gaps}");
            assert!(outcome.stats.worker_lag.count() > 1_000, "each start says how late it was");
        }
    }
}

#[test]
fn a_low_rate_needs_few_connections_and_shows_no_latency_of_its_own() {
    let target = Target::hello();
    let outcome = against(&target, open(open_load(50, SECOND, 1_000)));
    outcome.assert_all_succeeded(50);
    let opened = outcome.stats.connections.opened;
    assert!(opened <= 10, "{opened} connections for 50 requests, one after the other");
    let times = &outcome.total.succeeded_times;
    assert!(times.response_time.quantile(0.5) < Some(20 * MS), "{times:?}");
    assert!(times.schedule_lag.quantile(0.5) < Some(10 * MS), "{times:?}");
}

/// Says hello, but not in the half second after its hundredth request.
struct Stalling(Mutex<Option<Instant>>);

const STALL: Duration = Duration::from_millis(500);

impl Script for Stalling {
    fn on_request(&self, request: &Received) -> Vec<Step> {
        let mut until = self.0.lock().unwrap();
        if request.number == 100 {
            *until = Some(clock::now() + STALL);
        }
        let left = until.map(|until| until.saturating_duration_since(clock::now()));
        vec![Step::Delay(left.unwrap_or_default()), Step::hello()]
    }
}

fn with_a_stall(workload: inrush_common::plan::Workload) -> Outcome {
    let outcome = against(&Target::start(Stalling(Mutex::new(None))), workload);
    assert_eq!((outcome.total.failed, outcome.in_flight()), (0, 0));
    outcome
}

#[test]
fn a_stall_of_the_target_is_in_the_response_time_of_all_that_should_have_started_in_it() {
    let outcome = with_a_stall(open(open_load(500, 3 * SECOND, 5)));
    outcome.assert_all_succeeded(1_500);
    let times = &outcome.total.succeeded_times;
    // A sixth of the requests met the stall, and five of them were sent into it.
    let (response_time, service_time) = (&times.response_time, &times.service_time);
    assert!(response_time.quantile(0.99) > Some(400 * MS), "{response_time:?}");
    assert!(response_time.quantile(0.95) > Some(200 * MS), "{response_time:?}");
    assert!(service_time.quantile(0.98) < Some(200 * MS), "{service_time:?}");
    assert!(times.schedule_lag.quantile(0.99) > Some(400 * MS), "{times:?}");

    let times = with_a_stall(lasting(3 * SECOND, 5)).total.succeeded_times;
    assert!(times.response_time.quantile(0.5) < Some(100 * MS), "{times:?}");
    assert!(times.service_time.quantile(0.5) < Some(100 * MS), "{times:?}");
}

/// Four at a time, 20 ms each, come to 200 a second. Twice that is planned.
fn overloaded(on_overflow: Overflow, grace: Duration) -> (Outcome, u64) {
    let target = Target::delay(Duration::from_millis(20));
    let load = OpenLoad { on_overflow, ..open_load(400, SECOND, 4) };
    let mut workload = open(load);
    workload.grace = grace;
    let outcome = run(job(workload, target.addr(), 2));
    (outcome, target.counts().peak_in_flight)
}

#[test]
fn more_than_the_target_can_do_waits_and_is_all_done_with_enough_grace() {
    let (outcome, peak) = overloaded(Overflow::Queue, LONG);
    outcome.assert_all_succeeded(400);
    assert!(peak <= 4, "{peak}");
    assert!(outcome.total.succeeded_times.response_time.quantile(0.9) > Some(500 * MS));
    assert!(outcome.stats.phases[0].until_ns > nanos(SECOND));
    assert!(outcome.stats.connections.opened <= 4);
}

#[test]
fn what_waits_still_when_the_grace_is_over_is_accounted_for() {
    let (outcome, peak) = overloaded(Overflow::Queue, Duration::from_millis(100));
    assert!(peak <= 4, "{peak}");
    let waiting = outcome.not_started(NotStarted::StillQueued);
    assert!(waiting > 50, "{waiting}");
    assert_eq!(outcome.total.started + waiting, 400);
    assert_eq!(outcome.total.not_started_total(), waiting);
    assert!(outcome.in_flight() <= 4);
}

#[test]
fn more_than_the_target_can_do_is_dropped_where_the_plan_says_so() {
    let (outcome, peak) = overloaded(Overflow::Drop, LONG);
    assert!(peak <= 4, "{peak}");
    let dropped = outcome.not_started(NotStarted::Dropped);
    assert!(dropped > 50, "{dropped}");
    assert_eq!(outcome.total.started + dropped, 400);
    assert_eq!(outcome.total.succeeded, outcome.total.started);
    assert!(outcome.total.succeeded_times.response_time.quantile(0.5) < Some(300 * MS));
}

#[test]
fn a_ramp_starts_as_many_requests_as_its_integral() {
    let rate = |per_second: u64| Rate::from_micro(per_second * 1_000_000).unwrap();
    for (from, to) in [(100, 3_000), (0, 500), (3, 1)] {
        let profile = RateProfile::ramp(rate(from), rate(to), nanos(SECOND)).unwrap();
        let target = Target::hello();
        let outcome = run(job(open(of_profile(profile, 200)), target.addr(), 2));
        outcome.assert_all_succeeded((from + to) / 2);
        assert_eq!(target.counts().requests, (from + to) / 2);
    }
}

#[test]
fn a_number_spread_over_a_time_is_started_to_the_last_and_not_in_a_burst() {
    let arrivals = Arrivals::default();
    let target = Target::start(arrivals.clone());
    let profile = RateProfile::spread(37, nanos(SECOND)).unwrap();
    let start = clock::now();
    run(job(open(of_profile(profile, 37)), target.addr(), 2)).assert_all_succeeded(37);
    let came = arrivals.since(start);
    let early = came.iter().filter(|came| **came < nanos(SECOND) / 2).count();
    assert!(early <= 19, "{came:?}");
}

#[test]
fn one_three_and_seven_agents_start_the_same_requests_at_the_same_times() {
    let load = open_load(300, SECOND, 70);
    for agents in [1, 3, 7_u64] {
        let arrivals = Arrivals::default();
        let target = Target::start(arrivals.clone());
        let counts = inrush_common::assign::by_weight(300, &vec![1; agents as usize]);
        let start = clock::now() + Duration::from_millis(50);
        let running: Vec<_> = Interleave::deal(&counts)
            .unwrap()
            .into_iter()
            .map(|slots| {
                let count = slots.count();
                let share = OpenLoad { slots, max_in_flight: 10, ..load.clone() };
                let engine = Engine::spawn(job(open(share), target.addr(), 1)).unwrap();
                engine.start(start);
                thread::spawn(move || {
                    Running::of(engine, Some(count), 10).finish().assert_all_succeeded(count);
                })
            })
            .collect();
        running.into_iter().for_each(|run| run.join().unwrap());
        let came = arrivals.since(start);
        let due: Vec<u64> = (0..300).filter_map(|k| load.profile.due(k)).collect();
        assert_eq!(came.len(), due.len());
        let mut late: Vec<u64> = came
            .iter()
            .zip(&due)
            .map(|(came, due)| came.checked_sub(*due).expect("nothing comes before it is due"))
            .collect();
        late.sort_unstable();
        assert!(late[150] < 10 * MS, "{agents} agents: {late:?}");
    }
}

#[test]
fn independent_arrivals_have_exponential_gaps_and_even_ones_have_not() {
    let distance = |arrivals| {
        let target = Target::hello();
        // Gaps long against what a busy machine is late by.
        let load = OpenLoad { arrivals, ..open_load(25, 3 * SECOND, 100) };
        let gaps = against(&target, open(load)).stats.phases.remove(0).gaps;
        assert!(gaps.count() > 60, "{gaps:?}");
        let buckets: Vec<(f64, u64)> =
            gaps.buckets().iter().map(|(gap, count)| (*gap as f64 / 1e9, *count)).collect();
        distance_of_buckets(buckets.into_iter()).unwrap() / critical_distance(gaps.count())
    };
    let (poisson, uniform) = (distance(ArrivalProcess::Poisson), distance(ArrivalProcess::Uniform));
    assert!(poisson < 1.5, "{poisson}");
    assert!(uniform > 2.0, "{uniform}");
}

#[test]
fn a_request_whose_connection_cannot_be_made_fails_with_the_reason() {
    let nobody = Refusing::start();
    let outcome = run(job(open(open_load(100, SECOND, 10)), nobody.addr(), 2));
    assert_eq!(outcome.errors(ErrorClass::ConnectRefused), 100, "{:?}", outcome.total.examples);
    assert_eq!(outcome.stats.connections.failed, 100);
}

#[test]
fn a_connection_that_the_target_closed_while_it_was_idle_costs_no_request() {
    let target = Target::closing_after(1);
    let outcome = run(job(open(open_load(50, SECOND, 10)), target.addr(), 1));
    // One that is closed just when it is used again is the race that any client can lose.
    let raced = outcome.errors(ErrorClass::ClosedOnReuse);
    assert!(raced <= 5, "{:?}", outcome.total.examples);
    assert_eq!(outcome.total.succeeded, 50 - raced);
    assert_eq!(outcome.stats.connections.opened, 50 - raced);
}

#[test]
fn a_stop_in_an_overload_accounts_for_what_waits_and_what_was_still_to_come() {
    let target = Target::gated();
    let mut job = job(open(open_load(200, LONG, 4)), target.addr(), 2);
    // What a worker began before it heard of the stop is not let go, and given up.
    job.workload.grace = Duration::from_millis(300);
    let planned = job.workload.planned_requests().unwrap();
    let running = crate::support::started(job);
    target.wait_until(LONG, |counts| counts.in_flight == 4).unwrap();
    running.engine.stop(inrush_agent::engine::StopMode::Drain, NotStarted::ThresholdBroken);
    target.release(4);
    let outcome = running.finish();
    let not_started = outcome.not_started(NotStarted::ThresholdBroken);
    assert_eq!(outcome.total.started + not_started, planned);
    assert!((4..=8).contains(&outcome.total.started), "{}", outcome.total.started);
    assert_eq!(outcome.completion(), &inrush_common::stats::Completion::Stopped);
}

#[test]
fn rows_take_turns_also_where_requests_are_dropped() {
    let target = Target::delay(Duration::from_millis(20));
    let load = OpenLoad { on_overflow: Overflow::Drop, ..open_load(400, SECOND, 2) };
    let mut workload = open(load);
    let mut second = workload.requests[0].clone();
    second.name = "second".to_owned();
    workload.requests.push(second);
    let outcome = against(&target, workload);
    let planned = outcome.stats.phases[0]
        .requests
        .iter()
        .map(|row| row.started + row.not_started_total())
        .collect::<Vec<_>>();
    assert_eq!(planned, [200, 200]);
}
