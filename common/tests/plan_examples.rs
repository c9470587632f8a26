//! The plans that come with Inrush: the examples, and the one to start from.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use bytes::Bytes;
use inrush_common::plan::{self, ClosedLoad, Load, Loaded, OnLoss, Phase, Plan, keys::KEYS};

fn load(name: &str, source: &str) -> Loaded {
    let files = BTreeMap::from([("body.json".to_owned(), Bytes::from_static(b"{}"))]);
    plan::load(name, source, &files)
        .unwrap_or_else(|problems| panic!("{}", plan::render(name, source, &problems, false)))
}

fn example(name: &str) -> Plan {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/plans").join(name);
    let source = fs::read_to_string(path).unwrap();
    let loaded = load(name, &source);
    assert_eq!(loaded.warnings, [], "{name}");
    assert_eq!(loaded.plan.workload.requests[0].url.authority().unwrap(), "127.0.0.1:8080");
    loaded.plan
}

fn closed(plan: &Plan) -> &ClosedLoad {
    match plan.workload.phases.as_slice() {
        [Phase { load: Load::Closed(closed), .. }] => closed,
        other => panic!("{other:?}"),
    }
}

fn of(connections: u64, requests: Option<u64>) -> ClosedLoad {
    ClosedLoad {
        profile: ConnectionProfile::constant(connections, 0).unwrap(),
        lanes: Interleave::whole(connections),
        requests,
        duration: None,
        think_time: ThinkTime::None,
    }
}

#[test]
fn every_example_has_a_test_here() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/plans");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let tested =
        ["duration.toml", "hello.toml", "hundred-thousand.toml", "million.toml", "post-json.toml"];
    assert_eq!(names, tested);
}

#[test]
fn hello_is_the_smallest_plan() {
    let plan = example("hello.toml");
    assert_eq!(plan.name, "hello");
    assert_eq!(plan.workload.requests[0].name, "GET /");
    assert_eq!(closed(&plan), &of(10, Some(1_000)));
}

#[test]
fn a_hundred_thousand_requests_go_over_a_thousand_connections() {
    let plan = example("hundred-thousand.toml");
    assert_eq!(closed(&plan), &of(1_000, Some(100_000)));
}

#[test]
fn a_million_requests_go_over_a_hundred_thousand_connections() {
    let plan = example("million.toml");
    assert_eq!(closed(&plan), &of(100_000, Some(1_000_000)));
}

#[test]
fn the_duration_example_has_a_ramp_and_no_count() {
    let plan = example("duration.toml");
    let closed = closed(&plan);
    assert_eq!(closed.requests, None);
    assert_eq!(closed.duration, Some(Duration::from_secs(120)));
    assert_eq!(closed.ramp_up, Duration::from_secs(10));
}

#[test]
fn the_json_example_posts_its_body() {
    let plan = example("post-json.toml");
    let request = &plan.workload.requests[0];
    assert_eq!(request.name, "POST /echo");
    assert!(serde_json::from_slice::<serde_json::Value>(&request.body).is_ok());
    assert_eq!(request.headers.len(), 2);
    assert_eq!(request.expect.status, [200, 201]);
    assert_eq!(plan.agents.on_loss, OnLoss::Continue);
}

#[test]
fn the_starter_plan_loads_as_it_is() {
    let loaded = load("starter.toml", plan::STARTER);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.plan.name, "starter");
}

#[test]
fn the_starter_plan_shows_every_key_and_each_can_be_set_by_taking_off_its_comment_sign() {
    // A comment that is a setting has no blank behind its sign.
    let set = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with([' ', '#']) && !rest.is_empty() => rest.to_owned(),
        _ => line.to_owned(),
    };
    let all: Vec<String> = plan::STARTER.lines().map(set).collect();
    for key in KEYS {
        let start = format!("{} = ", key.name());
        assert!(all.iter().any(|line| line.starts_with(&start)), "{} is missing", key.path);
    }
    for body in ["body = ", "body_file = "] {
        // Only one of the two may be set.
        let lines: Vec<&str> =
            all.iter().map(String::as_str).filter(|line| !line.starts_with(body)).collect();
        assert_eq!(load("starter.toml", &lines.join("\n")).warnings, []);
    }
}
