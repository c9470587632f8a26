//! An agent and a coordinator that does what the test says: the life of a run.

mod session_support;

use inrush_common::{
    outcome::NotStarted,
    stats::{Completion, SHAPE},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{not_ready::Kind, stop::Mode},
};
use inrush_testkit::{LONG, Refusing, Target};
use session_support::{AHEAD_NS, Agent, Coordinator, sum, workload};

const MANY: u64 = 1_000_000;

#[tokio::test]
async fn one_run_after_the_other_is_prepared_started_handed_in_and_released() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;

    let hello = &conn.hello;
    assert_eq!((hello.protocol, hello.name.as_str(), hello.epoch), (PROTOCOL_VERSION, "lab1", 7));
    assert_eq!((hello.run.as_str(), hello.histogram_shape.as_str()), ("", SHAPE));
    assert_eq!(hello.labels["rack"], "2");
    assert!(hello.capacity.unwrap().files > 0 && !hello.host.as_ref().unwrap().hostname.is_empty());

    for (run, requests) in [("r1", 50), ("r2", 7)] {
        let before = target.counts().requests;
        conn.assign(run, &workload(&target.url("/"), 2, requests)).await;
        conn.ready(run).await;
        assert_eq!(target.counts().requests, before, "nothing is sent before the start");
        let at_ns = conn.start(run).await;
        let started = conn.started(run).await;
        let off = started.at_ns.abs_diff(at_ns);
        assert!(off <= 2 * started.bound_ns + 1_000_000_000, "started {off} ns off");
        let results = conn.results().await;
        let numbers: Vec<u64> = results.iter().map(|snapshot| snapshot.key.seq.0).collect();
        assert_eq!(numbers, (1..=results.len() as u64).collect::<Vec<_>>());
        assert_eq!(results.last().unwrap().completion, Some(Completion::Finished));
        let sum = sum(&results);
        assert_eq!((sum.started, sum.succeeded, sum.not_started), (requests, requests, 0));
        assert_eq!(target.counts().requests, before + requests);
        assert!(results[0].gauges.resident_bytes > 0 && results[0].gauges.cpu_capacity_ns > 0);
        conn.release(run).await;
    }

    conn.assign("r1", &workload(&target.url("/"), 2, 50)).await;
    let (kind, detail) = conn.not_ready("r1").await;
    assert_eq!(kind, Kind::Internal);
    assert!(detail.contains("executed here before"), "{detail}");
    assert_eq!(target.counts().requests, 57, "a run is executed once");
}

#[tokio::test]
async fn the_clocks_are_compared_before_the_agent_says_ready() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 1, 1)).await;
    let estimate = conn.heartbeats.iter().rev().find_map(|heartbeat| {
        heartbeat.offset_ns.map(|offset| (offset, heartbeat.offset_bound_ns))
    });
    let (offset, bound) = estimate.expect("a heartbeat with an estimate");
    // Both clocks are this process's, so the offset is known.
    assert!(offset.abs_diff(AHEAD_NS as i64) <= bound, "{offset} ± {bound}");
}

#[tokio::test]
async fn a_target_that_refuses_is_named_with_its_address() {
    let refusing = Refusing::start();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    let url = format!("http://{}/", refusing.addr());
    conn.assign("r1", &workload(&url, 1, 1)).await;
    let (kind, detail) = conn.not_ready("r1").await;
    assert_eq!(kind, Kind::TargetUnreachable);
    assert!(detail.starts_with(&refusing.addr().to_string()), "{detail}");
    assert!(detail.contains("refused"), "{detail}");

    // It is free again at once, and a run that failed to prepare may come again.
    let target = Target::hello();
    conn.run("r1", &workload(&target.url("/"), 1, 1)).await;
    assert_eq!(sum(&conn.results().await).succeeded, 1);
}

#[tokio::test]
async fn an_agent_with_nothing_to_send_is_ready_without_connecting() {
    let refusing = Refusing::start();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    let url = format!("http://{}/", refusing.addr());
    for (run, connections) in [("r1", 3), ("r2", 0)] {
        conn.run(run, &workload(&url, connections, 0)).await;
        let results = conn.results().await;
        assert_eq!(results.last().unwrap().completion, Some(Completion::Finished));
        assert_eq!(sum(&results).started, 0);
        conn.release(run).await;
    }
}

#[tokio::test]
async fn more_connections_than_the_agent_may_make_are_refused_with_the_sum() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::with(&coordinator, Some(10));
    let mut conn = coordinator.welcome().await;
    assert_eq!(conn.hello.capacity.unwrap().files, 10);
    conn.assign("r1", &workload(&target.url("/"), 11, 100)).await;
    let (kind, detail) = conn.not_ready("r1").await;
    assert_eq!(kind, Kind::Capacity);
    assert!(detail.contains("11 connections") && detail.contains("--max-connections 10"));
    assert_eq!(target.counts().connections, 0);
}

#[tokio::test]
async fn a_second_run_is_refused_with_the_name_of_the_first() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 1, 1)).await;
    conn.assign("r2", &workload(&target.url("/"), 1, 1)).await;
    let (kind, detail) = conn.not_ready("r2").await;
    assert_eq!(kind, Kind::Busy);
    assert!(detail.starts_with("busy with run r1 (running) for "), "{detail}");
    target.release_all();
    assert_eq!(sum(&conn.results().await).succeeded, 1);
}

#[tokio::test]
async fn a_drain_lets_requests_in_flight_finish_and_accounts_for_the_rest() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    // So many that the load cannot come to its own end before the workers look at the order.
    conn.run("r1", &workload(&target.url("/"), 2, MANY)).await;
    target.until(LONG, |counts| counts.requests == 2).await.unwrap();
    conn.stop("r1", Mode::Drain, "cancelled").await;
    // The answer to a second assignment shows that the stop was taken before the gate opens.
    conn.assign("r2", &workload(&target.url("/"), 1, 1)).await;
    let (_, detail) = conn.not_ready("r2").await;
    assert!(detail.contains("(draining)"), "{detail}");
    target.release_all();
    let results = conn.results().await;
    let last = results.last().unwrap();
    assert_eq!(last.completion, Some(Completion::Stopped));
    let sum = sum(&results);
    assert_eq!(sum.started, sum.succeeded, "what was in flight was let finish");
    assert_eq!(sum.started, target.counts().requests);
    assert_eq!(sum.not_started, MANY - sum.started);
    let cancelled = last.stats.phases[0].requests[0].not_started[NotStarted::Cancelled as usize];
    assert_eq!(cancelled, sum.not_started);
}

#[tokio::test]
async fn a_stop_before_the_start_accounts_for_everything_as_not_started() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.assign("r1", &workload(&target.url("/"), 2, 10)).await;
    conn.ready("r1").await;
    conn.stop("r1", Mode::Abort, "aborted").await;
    let results = conn.results().await;
    assert_eq!(results.last().unwrap().completion, Some(Completion::Stopped));
    let sum = sum(&results);
    assert_eq!((sum.started, sum.not_started), (0, 10));
    assert_eq!(target.counts().requests, 0);
}
