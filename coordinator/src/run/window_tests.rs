use std::collections::BTreeMap;

use inrush_common::{
    id::{Epoch, RunId, SnapshotSeq},
    outcome::{ErrorClass, NotStarted, Outcome},
    report::Amount,
    stats::{Completion, Sample},
};

use super::*;
use crate::run::compile;

const CLOSED: &str = "[load.closed]\nconnections = 2\nduration = \"2h\"\n";

/// A plan with this load and stop rules: each an expression, and how much it looks back.
fn plan(load: &str, rules: &[(&str, &str)]) -> Plan {
    let rules: String = rules
        .iter()
        .map(|(threshold, after)| {
            format!("[[stop_when]]\nthreshold = '{threshold}'\nafter = \"{after}\"\n")
        })
        .collect();
    let source = format!("url = \"http://127.0.0.1/\"\n{load}{rules}");
    compile("plan.toml", &source, &BTreeMap::new()).unwrap()
}

fn watching(plan: &Plan, agents: &[&str]) -> Window {
    Window::new(plan, agents.iter().map(|agent| agent.parse().unwrap())).unwrap()
}

/// What an agent did in a second, in the plan's first phase.
#[derive(Debug, Clone, Copy, Default)]
struct Did {
    phase: usize,
    succeeded: u64,
    failed: u64,
    dropped: u64,
}

const GOOD: Did = Did { phase: 0, succeeded: 10, failed: 0, dropped: 0 };
const BAD: Did = Did { phase: 0, succeeded: 0, failed: 10, dropped: 0 };

fn snapshot(agent: &str, second: u64, did: Did) -> Snapshot {
    let mut stats = Stats::new(did.phase + 1, 1);
    let phase = &mut stats.phases[did.phase];
    phase.until_ns = (second + 1) * SECOND_NS;
    let request = &mut phase.requests[0];
    request.not_started[NotStarted::Dropped as usize] = did.dropped;
    for number in 0..did.succeeded + did.failed {
        request.started += 1;
        let outcome = if number < did.succeeded {
            Outcome::Response { status: 200, success: true }
        } else {
            Outcome::Error(ErrorClass::Reset)
        };
        request.record(&Sample {
            outcome,
            response_time: 5_000_000,
            service_time: Some(5_000_000),
            schedule_lag: Some(0),
            ttfb: None,
            bytes_out: 1,
            bytes_in: 1,
        });
    }
    stats.connections.peak = 7;
    Snapshot {
        run: "r".parse::<RunId>().unwrap(),
        key: SnapshotKey {
            agent: agent.parse().unwrap(),
            epoch: Epoch(1),
            seq: SnapshotSeq(second + 1),
        },
        interval: Interval { from_ns: second * SECOND_NS, to_ns: (second + 1) * SECOND_NS },
        stats,
        gauges: Gauges::default(),
        completion: None,
    }
}

/// Feeds one agent's seconds, and says after which of them a rule is broken first.
fn stops_after(
    window: &mut Window,
    seconds: impl IntoIterator<Item = Did>,
) -> Option<(u64, Broken)> {
    (0..).zip(seconds).find_map(|(second, did)| {
        window.add(&snapshot("a", second, did)).map(|broken| (second, broken))
    })
}

#[test]
fn without_stop_rules_nothing_is_kept() {
    assert!(Window::new(&plan(CLOSED, &[]), []).is_none());
}

#[test]
fn before_a_full_window_nothing_is_stopped_and_then_at_once() {
    let mut window = watching(&plan(CLOSED, &[("failed_ratio < 5%", "10s")]), &["a"]);
    let (second, broken) = stops_after(&mut window, [BAD; 20]).unwrap();
    assert_eq!((second, broken.second), (9, 10));
    assert_eq!(broken.row.expression, "failed_ratio < 5%");
    assert_eq!(broken.row.observed, Some(Amount::Real(1.0)));
}

#[test]
fn only_the_last_seconds_count_and_exactly_so_many() {
    let mut window = watching(&plan(CLOSED, &[("failed_ratio < 50%", "4s")]), &["a"]);
    // Bad long ago does not count, one bad second in four is less than half, and two are half.
    let seconds = [GOOD, BAD, GOOD, GOOD, GOOD, GOOD, BAD, GOOD, BAD, GOOD];
    let (second, broken) = stops_after(&mut window, seconds).unwrap();
    assert_eq!(second, 8);
    assert_eq!(broken.row.observed, Some(Amount::Real(0.5)));
}

