//! What holds for every text and every plan.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use inrush_common::plan::{
    self, AgentsPolicy, ClosedLoad, Expect, Files, Header, Load, OnLoss, Plan, Problem, Request,
    Severity, Workload, code, keys::KEYS,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

fn files() -> impl Files {
    BTreeMap::from([("b".to_owned(), Bytes::from_static(b"body"))])
}

/// What must hold for whatever comes out of any text.
fn look_at(source: &str) {
    let problems = match plan::load("plan.toml", source, &files()) {
        Ok(loaded) => {
            assert!(loaded.warnings.iter().all(|problem| !problem.is_error()), "{source:?}");
            let work = &loaded.plan.workload;
            assert_eq!(work.requests.len(), 1);
            let url = &work.requests[0].url;
            assert_eq!(url.scheme_str(), Some("http"));
            assert!(!url.host().unwrap().is_empty() && url.path().starts_with('/'), "{url}");
            assert!(work.phases.iter().any(|phase| phase.measure));
            for phase in &work.phases {
                assert!(phase.load.connections() > 0, "{phase:?}");
                assert!(phase.load.planned() != Some(0), "{phase:?}");
                assert!(phase.load.planned().is_some() || phase.ends_at().is_some(), "{phase:?}");
            }
            loaded.warnings
        }
        Err(problems) => {
            assert!(problems.iter().any(Problem::is_error), "refused without an error: {source:?}");
            problems
        }
    };
    for problem in &problems {
        assert!(problem.span.start <= problem.span.end, "{problem:?}");
        assert!(source.get(problem.span.clone()).is_some(), "{problem:?} in {source:?}");
        assert!(code::ALL.iter().any(|(code, _)| *code == problem.code), "{problem:?}");
    }
    assert!(problems.is_sorted_by_key(|problem| problem.span.start), "{problems:?}");
    let shown = plan::render("plan.toml", source, &problems, false);
    assert_eq!(shown.matches("help: ").count().min(problems.len()), problems.len());
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    plan::named_files(source);
}

