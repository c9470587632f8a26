//! Thresholds: whatever is typed is read or refused with a place, what is read is written in one way, and figures are
//! compared exactly.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use inrush_common::{
    outcome::ErrorClass,
    plan::code,
    report::{Amount, Distribution, ErrorRow, Report, StatusRow, ThresholdRow},
    threshold::{self, ConnectionCount, Known, Metric, Threshold, Time},
};
use proptest::{collection::vec, prelude::*, sample::select};

const COUNTED: Known<'_> = Known { requests: None, phases: None, counted: true };

fn read(text: &str) -> Threshold {
    threshold::parse(text, &COUNTED).unwrap_or_else(|faults| panic!("{text}: {faults:#?}"))
}

/// A report with thresholds in it that are not looked at: 20,000 requests in 4.5 s.
fn report() -> Report {
    serde_json::from_str(include_str!("report/golden/normal.json")).unwrap()
}

fn row(text: &str, report: &Report) -> ThresholdRow {
    threshold::evaluate(&read(text), report)
}

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
fn what_is_written_in_many_ways_is_shown_in_one() {
    for (typed, shown) in [
        ("p99(response_time)<250ms", "p99(response_time) < 250ms"),
        (" med ( ttfb ) >= 0.25 s ", "p50(ttfb) >= 250ms"),
        ("p99.90(connect) < 1m", "p99.9(connect) < 1m"),
        ("failed_ratio < 0.001", "failed_ratio < 0.1%"),
        ("failed_ratio != 5.50 %", "failed_ratio != 5.5%"),
        ("throughput>5_000/s", "throughput > 5000/s"),
        ("count(errors)<=3", "count(errors) <= 3"),
        (
            "max(response_time{outcome='failed',request=\"c\\\\'\"}) == 1s",
            "max(response_time{request=\"c\\\\'\", outcome=\"failed\"}) == 1s",
        ),
        ("failed_ratio{phase='a \"b\"'} < 1%", "failed_ratio{phase=\"a \\\"b\\\"\"} < 1%"),
        ("max(ttfb{outcome=\"all\"}) < 1s", "max(ttfb) < 1s"),
    ] {
        assert_eq!(read(typed).to_string(), shown);
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
    let report: Report = serde_json::from_str(include_str!("report/golden/empty.json")).unwrap();
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
            match threshold::parse(&text, &COUNTED) {
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
    assert!(refused > 20, "{refused}");
}

#[test]
fn names_are_those_of_the_plan_and_the_nearest_is_suggested() {
    let requests = ["login".to_owned(), "buy".to_owned()];
    let phases = ["main".to_owned()];
    let known = Known { requests: Some(&requests), phases: Some(&phases), counted: true };
    let text = "p95(response_time{request=\"logim\"}) < 1s";
    let faults = threshold::parse(text, &known).unwrap_err();
    let fault = &faults[0];
    assert_eq!((faults.len(), fault.code), (1, code::UNKNOWN_NAME));
    assert_eq!(text.get(fault.part.clone()), Some("\"logim\""));
    assert_eq!(fault.message, "no request is called \"logim\"");
    assert_eq!(fault.help, "did you mean \"login\"? the plan has \"login\", \"buy\"");
    assert!(threshold::parse("throughput{phase='main'} > 1/s", &known).is_ok());
    // The requests of a plan share its count.
    let text = "count(not_started{request='buy'}) == 0";
    assert_eq!(threshold::parse(text, &known).unwrap_err()[0].code, code::NO_FIGURE);
}

#[test]
fn what_can_never_hold_is_refused() {
    for text in ["count(errors) < 0", "failed_ratio < 0%", "max(ttfb) < 0s", "failed_ratio > 100%"]
    {
        let faults = threshold::parse(text, &COUNTED).unwrap_err();
        assert_eq!(faults[0].label, "can never hold", "{text}");
    }
}

#[test]
fn every_mistake_of_a_line_is_told_at_once() {
    let text = "p101(response_time{phse=\"a\", outcome=\"b\"}) =< 5%";
    let faults = threshold::parse(text, &COUNTED).unwrap_err();
    let parts: Vec<&str> =
        faults.iter().map(|fault| text.get(fault.part.clone()).unwrap()).collect();
    assert_eq!(parts, ["p101", "phse", "\"b\"", "=<", "%"]);
}

/// What must hold for any text.
fn look_at(text: &str, known: &Known<'_>) {
    match threshold::parse(text, known) {
        Ok(threshold) => {
            let written = threshold.to_string();
            assert_eq!(
                threshold::parse(&written, known),
                Ok(threshold.clone()),
                "{text:?} {written:?}"
            );
            assert_eq!(read(&written).to_string(), written);
            let row = threshold::evaluate(&threshold, &EMPTY.with(Clone::clone));
            assert_eq!(row.observed.is_none(), row.detail.is_some());
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "{text:?} is refused without a fault");
            for fault in faults {
                assert!(text.get(fault.part.clone()).is_some(), "{fault:?} in {text:?}");
                let texts = [&fault.message, &fault.label, &fault.help];
                assert!(texts.iter().all(|text| !text.is_empty() && text.len() < 500), "{fault:?}");
                assert!(code::ALL.iter().any(|(code, _)| *code == fault.code));
            }
        }
    }
}

thread_local! {
    static EMPTY: Report = serde_json::from_str(include_str!("report/golden/empty.json")).unwrap();
}

/// Texts that look like thresholds, whole and broken.
fn threshold_like() -> impl Strategy<Value = String> {
    let pieces = [
        "p99",
        "p99.9",
        "p",
        "med",
        "max",
        "count",
        "avg",
        "(",
        ")",
        "{",
        "}",
        ",",
        "=",
        "\"",
        "'",
        "\\",
        "response_time",
        "ttfb",
        "tls",
        "failed_ratio",
        "throughput",
        "errors",
        ".reset",
        "status.5xx",
        "status.",
        "connections.opened",
        "request=",
        "phase=\"main\"",
        "outcome='failed'",
        "<",
        "<=",
        "==",
        "!=",
        ">",
        "~",
        " ",
        " ",
        "250ms",
        "1s",
        "0.1%",
        "5000/s",
        "/m",
        "100",
        "1_000",
        "-1",
        "0",
        ".",
        "1e9",
        "99999999999999999999999999999999",
        "ü",
        "日本",
        "\u{0}",
        "\n",
        "%",
    ];
    vec(select(pieces.to_vec()), 0..16).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "\\PC{0,12}", any::<String>()]
}

