//! Texts that are thresholds, and texts that are none.

use inrush_common::{
    outcome::ErrorClass,
    plan::code,
    threshold::{self, Known, KnownPhase, Metric, Time},
};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::{ANY, empty, read};

const fn phase(name: &str, counted: bool) -> KnownPhase<'_> {
    KnownPhase { name, measured: true, counted }
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
fn names_are_those_of_the_plan_and_the_nearest_is_suggested() {
    let requests = ["login".to_owned(), "buy".to_owned()];
    let phases = [phase("main", true)];
    let known = Known { requests: Some(&requests), phases: Some(&phases) };
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
fn only_where_there_is_a_count_can_any_be_missing() {
    let warm_up = KnownPhase { measured: false, ..phase("warm-up", false) };
    let phases = [warm_up, phase("peak", true), phase("long", false)];
    let refused = |selector: &str, phases: &[KnownPhase<'_>]| {
        let known = Known { requests: None, phases: Some(phases) };
        let read = threshold::parse(&format!("count(not_started{selector}) == 0"), &known);
        read.is_err_and(|faults| faults.iter().all(|fault| fault.code == code::NO_FIGURE))
    };
    assert!(refused("", &phases) && refused("{phase='long'}", &phases));
    assert!(refused("{phase='warm-up'}", &phases));
    assert!(!refused("{phase='peak'}", &phases));
    // Warm-ups are not among the figures of the run.
    assert!(!refused("", &phases[..2]));
}

#[test]
fn what_can_never_hold_is_refused() {
    for text in ["count(errors) < 0", "failed_ratio < 0%", "max(ttfb) < 0s", "failed_ratio > 100%"]
    {
        let faults = threshold::parse(text, &ANY).unwrap_err();
        assert_eq!(faults[0].label, "can never hold", "{text}");
    }
}

#[test]
fn every_mistake_of_a_line_is_told_at_once() {
    let text = "p101(response_time{phse=\"a\", outcome=\"b\"}) =< 5%";
    let faults = threshold::parse(text, &ANY).unwrap_err();
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
            let row = threshold::evaluate(&threshold, &empty());
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
        look_at(&text, &ANY);
    }

    #[test]
    fn nothing_that_looks_like_a_threshold_makes_reading_it_panic(
        text in threshold_like(),
        counted in any::<bool>(),
    ) {
        let (names, phases) = (["main".to_owned()], [phase("main", counted)]);
        look_at(&text, &Known { requests: Some(&names), phases: Some(&phases) });
        look_at(&text, &ANY);
    }

    #[test]
    fn a_threshold_written_down_reads_as_it_was(text in thresholds()) {
        look_at(&text, &ANY);
        // What is refused is what can never hold, and nothing else.
        if let Err(faults) = threshold::parse(&text, &ANY) {
            prop_assert!(faults.iter().all(|fault| fault.label == "can never hold"), "{text} {faults:?}");
        }
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
