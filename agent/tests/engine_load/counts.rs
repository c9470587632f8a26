//! Exactly the plan's requests, over no more than its connections.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use inrush_agent::engine::{Engine, connect_first};
use inrush_testkit::{LONG, Target};

use crate::support::{Running, against, job, run, with_header, workload};

#[test]
fn a_plan_starts_exactly_its_requests_whatever_connections_and_workers_it_has() {
    for (requests, connections) in [(1, 200), (401, 400), (7, 3), (3, 8), (1, 1)] {
        for workers in [1, 2, 3] {
            let target = Target::hello();
            let outcome = run(job(workload(requests, connections), target.addr(), workers));
            outcome.assert_all_succeeded(requests);
            let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
            assert_eq!(seen.requests, requests);
            let case = (requests, connections, workers);
            assert_eq!(seen.connections, requests.min(connections), "{case:?}");
            assert_eq!(outcome.stats.connections.opened, seen.connections);
            assert_eq!(outcome.stats.connections.established, seen.connections);
        }
    }
}

#[test]
fn ten_thousand_requests_over_fifty_connections_agree_with_the_targets_own_count() {
    let target = Target::hello();
    let outcome = run(job(workload(10_000, 50), target.addr(), 2));
    outcome.assert_all_succeeded(10_000);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((seen.requests, seen.responses), (10_000, 10_000));
    assert_eq!((seen.connections, seen.peak_open), (50, 50));
    assert_eq!((outcome.total.bytes_out, outcome.total.bytes_in), (seen.bytes_in, seen.bytes_out));
    assert_eq!(outcome.stats.connections.peak, 50);
    assert!(!outcome.stats.worker_lag.is_empty());
}

#[test]
fn the_first_connection_made_before_the_start_is_the_first_of_the_run() {
    let target = Target::hello();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut job = job(workload(10, 2), target.addr(), 1);
    let first = runtime.block_on(connect_first(&job.workload, &job.addresses, &[])).unwrap();
    assert_eq!(first.address(), target.addr());
    job.first_connection = Some(first);
    let outcome = run(job);
    outcome.assert_all_succeeded(10);
    assert_eq!(target.counts().connections, 2);
    assert_eq!(outcome.stats.connections.opened, 2);
}

#[test]
fn a_first_connection_that_the_target_closed_before_the_start_costs_no_request() {
    let target = Target::closing_after(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut job = job(workload(4, 1), target.addr(), 1);
    job.first_connection =
        Some(runtime.block_on(connect_first(&job.workload, &job.addresses, &[])).unwrap());
    let honest = Target::hello();
    drop(target);
    job.addresses = vec![honest.addr()];
    let outcome = run(job);
    outcome.assert_all_succeeded(4);
    assert_eq!(honest.counts().requests, 4);
    assert_eq!(outcome.stats.connections.opened, 2);
}

#[test]
fn what_is_sent_is_what_the_plan_says_and_nothing_else() {
    let target = Target::hello();
    against(&target, with_header(workload(1, 1), "x-own", "1"));
    let head = "GET /path?q=1 HTTP/1.1\r\nhost: 127.0.0.1\r\nx-own: 1\r\n\r\n";
    assert_eq!(String::from_utf8(target.requests()[0].head.clone()).unwrap(), head);
}

#[test]
fn a_body_arrives_byte_for_byte_small_or_large_also_with_a_get() {
    for method in [Method::POST, Method::GET, Method::DELETE] {
        for size in [1, 13, 5000, 3 << 20] {
            let target = Target::hello();
            let mut workload = workload(2, 1);
            let body: Vec<u8> = (0..size).map(|place: usize| (place % 251) as u8).collect();
            workload.requests[0].method = method.clone();
            workload.requests[0].body = body.clone().into();
            against(&target, workload).assert_all_succeeded(2);
            let seen = target.requests();
            assert_eq!(seen.len(), 2);
            for request in seen {
                assert_eq!(request.method(), method.as_str());
                assert_eq!(request.header("content-length"), Some(size.to_string().as_str()));
                assert!(request.body == body, "{method} {size}");
            }
        }
    }
}

#[test]
fn several_requests_take_turns_and_are_counted_apart() {
    let target = Target::hello();
    let mut workload = workload(10, 2);
    let mut second = workload.requests[0].clone();
    second.url = "http://127.0.0.1/second".parse().unwrap();
    workload.requests.push(second);
    let outcome = against(&target, workload);
    outcome.assert_all_succeeded(10);
    let mut seen = BTreeMap::new();
    for request in target.requests() {
        *seen.entry(request.path().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(seen, BTreeMap::from([("/path?q=1".to_owned(), 5), ("/second".to_owned(), 5)]));
    let started: Vec<u64> =
        outcome.stats.phases[0].requests.iter().map(|stats| stats.started).collect();
    assert_eq!(started, [5, 5]);
}

#[test]
fn a_share_without_connections_is_finished_at_once() {
    let target = Target::hello();
    let outcome = run(job(workload(0, 0), target.addr(), 2));
    outcome.assert_all_succeeded(0);
    assert_eq!(target.counts().connections, 0);
    assert!(outcome.took < Duration::from_secs(2));
}

#[test]
fn nothing_is_sent_before_the_start() {
    let target = Target::hello();
    let engine = Engine::spawn(job(workload(5, 5), target.addr(), 2)).unwrap();
    let later = inrush_agent::clock::now() + Duration::from_millis(300);
    engine.start(later);
    engine.start(later + Duration::from_secs(3600));
    target.wait_until(LONG, |counts| counts.connections > 0).unwrap();
    assert!(inrush_agent::clock::now() >= later);
    Running::of(engine, Some(5), 5).finish().assert_all_succeeded(5);
}
