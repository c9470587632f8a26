//! Figures against their limits, on the limit and beside it.

use inrush_common::{
    outcome::ErrorClass,
    plan::code,
    report::{Amount, Distribution, ErrorRow, Ledger, Report, RequestRow, StatusRow, ThresholdRow},
    threshold::{self, ConnectionCount, Time},
};
use proptest::prelude::*;

use crate::{ANY, empty, read, report, row};

#[track_caller]
fn holds(report: &Report, cases: &[(&str, bool)]) {
    for (text, passed) in cases {
        let row = row(text, report);
        assert_eq!(row.passed, *passed, "{row:?}");
        assert!(row.observed.is_some() && row.detail.is_none(), "{row:?}");
        assert_eq!(row.is_broken(), !passed);
    }
}

#[test]
fn a_ratio_on_its_limit_is_on_it() {
    let mut report = report();
    // 90 of 20,000 is 0.45 %.
    holds(
        &report,
        &[
            ("failed_ratio <= 0.45%", true),
            ("failed_ratio < 0.45%", false),
            ("failed_ratio == 0.0045", true),
            ("failed_ratio != 0.45%", false),
            ("failed_ratio < 0.4500000001%", true),
            ("failed_ratio >= 0.4500000001%", false),
        ],
    );
    // One more than a third, which no float and no decimal can say.
    (report.ledger.failed, report.ledger.completed) = (1, 3);
    holds(
        &report,
        &[("failed_ratio > 33.3333333333%", true), ("failed_ratio < 33.3333333334%", true)],
    );
    (report.ledger.failed, report.ledger.completed) = (u64::MAX - 1, u64::MAX);
    holds(&report, &[("failed_ratio < 100%", true), ("failed_ratio >= 99.9999999999%", true)]);
}

#[test]
fn a_rate_on_its_limit_is_on_it_whatever_the_duration() {
    let mut report = report();
    // Durations and counts whose quotient is whole and which floats get wrong now and then.
    for nanos in [100_000_000, 300_000_000, 700_000_000, 1_100_000_000, 4_900_000_000_u64] {
        for per_second in [10_u64, 30, 70, 490, 12_340, 999_990] {
            let count = per_second * (nanos / 100_000_000) / 10;
            report.duration_s = nanos as f64 / 1e9;
            report.rates.started = count as f64 / report.duration_s;
            let limits = [
                (format!("started_rate == {per_second}/s"), true),
                (format!("started_rate >= {per_second}/s"), true),
                (format!("started_rate > {per_second}/s"), false),
                (format!("started_rate <= {}/m", per_second * 60), true),
                (format!("started_rate < {per_second}.000001/s"), true),
            ];
            for (text, passed) in limits {
                holds(&report, &[(text.as_str(), passed)]);
            }
        }
    }
    (report.duration_s, report.rates.started) = (0.0, 0.0);
    holds(&report, &[("started_rate == 0/s", true), ("started_rate > 0/h", false)]);
}

#[test]
fn a_time_on_its_limit_is_on_it_and_is_the_printed_one() {
    let report = report();
    type Printed = fn(&Distribution) -> Option<u64>;
    let of: [(&str, Printed); 8] = [
        ("min", |of| of.min_ns),
        ("mean", |of| of.mean_ns),
        ("stdev", |of| of.stdev_ns),
        ("max", |of| of.max_ns),
        ("med", |of| of.p50_ns),
        ("p90", |of| of.p90_ns),
        ("p95", |of| of.p95_ns),
        ("p99.9", |of| of.p99_9_ns),
    ];
    for (name, printed) in of {
        let printed = printed(&report.response_time.succeeded).unwrap();
        let (us, ns) = (printed / 1_000, printed % 1_000);
        for (operator, passed) in [("<=", true), ("<", false), ("==", true), ("!=", false)] {
            let text =
                format!("{name}(response_time{{outcome='succeeded'}}) {operator} {us}us {ns}ns");
            let row = row(&text, &report);
            assert_eq!(
                (row.observed, row.passed),
                (Some(Amount::Whole(printed)), passed),
                "{text}"
            );
        }
    }
}

