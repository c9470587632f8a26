//! The plans that come with Inrush: the examples, and the one to start from.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use bytes::Bytes;
use inrush_common::{
    plan::{
        self, ArrivalProcess, ClosedLoad, Load, Loaded, OnLoss, Overflow, Phase, Plan, ThinkTime,
        keys::{KEYS, Key},
    },
    schedule::{ConnectionProfile, Interleave},
};

const SECOND: u64 = 1_000_000_000;

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

fn of(connections: u64, ramp_up_s: u64, requests: Option<u64>) -> ClosedLoad {
    ClosedLoad {
        profile: ConnectionProfile::constant(connections, ramp_up_s * SECOND).unwrap(),
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
    let tested = [
        "duration.toml",
        "hello.toml",
        "hundred-thousand.toml",
        "million.toml",
        "open.toml",
        "phases.toml",
        "post-json.toml",
        "ramp.toml",
        "thinking.toml",
    ];
    assert_eq!(names, tested);
}

#[test]
fn hello_is_the_smallest_plan() {
    let plan = example("hello.toml");
    assert_eq!(plan.name, "hello");
    assert_eq!(plan.workload.requests[0].name, "GET /");
    assert_eq!(closed(&plan), &of(10, 0, Some(1_000)));
}

#[test]
fn a_hundred_thousand_requests_go_over_a_thousand_connections() {
    let plan = example("hundred-thousand.toml");
    assert_eq!(closed(&plan), &of(1_000, 0, Some(100_000)));
}

#[test]
fn a_million_requests_go_over_a_hundred_thousand_connections() {
    let plan = example("million.toml");
    assert_eq!(closed(&plan), &of(100_000, 10, Some(1_000_000)));
}

#[test]
fn the_duration_example_has_a_ramp_and_no_count() {
    let plan = example("duration.toml");
    let expected = ClosedLoad { duration: Some(Duration::from_secs(120)), ..of(300, 10, None) };
    assert_eq!(closed(&plan), &expected);
}

#[test]
fn the_open_example_is_a_poisson_process_of_60_000_requests() {
    let plan = example("open.toml");
    let [Phase { load: Load::Open(open), .. }] = plan.workload.phases.as_slice() else { panic!() };
    assert_eq!((open.slots.count(), open.max_in_flight), (60_000, 500));
    assert_eq!((open.arrivals, open.on_overflow), (ArrivalProcess::Poisson, Overflow::Queue));
    assert_eq!(open.profile.duration_ns(), 60 * SECOND);
}

#[test]
fn the_ramp_example_makes_the_area_under_its_ramps() {
    let plan = example("ramp.toml");
    let [Phase { load: Load::Open(open), .. }] = plan.workload.phases.as_slice() else { panic!() };
    assert_eq!(open.slots.count(), 101_000 + 300_000 + 50_000);
    assert_eq!((open.max_in_flight, open.on_overflow), (2_000, Overflow::Drop));
}

#[test]
fn the_phases_of_the_example_follow_each_other_and_overlap() {
    let plan = example("phases.toml");
    let phases: Vec<_> = plan
        .workload
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.measure, phase.starts_at.as_secs()))
        .collect();
    assert_eq!(phases, [("warm-up", false, 0), ("steady", true, 10), ("burst", true, 30)]);
    assert_eq!(plan.workload.ends_at(), Some(Duration::from_secs(70)));
}

#[test]
fn the_thinking_example_pauses_and_renews_its_connections() {
    let plan = example("thinking.toml");
    let (one, three) = (Duration::from_secs(1), Duration::from_secs(3));
    assert_eq!(closed(&plan).think_time, ThinkTime::Uniform(one, three));
    assert_eq!(plan.workload.connections.requests_per_connection, Some(10));
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
    // What a first plan does not need is only in the reference.
    let advanced = |key: &Key| key.path.starts_with("phases.") || key.path.contains("steps");
    for key in KEYS.iter().filter(|key| !advanced(key)) {
        let start = format!("{} = ", key.name());
        let table = all.iter().rposition(|line| *line == format!("[{}]", key.table()));
        let below = all.iter().skip(table.unwrap_or_default());
        assert!(below.clone().any(|line| line.starts_with(&start)), "{} is missing", key.path);
    }
    // Only one body may be set, and one load.
    for body in ["body = ", "body_file = "] {
        for load_model in ["[load.closed]", "[load.open]"] {
            let mut inside = false;
            let mut lines = Vec::new();
            for line in all.iter().filter(|line| !line.starts_with(body)) {
                if line.starts_with('[') {
                    inside = line == load_model;
                }
                if !inside {
                    lines.push(line.as_str());
                }
            }
            assert_eq!(load("starter.toml", &lines.join("\n")).warnings, []);
        }
    }
}
