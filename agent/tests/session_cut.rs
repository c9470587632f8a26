//! Streams that break, coordinators that fall silent, refuse or forget; agents that leave.

mod session_support;

use std::time::Duration;

use inrush_agent::session::SessionError;
use inrush_common::stats::{Completion, Snapshot};
use inrush_testkit::{LONG, Target};
use session_support::{Agent, Coordinator, soon, sum, workload};
use tonic::Status;

#[tokio::test]
async fn a_cut_stream_leaves_the_load_alone_and_results_go_out_again() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 2, 4)).await;
    target.until(LONG, |counts| counts.requests == 2).await.unwrap();
    let first = conn.snapshot().await;
    assert_eq!(first.seq, 1);
    drop(conn);

    let mut conn = coordinator.welcome().await;
    assert_eq!(conn.hello.run, "r1");
    // Two connections for the two connections of the plan: none was lost with the stream.
    assert_eq!(target.counts().connections, 2);
    target.release_all();
    let results = conn.results().await;
    assert_eq!(results[0], Snapshot::try_from(first).unwrap(), "the same snapshot comes again");
    assert_eq!(results.last().unwrap().completion, Some(Completion::Finished));
    let sum = sum(&results);
    assert_eq!((sum.started, sum.succeeded, sum.not_started), (4, 4, 0));
    assert_eq!((target.counts().requests, target.counts().connections), (4, 2));
}

#[tokio::test]
async fn readiness_is_said_again_on_a_new_stream() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.assign("r1", &workload(&target.url("/"), 1, 3)).await;
    conn.ready("r1").await;
    drop(conn);
    let mut conn = coordinator.welcome().await;
    assert_eq!(conn.hello.run, "r1");
    conn.ready("r1").await;
    conn.start("r1").await;
    conn.started("r1").await;
    assert_eq!(sum(&conn.results().await).succeeded, 3);
}

#[tokio::test]
async fn a_run_that_is_stored_is_over_for_the_agent_even_if_its_release_is_lost() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 1, 3)).await;
    assert_eq!(sum(&conn.results().await).succeeded, 3);
    // What is asked after the acknowledgement is answered after it was read.
    conn.assign("r1", &workload(&target.url("/"), 1, 3)).await;
    let (_, detail) = conn.not_ready("r1").await;
    assert!(detail.contains("executed here before"), "{detail}");
    drop(conn);
    let mut conn = coordinator.welcome().await;
    assert_eq!(conn.hello.run, "", "nothing is held");
    conn.run("r2", &workload(&target.url("/"), 1, 2)).await;
    assert_eq!(sum(&conn.results().await).succeeded, 2);
}

#[tokio::test]
async fn a_coordinator_that_falls_silent_ends_the_load_and_gets_the_results_later() {
    let target = Target::delay(Duration::from_millis(5));
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.hello().await;
    let lease = Duration::from_millis(500);
    conn.welcome(lease, false).await;
    let plan = workload(&target.url("/"), 2, 1_000_000);
    conn.run("r1", &plan).await;
    conn.fall_silent();

    // The stream stays open, as with a cut cable; the agent gives it up by itself.
    let mut next = coordinator.hello().await;
    assert_eq!(next.hello.run, "r1");
    next.welcome(Duration::from_secs(60), false).await;
    let results = next.results().await;
    assert_eq!(results.last().unwrap().completion, Some(Completion::LeaseExpired));
    let sum = sum(&results);
    assert!(sum.started > 0 && sum.started + sum.not_started == 1_000_000);
    let counts = target.until(LONG, |counts| counts.open == 0).await.unwrap();
    assert_eq!(counts.requests, sum.started, "the load has ended");
    drop(conn);
}

#[tokio::test]
async fn a_run_the_coordinator_has_forgotten_is_dropped_and_the_agent_is_free() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let _agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 2, 100)).await;
    target.until(LONG, |counts| counts.requests == 2).await.unwrap();
    drop(conn);
    let mut conn = coordinator.hello().await;
    assert_eq!(conn.hello.run, "r1");
    conn.welcome(Duration::from_secs(60), true).await;
    target.until(LONG, |counts| counts.open == 0).await.unwrap();
    target.release_all();
    conn.run("r2", &workload(&target.url("/"), 1, 3)).await;
    let results = conn.results().await;
    assert!(results.iter().all(|snapshot| snapshot.run.as_str() == "r2"));
    assert_eq!(sum(&results).succeeded, 3);
}

#[tokio::test]
async fn a_refusal_is_final_and_in_the_coordinators_words() {
    for status in [
        Status::already_exists("the name lab1 is taken by 127.0.0.9"),
        Status::failed_precondition("protocol version 1, the coordinator speaks 2"),
        Status::invalid_argument("the name is too long"),
    ] {
        let coordinator = Coordinator::refusing(status.clone()).await;
        let error = Agent::start(&coordinator).end().await.unwrap_err();
        assert!(matches!(error, SessionError::Refused { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(status.message()), "{text}");
        assert!(text.contains(&coordinator.addr.to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_coordinator_that_is_not_there_yet_is_waited_for() {
    let before = Coordinator::refusing(Status::unavailable("starting")).await;
    let agent = Agent::start(&before);
    agent.interrupt().await;
    assert_eq!(agent.end().await, Ok(()), "waiting can be interrupted");
}

#[tokio::test]
async fn an_interrupted_agent_drains_hands_in_and_leaves() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 2, 1_000_000)).await;
    target.until(LONG, |counts| counts.requests == 2).await.unwrap();
    agent.interrupt().await;
    target.release_all();
    let results = conn.results().await;
    assert_eq!(results.last().unwrap().completion, Some(Completion::Stopped));
    let sum = sum(&results);
    assert_eq!(sum.started, sum.succeeded);
    assert_eq!(sum.started + sum.not_started, 1_000_000);
    soon("the end of the stream", conn.end()).await;
    assert_eq!(agent.end().await, Ok(()));
}

#[tokio::test]
async fn a_second_interrupt_ends_at_once_and_says_what_is_lost() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let agent = Agent::start(&coordinator);
    let mut conn = coordinator.welcome().await;
    conn.run("r1", &workload(&target.url("/"), 2, 10)).await;
    // One interval is out and not acknowledged.
    assert_eq!(conn.snapshot().await.seq, 1);
    agent.interrupt().await;
    agent.interrupt().await;
    let error = agent.end().await.unwrap_err();
    assert!(matches!(error, SessionError::Interrupted { .. }), "{error:?}");
    assert!(error.to_string().contains("run r1"), "{error}");
    target.until(LONG, |counts| counts.open == 0).await.unwrap();
}
