//! Inrush against servers that others wrote: the work is exact, and their own counters say so too.
//!
//! Needs nginx, node, java and python3, which `.ci/run` installs:
//!
//! ```text
//! cargo build --release
//! INRUSH_BIN=$PWD/target/release/inrush \
//!   cargo test --workspace --features inrush-coordinator/peers --test peers
//! ```
//!
//! Without `INRUSH_BIN` the binary built along with the tests is run.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]
#![allow(clippy::print_stderr, reason = "a test that could not look says so")]

mod inrush;
mod limits;
mod servers;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use crate::{
    inrush::{Plan, Ran},
    servers::{Nginx, Printing, Python},
};

/// The machine is for one test at a time: each of them fills it.
async fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::const_new(());
    MACHINE.lock().await
}

const PLAN: Plan = Plan { connections: 1_000, requests: 100_000, agents: 1 };

/// All of the plan was started and completed, and the accounts balance everywhere.
fn assert_balanced(plan: Plan, ran: &Ran) {
    let report = &ran.report;
    assert_eq!(report["schema"], "inrush.report/v1");
    assert_eq!(report["run"]["outcome"], "finished");
    let ledger = &report["ledger"];
    for account in ["planned", "started", "completed"] {
        assert_eq!(ledger[account], plan.requests, "{account} in {ledger}");
    }
    for account in ["not_started", "in_flight_at_end"] {
        assert_eq!(ledger[account], 0, "{account} in {ledger}");
    }
    for account in ["planned", "started", "completed", "succeeded", "failed", "in_flight_at_end"] {
        assert_eq!(sum(report, "agents", account), ledger[account], "{account} of the agents");
        assert_eq!(sum(report, "requests", account), ledger[account], "{account} by request");
    }
    for distribution in ["response_time", "service_time", "schedule_lag"] {
        for outcome in ["succeeded", "failed"] {
            let count = &report[distribution][outcome]["count"];
            assert_eq!(*count, ledger[outcome], "{distribution} of the {outcome}");
        }
    }
    assert_eq!(report["connections"]["requested"], plan.connections);
    assert_eq!(report["connections"]["established"], plan.connections);
    assert_passed(ran);
}

/// Besides, all of it succeeded.
fn assert_exact(plan: Plan, ran: &Ran) {
    assert_balanced(plan, ran);
    let report = &ran.report;
    assert_eq!(report["ledger"]["succeeded"], plan.requests, "{}", report["errors"]);
    assert_eq!(report["status"], serde_json::json!([status(200, plan.requests)]));
    assert_eq!(report["errors"], serde_json::json!([]));
    assert_eq!(report["ttfb"]["succeeded"]["count"], plan.requests);
}

/// The verdict finds no fault but slowness, which is this machine's: server, agents and whatever else
/// runs here share its cores. The exit code says the same as the verdict.
fn assert_passed(ran: &Ran) {
    let verdict = &ran.report["verdict"];
    let reasons = verdict["reasons"].as_array().unwrap();
    let codes: Vec<_> = reasons.iter().map(|reason| reason["code"].as_str().unwrap()).collect();
    let slow = ["agent_cpu", "worker_lag", "start_skew"];
    assert!(codes.iter().all(|code| slow.contains(code)), "{verdict}\n{}", ran.stderr);
    let exit = if verdict["status"] == "invalid" { 4 } else { 0 };
    assert_eq!(ran.exit, Some(exit), "{verdict}\n{}", ran.stderr);
}

fn sum(report: &Value, rows: &str, account: &str) -> u64 {
    let rows = report[rows].as_array().unwrap();
    rows.iter().map(|row| row["ledger"][account].as_u64().unwrap()).sum()
}

fn status(code: u16, count: u64) -> Value {
    serde_json::json!({ "code": code, "count": count, "failed": 0 })
}

#[tokio::test]
async fn nginx_counted_every_request_of_a_local_run() {
    let _machine = machine().await;
    let nginx = Nginx::start().await;
    let ran = inrush::run(PLAN, nginx.addr).await;
    assert_exact(PLAN, &ran);
    assert_eq!(nginx.requests().await, PLAN.requests);
}

#[tokio::test]
async fn nginx_counted_every_request_of_three_agents_with_addresses_of_their_own() {
    let _machine = machine().await;
    let nginx = Nginx::start().await;
    let plan = Plan { agents: 3, ..PLAN };
    let ran = inrush::serve_and_submit(plan, nginx.addr).await;
    assert_exact(plan, &ran);
    assert_eq!(nginx.requests().await, plan.requests);
    let agents = ran.report["agents"].as_array().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lab1", "lab2", "lab3"]);
    let mut requested = 0;
    for agent in agents {
        assert_eq!(agent["state"], "done", "{}", agent["name"]);
        let connections = agent["connections"]["requested"].as_u64().unwrap();
        assert!((333..=334).contains(&connections), "{connections} of {}", agent["name"]);
        requested += connections;
    }
    assert_eq!(requested, plan.connections);
    let expected = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
    assert_eq!(nginx.clients(), expected.map(str::to_owned));
}

#[tokio::test]
async fn node_counted_every_request() {
    let _machine = machine().await;
    let node = Printing::node().await;
    let ran = inrush::run(PLAN, node.addr).await;
    assert_exact(PLAN, &ran);
    assert_eq!(node.requests().await, PLAN.requests);
}

#[tokio::test]
async fn java_counted_every_request() {
    let _machine = machine().await;
    let java = Printing::java_that_keeps_connections().await;
    let ran = inrush::run(PLAN, java.addr).await;
    assert_exact(PLAN, &ran);
    assert_eq!(java.requests().await, PLAN.requests);
}

#[tokio::test]
async fn requests_that_java_drops_with_idle_connections_are_failures_and_not_sent_again() {
    let _machine = machine().await;
    let java = Printing::java().await;
    let ran = inrush::run(PLAN, java.addr).await;
    assert_balanced(PLAN, &ran);
    let ledger = &ran.report["ledger"];
    let succeeded = ledger["succeeded"].as_u64().unwrap();
    assert_eq!(ran.report["status"], serde_json::json!([status(200, succeeded)]));
    let errors = ran.report["errors"].as_array().unwrap();
    let lost: u64 = errors.iter().map(|error| error["count"].as_u64().unwrap()).sum();
    assert_eq!(ledger["failed"], lost, "every failure has its class: {errors:?}");
    for error in errors {
        let class = error["class"].as_str().unwrap();
        assert!(["closed_on_reuse", "reset"].contains(&class), "{error}");
    }
    // It may have handled a request whose answer was lost, and never one that was not sent.
    let handled = java.requests().await;
    assert!(succeeded <= handled && handled <= PLAN.requests, "{handled} of {ledger}");
}

#[tokio::test]
async fn python_logged_every_request_though_it_closes_every_connection() {
    let _machine = machine().await;
    let python = Python::start().await;
    let plan = Plan { connections: 50, requests: 5_000, agents: 1 };
    let ran = inrush::run(plan, python.addr).await;
    assert_exact(plan, &ran);
    assert_eq!(python.stop_and_count().await, plan.requests);
    assert_eq!(ran.report["connections"]["opened"], plan.requests);
}
