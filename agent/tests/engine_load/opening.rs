//! How fast connections are opened, and where to.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use inrush_agent::clock;
use inrush_common::{outcome::ErrorClass, plan::Resolve, schedule::Rate, stats::AddressCount};
use inrush_testkit::{Received, Refusing, Script, Step, Target};

use crate::support::{job, run, workload};

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
fn a_connect_rate_holds_for_all_workers_together_and_none_opens_early() {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let target = Target::start(Arrivals(Arc::clone(&arrivals)));
    let mut workload = workload(61, 61);
    workload.connections.requests_per_connection = Some(1);
    workload.connections.connect_rate = Some(Rate::per_second(100).unwrap());
    let began = clock::now();
    let outcome = run(job(workload, target.addr(), 3));
    outcome.assert_all_succeeded(61);
    assert_eq!(outcome.stats.connections.opened, 61);
    let mut arrivals: Vec<Duration> =
        arrivals.lock().unwrap().iter().map(|at| *at - began).collect();
    arrivals.sort_unstable();
    for (place, at) in (0..).zip(&arrivals) {
        let wanted = Duration::from_millis(10) * place;
        assert!(*at >= wanted, "connection {place} came at {at:?}, before {wanted:?}");
    }
    assert!(outcome.took < Duration::from_secs(10), "{:?}", outcome.took);
}

fn counts(outcome: &crate::support::Outcome) -> BTreeMap<SocketAddr, AddressCount> {
    outcome.stats.connections.addresses.rows().collect()
}

#[test]
fn each_of_the_targets_addresses_has_its_own_counts() {
    let (one, two, nobody) = (Target::hello(), Target::hello(), Refusing::start());
    let mut workload = workload(90, 9);
    workload.connections.requests_per_connection = Some(1);
    let mut job = job(workload, one.addr(), 1);
    job.addresses.extend([two.addr(), nobody.addr()]);
    let outcome = run(job);
    let counts = counts(&outcome);
    let refused = outcome.errors(ErrorClass::ConnectRefused);
    assert_eq!(counts[&nobody.addr()], AddressCount { opened: 0, failed: refused });
    for target in [&one, &two] {
        let opened = target.counts().connections;
        assert_eq!(counts[&target.addr()], AddressCount { opened, failed: 0 });
        assert!((29..=31).contains(&opened), "{counts:?}");
    }
    assert_eq!(outcome.total.succeeded + refused, 90);
}

#[test]
fn a_name_is_looked_up_for_every_connection_and_one_that_fails_is_named() {
    let target = Target::hello();
    let (port, unknown) = (target.addr().port(), format!("{}.test", "x".repeat(70)));
    let mut workload = workload(20, 2);
    workload.connections.requests_per_connection = Some(1);
    workload.connections.resolve = Resolve::PerConnection;
    workload.connections.connect_to =
        vec![format!("localhost:{port}"), format!("{unknown}:{port}")];
    let outcome = run(job(workload, target.addr(), 1));
    assert_eq!((outcome.total.succeeded, outcome.errors(ErrorClass::DnsFailed)), (10, 10));
    let example = &outcome.total.examples[&ErrorClass::DnsFailed].text;
    assert!(example.starts_with(&unknown) && example.ends_with("(dns_failed)"), "{example}");
    assert_eq!(target.counts().connections, 10);
    let counts = counts(&outcome);
    assert_eq!(counts.len(), 1, "a name without an address is none: {counts:?}");
}

#[test]
fn many_lookups_at_once_are_all_answered() {
    let target = Target::hello();
    let port = target.addr().port();
    let mut workload = workload(200, 50);
    workload.connections.requests_per_connection = Some(1);
    workload.connections.resolve = Resolve::PerConnection;
    workload.connections.connect_to = vec![format!("localhost:{port}")];
    let outcome = run(job(workload, target.addr(), 2));
    outcome.assert_all_succeeded(200);
    assert_eq!(target.counts().connections, 200);
}
