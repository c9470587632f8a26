//! What holds for every text and every plan.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use inrush_common::{
    plan::{
        self, AgentsPolicy, ArrivalProcess, ClosedLoad, ConnectionPolicy, Expect, Files, Header,
        Load, OnLoss, OpenLoad, Overflow, Phase, Plan, Problem, Request, Resolve, Severity,
        ThinkTime, Workload, code, keys::KEYS,
    },
    schedule::{
        ConnectionProfile, ConnectionShape, ConnectionStep, Interleave, Rate, RateProfile, Segment,
    },
    units::nanos,
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
        "[[phases]]",
        "[phases.load.open]",
        "rate = ",
        "steps = [",
        "{ from = 0, to = 5 }",
        "start_after = 'x'",
        "name = 'x'",
        "measure = false",
        "think_time = ",
        "connect_to = ",
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
    fn no_number_makes_loading_a_load_panic(
        rates in vec(number(), 1..4),
        times in vec(time(), 1..4),
        (requests, in_flight) in (number(), number()),
        kind in select(vec!["open", "closed"]),
    ) {
        let amount = if kind == "open" { "rate" } else { "connections" };
        let step = |(rate, time): (&String, &String)| {
            format!("{{ {amount} = {{ from = {rate}, to = {requests} }}, duration = {time} }}")
        };
        let steps: Vec<String> = rates.iter().zip(&times).map(step).collect();
        let (rate, time) = (&rates[0], &times[0]);
        let open = if kind == "open" { format!("max_in_flight = {in_flight}") } else { String::new() };
        for body in [
            format!("steps = [{}]", steps.join(", ")),
            format!("{amount} = {rate}\nduration = {time}"),
            format!("{amount} = {rate}\nrequests = {requests}\n{open}"),
            format!("requests = {requests}\nduration = {time}"),
            format!("{amount} = {{ from = {rate}, to = {requests} }}\nduration = {time}"),
            format!("{amount} = {rate}\nrequests = {requests}\nduration = {time}"),
        ] {
            look_at(&format!("url = 'http://h/'\n[load.{kind}]\n{body}\n"));
        }
    }

    #[test]
    fn no_order_of_phases_makes_loading_panic_or_loop(
        phases in vec((option::of(0..6_usize), any::<bool>(), any::<bool>()), 1..6),
    ) {
        let mut source = "url = 'http://h/'\n".to_owned();
        for (nth, (after, counted, measure)) in phases.into_iter().enumerate() {
            let after = after.map(|after| format!("start_after = 'p{after}'\n")).unwrap_or_default();
            let load = if counted { "requests = 5" } else { "duration = '5s'" };
            source.push_str(&format!(
                "[[phases]]\nname = 'p{nth}'\n{after}measure = {measure}\n\
                 load.closed = {{ connections = 1, {load} }}\n"
            ));
        }
        look_at(&source);
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

/// Numbers as they are typed, good and bad.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        (0..200_000_000_u64).prop_map(|number| number.to_string()),
        (0..100_u64).prop_map(|number| number.to_string()),
        (0..100_u64, 0..10_000_000_u64).prop_map(|(whole, rest)| format!("{whole}.{rest:07}")),
        (0.0..1e8_f64).prop_map(|number| number.to_string()),
        select(vec!["0", "-1", "-0.5", "1e9", "nan", "0.000001", "10_000_000"])
            .prop_map(str::to_owned),
    ]
}

/// Durations as they are typed, good and bad.
fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        weeks().prop_map(spelt),
        hours().prop_map(spelt),
        select(vec!["'0s'", "'1ns'", "'7d'", "'8d'", "'99999999999d'", "5"])
            .prop_map(str::to_owned),
    ]
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

