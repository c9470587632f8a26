//! A disk that fails, and one that hangs.

use std::time::Duration;

use inrush_common::report::RunOutcome;
use inrush_proto::v1::{self, RunState, agent_message};
use tonic::Code;

use crate::harness::{Fleet, PLAN, hello, two_at_work, within};

#[tokio::test]
async fn a_run_whose_shares_cannot_be_stored_fails_in_words_and_gives_nobody_a_share() {
    let mut fleet = Fleet::start().await;
    let mut lab1 = fleet.agent("lab1").await;
    let disk = fleet.database();
    disk.execute_batch(
        "CREATE TRIGGER no_room BEFORE INSERT ON run_agents \
         BEGIN SELECT RAISE(ABORT, 'there is no room'); END",
    )
    .unwrap();
    let run = fleet.submit(PLAN).await.unwrap();
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.run.outcome), (RunState::Failed, RunOutcome::Failed));
    let expected = "the agents' shares could not be stored: ";
    assert!(last.detail.starts_with(expected), "{}", last.detail);
    assert!(last.detail.contains("there is no room"), "{}", last.detail);

    disk.execute_batch("DROP TRIGGER no_room").unwrap();
    let run = fleet.submit(PLAN).await.unwrap();
    assert_eq!(lab1.assigned().await.run, run, "the first it hears is of the next run");
    fleet.stop().await;
}

#[tokio::test]
async fn a_disk_that_hangs_keeps_nobody_waiting_but_the_one_who_submits() {
    let mut fleet = Fleet::with(|config| config.lease = Duration::from_secs(1)).await;
    let lab1 = fleet.agent("lab1").await;
    let _lab2 = fleet.agent("lab2").await;
    let disk = fleet.database();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut control = fleet.control.clone();
    let submitting = tokio::spawn(async move { Fleet::submit_on(&mut control, PLAN).await });
    // Leases end meanwhile: both agents give no sign of life.
    let gone = |agents: &[v1::AgentInfo]| agents.iter().all(|agent| !agent.connected);
    while !gone(&fleet.agents().await) {
        tokio::task::yield_now().await;
    }
    assert!(!submitting.is_finished(), "the disk still hangs");
    drop(lab1);
    disk.execute_batch("ROLLBACK").unwrap();
    let refused = submitting.await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("wants 1 agent"), "{refused}");
    let runs = fleet.control.list_runs(v1::ListRunsRequest {}).await.unwrap().into_inner().runs;
    assert_eq!(runs[0].state(), RunState::Failed);
    assert!(runs[0].detail.starts_with("was not queued: "), "{}", runs[0].detail);
    fleet.stop().await;
}

#[tokio::test]
async fn what_a_session_took_counts_although_it_ends_in_a_refusal() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, _lab2) = two_at_work(&mut fleet, PLAN).await;
    let disk = fleet.database();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let snapshot = lab1.snapshot(&run, 1, &[1; 10]);
    lab1.hand_in(&snapshot).await;
    lab1.say(agent_message::Kind::Hello(hello("lab1", 1))).await;
    disk.execute_batch("ROLLBACK").unwrap();
    assert!(lab1.refusal().await.message().contains("came twice"));
    let mut updates = fleet.watch(&run).await;
    loop {
        let update = within("an update", updates.message()).await.unwrap().unwrap();
        if update.progress.unwrap().completed == 10 {
            break;
        }
    }
    fleet.stop().await;
}
