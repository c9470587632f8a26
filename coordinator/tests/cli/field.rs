//! The built `inrush` against targets that misbehave, and against its own temptations: to send more than was
//! asked, to praise a target that only fails, to print numbers of nothing.

use std::{fs, io::ErrorKind, net::TcpListener, path::Path, time::Duration};

use inrush_testkit::{Counts, LONG, Received, Step, Target};
use serde_json::Value;
use tokio::time::{interval, timeout};

use crate::{
    process::{Ended, Running, SOON, command, inrush, spawn},
    support::{assert_balanced, folder, json_report, plan, sum_of_agents},
};

/// Makes `requests` over `connections` from three agents.
async fn three_agents(folder: &Path, target: &Target, connections: u64, requests: u64) -> Ended {
    plan(folder, &target.url("/"), connections, requests, "");
    let run =
        ["run", "plan.toml", "--local-agents", "3", "--workers", "1", "--json", "report.json"];
    let ended = inrush(&run, folder).await;
    let report = json_report(folder);
    assert_balanced(&report);
    assert_sound(&report);
    assert_eq!(report["agents"].as_array().unwrap().len(), 3);
    ended
}

/// The counters once every connection is closed.
async fn counts(target: &Target) -> Counts {
    target.until(LONG, |counts| counts.open == 0).await.unwrap()
}

/// The line of the text that is quoted.
fn headline(ended: &Ended) -> &str {
    ended.out.lines().nth(1).unwrap_or_else(|| panic!("no headline: {}", ended.out))
}

