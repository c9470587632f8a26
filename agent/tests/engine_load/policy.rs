//! How connections are kept: for how many requests, and without any.

use std::{collections::BTreeMap, time::Duration};

use inrush_common::{outcome::ErrorClass, stats::Completion};
use inrush_testkit::{LONG, Received, Script, Step, Target};

use crate::support::{against, job, lasting, open, open_load, run, started, with_header, workload};

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own_and_says_so() {
    let target = Target::hello();
    let mut workload = workload(60, 4);
    workload.connections.requests_per_connection = Some(1);
    let outcome = against(&target, workload.clone());
    outcome.assert_all_succeeded(60);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((seen.requests, seen.connections), (60, 60));
    assert_eq!(outcome.stats.connections.opened, 60);
    let says_close = |request: &Received| request.header("connection") == Some("close");
    assert!(target.requests().iter().all(says_close));
    // Connecting is part of what the user waits for.
    let times = &outcome.total.succeeded_times;
    assert!(times.schedule_lag.max() > Some(0));

    let own = Target::hello();
    against(&own, with_header(workload, "connection", "x-own")).assert_all_succeeded(60);
    assert!(own.requests().iter().all(|request| request.header("connection") == Some("x-own")));
    assert_eq!(own.counts().connections, 60);
}

#[test]
fn a_connection_is_replaced_after_so_many_requests() {
    for open_model in [false, true] {
        let target = Target::hello();
        let mut workload = match open_model {
            false => workload(60, 4),
            true => open(open_load(60, Duration::from_secs(1), 4)),
        };
        workload.connections.requests_per_connection = Some(3);
        let outcome = run(job(workload, target.addr(), 2));
        outcome.assert_all_succeeded(60);
        let mut used = BTreeMap::<u64, Vec<bool>>::new();
        for request in target.requests() {
            let last = request.header("connection") == Some("close");
            used.entry(request.connection).or_default().push(last);
        }
        let whole = [false, false, true];
        assert!(used.values().all(|said| whole.starts_with(said)), "{used:?}");
        assert!(used.len() >= 20, "{used:?}");
        assert_eq!(outcome.stats.connections.opened, used.len() as u64);
    }
}

/// Says hello, and ends the first connections that bring no request when it is told to.
struct EndsIdle {
    first: u64,
}

impl Script for EndsIdle {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        vec![Step::hello()]
    }

    fn on_connect(&self, connection: u64) -> Vec<Step> {
        if connection < self.first { vec![Step::Close] } else { Vec::new() }
    }
}

#[test]
fn held_connections_are_there_for_the_whole_run_and_carry_nothing() {
    let target = Target::hello();
    let mut workload = lasting(Duration::from_millis(500), 2);
    workload.connections.hold = 5;
    let running = started(job(workload, target.addr(), 2));
    target.wait_until(LONG, |counts| counts.open == 7).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!(outcome.total.failed, 0);
    let made = &outcome.stats.connections;
    assert_eq!((made.opened, made.peak, made.established), (7, 7, 7));
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!(seen.requests, outcome.total.succeeded);
    let users: std::collections::BTreeSet<u64> =
        target.requests().iter().map(|request| request.connection).collect();
    assert_eq!(users.len(), 2, "no held connection was used");
}

#[test]
fn a_held_connection_that_the_target_ends_is_opened_again_and_is_no_error() {
    let target = Target::start(EndsIdle { first: 3 });
    let mut workload = open(open_load(1, Duration::from_secs(2), 1));
    workload.connections.hold = 3;
    let outcome = against(&target, workload);
    assert_eq!(outcome.completion(), &Completion::Finished);
    let lost = outcome.errors(ErrorClass::ClosedBeforeResponse) + outcome.errors(ErrorClass::Reset);
    assert_eq!(outcome.total.failed, lost, "{:?}", outcome.total.examples);
    assert!(lost <= 1, "only a connection that was closed at once fails its request");
    assert!((5..=7).contains(&outcome.stats.connections.opened), "{:?}", outcome.stats.connections);
}
