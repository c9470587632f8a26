//! The other ways in which a run ends.

use std::time::Duration;

use inrush_common::{
    id::AgentName,
    report::{AgentState, RunOutcome, VerdictStatus},
    stats::Completion,
};
use inrush_proto::v1::{self, RunState, cancel_request, not_ready, stop};

use crate::harness::{Agent, Fleet, PLAN, hello, two_at_work};

fn with_on_loss(on_loss: &str) -> String {
    format!("{PLAN}[agents]\non_loss = '{on_loss}'\n")
}

fn name(name: &str) -> AgentName {
    name.parse().unwrap()
}

#[tokio::test]
async fn a_lost_agent_aborts_the_run_when_the_plan_says_so() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, &with_on_loss("abort")).await;
    let snapshot = lab1.snapshot(&run, 1, &[1; 10]);
    lab1.hand_in(&snapshot).await;
    lab1.acknowledged(1).await;
    let evidence = "its process ended (signal 9)".to_owned();
    fleet.coordinator.agent_process_ended(&name("lab1"), evidence).await;
    let stop = lab2.stopped().await;
    assert_eq!((stop.mode(), stop.reason.as_str()), (stop::Mode::Abort, "aborted"));
    lab2.complete(&run, 1, &[1; 20], Completion::Stopped).await;
    lab2.released(&run).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.run.outcome), (RunState::Failed, RunOutcome::Aborted));
    assert_eq!(last.detail, "lab1 was lost: its process ended (signal 9)");
    assert_ne!(report.verdict.status, VerdictStatus::Valid);
    assert_eq!(report.ledger.completed, 30);
    let lost = &report.agents[0];
    assert_eq!((lost.name.as_str(), lost.state), ("lab1", AgentState::Lost));
    assert!(lost.lost_at_s.is_some());
    fleet.stop().await;
}

#[tokio::test]
async fn the_others_go_on_without_a_lost_agent_when_the_plan_says_so() {
    let mut fleet = Fleet::start().await;
    let (run, lab1, mut lab2) = two_at_work(&mut fleet, &with_on_loss("continue")).await;
    drop(lab1);
    fleet.coordinator.agent_process_ended(&name("lab1"), "it was killed".to_owned()).await;
    lab2.complete(&run, 1, &[1; 50], Completion::Finished).await;
    lab2.released(&run).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.run.outcome), (RunState::Finished, RunOutcome::Finished));
    assert_eq!(last.detail, "without lab1, lost in mid-run");
    assert_ne!(report.verdict.status, VerdictStatus::Valid);
    assert_eq!(report.ledger.not_started, Some(50));
    fleet.stop().await;
}

#[tokio::test]
async fn an_agent_is_lost_when_nothing_is_heard_for_its_lease() {
    let mut fleet = Fleet::with(|config| config.lease = Duration::from_millis(1_500)).await;
    let mut lab1 = fleet.agent("lab1").await;
    assert_eq!(lab1.welcome.lease_ns, 1_500_000_000);
    let run = fleet.submit(PLAN).await.unwrap();
    lab1.get_ready().await;
    lab1.start().await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!(last.state(), RunState::Failed);
    assert!(last.detail.starts_with("lab1 was lost: nothing heard for "), "{}", last.detail);
    assert_eq!(report.agents[0].state, AgentState::Lost);
    fleet.stop().await;
}

#[tokio::test]
async fn an_agent_that_does_not_get_ready_is_named_and_the_others_are_released() {
    let mut fleet = Fleet::with(|config| config.ready_within = Duration::from_secs(1)).await;
    let (mut lab1, mut lab2) = (fleet.agent("lab1").await, fleet.agent("lab2").await);
    let run = fleet.submit(PLAN).await.unwrap();
    lab1.get_ready().await;
    lab2.assigned().await;
    lab1.released(&run).await;
    lab2.released(&run).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!(last.state(), RunState::Failed);
    assert_eq!(last.detail, "lab2 did not report ready within 1.00 s");
    assert_eq!(report.agents[1].state, AgentState::NotReady);
    assert_eq!(report.ledger.started, 0);
    fleet.stop().await;
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_ends_the_run_before_its_start() {
    let mut fleet = Fleet::start().await;
    let mut lab1 = fleet.agent("lab1").await;
    let run = fleet.submit(PLAN).await.unwrap();
    lab1.assigned().await;
    let refused = "connection refused (127.0.0.1:9)";
    lab1.not_ready(&run, not_ready::Kind::TargetUnreachable, refused).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!(report.run.outcome, RunOutcome::TargetUnreachable);
    assert_eq!(last.detail, format!("lab1 could not reach the target: {refused}"));
    fleet.stop().await;
}

#[tokio::test]
async fn a_cancelled_run_drains_and_is_reported() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let state = fleet.cancel(&run, cancel_request::Mode::Drain).await;
    assert_eq!(state, RunState::Draining);
    let stop = lab1.stopped().await;
    assert_eq!((stop.mode(), stop.reason.as_str()), (stop::Mode::Drain, "cancelled"));
    lab2.stopped().await;
    lab1.complete(&run, 1, &[1; 10], Completion::Stopped).await;
    assert_eq!(fleet.cancel(&run, cancel_request::Mode::Abort).await, RunState::Draining);
    assert_eq!(lab2.stopped().await.mode(), stop::Mode::Abort);
    lab2.complete(&run, 1, &[1; 5], Completion::Stopped).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.run.outcome), (RunState::Cancelled, RunOutcome::Cancelled));
    assert_eq!(report.ledger.completed, 15);
    fleet.stop().await;
}

#[tokio::test]
async fn a_run_under_way_when_the_coordinator_stops_is_failed_and_late_results_still_count() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let snapshot = lab1.snapshot(&run, 1, &[1; 10]);
    lab1.hand_in(&snapshot).await;
    lab1.acknowledged(1).await;
    let data_dir = fleet.stop().await;
    for agent in [&mut lab1, &mut lab2] {
        assert_eq!(agent.stopped().await.mode(), stop::Mode::Abort);
        assert_eq!(agent.refusal().await.message(), "the coordinator is stopping");
    }

    let mut fleet = Fleet::on(data_dir, |_| {}).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!(last.state(), RunState::Failed);
    assert_eq!(last.detail, "the coordinator stopped during this run");
    assert_eq!(report.ledger.completed, 10);

    let mut lab1 =
        Agent::dial(&fleet, v1::Hello { run: run.clone(), ..hello("lab1", 1) }).await.unwrap();
    assert!(!lab1.welcome.forget_run);
    assert_eq!(lab1.stopped().await.run, run);
    lab1.hand_in(&snapshot).await;
    lab1.acknowledged(1).await;
    let last = inrush_common::stats::Snapshot {
        completion: Some(Completion::LeaseExpired),
        ..lab1.snapshot(&run, 2, &[1; 7])
    };
    lab1.hand_in(&last).await;
    lab1.acknowledged(2).await;
    lab1.released(&run).await;
    let (_, report) = fleet.end_of(&run).await;
    assert_eq!(report.ledger.completed, 17);
    fleet.stop().await;
}