/// Asserts that no number is one that stands for none.
#[track_caller]
fn assert_sound(value: &Value) {
    match value {
        Value::Array(values) => values.iter().for_each(assert_sound),
        Value::Object(values) => values.values().for_each(assert_sound),
        Value::Number(number) => {
            let float = number.as_f64().unwrap();
            assert!(float.abs() < 9e15, "{number} is a sentinel");
            assert!(float != 0.0 || float.is_sign_positive(), "{number}");
        }
        _ => {}
    }
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

/// The count of an error class or of a status; 0 without a row.
fn row(rows: &Value, key: &str, name: &Value, count: &str) -> u64 {
    let found = rows.as_array().unwrap().iter().find(|row| row[key] == *name);
    found.map_or(0, |row| row[count].as_u64().unwrap())
}

#[tokio::test]
async fn every_seventh_request_fails_in_four_ways_and_each_is_counted_once() {
    let folder = folder();
    let target =
        Target::start(|request: &Received| match (request.number % 7, request.number / 7) {
            (6, nth) if nth % 4 == 0 => vec![Step::Reset],
            (6, nth) if nth % 4 == 1 => vec![Step::status(500)],
            (6, nth) if nth % 4 == 2 => vec![Step::Close],
            (6, _) => {
                vec![Step::write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Step::Close]
            }
            _ => vec![Step::hello()],
        });
    let ended = three_agents(folder.path(), &target, 9, 700).await.with_code(0);
    assert!(headline(&ended).contains("14.29 % failed (100 of 700)"), "{}", headline(&ended));

    let report = json_report(folder.path());
    let (ledger, seen) = (&report["ledger"], counts(&target).await);
    assert_eq!(ledger["failed"], 100);
    assert_eq!(ledger["succeeded"], 600);
    assert_eq!(report["connections"]["failed"], 0);
    assert_eq!(seen.requests, 700);
    assert_eq!(report["connections"]["opened"], seen.connections);
    assert_eq!(report["bytes"]["out"], seen.bytes_in);

    // 100 failures in turn are 25 of each way.
    let (errors, status) = (&report["errors"], &report["status"]);
    assert_eq!(sum(errors, "count") + sum(status, "failed"), 100);
    assert_eq!(sum(errors, "count"), 75, "{errors}");
    assert_eq!(row(status, "code", &500.into(), "count"), 25, "{status}");
    assert_eq!(row(status, "code", &500.into(), "failed"), 25, "{status}");
    assert_eq!(row(status, "code", &200.into(), "count"), 600, "{status}");
    assert_eq!(row(errors, "class", &"body_truncated".into(), "count"), 25, "{errors}");
    let broken = ["reset", "closed_before_response", "closed_on_reuse", "send_failed"];
    let broken = broken.map(|class| row(errors, "class", &class.into(), "count"));
    assert_eq!(broken.iter().sum::<u64>(), 50, "{errors}");

    for key in ["planned", "started", "completed", "succeeded", "failed", "in_flight_at_end"] {
        assert_eq!(sum_of_agents(&report, key), ledger[key].as_u64().unwrap(), "{key}");
    }
    let requests = report["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1);
    for rows in ["errors", "status", "ledger", "bytes"] {
        assert_eq!(requests[0][rows], report[rows], "one request is the total");
    }
    let of_agents = |path: &str| -> u64 {
        let agents = report["agents"].as_array().unwrap().iter();
        agents.map(|agent| agent.pointer(path).unwrap().as_u64().unwrap()).sum()
    };
    for path in [
        "/bytes/out",
        "/bytes/in",
        "/connections/opened",
        "/connections/failed",
        "/response_time/all/count",
        "/response_time/succeeded/count",
        "/response_time/failed/count",
    ] {
        assert_eq!(Some(of_agents(path)), report.pointer(path).unwrap().as_u64(), "{path}");
    }
}

#[tokio::test]
async fn a_target_that_only_says_404_has_no_throughput_and_no_headline_to_boast_of() {
    let (folder, target) = (folder(), Target::status(404));
    let ended = three_agents(folder.path(), &target, 6, 300).await.with_code(0);
    let headline = headline(&ended);
    assert!(headline.contains("EVERY REQUEST FAILED, 300 of 300"), "{headline}");
    assert!(!headline.contains("requests/s"), "{headline}");
    let report = json_report(folder.path());
    assert_eq!(report["rates"]["throughput"].as_f64(), Some(0.0));
    assert!(report["rates"]["completed"].as_f64() > Some(0.0));
    let only = serde_json::json!([{ "code": 404, "count": 300, "failed": 300 }]);
    assert_eq!(report["status"], only);
    assert_eq!(report["errors"], serde_json::json!([]));
    assert_eq!(report["response_time"]["succeeded"]["count"], 0);
    assert!(report["response_time"]["succeeded"]["p50_ns"].is_null());
    assert_eq!(report["response_time"]["failed"]["count"], 300);
}

#[tokio::test]
async fn a_target_that_fails_every_other_time_has_the_share_in_its_headline() {
    let folder = folder();
    let target = Target::start(|request: &Received| match request.number % 2 {
        0 => vec![Step::hello()],
        _ => vec![Step::status(502)],
    });
    let ended = three_agents(folder.path(), &target, 6, 300).await.with_code(0);
    let headline = headline(&ended);
    assert!(headline.contains("50.00 % failed (150 of 300)"), "{headline}");
    let report = json_report(folder.path());
    let rate = |key: &str| report["rates"][key].as_f64().unwrap();
    assert!((rate("throughput") * 2.0 / rate("completed") - 1.0).abs() < 0.01, "{report}");
    assert_eq!(row(&report["status"], "code", &502.into(), "failed"), 150);
    assert_eq!(row(&report["status"], "code", &200.into(), "failed"), 0);
}

#[tokio::test]
async fn a_check_sends_nothing_and_a_run_nothing_but_the_plan() {
    let (folder, target) = (folder(), Target::hello());
    plan(folder.path(), &target.url("/"), 8, 100, "");
    inrush(&["check", "plan.toml"], folder.path()).await.with_code(0);
    let seen = target.counts();
    assert_eq!((seen.connections, seen.bytes_in), (0, 0));

    three_agents(folder.path(), &target, 8, 100).await.with_code(0);
    let (report, seen) = (json_report(folder.path()), counts(&target).await);
    assert_eq!(report["ledger"]["started"], 100);
    assert_eq!(seen.requests, 100);
    assert_eq!(report["connections"]["opened"], seen.connections);
    assert_eq!(report["connections"]["opened"], 8);
    assert_eq!(report["bytes"]["out"], seen.bytes_in);
    assert_eq!(report["bytes"]["in"], seen.bytes_out);
}

#[tokio::test]
async fn a_target_that_never_answers_leaves_no_number_where_there_is_none() {
    let (folder, target) = (folder(), Target::silent());
    let text = format!(
        "url = \"{}\"\ntimeout = \"300ms\"\n[load.closed]\nconnections = 10\nrequests = 20\n",
        target.url("/")
    );
    fs::write(folder.path().join("plan.toml"), text).unwrap();
    let run = ["run", "plan.toml", "--local-agents", "1", "--json", "report.json"];
    let ended = inrush(&run, folder.path()).await.with_code(0);
    assert!(headline(&ended).contains("EVERY REQUEST FAILED, 20 of 20"), "{}", ended.out);
    for sentinel in ["NaN", "inf ", "9223372036854775807", "18446744073709551615"] {
        assert!(!ended.out.contains(sentinel), "{sentinel} in {}", ended.out);
    }
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_sound(&report);
    assert_eq!(row(&report["errors"], "class", &"response_timeout".into(), "count"), 20);
    assert_eq!(report["rates"]["throughput"].as_f64(), Some(0.0));
    assert_eq!(report["bytes"]["in"], 0);
    let empty = [
        &report["response_time"]["succeeded"],
        &report["service_time"]["succeeded"],
        &report["ttfb"]["all"],
        &report["tls"],
    ];
    for distribution in empty {
        assert_eq!(distribution["count"], 0, "{distribution}");
        let figures = distribution.as_object().unwrap().iter();
        for (key, figure) in figures.filter(|(key, _)| key.ends_with("_ns")) {
            assert!(figure.is_null(), "{key}: {distribution}");
        }
    }
    let failed = &report["response_time"]["failed"];
    assert_eq!(failed["count"], 20);
    assert!(failed["min_ns"].as_u64() >= Some(299_000_000), "{failed}");
}

#[tokio::test]
async fn three_requests_have_few_figures_and_those_are_in_order() {
    let (folder, target) = (folder(), Target::delay(Duration::from_millis(5)));
    three_agents(folder.path(), &target, 3, 3).await.with_code(0);
    let report = json_report(folder.path());
    assert_eq!(report["ledger"]["succeeded"], 3);
    let times = &report["response_time"]["all"];
    let figures = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_99_ns", "max_ns"];
    let there: Vec<u64> = figures.iter().filter_map(|key| times[*key].as_u64()).collect();
    assert!(there.is_sorted(), "{times}");
    assert!(there[0] >= 4_900_000, "{times}");
    assert!(times["mean_ns"].as_u64() >= times["min_ns"].as_u64(), "{times}");
    assert!(times["mean_ns"].as_u64() <= times["max_ns"].as_u64(), "{times}");
    assert!(times["p99_99_ns"].is_null(), "three requests say nothing of one in 10,000: {times}");
    let failed = &report["response_time"]["failed"];
    assert!(failed["min_ns"].is_null() && failed["max_ns"].is_null(), "{failed}");
}

/// Runs a plan that does not divide evenly, and compares it with the target.
async fn assert_exact(requests: u64, connections: u64) {
    let (folder, target) = (folder(), Target::hello());
    three_agents(folder.path(), &target, connections, requests).await.with_code(0);
    let (report, seen) = (json_report(folder.path()), counts(&target).await);
    assert_eq!(report["ledger"]["succeeded"], requests);
    assert_eq!(sum_of_agents(&report, "planned"), requests);
    assert_eq!(seen.requests, requests);
    assert!(seen.connections <= connections, "{seen:?}");
    assert_eq!(report["connections"]["opened"], seen.connections);
    for agent in report["agents"].as_array().unwrap() {
        assert_eq!(agent["state"], "done", "{}", agent["detail"]);
    }
}

#[tokio::test]
async fn requests_that_do_not_divide_by_agents_or_connections_are_exact() {
    assert_exact(7, 3).await;
    assert_exact(401, 400).await;
}

#[tokio::test]
async fn more_connections_than_requests_make_no_further_request() {
    assert_exact(3, 8).await;
    assert_exact(1, 200).await;
}

/// An `inrush` whose environment names a proxy in every way there is.
fn behind(proxy: &str, args: &[&str], folder: &Path) -> Running {
    let mut command = command(args, folder);
    for name in ["http_proxy", "https_proxy", "all_proxy", "grpc_proxy"] {
        command.env(name, proxy).env(name.to_uppercase(), proxy);
    }
    spawn(command.env_remove("no_proxy").env_remove("NO_PROXY"))
}

#[tokio::test]
async fn a_fleet_uses_no_proxy_of_the_environment_for_load_or_control() {
    let (folder, target) = (folder(), Target::hello());
    let folder = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());

    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];
    let serve = behind(&proxy, &serve, folder);
    let line = serve.says("listening on").await;
    let at = ["--coordinator", line.rsplit_once(' ').unwrap().1];
    let agent = [&["agent", "--name", "lab1", "--workers", "1"], &at[..]].concat();
    let _agent = behind(&proxy, &agent, folder);
    let mut looks = interval(Duration::from_millis(50));
    let listed = async {
        loop {
            looks.tick().await;
            let agents = behind(&proxy, &[&["agents"], &at[..]].concat(), folder).ended().await;
            if agents.with_code(0).out.contains("lab1") {
                return;
            }
        }
    };
    timeout(SOON, listed).await.expect("the agent is listed");

    plan(folder, &target.url("/"), 4, 200, "");
    let submit = [&["submit", "plan.toml", "--json", "report.json"], &at[..]].concat();
    behind(&proxy, &submit, folder).ended().await.with_code(0);
    assert_eq!(json_report(folder)["ledger"]["succeeded"], 200);
    assert_eq!(target.counts().requests, 200);
    // Connections that were made would wait to be accepted now.
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}