/// Of which seven are no longer than a week.
fn days() -> impl Strategy<Value = Duration> {
    durations(Duration::from_secs(86_400))
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

/// Of all magnitudes, from 1.
fn counts(most: u64) -> impl Strategy<Value = u64> {
    (0..64 - most.leading_zeros(), any::<u64>())
        .prop_map(move |(bits, noise)| (noise & ((2 << bits) - 1)).clamp(1, most))
}

fn rates() -> impl Strategy<Value = Rate> {
    counts(Rate::MAX.micro()).prop_map(|micro| Rate::from_micro(micro).unwrap())
}

fn thinking() -> impl Strategy<Value = ThinkTime> {
    prop_oneof![
        Just(ThinkTime::None),
        hours().prop_map(ThinkTime::Fixed),
        (hours(), hours()).prop_filter_map("not fixed", |(a, b)| {
            (a != b).then(|| ThinkTime::Uniform(a.min(b), a.max(b)))
        }),
        hours().prop_map(ThinkTime::Exponential),
    ]
}

const CONNECTIONS: u64 = 10_000_000;
const REQUESTS: u64 = 1_000_000_000_000_000;

fn profiles() -> impl Strategy<Value = (ConnectionProfile, Option<Duration>)> {
    let step = (0..=CONNECTIONS, 0..=CONNECTIONS, any::<bool>(), days());
    let step = step.prop_map(|(from, to, constant, duration)| ConnectionStep {
        from,
        to: if constant { from } else { to },
        duration_ns: nanos(duration),
    });
    prop_oneof![
        (counts(CONNECTIONS), prop_oneof![Just(Duration::ZERO), weeks()]).prop_map(
            |(connections, ramp_up)| {
                (ConnectionProfile::constant(connections, nanos(ramp_up)).unwrap(), None)
            }
        ),
        vec(step, 1..=7).prop_filter_map("somebody works", |steps| {
            let length = steps.iter().map(|step| step.duration_ns).sum();
            let profile = ConnectionProfile::steps(steps).unwrap();
            (profile.peak() > 0).then_some((profile, Some(Duration::from_nanos(length))))
        }),
    ]
}

fn closed_loads() -> impl Strategy<Value = Load> {
    let limits = (option::of(counts(REQUESTS)), option::of(weeks()));
    (profiles(), limits, thinking()).prop_filter_map(
        "something ends it",
        |((profile, length), (requests, duration), think_time)| {
            let duration = length.or(duration);
            requests.or(duration.map(nanos))?;
            let peak = profile.peak();
            let lanes = Interleave::whole(requests.map_or(peak, |requests| requests.min(peak)));
            Some(Load::Closed(ClosedLoad { profile, lanes, requests, duration, think_time }))
        },
    )
}

fn open_loads() -> impl Strategy<Value = Load> {
    let step = (rates(), rates(), 0..3_u8, days()).prop_map(|(from, to, kind, duration)| {
        let (from, to) = match kind {
            0 => (from, from),
            1 => (Rate::ZERO, to),
            _ => (from, to),
        };
        Segment { from, to, duration_ns: nanos(duration) }
    });
    (
        vec(step, 1..=7),
        option::of(counts(REQUESTS)),
        select(vec![ArrivalProcess::Uniform, ArrivalProcess::Poisson]),
        select(vec![Overflow::Queue, Overflow::Drop]),
        option::of(counts(CONNECTIONS)),
    )
        .prop_map(|(segments, cap, arrivals, on_overflow, most)| {
            let mut profile = RateProfile::new(segments).unwrap();
            let due = profile.count();
            let requests = cap.map_or(due, |cap| cap.min(due));
            // A constant rate ends with its count.
            if requests < due
                && let [only] = profile.segments()
                && only.from == only.to
            {
                profile = RateProfile::for_requests(only.from, requests).unwrap();
            }
            Load::Open(OpenLoad {
                profile,
                slots: Interleave::whole(requests),
                arrivals,
                max_in_flight: most.unwrap_or(10_000).min(requests),
                on_overflow,
            })
        })
}

fn loads() -> impl Strategy<Value = Load> {
    prop_oneof![closed_loads(), open_loads()]
}

/// Phases that start at their own times, in any order.
fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let one = loads().prop_map(|load| {
        let (name, starts_at) = (Phase::ONLY.to_owned(), Duration::ZERO);
        vec![Phase { name, measure: true, starts_at, load }]
    });
    let many = vec(("[a-zü \"]{0,9}", any::<bool>(), days(), loads()), 2..5).prop_filter_map(
        "within a week",
        |list| {
            let mut phases = Vec::new();
            for (nth, (name, measure, starts_at, load)) in list.into_iter().enumerate() {
                let name = format!("{nth}{name}");
                phases.push(Phase { name, measure: measure || nth == 0, starts_at, load });
            }
            let week = Duration::from_secs(7 * 86_400);
            let in_time = |phase: &Phase| phase.ends_at().is_none_or(|end| end <= week);
            phases.iter().all(in_time).then_some(phases)
        },
    );
    prop_oneof![2 => one, 1 => many]
}

fn policies() -> impl Strategy<Value = ConnectionPolicy> {
    (
        option::of(counts(REQUESTS)),
        option::of(rates()),
        select(vec![Resolve::Once, Resolve::PerConnection]),
        vec("(127\\.0\\.0\\.1|\\[::1\\]|a\\.example\\.test):[1-9][0-9]{0,3}", 0..3),
        0..=CONNECTIONS,
    )
        .prop_map(|(requests_per_connection, connect_rate, resolve, connect_to, hold)| {
            ConnectionPolicy { requests_per_connection, connect_rate, resolve, connect_to, hold }
        })
}

