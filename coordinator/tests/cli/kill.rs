//! SIGKILL, to each kind of process.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    process::{Ended, gone, inrush, kill, start},
    support::{Coordinator, Target, assert_balanced, folder, json_report, plan, sum_of_agents},
};

/// Kills one of two local agents in mid-run.
async fn killed_agent(on_loss: &str, requests: u64) -> (Ended, Value) {
    let (folder, target) = (folder(), Target::start().await);
    let url = format!("http://{}/delay/20", target.address);
    plan(folder.path(), &url, 10, requests, &format!("on_loss = \"{on_loss}\""));
    let run = ["run", "plan.toml", "--local-agents", "2", "--json", "report.json"];
    let running = start(&run, folder.path());
    target.has_counted(50).await;
    let children = running.children();
    let (agent, _) = children.iter().find(|(_, line)| line.contains("--name local-2")).unwrap();
    kill(*agent, Signal::KILL);
    let ended = running.ended().await;
    for (pid, _) in children {
        gone(pid).await;
    }
    (ended, json_report(folder.path()))
}

fn assert_lost(report: &Value) {
    assert_balanced(report);
    assert_eq!(sum_of_agents(report, "planned"), report["ledger"]["planned"]);
    assert_ne!(report["verdict"]["status"], "valid");
    let lost = &report["agents"][1];
    assert_eq!((&lost["name"], &lost["state"]), (&"local-2".into(), &"lost".into()));
    assert!(lost["detail"].as_str().unwrap().contains("ended by signal 9"), "{}", lost["detail"]);
    assert!(lost["lost_at_s"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn a_killed_agent_under_abort_stops_the_run_at_once() {
    // Two minutes of load, if it did not.
    let (ended, report) = killed_agent("abort", 60_000).await;
    ended.with_code(4);
    assert_lost(&report);
    assert_eq!(report["run"]["outcome"], "aborted");
    assert_eq!(report["agents"][0]["state"], "stopped");
}

#[tokio::test]
async fn a_killed_agent_under_continue_leaves_the_others_at_work() {
    let (ended, report) = killed_agent("continue", 2_000).await;
    ended.with_code(4);
    assert_lost(&report);
    assert_eq!(report["agents"][0]["state"], "done");
    assert_eq!(report["agents"][0]["ledger"]["completed"], 1_000);
}

#[tokio::test]
async fn the_children_of_a_killed_parent_end_too() {
    let (folder, target) = (folder(), Target::start().await);
    let url = format!("http://{}/delay/20", target.address);
    plan(folder.path(), &url, 10, 60_000, "");
    let running = start(&["run", "plan.toml", "--local-agents", "3"], folder.path());
    target.has_counted(50).await;
    let children = running.children();
    assert_eq!(children.len(), 3, "{children:?}");
    running.signal(Signal::KILL);
    for (pid, _) in children {
        gone(pid).await;
    }
    assert_eq!(running.ended().await.status.code(), None);
}

#[tokio::test]
async fn the_children_of_a_killed_demo_end_too() {
    let running = start(&["demo"], folder().path());
    running.says(" of 20,000 (").await;
    let children = running.children();
    assert_eq!(children.len(), 3, "{children:?}");
    running.signal(Signal::KILL);
    for (pid, _) in children {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_killed_client_does_not_stop_its_run() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    let url = format!("http://{}/delay/20", target.address);
    plan(folder.path(), &url, 10, 1_500, "");
    let at = ["--coordinator", &coordinator.address];
    let submit = start(&[&["submit", "plan.toml"], &at[..]].concat(), folder.path());
    target.has_counted(100).await;
    submit.signal(Signal::KILL);
    submit.ended().await;
    let watch = [&["watch", "--json", "report.json"], &at[..]].concat();
    inrush(&watch, folder.path()).await.with_code(0);
    assert_eq!(target.requests().await, 1_500);
    let watched = json_report(folder.path());
    let report = [&["report", "--json", "report.json"], &at[..]].concat();
    inrush(&report, folder.path()).await.with_code(0);
    assert_eq!(json_report(folder.path()), watched);
    assert_eq!(watched["ledger"]["completed"], 1_500);
}

#[tokio::test]
async fn a_client_says_when_its_coordinator_goes_away() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    let url = format!("http://{}/delay/20", target.address);
    plan(folder.path(), &url, 10, 60_000, "");
    let at = ["--coordinator", &coordinator.address];
    let submit = start(&[&["submit", "plan.toml"], &at[..]].concat(), folder.path());
    target.has_counted(100).await;
    coordinator.process.signal(Signal::KILL);
    let words = format!("the coordinator at {} went away", coordinator.address);
    submit.ended().await.with_code(7).saying(&words).saying("inrush watch");
}