/// Lines that look like a plan's, whole and broken.
fn plan_like() -> impl Strategy<Value = String> {
    let pieces = [
        "url = ",
        "\"http://127.0.0.1/\"",
        "'http://u:p@h/#'",
        "http://",
        "[load.closed]",
        "[load.open]",
        "[agents]",
        "[expect]",
        "[headers]",
        "headers = {",
        "}",
        "]",
        "[",
        "connections = ",
        "requests = ",
        "duration = ",
        "1_000",
        "0",
        "-1",
        "\"10s\"",
        "'1m 30'",
        "30s",
        "1,000",
        "\n",
        "\r\n",
        "\n",
        "\t",
        " ",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\\u00fc",
        "ü",
        "日本",
        "\u{feff}",
        "\u{1b}",
        "\r",
        ",",
        "=",
        ".",
        "body = ",
        "body_file = 'b'",
        "timeout = ",
        "method = 'get'",
        "status = ",
        "[200, '2xx']",
        "#",
        "@",
        "A",
        "Authorization = ",
        "on_loss = 'abrt'",
        "{",
        "true",
        "1979-05-27",
        "1e6",
        "name = ",
        "[[load]]",
        "[[stop_when]]",
        "threshold = ",
        "'p99(response_time{phase=\"main\"}) < 1s'",
        "thresholds = [",
        "'count(errors) <'",
        "abort = ",
    ];
    vec(select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_loading_or_showing_panic(source in any::<String>()) {
        look_at(&source);
    }

    #[test]
    fn nothing_that_looks_like_a_plan_makes_loading_or_showing_panic(source in plan_like()) {
        look_at(&source);
    }

    #[test]
    fn no_value_makes_loading_or_showing_panic(
        key in select(KEYS.iter().map(|key| key.path).collect::<Vec<_>>()),
        value in any::<String>(),
    ) {
        // A debug string is nearly a TOML string; where it is none, that is a text too.
        look_at(&format!("{key} = {value:?}\nheaders.A = {value:?}\n"));
        look_at(&format!("url = 'http://h/'\n{key} = {value}\n"));
    }

    #[test]
    fn no_url_makes_loading_panic_and_a_password_is_never_told(
        start in "(http://|https://|HTTP://|x:|)",
        user in "[a-z]{1,3}",
        password in "geheim[@#:/?%. a-zü]{0,6}geheim",
        rest in "(h|127\\.0\\.0\\.1|\\[::1\\])(:[0-9x]{0,6})?[/?#]?\\PC{0,10}",
    ) {
        let url = format!("{start}{user}:{password}@{rest}");
        let quoted = url.replace('\\', "\\\\").replace('"', "\\\"");
        let source = format!("url = \"{quoted}\"\n[load.closed]\nconnections = 1\nrequests = 1\n");
        look_at(&source);
        let problems = plan::load("plan.toml", &source, &files()).expect_err("it has a password");
        let told = format!("{problems:?}{}", plan::render("p", &source, &problems, true));
        prop_assert!(!told.contains("geheim"), "{told}");
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in vec(any::<u8>(), 0..64)) {
        match plan::decode(bytes.clone()) {
            Ok(text) => prop_assert_eq!(text.as_bytes(), bytes),
            Err(refused) => {
                let shown = plan::render("p", &refused.shown, &[refused.problem], false);
                prop_assert!(shown.contains(code::ENCODING));
            }
        }
    }

    #[test]
    fn any_problems_can_be_shown_for_any_text(
        name in any::<String>(),
        source in any::<String>(),
        found in vec((0..200_usize, 0..200_usize, any::<String>(), any::<bool>()), 0..5),
        color in any::<bool>(),
    ) {
        let problems: Vec<Problem> = found
            .into_iter()
            .map(|(start, length, text, error)| Problem {
                code: code::SYNTAX,
                severity: if error { Severity::Error } else { Severity::Warning },
                message: text.clone(),
                span: start..start + length,
                label: text.clone(),
                help: text,
            })
            .collect();
        let shown = plan::render(&name, &source, &problems, color);
        prop_assert_eq!(shown.matches(code::SYNTAX).count().min(problems.len()), problems.len());
    }

    #[test]
    fn a_plan_written_down_loads_as_it_was(plan in plans(), windows in any::<bool>()) {
        let mut source = toml_of(&plan);
        if windows {
            source = format!("\u{feff}{}", source.replace('\n', "\r\n"));
        }
        let loaded = plan::load("x.toml", &source, &files()).map_err(|problems| {
            TestCaseError::fail(plan::render("x.toml", &source, &problems, false))
        })?;
        prop_assert_eq!(loaded.plan, plan);
    }
}

fn durations(most: Duration) -> impl Strategy<Value = Duration> {
    let most = u64::try_from(most.as_nanos()).unwrap();
    // Whole milliseconds and whole seconds too, as people write them.
    (1..=most, select(vec![1, 1_000_000, 1_000_000_000]))
        .prop_map(|(nanos, unit)| Duration::from_nanos((nanos / unit * unit).max(1)))
}

fn hours() -> impl Strategy<Value = Duration> {
    durations(Duration::from_secs(3_600))
}

fn weeks() -> impl Strategy<Value = Duration> {
    durations(Duration::from_secs(7 * 86_400))
}

fn requests() -> impl Strategy<Value = Request> {
    let header = ("[a-z][a-z0-9-]{0,12}", "[ -~]{0,20}").prop_filter("ours", |(name, _)| {
        !["content-length", "transfer-encoding", "host"].contains(&name.as_str())
    });
    (
        select(vec!["GET", "POST", "DELETE", "PURGE"]),
        "/[a-z0-9/._~-]{0,20}(\\?[a-z=&%2F]{0,3})?",
        vec(header, 0..5),
        "[ -~\nüß]{0,30}",
        vec(100..=999_u16, 0..5),
    )
        .prop_filter("an escape has two digits", |(_, target, ..)| !target.contains('%'))
        .prop_map(|(method, target, mut headers, body, mut status)| {
            headers.sort();
            headers.dedup_by(|a, b| a.0 == b.0);
            status.sort_unstable();
            status.dedup();
            let path = target.split('?').next().unwrap();
            Request {
                name: format!("{method} {path}"),
                method: method.parse().unwrap(),
                url: format!("http://127.0.0.1:8080{target}").parse().unwrap(),
                headers: headers
                    .into_iter()
                    .map(|(name, value)| Header {
                        name: HeaderName::from_bytes(name.as_bytes()).unwrap(),
                        value: HeaderValue::from_str(&value).unwrap(),
                    })
                    .collect(),
                body: body.into(),
                expect: Expect { status },
            }
        })
}

fn loads() -> impl Strategy<Value = Load> {
    (
        1..=10_000_000_u64,
        option::of(1..=1_000_000_000_000_000_u64),
        option::of(weeks()),
        prop_oneof![Just(Duration::ZERO), weeks()],
    )
        .prop_filter("something ends it", |(_, requests, duration, _)| {
            requests.is_some() || duration.is_some()
        })
        .prop_map(|(connections, requests, duration, ramp_up)| {
            Load::Closed(ClosedLoad {
                connections,
                requests,
                duration,
                ramp_up,
                ordinal: 0,
                shares: 1,
            })
        })
}

fn plans() -> impl Strategy<Value = Plan> {
    let times = (hours(), hours(), hours(), hours());
    let agents = (1..=100_000_u32, select(vec![OnLoss::Abort, OnLoss::Continue]));
    ("[a-zü\"'\\\\ ]{0,20}x", requests(), loads(), times, agents).prop_map(
        |(
            name,
            request,
            load,
            (timeout, connect_timeout, grace, give_up_after),
            (min, on_loss),
        )| Plan {
            name,
            workload: Workload {
                requests: vec![request],
                load,
                timeout,
                connect_timeout,
                grace,
                give_up_after,
            },
            agents: AgentsPolicy { min, on_loss },
            thresholds: Vec::new(),
            stop_when: Vec::new(),
        },
    )
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out + "\""
}

fn spelt(duration: Duration) -> String {
    format!("\"{}\"", humantime::format_duration(duration))
}

/// The plan as a user could have written it.
fn toml_of(plan: &Plan) -> String {
    let (work, request) = (&plan.workload, &plan.workload.requests[0]);
    let mut toml = String::new();
    let mut line = |text: String| writeln!(toml, "{text}").unwrap();
    line(format!("name = {}", quoted(&plan.name)));
    line(format!("url = {}", quoted(&request.url.to_string())));
    line(format!("method = {}", quoted(request.method.as_str())));
    line(format!("body = {}", quoted(std::str::from_utf8(&request.body).unwrap())));
    line(format!("timeout = {}", spelt(work.timeout)));
    line(format!("connect_timeout = {}", spelt(work.connect_timeout)));
    line(format!("grace = {}", spelt(work.grace)));
    line(format!("give_up_after = {}", spelt(work.give_up_after)));
    if !request.expect.status.is_empty() {
        line(format!("expect = {{ status = {:?} }}", request.expect.status));
    }
    line("[headers]".to_owned());
    for header in &request.headers {
        line(format!("{} = {}", header.name, quoted(header.value.to_str().unwrap())));
    }
    let Load::Closed(closed) = &work.load;
    line("[load.closed]".to_owned());
    line(format!("connections = {}", closed.connections));
    if let Some(requests) = closed.requests {
        line(format!("requests = {requests}"));
    }
    if let Some(duration) = closed.duration {
        line(format!("duration = {}", spelt(duration)));
    }
    line(format!("ramp_up = {}", spelt(closed.ramp_up)));
    line(format!(
        "[agents]\nmin = {}\non_loss = \"{}\"",
        plan.agents.min,
        plan.agents.on_loss.name()
    ));
    toml
}
