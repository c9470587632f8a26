//! How connections are opened, kept and opened again.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use inrush_agent::{clock, engine::connect_first};
use inrush_common::outcome::ErrorClass;
use inrush_testkit::{LONG, Received, Response, Script, Step, Target};

use crate::support::{against, job, lasting, run, with_header, with_ramp, workload};

/// Says hello and keeps the times at which connections came.
struct Arrivals(Arc<Mutex<Vec<Instant>>>);

impl Script for Arrivals {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        vec![Step::hello()]
    }

    fn on_connect(&self, _connection: u64) -> Vec<Step> {
        self.0.lock().unwrap().push(clock::now());
        Vec::new()
    }
}

#[test]
fn a_ramp_opens_the_connections_evenly_over_its_time_and_over_the_workers() {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let target = Target::start(Arrivals(Arc::clone(&arrivals)));
    let ramp = Duration::from_millis(1000);
    let workload = with_ramp(lasting(ramp + Duration::from_millis(200), 20), ramp);
    let began = clock::now();
    run(job(workload, target.addr(), 2));
    let arrivals: Vec<Duration> = arrivals.lock().unwrap().iter().map(|at| *at - began).collect();
    assert_eq!(arrivals.len(), 20);
    for (place, at) in (0..).zip(arrivals) {
        let wanted = ramp * place / 20;
        assert!(at >= wanted, "connection {place} came at {at:?}, before {wanted:?}");
        assert!(at < wanted + Duration::from_millis(500), "connection {place} came at {at:?}");
    }
}

#[test]
fn a_ramp_does_not_hold_up_a_plan_that_is_done_without_it() {
    let target = Target::hello();
    let slow = with_ramp(workload(50, 10), Duration::from_secs(1000));
    let outcome = against(&target, slow);
    outcome.assert_all_succeeded(50);
    assert_eq!(target.counts().connections, 1);
    assert!(outcome.took < Duration::from_secs(3), "{:?}", outcome.took);
}

#[test]
fn a_target_that_closes_after_some_responses_gets_every_request_once() {
    for k in [1, 3] {
        let target = Target::closing_after(k);
        let outcome = run(job(workload(300, 5), target.addr(), 2));
        let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
        // A request on its way when the target closes is lost, and neither sent again nor hidden.
        let raced = outcome.errors(ErrorClass::ClosedOnReuse);
        assert_eq!(outcome.total.failed, raced, "{:?}", outcome.total.examples);
        assert_eq!(outcome.total.succeeded, 300 - raced);
        assert_eq!(seen.requests, 300 - raced);
        assert_eq!(seen.connections, outcome.stats.connections.opened);
    }
}

#[test]
fn connection_close_by_the_plan_or_the_target_makes_a_connection_per_request() {
    let stubborn = Target::hello();
    let polite = Target::always(Response::hello().header("Connection", "close"));
    let asked = with_header(workload(60, 4), "connection", "close");
    for (target, workload) in [(stubborn, asked), (polite, workload(60, 4))] {
        let outcome = against(&target, workload);
        outcome.assert_all_succeeded(60);
        let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
        assert_eq!((seen.requests, seen.connections), (60, 60));
        assert_eq!(outcome.stats.connections.opened, 60);
        assert_eq!(outcome.stats.connections.established, 4);
        assert_eq!(outcome.stats.connections.connect.count(), 60);
        // Connecting is part of what the user waits for.
        let times = &outcome.total.succeeded_times;
        assert!(times.response_time.max() > times.service_time.min());
        assert!(times.schedule_lag.max() > Some(0));
    }
}

#[test]
fn connections_come_from_each_source_address_in_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let mut sources = Vec::new();
        for _ in 0..20 {
            let (mut stream, peer) = listener.accept().unwrap();
            sources.push(peer.ip().to_string());
            let mut head = [0; 1024];
            assert!(stream.read(&mut head).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n").unwrap();
        }
        sources
    });
    let mut job = job(workload(20, 4), addr, 1);
    job.sources = ["127.0.0.7", "127.0.0.8"].map(|text| text.parse().unwrap()).into();
    run(job).assert_all_succeeded(20);
    let sources = serving.join().unwrap();
    let from = |source: &str| sources.iter().filter(|it| *it == source).count();
    assert_eq!((from("127.0.0.7"), from("127.0.0.8")), (10, 10), "{sources:?}");
}

#[test]
fn a_source_that_is_not_of_this_machine_is_named_and_no_lack_of_ports() {
    let target = Target::hello();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let source = ["192.0.2.1".parse().unwrap()];
    let error =
        runtime.block_on(connect_first(&workload(1, 1), &[target.addr()], &source)).unwrap_err();
    assert_eq!(error.class, ErrorClass::ConnectUnreachable);
    assert_eq!(error.text, "source address 192.0.2.1 is not one of this machine's");
}