#[test]
fn a_figure_with_too_few_samples_breaks_nothing() {
    let rules = [("p99(response_time) < 1ms", "2s"), ("failed_ratio < 1%", "2s")];
    let mut window = watching(&plan(CLOSED, &rules), &["a"]);
    assert_eq!(stops_after(&mut window, [Did { succeeded: 499, ..GOOD }; 5]), None);
    let mut silent = watching(&plan(CLOSED, &rules), &["a"]);
    assert_eq!(stops_after(&mut silent, [Did::default(); 5]), None);
    let mut enough = watching(&plan(CLOSED, &rules), &["a"]);
    let (_, broken) = stops_after(&mut enough, [Did { succeeded: 500, ..GOOD }; 5]).unwrap();
    assert_eq!(broken.row.expression, "p99(response_time) < 1ms");
}

#[test]
fn rates_are_over_the_window_wherever_it_lies_in_the_run() {
    let rules = [("throughput > 9/s", "5s"), ("started_rate < 11/s", "5s")];
    let mut window = watching(&plan(CLOSED, &rules), &["a"]);
    assert_eq!(stops_after(&mut window, [GOOD; 70]), None);
    let broken = window.add(&snapshot("a", 70, Did { succeeded: 4, ..GOOD })).unwrap();
    assert_eq!(broken.row.expression, "throughput > 9/s");
    assert_eq!(broken.row.observed, Some(Amount::Real(8.8)));
}

#[test]
fn a_window_of_an_hour_is_added_up_exactly() {
    let mut window = watching(&plan(CLOSED, &[("count(failed) < 3600", "1h")]), &["a"]);
    let one = Did { failed: 1, ..GOOD };
    let seconds = std::iter::repeat_n(GOOD, 90).chain(std::iter::repeat_n(one, 3_700));
    let (second, broken) = stops_after(&mut window, seconds).unwrap();
    assert_eq!(second, 90 + 3_600 - 1);
    assert_eq!(broken.row.observed, Some(Amount::Whole(3_600)));
    assert!(window.seconds.len() as u64 <= 3_600 + BLOCK && window.blocks.len() <= 61);
}

#[test]
fn an_agent_whose_numbers_are_late_is_waited_for_and_is_no_idle_one() {
    let mut window = watching(&plan(CLOSED, &[("throughput > 15/s", "3s")]), &["a", "b"]);
    for second in 0..10 {
        assert_eq!(window.add(&snapshot("a", second, GOOD)), None, "b says nothing");
    }
    for second in 0..9 {
        assert_eq!(window.add(&snapshot("b", second, GOOD)), None, "b was late and did as much");
    }
    // 50 in 3 s are more than 15/s, 40 are less.
    assert_eq!(window.add(&snapshot("b", 9, Did::default())), None);
    assert_eq!(window.add(&snapshot("a", 10, GOOD)), None);
    let broken = window.add(&snapshot("b", 10, Did::default())).unwrap();
    assert_eq!((broken.second, broken.row.expression.as_str()), (11, "throughput > 15/s"));
}

#[test]
fn a_lost_agent_is_not_waited_for_and_what_it_hands_in_later_changes_nothing_decided() {
    let mut window = watching(&plan(CLOSED, &[("failed_ratio < 60%", "2s")]), &["a", "b"]);
    for second in 0..5 {
        assert_eq!(window.add(&snapshot("a", second, BAD)), None);
    }
    let broken = window.lose(&"b".parse().unwrap()).unwrap();
    assert_eq!((broken.second, broken.row.observed), (5, Some(Amount::Real(1.0))));
    assert_eq!(window.add(&snapshot("b", 3, GOOD)), None, "too late, and no new second");
    let again = window.add(&snapshot("a", 5, BAD)).unwrap();
    assert_eq!(again.row.observed, Some(Amount::Real(1.0)));
}

