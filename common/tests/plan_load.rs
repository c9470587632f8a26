//! What a plan means once it is loaded.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use inrush_common::{
    plan::{self, ClosedLoad, ConnectionPolicy, Load, OnLoss, Plan, Problem, ThinkTime, code},
    schedule::{ConnectionProfile, Interleave},
};

fn try_load(source: &str) -> Result<plan::Loaded, Vec<Problem>> {
    plan::load("dir/my plan.toml", source, &BTreeMap::new())
}

fn load(source: &str) -> Plan {
    try_load(source)
        .unwrap_or_else(|problems| {
            panic!("{}", plan::render("plan.toml", source, &problems, false))
        })
        .plan
}

/// A plan of some lines at the top and some in `[load.closed]`.
fn plan_of(top: &str, closed: &str) -> String {
    let url = if top.contains("url =") { "" } else { "url = 'http://127.0.0.1:8080/'\n" };
    format!("{url}{top}\n[load.closed]\n{closed}\n")
}

const SMALL: &str = "connections = 1\nrequests = 1";

fn codes(source: &str) -> Vec<&'static str> {
    match try_load(source) {
        Ok(loaded) => loaded.warnings.into_iter().map(|problem| problem.code).collect(),
        Err(problems) => problems.into_iter().map(|problem| problem.code).collect(),
    }
}

#[test]
fn the_smallest_plan_gets_the_documented_defaults() {
    let plan = load(&plan_of("", "connections = 10\nrequests = 1_000"));
    assert_eq!(plan.name, "my plan");
    assert_eq!(plan.agents.min, 1);
    assert_eq!(plan.agents.on_loss, OnLoss::Abort);
    let work = &plan.workload;
    assert_eq!(work.timeout, Duration::from_secs(30));
    assert_eq!(work.connect_timeout, Duration::from_secs(5));
    assert_eq!(work.grace, Duration::from_secs(5));
    assert_eq!(work.give_up_after, Duration::from_secs(10));
    assert_eq!(work.requests.len(), 1);
    let request = &work.requests[0];
    assert_eq!(request.name, "GET /");
    assert_eq!(request.url, "http://127.0.0.1:8080/");
    assert!(request.headers.is_empty() && request.body.is_empty());
    assert!(request.expect.status.is_empty());
    assert_eq!(work.connections, ConnectionPolicy::default());
    assert_eq!((work.seed, work.phases.len()), (1, 1));
    let phase = &work.phases[0];
    assert_eq!(
        (phase.name.as_str(), phase.measure, phase.starts_at),
        ("main", true, Duration::ZERO)
    );
    let closed = ClosedLoad {
        profile: ConnectionProfile::constant(10, 0).unwrap(),
        lanes: Interleave::whole(10),
        requests: Some(1_000),
        duration: None,
        think_time: ThinkTime::None,
    };
    assert_eq!(phase.load, Load::Closed(closed));
}

