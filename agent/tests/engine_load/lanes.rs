//! The closed model's lanes: pauses, ramps up and down.

use std::time::Duration;

use inrush_common::{
    plan::ThinkTime,
    schedule::{ConnectionProfile, ConnectionStep, Interleave},
    stats::Completion,
};
use inrush_testkit::{LONG, Received, Step, Target};

use crate::support::{against, job, lasting, nanos, run, started, with_load, workload};

const MS: u64 = 1_000_000;

#[test]
fn think_time_lies_between_a_response_and_the_next_request_and_in_no_time_of_theirs() {
    let pause = Duration::from_millis(50);
    let target = Target::hello();
    let thinking = with_load(workload(20, 2), |load| load.think_time = ThinkTime::Fixed(pause));
    let outcome = against(&target, thinking);
    outcome.assert_all_succeeded(20);
    assert_eq!(outcome.stats.connections.opened, 2);
    assert!(outcome.took >= pause * 9, "{:?}", outcome.took);
    let times = &outcome.total.succeeded_times;
    assert!(times.response_time.quantile(0.5) < Some(40 * MS), "{times:?}");
}

#[test]
fn random_pauses_have_their_mean_and_their_limits() {
    let ms = Duration::from_millis;
    for think_time in [ThinkTime::Uniform(ms(10), ms(30)), ThinkTime::Exponential(ms(20))] {
        let target = Target::hello();
        let thinking = with_load(workload(101, 1), |load| load.think_time = think_time);
        let outcome = run(job(thinking, target.addr(), 1));
        outcome.assert_all_succeeded(101);
        assert!(outcome.took > ms(1_400) && outcome.took < ms(4_000), "{:?}", outcome.took);
    }
}

#[test]
fn a_connection_that_is_closed_while_its_lane_thinks_is_replaced_and_fails_nothing() {
    let target = Target::closing_after(1);
    let thinking = with_load(workload(20, 2), |load| {
        load.think_time = ThinkTime::Fixed(Duration::from_millis(30));
    });
    let outcome = against(&target, thinking);
    outcome.assert_all_succeeded(20);
    assert_eq!(outcome.stats.connections.opened, 20);
}

#[test]
fn lanes_that_think_when_the_time_is_over_end_at_once() {
    let target = Target::hello();
    let thinking = with_load(lasting(Duration::from_millis(300), 4), |load| {
        load.think_time = ThinkTime::Fixed(LONG);
    });
    let outcome = against(&target, thinking);
    outcome.assert_all_succeeded(4);
    assert!(outcome.took < Duration::from_secs(3), "{:?}", outcome.took);
}

fn steps(steps: &[(u64, u64, u64)]) -> ConnectionProfile {
    let step = |(from, to, ms): &(u64, u64, u64)| ConnectionStep {
        from: *from,
        to: *to,
        duration_ns: nanos(Duration::from_millis(*ms)),
    };
    ConnectionProfile::steps(steps.iter().map(step).collect()).unwrap()
}

#[test]
fn connections_go_up_and_down_and_up_as_the_plan_says_and_no_request_is_lost() {
    let target =
        Target::start(|_: &Received| vec![Step::Delay(Duration::from_millis(5)), Step::hello()]);
    let workload = with_load(lasting(Duration::from_millis(1_600), 8), |load| {
        load.profile = steps(&[(0, 8, 400), (8, 0, 400), (0, 0, 200), (6, 6, 600)]);
        load.lanes = Interleave::whole(8);
    });
    let running = started(job(workload, target.addr(), 2));
    target.wait_until(LONG, |counts| counts.open >= 7).unwrap();
    target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    target.wait_until(LONG, |counts| counts.open == 6).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!((outcome.total.failed, outcome.in_flight()), (0, 0));
    assert_eq!(target.counts().requests, outcome.total.succeeded);
    assert_eq!(outcome.stats.connections.opened, 14);
    assert_eq!(target.counts().peak_open, 8);
}

#[test]
fn a_count_whose_lanes_are_all_gone_is_put_down_to_the_time() {
    let target = Target::delay(Duration::from_millis(10));
    let workload = with_load(workload(100_000, 2), |load| {
        load.profile = steps(&[(2, 2, 200), (2, 0, 50)]);
    });
    let outcome = against(&target, workload);
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!(outcome.total.failed, 0);
    let reason = inrush_common::outcome::NotStarted::DurationEnded;
    assert_eq!(outcome.total.started + outcome.not_started(reason), 100_000);
    assert!(outcome.took < Duration::from_secs(3), "{:?}", outcome.took);
}