/// Thresholds as people write them.
fn thresholds() -> impl Strategy<Value = String> {
    let times = select(Time::ALL.to_vec());
    let operator = || select(threshold::Operator::ALL.to_vec());
    let quote = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let decimal = "[0-9]{1,9}(\\.[0-9]{1,6})?";
    let time = ("(min|max|mean|stdev|med|p[1-9][0-9]?(\\.[0-9]{1,6})?)", times, operator())
        .prop_flat_map(move |(aggregate, time, operator)| {
            ("[0-9]{1,6}", "(ns|us|ms)", name(), any::<bool>()).prop_map(
                move |(number, unit, name, named)| {
                    let selector = match time {
                        Time::ResponseTime if named => format!("{{request={}}}", quote(&name)),
                        _ => String::new(),
                    };
                    format!("{aggregate}({time}{selector}) {operator} {number}{unit}")
                },
            )
        });
    let rate = ("(throughput|started_rate|completed_rate)", operator(), decimal, "/[smh]")
        .prop_map(|(metric, operator, number, per)| format!("{metric} {operator} {number}{per}"));
    let ratio = (operator(), "[0-9]{1,2}(\\.[0-9]{1,10})?%|0\\.[0-9]{1,12}")
        .prop_map(|(operator, ratio)| format!("failed_ratio {operator} {ratio}"));
    let classes = select(ErrorClass::ALL.to_vec());
    let count = (classes, "[1-9](xx|[0-9]{2})", any::<bool>(), operator(), any::<u64>()).prop_map(
        |(class, status, errors, operator, number)| {
            let what = if errors { format!("errors.{class}") } else { format!("status.{status}") };
            format!("count({what}) {operator} {number}")
        },
    );
    prop_oneof![time, rate, ratio, count]
}

proptest! {
    #[test]
    fn no_text_makes_reading_a_threshold_panic(text in any::<String>()) {
        look_at(&text, &COUNTED);
    }

    #[test]
    fn nothing_that_looks_like_a_threshold_makes_reading_it_panic(
        text in threshold_like(),
        counted in any::<bool>(),
    ) {
        let names = ["main".to_owned()];
        look_at(&text, &Known { requests: Some(&names), phases: Some(&names), counted });
        look_at(&text, &COUNTED);
    }

    #[test]
    fn a_threshold_written_down_reads_as_it_was(text in thresholds()) {
        look_at(&text, &COUNTED);
        // What is refused is what can never hold, and nothing else.
        if let Err(faults) = threshold::parse(&text, &COUNTED) {
            prop_assert!(faults.iter().all(|fault| fault.label == "can never hold"), "{text} {faults:?}");
        }
    }

    #[test]
    fn comparing_never_disagrees_with_the_numbers(
        (part, whole) in (1..=u64::MAX).prop_flat_map(|whole| (0..=whole, Just(whole))),
        parts in 0..=1_000_000_000_000_u64,
    ) {
        let mut report = EMPTY.with(Clone::clone);
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

#[test]
fn metrics_know_what_their_limit_is_given_in() {
    for (text, kind) in [
        ("max(tls) < 1s", threshold::Kind::Time),
        ("failed_ratio < 1%", threshold::Kind::Ratio),
        ("throughput > 1/s", threshold::Kind::Rate),
        ("count(errors) == 0", threshold::Kind::Count),
    ] {
        assert_eq!(read(text).metric().kind(), kind);
    }
    assert!(matches!(read("max(tls) < 1s").metric(), Metric::Time { time: Time::Tls, .. }));
}
