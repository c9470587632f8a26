use std::{collections::BTreeMap, time::Duration};

use inrush_common::{
    capacity::Capacity,
    explain::{Machine, Question, explain as work_out},
};

use super::*;
use crate::run::compile;

fn machines(capacities: &[(u32, u64, u64, u32)]) -> Vec<Machine> {
    let machine =
        |(number, (workers, files, ports, sources)): (u32, &(u32, u64, u64, u32))| Machine {
            name: format!("lab{number}").parse().unwrap(),
            capacity: Capacity {
                workers: *workers,
                files: *files,
                ports: *ports,
                sources: *sources,
                memory: None,
                cpu_quota_millis: None,
            },
        };
    (1..).zip(capacities).map(machine).collect()
}

/// The text for a plan over these agents. `loads` are not what is tested: their words have tests of their own.
fn text(source: &str, agents: &[Machine], fleet: FleetSource) -> String {
    let plan = compile("plan.toml", source, &BTreeMap::new()).unwrap();
    let explanation = work_out(&Question {
        plan: &plan,
        agents,
        fleet,
        request_bytes: &[58],
        response_bytes: Some(1_000),
        port_hold: Duration::from_secs(60),
    });
    let loads = vec!["(the load)".to_owned(); explanation.phases.len()];
    explain(&explanation, &loads, false)
}

const MILLION: &str = "name = \"million\"\nurl = \"http://127.0.0.1:8080/\"\n[load.closed]\nconnections = \
                       100_000\nrequests = 1_000_000\n";

#[test]
fn what_does_not_fit_is_said_first_with_all_that_would_do() {
    let three = machines(&[(2, 1_000_000, 28_232, 1); 3]);
    insta::assert_snapshot!("explain_refused", text(MILLION, &three, FleetSource::Assumed));
    let odd = machines(&[(2, 20_000, 28_232, 1), (4, 1_000_000, 28_232, 2)]);
    insta::assert_snapshot!("explain_refused_odd", text(MILLION, &odd, FleetSource::Coordinator));
}

#[test]
fn agents_that_are_alike_share_a_row() {
    let eight = machines(&[(2, 1_000_000, 28_232, 1); 8]);
    insta::assert_snapshot!("explain_accepted", text(MILLION, &eight, FleetSource::Assumed));
}

const PHASES: &str = r#"
name = "phases"
url = "http://127.0.0.1:8080/"
requests_per_connection = 10
thresholds = ["p99(response_time) < 250ms", 'p99.99(response_time{phase="burst"}) < 1s']

[[phases]]
name = "warm-up"
measure = false
[phases.load.closed]
connections = 50
duration = "10s"

[[phases]]
name = "steady"
[phases.load.open]
rate = 500
duration = "1m"
max_in_flight = 1_000

[[phases]]
name = "burst"
start_at = "30s"
[phases.load.open]
rate = { from = 0, to = 0.5 }
duration = "10s"
max_in_flight = 20
on_overflow = "drop"

[[stop_when]]
threshold = "failed_ratio < 5%"
after = "10s"

[[stop_when]]
threshold = 'throughput{phase="burst"} > 1/s'
after = "1m"
abort = false
"#;

#[test]
fn phases_and_open_loads_have_their_arithmetic() {
    let two = machines(&[(2, 20_000, 28_232, 1), (1, 20_000, 28_232, 1)]);
    insta::assert_snapshot!("explain_phases", text(PHASES, &two, FleetSource::Coordinator));
}

#[test]
fn connections_that_are_not_kept_are_refused_when_the_ports_are_not_enough() {
    let fast = "url = \"http://192.0.2.1/\"\nkeep_alive = false\n[load.open]\nrate = 5_000\nduration = \"1h\"\n";
    let text = text(fast, &machines(&[(4, 20_000, 28_232, 1)]), FleetSource::Assumed);
    assert!(text.starts_with("CANNOT RUN\n"), "{text}");
    assert!(
        text.contains("- lab1: the load opens up to 5,000 new connections per second"),
        "{text}"
    );
    assert!(text.contains("source addresses for it (--source-ip)"), "{text}");
}

#[test]
fn every_rate_is_written_out() {
    assert_eq!(
        [0.000_001, 0.1, 9.5, 500.0, 5_000.0, 10_000_000.0].map(rate),
        ["0.000001/s", "0.1/s", "9.5/s", "500/s", "5,000/s", "10,000,000/s"]
    );
    assert_eq!([0.0, 12.0, 999_999.0].map(bits), ["0.0 bit/s", "96.0 bit/s", "8.0 Mbit/s"]);
}