#[test]
fn percentiles_without_a_key_come_out_of_the_histogram_in_order() {
    let report = report();
    let of = |text: &str| match row(&format!("p{text}(response_time) < 1h"), &report) {
        ThresholdRow { observed: Some(Amount::Whole(nanos)), .. } => nanos,
        row => panic!("{row:?}"),
    };
    let found: Vec<u64> =
        ["0.001", "25", "50", "75", "98", "99", "99.5", "99.9", "99.95"].map(of).into();
    assert!(found.is_sorted(), "{found:?}");
    assert_eq!(Some(found[5]), report.response_time.all.p99_ns);
    assert!(found[3] < found[4]);
}

#[test]
fn a_percentile_with_too_few_samples_does_not_pass_and_says_how_many_it_takes() {
    let report = report();
    for (text, detail) in [
        ("p99.99(response_time) < 1h", "needs 100,000 samples, has 20,000"),
        ("p99.96(response_time) >= 0s", "needs 25,000 samples, has 20,000"),
        ("p95(response_time{outcome='failed'}) < 1h", "needs 200 samples, has 90"),
        ("p50(tls) < 1h", "no samples"),
        ("max(tls) != 1s", "no samples"),
    ] {
        let row = row(text, &report);
        assert_eq!((row.passed, row.observed), (false, None), "{text}");
        assert_eq!(row.detail.as_deref(), Some(detail), "{text}");
        assert!(!row.is_broken());
    }
}

#[test]
fn what_is_above_the_top_of_the_histogram_passes_nothing() {
    let mut report = report();
    report.response_time.all.overflow = 1;
    report.response_time.all.max_ns = None;
    for text in ["max(response_time) < 1h", "max(response_time) > 1s"] {
        let row = row(text, &report);
        assert!(!row.passed && row.detail.unwrap().contains("above one hour"), "{text}");
    }
}

#[test]
fn counts_are_the_sums_of_their_rows() {
    let mut report = report();
    let status = |code, count| StatusRow { code, count, failed: 0 };
    report.status = vec![status(200, 90), status(500, 2), status(503, 3), status(599, 4)];
    let error =
        |class: ErrorClass, count| ErrorRow { class: class.to_string(), count, example: None };
    report.errors = vec![error(ErrorClass::ConnectRefused, 5), error(ErrorClass::Reset, 6)];
    report.connections.opened = 112;
    holds(
        &report,
        &[
            ("count(status.503) == 3", true),
            ("count(status.5xx) == 9", true),
            ("count(status.404) == 0", true),
            ("count(errors) == 11", true),
            ("count(errors.reset) < 6", false),
            ("count(errors.dns_failed) == 0", true),
            ("count(started) == 20_000", true),
            ("count(succeeded) >= 19911", false),
            ("count(not_started) == 0", true),
            ("count(in_flight_at_end) == 0", true),
            ("count(connections.opened) > 111", true),
        ],
    );
}

#[test]
fn nothing_completed_is_no_ratio() {
    let report: Report = empty();
    for text in ["failed_ratio < 1%", "failed_ratio == 0%", "failed_ratio > 1%"] {
        let row = row(text, &report);
        assert!(!row.passed && row.observed.is_none());
        assert_eq!(row.detail.as_deref(), Some("no request completed"));
    }
}

/// Everything that can be asked of a part of the run.
fn metrics() -> Vec<String> {
    let times = Time::ALL.iter().map(|time| format!("max({time}@) < 1h"));
    let rates = ["throughput@ > 0/s", "started_rate@ > 0/s", "completed_rate@ > 0/s"];
    let counts = ["started", "completed", "succeeded", "failed", "not_started", "in_flight_at_end"]
        .into_iter()
        .chain(["errors", "errors.reset", "status.200", "status.5xx"])
        .map(|name| format!("count({name}@) >= 0"));
    let connections =
        ConnectionCount::ALL.iter().map(|which| format!("count(connections.{which}@) >= 0"));
    let outcomes = ["all", "succeeded", "failed"]
        .map(|outcome| format!("min(response_time@{{outcome='{outcome}'}}) < 1h"));
    times
        .chain(rates.map(str::to_owned))
        .chain(["failed_ratio@ < 1%".to_owned()])
        .chain(counts)
        .chain(connections)
        .chain(outcomes)
        .collect()
}

