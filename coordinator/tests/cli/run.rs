//! `inrush run` and `inrush demo`, to their end.

use std::{fs, net::TcpListener, process::Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::{
    process::{command, inrush, spawn, start},
    support::{Target, assert_balanced, folder, json_report, plan, sum_of_agents},
};

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_run_makes_exactly_the_planned_requests_and_says_so_everywhere() {
    let (folder, target) = (folder(), Target::start().await);
    plan(folder.path(), &format!("http://{}/", target.address), 50, 5_000, "");
    let run = ["run", "plan.toml", "--local-agents", "2", "--json", "report.json"];
    let ended = inrush(&run, folder.path()).await.with_code(0);
    assert!(ended.out.contains("5,000"), "{}", ended.out);
    let report = json_report(folder.path());
    assert_eq!(report["schema"], "inrush.report/v1");
    assert_eq!(report["run"]["outcome"], "finished");
    assert_balanced(&report);
    assert_eq!(report["ledger"]["succeeded"], 5_000);
    assert_eq!(sum_of_agents(&report, "planned"), 5_000);
    assert_eq!(report["agents"].as_array().unwrap().len(), 2);
    assert_eq!(target.requests().await, 5_000);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "plan and report, and nothing else: {left:?}");
}

#[tokio::test]
async fn json_on_stdout_is_json_alone_and_quiet_is_quiet() {
    let (folder, target) = (folder(), Target::start().await);
    plan(folder.path(), &format!("http://{}/", target.address), 5, 500, "");
    let run = ["run", "plan.toml", "--json", "-", "--quiet"];
    let ended = inrush(&run, folder.path()).await.with_code(0);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["ledger"]["completed"], 500);
    assert!(ended.err.is_empty(), "{}", ended.err);
}

#[tokio::test]
async fn a_plan_may_come_from_stdin_and_nothing_is_left_behind() {
    let (folder, temporary, target) = (folder(), folder(), Target::start().await);
    let url = format!("http://{}/", target.address);
    let text = format!("url = \"{url}\"\n[load.closed]\nconnections = 2\nrequests = 20\n");
    let mut command = command(&["run", "-", "--json", "report.json"], folder.path());
    let (input, output) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(input)).env("TMPDIR", temporary.path());
    let running = spawn(&mut command);
    drop(command);
    let mut output = tokio::net::unix::pipe::Sender::from_owned_fd(output.into()).unwrap();
    output.write_all(text.as_bytes()).await.unwrap();
    drop(output);
    running.ended().await.with_code(0);
    let report = json_report(folder.path());
    assert_eq!(
        (&report["plan"]["name"], &report["ledger"]["completed"]),
        (&"stdin".into(), &20.into())
    );
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_target_that_is_down_ends_with_5_and_is_named() {
    let (folder, address) = (folder(), closed_port());
    plan(folder.path(), &format!("http://{address}/"), 10, 1_000, "");
    let run = ["run", "plan.toml", "--json", "report.json"];
    let ended = inrush(&run, folder.path()).await.with_code(5);
    assert!(format!("{}{}", ended.out, ended.err).contains(&address), "{}{}", ended.out, ended.err);
    let report = json_report(folder.path());
    assert_eq!(report["run"]["outcome"], "target_unreachable");
    assert_eq!(report["ledger"]["started"], 0);
}

#[tokio::test]
async fn a_json_file_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let (folder, target) = (folder(), Target::start().await);
    plan(folder.path(), &format!("http://{}/", target.address), 5, 500, "");
    let run = ["run", "plan.toml", "--json", "missing/report.json"];
    let ended = inrush(&run, folder.path()).await.with_code(2).saying("no such directory");
    assert!(ended.out.is_empty());
    assert_eq!(target.requests().await, 0);
}

#[tokio::test]
async fn more_connections_than_local_ports_are_refused_with_the_arithmetic() {
    let folder = folder();
    // ::1 is the only address of its kind: no second source address can help.
    plan(folder.path(), "http://[::1]:9/", 2_000_000, 2_000_000, "");
    let ended = inrush(&["run", "plan.toml"], folder.path()).await.with_code(2);
    ended.saying("the plan wants 2000000 connections");
    let few = inrush(&["run", "plan.toml", "--local-agents", "1"], folder.path()).await;
    few.with_code(2).saying("lower `connections`");
}

#[tokio::test]
async fn proxies_of_the_environment_are_not_used() {
    let (folder, target) = (folder(), Target::start().await);
    plan(folder.path(), &format!("http://{}/", target.address), 5, 500, "");
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut command = command(&["run", "plan.toml"], folder.path());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        command.env(name, &url);
    }
    spawn(command.env_remove("no_proxy").env_remove("NO_PROXY")).ended().await.with_code(0);
    assert_eq!(target.requests().await, 500);
    // Connections that were made would wait to be accepted now.
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn what_is_kept_can_be_reported_again_and_is_the_same() {
    let (folder, target) = (folder(), Target::start().await);
    plan(folder.path(), &format!("http://{}/", target.address), 5, 500, "");
    let run = ["run", "plan.toml", "--data-dir", "data", "--json", "report.json", "--quiet"];
    let first = inrush(&run, folder.path()).await.with_code(0);
    let again = ["report", "--data-dir", "data", "--json", "again.json"];
    let again = inrush(&again, folder.path()).await.with_code(0);
    assert_eq!(first.out, again.out);
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("report.json"), read("again.json"));
    let unknown = ["report", "no-such-run", "--data-dir", "data"];
    inrush(&unknown, folder.path()).await.with_code(2).saying("no run no-such-run");
}

#[tokio::test]
async fn progress_is_a_line_a_second_where_there_is_no_terminal() {
    let (folder, target) = (folder(), Target::start().await);
    let url = format!("http://{}/delay/20", target.address);
    plan(folder.path(), &url, 10, 1_000, "");
    let ended = inrush(&["run", "plan.toml"], folder.path()).await.with_code(0);
    let lines = ended.err.lines().filter(|line| line.contains(" of 1,000 (")).count();
    assert!((2..=10).contains(&lines), "{}", ended.err);
    assert!(ended.err.contains("response time p50"), "{}", ended.err);
    assert!(!ended.err.contains('\u{1b}'), "{}", ended.err);
}

#[tokio::test]
async fn the_demo_ends_well_and_agrees_with_its_target() {
    let ended = inrush(&["demo"], folder().path()).await.with_code(0);
    assert!(ended.out.contains("20,000"), "{}", ended.out);
    ended.saying("the target counted 20,000 requests").saying("Next:");
}

#[tokio::test]
async fn a_target_that_dies_in_mid_run_is_in_the_report() {
    let (folder, target) = (folder(), Target::start().await);
    let url = format!("http://{}/delay/10", target.address);
    let text = format!(
        "url = \"{url}\"\ngive_up_after = \"1s\"\n[load.closed]\nconnections = 5\nrequests = 500_000\n"
    );
    fs::write(folder.path().join("plan.toml"), text).unwrap();
    let run = ["run", "plan.toml", "--json", "report.json"];
    let running = start(&run, folder.path());
    target.has_counted(100).await;
    drop(target);
    let ended = running.ended().await.with_code(4);
    assert!(!ended.out.is_empty());
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_eq!(report["verdict"]["status"], "invalid");
    assert_eq!(report["verdict"]["reasons"][0]["code"], "target_unreachable");
    assert!(report["ledger"]["not_started_by_reason"]["target_unreachable"].as_u64() > Some(0));
    assert!(!report["errors"].as_array().unwrap().is_empty());
}