#[test]
fn headers_keep_the_order_of_the_plan_and_arrays_repeat_the_line() {
    let plan = load(&plan_of(
        "headers = { Z = 'last', Cookie = ['b=2', 'a=1'], A = 'ü', connection = 'Close', Host = 'h' }",
        SMALL,
    ));
    let lines: Vec<(&str, &[u8])> = plan.workload.requests[0]
        .headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.as_bytes()))
        .collect();
    let expected: [(&str, &[u8]); 6] = [
        ("z", b"last"),
        ("cookie", b"b=2"),
        ("cookie", b"a=1"),
        ("a", "ü".as_bytes()),
        ("connection", b"Close"),
        ("host", b"h"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn tables_and_inline_tables_are_the_same() {
    let tables = "url = 'http://h/'\n[headers]\nA = 'b'\n[expect]\nstatus = [200]\n[agents]\nmin = 2\n\
                  [load.closed]\nconnections = 1\nrequests = 1\n";
    let inline = "url = 'http://h/'\nheaders.A = 'b'\nexpect = { status = [200] }\nagents = { min = 2 }\n\
                  load = { closed = { connections = 1, requests = 1 } }\n";
    assert_eq!(load(tables), load(inline));
}

#[test]
fn status_codes_and_ranges_become_one_sorted_list() {
    let plan = load(&plan_of("expect.status = [404, '200-203', \"201-202\", 200]", SMALL));
    assert_eq!(plan.workload.requests[0].expect.status, [200, 201, 202, 203, 404]);
    for wrong in
        ["99", "1000", "-1", "'200-'", "'-299'", "'200-299-300'", "'2 00-299'", "'٢٠٠-٢٩٩'"]
    {
        let source = plan_of(&format!("expect.status = [{wrong}]"), SMALL);
        assert_eq!(codes(&source), [code::BAD_STATUS], "{wrong}");
    }
}

#[test]
fn a_body_is_sent_as_written_with_any_method() {
    for (typed, body) in [
        ("'ü\\n'", "ü\\n"),
        ("\"ü\\n\"", "ü\n"),
        ("\"\"\"\na\nb\n\"\"\"", "a\nb\n"),
        ("\"a\\r\\nb\"", "a\r\nb"),
        ("''", ""),
    ] {
        let plan = load(&plan_of(&format!("body = {typed}"), SMALL));
        assert_eq!(plan.workload.requests[0].body, body.as_bytes(), "{typed}");
        assert_eq!(plan.workload.requests[0].method, "GET");
    }
    let bytes: Vec<u8> = (0..=255).collect();
    let files = BTreeMap::from([("b".to_owned(), Bytes::from(bytes.clone()))]);
    let source = plan_of("body_file = 'b'", SMALL);
    let plan = plan::load("plan.toml", &source, &files).unwrap().plan;
    assert_eq!(plan.workload.requests[0].body, bytes);
    assert_eq!(plan::named_files(&source), ["b"]);
}

#[test]
fn a_plan_saved_on_windows_is_the_same_plan() {
    let unix = plan_of("body = \"\"\"\nline\nü\n\"\"\"\nheaders = { A = 'ü' }", SMALL);
    let windows = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
    assert_eq!(load(&windows), load(&unix));
    // Only one of the two, as some editors do.
    assert_eq!(load(&format!("\u{feff}{unix}")), load(&unix));
    assert_eq!(load(&unix.replace('\n', "\r\n")), load(&unix));
}

#[test]
fn methods_are_taken_as_they_are() {
    for method in ["GET", "HEAD", "POST", "PURGE", "M-SEARCH", "purge"] {
        let plan = load(&plan_of(&format!("method = '{method}'"), SMALL));
        assert_eq!(plan.workload.requests[0].method, method);
        assert_eq!(plan.workload.requests[0].name, format!("{method} /"));
    }
    let long = "X".repeat(33);
    for method in ["", "get", "Post", "CONNECT", "connect", "A B", "GET\\n", "Ü", long.as_str()] {
        let source = plan_of(&format!("method = \"{method}\""), SMALL);
        assert_eq!(codes(&source), [code::BAD_METHOD], "{method:?}");
    }
}

#[test]
fn the_limits_are_reached_and_not_crossed() {
    for (top, closed) in [
        ("", "connections = 10_000_000\nrequests = 1_000_000_000_000_000"),
        ("", "connections = 1\nduration = '7d'\nramp_up = '6d'"),
        ("", "connections = 0x0a\nduration = '1ns'"),
        ("timeout = '1h'\nconnect_timeout = '60m'\ngrace = '1ns'\ngive_up_after = '3600s'", SMALL),
        ("agents.min = 100_000", SMALL),
        ("expect.status = [100, 999]", SMALL),
    ] {
        assert_eq!(codes(&plan_of(top, closed)), [""; 0], "{top} {closed}");
    }
    for (top, closed) in [
        ("", "connections = 10_000_001\nrequests = 1_000_000_000_000_000"),
        ("", "connections = 1\nrequests = 1_000_000_000_000_001"),
        ("", "connections = 1\nrequests = 0"),
        ("", "connections = -1\nrequests = 1"),
        ("", "connections = 999999999999999999999999999999999999999999999\nrequests = 1"),
        ("", "connections = 1\nduration = '7d 1ns'"),
        ("", "connections = 1\nduration = '0s'"),
        ("", "connections = 1\nduration = '9d'\nramp_up = '1s'"),
        ("timeout = '1h 1ns'", SMALL),
        ("timeout = '0ms'", SMALL),
        ("connect_timeout = '0s'", SMALL),
        ("grace = '0s'", SMALL),
        ("give_up_after = '2h'", SMALL),
        ("agents.min = 0", SMALL),
        ("agents.min = 100_001", SMALL),
    ] {
        assert_eq!(codes(&plan_of(top, closed)), [code::OUT_OF_RANGE], "{top} {closed}");
    }
}

#[test]
fn one_mistake_is_one_problem() {
    for (top, closed, expected) in [
        ("", "conections = 1\nrequests = 1", code::UNKNOWN_KEY),
        ("", "connections = 1\nreqests = 1", code::UNKNOWN_KEY),
        ("ulr = 'http://h/'#url =", SMALL, code::UNKNOWN_KEY),
        ("", "connections = 1\nrequests = 1k", code::WRONG_TYPE),
        ("", "connections = 1\nrequests = 1,000", code::SYNTAX),
        ("timeout = 30s", SMALL, code::SYNTAX),
        ("timeout = 30", SMALL, code::MISSING_UNIT),
        ("timeout = '30'", SMALL, code::BAD_DURATION),
        ("timeout = ''", SMALL, code::BAD_DURATION),
        ("agents.on_loss = 'Abort'", SMALL, code::BAD_CHOICE),
        ("agents.on_loss = 'redistribute'", SMALL, code::NOT_AVAILABLE),
        ("url = 3", SMALL, code::WRONG_TYPE),
        ("url = ''", SMALL, code::BAD_URL),
        ("body = 'a'\nbody_file = 'b'", SMALL, code::TWO_BODIES),
        ("body_file = ''", SMALL, code::BODY_FILE),
        ("headers = 'A: b'", SMALL, code::WRONG_TYPE),
        ("expect = [200]", SMALL, code::WRONG_TYPE),
        ("expect.status = 200", SMALL, code::WRONG_TYPE),
        ("expect.status = []", SMALL, code::BAD_STATUS),
    ] {
        assert_eq!(codes(&plan_of(top, closed)), [expected], "{top} {closed}");
    }
    assert_eq!(codes("url = 'http://h/'\nload = 'closed'"), [code::WRONG_TYPE]);
    assert_eq!(codes("url = 'http://h/'\n[load]\n"), [code::NO_LOAD]);
    assert_eq!(codes("url = 'http://h/'\n[closed]\nconnections = 1\n"), [code::UNKNOWN_KEY]);
    assert_eq!(codes("url = 'http://h/'\n[load.closed\nconnections = 1\n"), [code::SYNTAX]);
    assert_eq!(codes("url = 'http://h/'\n[load.open]\nrate = 1\n"), [code::NO_END]);
    assert_eq!(codes("# nothing\n"), [code::EMPTY]);
}

#[test]
fn more_headers_than_a_server_takes_are_refused() {
    let many = |lines: usize, bytes: usize| {
        let values = vec![format!("'{}'", "x".repeat(bytes)); lines];
        plan_of(&format!("headers = {{ A = [{}] }}", values.join(", ")), SMALL)
    };
    assert_eq!(codes(&many(100, 500)), [""; 0]);
    assert_eq!(codes(&many(101, 1)), [code::OUT_OF_RANGE]);
    assert_eq!(codes(&many(2, 33_000)), [code::OUT_OF_RANGE]);
}

#[test]
fn warnings_let_the_plan_run_and_come_with_errors_too() {
    let odd = plan_of("url = 'http://h/#x'", "connections = 5\nrequests = 2");
    let loaded = try_load(&odd).unwrap();
    assert!(loaded.warnings.iter().all(|problem| !problem.is_error()));
    assert_eq!(codes(&odd), [code::FRAGMENT, code::IDLE_CONNECTIONS]);
    let wrong = format!("{odd}\n[agents]\nmin = 0\n");
    assert_eq!(codes(&wrong), [code::FRAGMENT, code::IDLE_CONNECTIONS, code::OUT_OF_RANGE]);
}

#[test]
fn an_address_of_any_kind_can_be_the_host() {
    for host in ["127.0.0.1", "[::1]", "localhost", "a_b.example.test.", "127.0.0.1:65535"] {
        let plan = load(&plan_of(&format!("url = 'http://{host}'"), SMALL));
        let url = &plan.workload.requests[0].url;
        assert_eq!(url.authority().unwrap(), host);
        assert_eq!(url.path_and_query().unwrap(), "/");
        assert_eq!(url.scheme_str(), Some("http"));
    }
}