#[test]
fn what_is_not_refused_the_report_has_and_what_is_refused_it_has_not() {
    let report = report();
    let mut refused = 0;
    for metric in metrics() {
        for place in ["", "request='hello'", "phase='main'", "request='hello', phase='main'"] {
            let text = match (place.is_empty(), metric.contains("@{")) {
                (true, _) => metric.replace('@', ""),
                (false, true) => metric.replace("@{", &format!("{{{place}, ")),
                (false, false) => metric.replace('@', &format!("{{{place}}}")),
            };
            match threshold::parse(&text, &ANY) {
                Ok(threshold) => {
                    let row = threshold::evaluate(&threshold, &report);
                    let no_figure = row.detail.as_deref() == Some("the report has no such figure");
                    assert!(!no_figure, "{text}");
                }
                Err(faults) => {
                    assert_eq!(faults[0].code, code::NO_FIGURE, "{text}: {faults:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 15, "{refused}");
}

#[test]
fn a_selector_leads_to_its_own_row() {
    let mut report = report();
    let row = |name: &str, failed| RequestRow {
        name: name.to_owned(),
        ledger: Ledger { failed, completed: 100, ..report.ledger.clone() },
        ..report.requests[0].clone()
    };
    let rows = [row("login", 1), row("buy", 2), row("login", 3), row("buy", 4)];
    let rows_of_main = [row("login", 5), row("buy", 6)];
    let mut peak = report.phases[0].clone();
    peak.name = "peak".to_owned();
    (peak.ledger.failed, peak.ledger.completed) = (7, 100);
    report.requests = rows[..2].to_vec();
    // One phase: its rows would be copies, so that there are none.
    holds(
        &report,
        &[
            ("failed_ratio{request='login'} == 1%", true),
            ("failed_ratio{request='buy'} == 2%", true),
            ("failed_ratio{request='buy', phase='main'} == 2%", true),
        ],
    );
    report.phases[0].requests = rows_of_main.to_vec();
    peak.requests = rows[2..].to_vec();
    report.phases.push(peak);
    holds(
        &report,
        &[
            ("failed_ratio == 0.45%", true),
            ("failed_ratio{phase='peak'} == 7%", true),
            ("failed_ratio{request='login'} == 1%", true),
            ("failed_ratio{request='login', phase='main'} == 5%", true),
            ("failed_ratio{phase='peak', request='login'} == 3%", true),
            ("failed_ratio{phase='peak', request='buy'} == 4%", true),
        ],
    );
    // One request: a phase's only row is the phase.
    report.requests.truncate(1);
    report.phases.iter_mut().for_each(|phase| phase.requests.clear());
    holds(&report, &[("failed_ratio{phase='peak', request='login'} == 7%", true)]);
    let absent =
        threshold::evaluate(&read("failed_ratio{phase='peak', request='buy'} < 1%"), &report);
    assert_eq!(absent.detail.as_deref(), Some("the report has no such figure"));
}

proptest! {
    #[test]
    fn comparing_never_disagrees_with_the_numbers(
        (part, whole) in (1..=u64::MAX).prop_flat_map(|whole| (0..=whole, Just(whole))),
        parts in 0..=1_000_000_000_000_u64,
    ) {
        let mut report = empty();
        (report.ledger.failed, report.ledger.completed) = (part, whole);
        let limit = format!("0.{parts:012}");
        let limit = if parts == 1_000_000_000_000 { "1" } else { &limit };
        let passed = |operator: &str| row(&format!("failed_ratio {operator} {limit}"), &report).passed;
        let [at_most, at_least] = ["<=", ">="].map(passed);
        prop_assert!(at_most || at_least);
        prop_assert_eq!(at_most && at_least, passed("=="));
        let exact = u128::from(part) * 1_000_000_000_000;
        prop_assert_eq!(at_most, exact <= u128::from(parts) * u128::from(whole));
    }
}