#[test]
fn an_agent_that_is_done_is_not_waited_for_and_its_last_second_counts() {
    let mut window = watching(&plan(CLOSED, &[("failed_ratio < 40%", "1s")]), &["a", "b"]);
    let last = Snapshot { completion: Some(Completion::Finished), ..snapshot("b", 0, GOOD) };
    assert_eq!(window.add(&last), None);
    let broken = window.add(&snapshot("a", 0, BAD)).unwrap();
    assert_eq!(broken.row.observed, Some(Amount::Real(0.5)));
    let over = Snapshot { completion: Some(Completion::Finished), ..snapshot("a", 1, BAD) };
    assert_eq!(window.add(&over), None, "with nobody at work there is nothing to stop");
}

#[test]
fn what_was_left_out_makes_the_window_begin_anew() {
    let mut window = watching(&plan(CLOSED, &[("failed_ratio < 5%", "3s")]), &["a"]);
    for second in 0..2 {
        assert_eq!(window.add(&snapshot("a", second, BAD)), None);
    }
    window.restart();
    let stopped = (2..20).find(|second| window.add(&snapshot("a", *second, BAD)).is_some());
    assert_eq!(stopped, Some(5), "three whole seconds after the one that is doubtful");
}

#[test]
fn an_agent_far_ahead_is_bounded_and_never_makes_numbers_up() {
    let mut window = watching(&plan(CLOSED, &[("throughput > 1/s", "3s")]), &["a", "b"]);
    for second in 0..1_000 {
        assert_eq!(window.add(&snapshot("a", second, GOOD)), None);
    }
    assert!(window.open.len() as u64 <= MOST_AHEAD);
    for second in 0..1_000 {
        assert_eq!(window.add(&snapshot("b", second, Did::default())), None, "{second}");
    }
    // A time no run has costs neither memory nor hours.
    let mut alone = watching(&plan(CLOSED, &[("failed_ratio < 5%", "3s")]), &["a"]);
    assert_eq!(alone.add(&snapshot("a", 10_000_000, BAD)), None);
    assert!(alone.seconds.len() < 100);
}

const PHASES: &str = "\
[[phases]]
name = \"warm-up\"
measure = false
[phases.load.closed]
connections = 2
duration = \"5s\"
[[phases]]
name = \"peak\"
[phases.load.closed]
connections = 2
duration = \"10s\"
[[phases]]
name = \"after\"
measure = false
[phases.load.closed]
connections = 2
duration = \"10s\"
";

#[test]
fn a_rule_is_about_measured_phases_and_waits_until_they_fill_its_window() {
    let seconds = |bad_from: usize| {
        (0..25).map(move |second| {
            let phase = [0..5, 5..15, 15..25].iter().position(|of| of.contains(&second)).unwrap();
            Did { phase, ..if second < bad_from { GOOD } else { BAD } }
        })
    };
    let rules = [("failed_ratio < 5%", "4s")];
    let first = |bad_from| {
        stops_after(&mut watching(&plan(PHASES, &rules), &["a"]), seconds(bad_from))
            .map(|(second, _)| second)
    };
    assert_eq!(first(0), Some(8), "the warm-up's failures do not count");
    assert_eq!(first(12), Some(12));
    assert_eq!(first(15), None, "what is not measured stops nothing");
    let pause = [("throughput > 1/s", "4s")];
    let mut window = watching(&plan(PHASES, &pause), &["a"]);
    assert_eq!(stops_after(&mut window, seconds(25)), None, "no phase at work is no low rate");
    let named = [("failed_ratio{phase=\"after\"} < 5%", "4s")];
    let mut window = watching(&plan(PHASES, &named), &["a"]);
    let (second, broken) = stops_after(&mut window, seconds(5)).unwrap();
    assert_eq!(second, 18);
    assert_eq!(broken.row.observed, Some(Amount::Real(1.0)));
}

#[test]
fn counts_are_those_of_the_window_and_what_is_only_known_at_the_end_stops_nothing() {
    let rules = [("count(in_flight_at_end) < 1", "2s"), ("count(not_started) < 5", "2s")];
    let mut window =
        watching(&plan("[load.closed]\nconnections = 2\nrequests = 1000\n", &rules), &["a"]);
    let two = Did { dropped: 2, ..GOOD };
    let three = Did { dropped: 3, ..GOOD };
    let (second, broken) = stops_after(&mut window, [two, two, GOOD, two, three]).unwrap();
    assert_eq!((second, broken.row.observed), (4, Some(Amount::Whole(5))));
}