fn plans() -> impl Strategy<Value = Plan> {
    let times = (hours(), hours(), hours(), hours());
    let agents = (1..=100_000_u32, select(vec![OnLoss::Abort, OnLoss::Continue]));
    let work = (requests(), phases(), policies(), any::<u64>());
    ("[a-zü\"'\\\\ ]{0,20}x", work, times, agents).prop_map(
        |(
            name,
            (request, phases, connections, seed),
            (timeout, connect_timeout, grace, give_up_after),
            (min, on_loss),
        )| Plan {
            name,
            workload: Workload {
                requests: vec![request],
                phases,
                timeout,
                connect_timeout,
                grace,
                give_up_after,
                connections,
                seed,
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
    let connections = &work.connections;
    if let Some(requests) = connections.requests_per_connection {
        line(format!("requests_per_connection = {requests}"));
    }
    if let Some(rate) = connections.connect_rate {
        line(format!("connect_rate = {}", rate.to_decimal()));
    }
    line(format!("resolve = \"{}\"", connections.resolve.name()));
    if !connections.connect_to.is_empty() {
        line(format!("connect_to = {:?}", connections.connect_to));
    }
    line(format!("hold = {}\nseed = {}", connections.hold, work.seed));
    if !request.expect.status.is_empty() {
        line(format!("expect = {{ status = {:?} }}", request.expect.status));
    }
    line("[headers]".to_owned());
    for header in &request.headers {
        line(format!("{} = {}", header.name, quoted(header.value.to_str().unwrap())));
    }
    match work.phases.as_slice() {
        [only] if only.name == Phase::ONLY => write_load(&mut toml, "load", &only.load),
        phases => {
            for phase in phases {
                let (name, measure) = (quoted(&phase.name), phase.measure);
                let start_at = spelt(phase.starts_at);
                writeln!(toml, "[[phases]]\nname = {name}\nmeasure = {measure}").unwrap();
                writeln!(toml, "start_at = {start_at}").unwrap();
                write_load(&mut toml, "phases.load", &phase.load);
            }
        }
    }
    let mut line = |text: String| writeln!(toml, "{text}").unwrap();
    line(format!(
        "[agents]\nmin = {}\non_loss = \"{}\"",
        plan.agents.min,
        plan.agents.on_loss.name()
    ));
    toml
}

fn write_load(toml: &mut String, table: &str, load: &Load) {
    let mut line = |text: String| writeln!(toml, "{text}").unwrap();
    match load {
        Load::Closed(closed) => {
            line(format!("[{table}.closed]"));
            if let Some(requests) = closed.requests {
                line(format!("requests = {requests}"));
            }
            match closed.profile.shape() {
                ConnectionShape::Constant { connections, ramp_up_ns } => {
                    let ramp_up = spelt(Duration::from_nanos(*ramp_up_ns));
                    line(format!("connections = {connections}\nramp_up = {ramp_up}"));
                    if let Some(duration) = closed.duration {
                        line(format!("duration = {}", spelt(duration)));
                    }
                }
                ConnectionShape::Steps(steps) => line(shape(
                    "connections",
                    steps.iter().map(|step| (step.from, step.to, step.duration_ns)),
                )),
            }
            line(match closed.think_time {
                ThinkTime::None => "think_time = \"0s\"".to_owned(),
                ThinkTime::Fixed(pause) => format!("think_time = {}", spelt(pause)),
                ThinkTime::Uniform(a, b) => {
                    format!("think_time = {{ uniform = [{}, {}] }}", spelt(a), spelt(b))
                }
                ThinkTime::Exponential(mean) => {
                    format!("think_time = {{ exponential = {} }}", spelt(mean))
                }
            });
        }
        Load::Open(open) => {
            line(format!("[{table}.open]"));
            let segments = open.profile.segments().iter();
            line(shape(
                "rate",
                segments.map(|s| (s.from.to_decimal(), s.to.to_decimal(), s.duration_ns)),
            ));
            let requests = open.slots.count();
            if requests < open.profile.count() {
                line(format!("requests = {requests}"));
            }
            line(format!("arrivals = \"{}\"", open.arrivals.name()));
            line(format!("max_in_flight = {}", open.max_in_flight));
            line(format!("on_overflow = \"{}\"", open.on_overflow.name()));
        }
    }
}

/// Of one line what it is, of several the steps.
fn shape<A: Display + PartialEq>(name: &str, lines: impl Iterator<Item = (A, A, u64)>) -> String {
    let line = |(from, to, duration): (A, A, u64)| {
        let duration = spelt(Duration::from_nanos(duration));
        if from == to {
            (format!("{name} = {from}"), duration)
        } else {
            (format!("{name} = {{ from = {from}, to = {to} }}"), duration)
        }
    };
    let lines: Vec<(String, String)> = lines.map(line).collect();
    match lines.as_slice() {
        // The only step of a closed load is as good as a step where it does not change.
        [(amount, duration)] if name == "rate" || amount.contains("from") => {
            format!("{amount}\nduration = {duration}")
        }
        steps => {
            let step = |(amount, duration)| format!("{{ {amount}, duration = {duration} }}");
            format!(
                "steps = [{}]",
                steps.iter().map(|(a, d)| step((a, d))).collect::<Vec<_>>().join(", ")
            )
        }
    }
}
