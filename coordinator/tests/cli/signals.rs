//! Ctrl-C, once and twice, in each command that has a run in hand.

use std::path::Path;

use rustix::process::Signal;

use crate::{
    process::{Running, gone, start},
    support::{Coordinator, Target, assert_balanced, folder, json_report, plan},
};

/// Half a minute of load, far more than any of these tests lets pass.
async fn long_run(folder: &Path, target: &Target) -> Running {
    let url = format!("http://{}/delay/50", target.address);
    plan(folder, &url, 20, 12_000, "");
    let run = ["run", "plan.toml", "--local-agents", "2", "--json", "report.json"];
    let running = start(&run, folder);
    target.has_counted(100).await;
    running
}

#[tokio::test]
async fn the_first_interrupt_drains_and_the_report_is_whole() {
    let (folder, target) = (folder(), Target::start().await);
    let running = long_run(folder.path(), &target).await;
    let children = running.children();
    assert_eq!(children.len(), 2, "{children:?}");
    running.signal(Signal::INT);
    running.says("draining: requests in flight may finish").await;
    let ended = running.ended().await.with_code(6);
    assert!(!ended.out.is_empty());
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_eq!(report["run"]["outcome"], "cancelled");
    assert_eq!(report["ledger"]["in_flight_at_end"], 0);
    assert_eq!(report["ledger"]["started"], target.requests().await);
    for (pid, _) in children {
        gone(pid).await;
    }
}

#[tokio::test]
async fn the_second_interrupt_stops_at_once_and_there_is_still_a_report() {
    let (folder, target) = (folder(), Target::start().await);
    // Nothing in flight would ever finish within the grace.
    let url = format!("http://{}/delay/60000", target.address);
    plan(folder.path(), &url, 20, 12_000, "");
    let more = "grace = \"60s\"\ntimeout = \"120s\"\n";
    let path = folder.path().join("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{more}{text}")).unwrap();
    let run = ["run", "plan.toml", "--local-agents", "2", "--json", "report.json"];
    let running = start(&run, folder.path());
    target.has_counted(20).await;
    let children = running.children();
    running.signal(Signal::INT);
    running.says("Ctrl-C again to stop at once").await;
    running.signal(Signal::INT);
    running.says("stopping at once").await;
    let ended = running.ended().await.with_code(6);
    assert!(!ended.out.is_empty());
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_eq!(report["ledger"]["in_flight_at_end"], 20);
    for (pid, _) in children {
        gone(pid).await;
    }
}

#[tokio::test]
async fn terminating_and_closing_the_terminal_is_interrupting() {
    for signal in [Signal::TERM, Signal::HUP] {
        let (folder, target) = (folder(), Target::start().await);
        let running = long_run(folder.path(), &target).await;
        running.signal(signal);
        running.ended().await.with_code(6);
        assert_eq!(json_report(folder.path())["run"]["outcome"], "cancelled");
    }
}

#[tokio::test]
async fn an_interrupt_of_submit_stops_the_run_and_one_of_watch_does_not() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    let url = format!("http://{}/delay/50", target.address);
    plan(folder.path(), &url, 20, 12_000, "");
    let at = ["--coordinator", &coordinator.address];
    let submit = start(&[&["submit", "plan.toml"], &at[..]].concat(), folder.path());
    target.has_counted(50).await;
    let watch = start(&[&["watch"], &at[..]].concat(), folder.path());
    watch.says(" of 12,000 (").await;
    watch.signal(Signal::INT);
    watch.ended().await.with_code(0).saying("the run goes on");
    target.has_counted(target.requests().await + 50).await;
    submit.signal(Signal::INT);
    submit.ended().await.with_code(6).saying("draining");
}

#[tokio::test]
async fn a_coordinator_ends_when_told_to() {
    let folder = folder();
    let coordinator = Coordinator::start(folder.path()).await;
    coordinator.process.signal(Signal::TERM);
    coordinator.process.ended().await.with_code(0);
}
