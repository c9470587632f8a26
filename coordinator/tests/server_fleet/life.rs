//! Whole runs, from the plan to the report.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use inrush_common::{
    report::RunOutcome,
    stats::{Completion, Histogram},
};
use inrush_proto::v1::{self, RunState, phase::Load};

use crate::harness::{Fleet, PLAN, two_at_work, within};

#[tokio::test]
async fn two_agents_make_one_report_whose_histogram_is_the_sum_of_theirs() {
    let mut fleet = Fleet::start().await;
    let (mut lab1, mut lab2) = (fleet.agent("lab1").await, fleet.agent("lab2").await);
    let run = fleet.submit(PLAN).await.unwrap();
    let mut shares = Vec::new();
    for agent in [&mut lab1, &mut lab2] {
        let assign = agent.get_ready().await;
        assert_eq!(assign.run, run);
        let [phase] = &assign.workload.as_ref().unwrap().phases[..] else { panic!() };
        let Some(Load::Closed(share)) = &phase.load else { panic!() };
        let lanes = share.lanes.as_ref().unwrap();
        shares.push((lanes.groups[0].each, share.requests));
    }
    assert_eq!(shares, [(2, Some(50)), (2, Some(50))]);
    let starts = [lab1.start().await, lab2.start().await];
    assert_eq!(starts[0].at_ns, starts[1].at_ns);

    let all: Vec<u64> = (1..=100).collect();
    let (first, second) = all.split_at(50);
    let (early, late) = first.split_at(20);
    let snapshot = lab1.snapshot(&run, 1, early);
    lab1.hand_in(&snapshot).await;
    lab1.acknowledged(1).await;
    lab1.complete(&run, 2, late, Completion::Finished).await;
    lab2.complete(&run, 1, second, Completion::Finished).await;
    lab1.released(&run).await;
    lab2.released(&run).await;

    let (last, report) = fleet.end_of(&run).await;
    assert_eq!(last.state(), RunState::Finished);
    assert_eq!(report.run.outcome, RunOutcome::Finished);
    assert_eq!((report.ledger.started, report.ledger.completed), (100, 100));
    assert_eq!(report.agents.len(), 2);
    let mut sum = Histogram::default();
    for millis in all {
        sum.record(millis * 1_000_000);
    }
    // The encoding holds every bucket's count, so equal bytes are equal counts.
    let merged = BASE64_STANDARD.decode(&report.response_time.all.histogram).unwrap();
    assert_eq!(merged, sum.to_v2_deflate());
    fleet.stop().await;
}

#[tokio::test]
async fn snapshots_that_come_again_change_no_bit_of_the_report() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let first = lab1.snapshot(&run, 1, &[1, 2, 3]);
    for _ in 0..3 {
        lab1.hand_in(&first).await;
        lab1.acknowledged(1).await;
    }
    lab1.complete(&run, 2, &[4; 47], Completion::Finished).await;
    let progress = fleet.until(&run, RunState::Running).await.progress.unwrap();
    assert_eq!(progress.started, 50);
    lab2.complete(&run, 1, &[5; 50], Completion::Finished).await;
    fleet.end_of(&run).await;
    let before = fleet.report(&run).await;
    lab1.released(&run).await;
    lab1.hand_in(&first).await;
    lab1.acknowledged(1).await;
    assert_eq!(fleet.report(&run).await, before);
    fleet.stop().await;
}

#[tokio::test]
async fn a_report_is_the_same_to_the_byte_after_a_restart() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    lab1.complete(&run, 1, &[1; 50], Completion::Finished).await;
    lab2.complete(&run, 1, &[2; 50], Completion::Finished).await;
    let (last, _) = fleet.end_of(&run).await;
    let before = fleet.report(&run).await;
    assert_eq!(before, last.report_json, "the last update has the same report");
    let data_dir = fleet.stop().await;

    let mut fleet = Fleet::on(data_dir, |_| {}).await;
    assert_eq!(fleet.report("").await, before);
    let runs = fleet.control.list_runs(v1::ListRunsRequest {}).await.unwrap().into_inner().runs;
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].run.as_str(), runs[0].state()), (run.as_str(), RunState::Finished));
    assert_eq!(runs[0].plan, "plan");
    fleet.stop().await;
}

#[tokio::test]
async fn runs_wait_for_their_turn_and_take_the_agents_one_after_the_other() {
    let mut fleet = Fleet::start().await;
    let mut lab1 = fleet.agent("lab1").await;
    let first = fleet.submit(PLAN).await.unwrap();
    let second = fleet.submit(PLAN).await.unwrap();
    let third = fleet.submit(PLAN).await.unwrap();
    lab1.get_ready().await;
    lab1.start().await;
    assert_eq!(fleet.until(&second, RunState::Queued).await.detail, "waits for its turn");
    let state = fleet.cancel(&second, v1::cancel_request::Mode::Drain).await;
    assert_eq!(state, RunState::Cancelled);
    lab1.complete(&first, 1, &[1; 100], Completion::Finished).await;
    lab1.released(&first).await;
    assert_eq!(lab1.get_ready().await.run, third);
    lab1.start().await;
    lab1.complete(&third, 1, &[1; 100], Completion::Finished).await;
    assert_eq!(fleet.end_of(&third).await.1.run.outcome, RunOutcome::Finished);
    let (last, report) = fleet.end_of(&second).await;
    assert_eq!((last.state(), report.run.outcome), (RunState::Cancelled, RunOutcome::Cancelled));
    fleet.stop().await;
}

#[tokio::test]
async fn watchers_that_go_away_change_nothing() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let unread = fleet.watch(&run).await;
    let mut dropped = fleet.watch(&run).await;
    within("an update", dropped.message()).await.unwrap().unwrap();
    drop(dropped);
    lab1.complete(&run, 1, &[1; 50], Completion::Finished).await;
    lab2.complete(&run, 1, &[1; 50], Completion::Finished).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.ledger.completed), (RunState::Finished, 100));
    drop(unread);
    fleet.stop().await;
}

#[tokio::test]
async fn progress_shows_what_is_stored_so_far() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, _lab2) = two_at_work(&mut fleet, PLAN).await;
    let snapshot = lab1.snapshot(&run, 1, &[7; 30]);
    lab1.hand_in(&snapshot).await;
    lab1.acknowledged(1).await;
    let mut updates = fleet.watch(&run).await;
    let progress = loop {
        let update = within("an update", updates.message()).await.unwrap().unwrap();
        let progress = update.progress.unwrap();
        if progress.completed > 0 {
            break progress;
        }
    };
    assert_eq!((progress.planned, progress.started, progress.agents), (Some(100), 30, 2));
    assert_eq!(progress.rate, 30.0);
    assert!(progress.p50_ns.unwrap().abs_diff(7_000_000) < 10_000, "{progress:?}");
    fleet.stop().await;
}
