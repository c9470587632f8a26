//! Every key of this version.

use std::time::Duration;

use super::{Default, Key, Kind};

const SECOND: Duration = Duration::from_secs(1);
pub(in crate::plan) const HOUR: Duration = Duration::from_secs(3_600);
const WEEK: Duration = Duration::from_secs(7 * 86_400);
pub(super) const TICK: Duration = Duration::from_nanos(1);
/// Of everything that is a number of connections.
pub(in crate::plan) const MOST_CONNECTIONS: u64 = 10_000_000;
const MOST_REQUESTS: u64 = 1_000_000_000_000_000;

const fn text(
    path: &'static str,
    limits: &'static str,
    default: Default,
    example: &'static str,
) -> Key {
    Key { path, kind: Kind::Text { limits }, default, example }
}

const fn duration(
    path: &'static str,
    (least, most): (Duration, Duration),
    default: Default,
    example: &'static str,
) -> Key {
    Key { path, kind: Kind::Duration { least, most }, default, example }
}

const fn count(
    path: &'static str,
    (least, most): (u64, u64),
    default: Default,
    example: &'static str,
) -> Key {
    Key { path, kind: Kind::Count { least, most }, default, example }
}

const fn key(path: &'static str, kind: Kind, default: Default, example: &'static str) -> Key {
    Key { path, kind, default, example }
}

/// Every key of this version, in the order of the reference.
pub const KEYS: &[Key] = &[
    text(
        "name",
        "1 to 100 characters, one line",
        Default::Words("the file's name without its ending"),
        r#"name = "checkout""#,
    ),
    text(
        "url",
        "absolute, `http`, with a host, at most 65,534 bytes",
        Default::Required,
        r#"url = "http://127.0.0.1:8080/""#,
    ),
    text(
        "method",
        "an HTTP method other than CONNECT, at most 32 characters",
        Default::Value(r#""GET""#),
        r#"method = "POST""#,
    ),
    Key {
        path: "headers",
        kind: Kind::Headers,
        default: Default::Words("none"),
        example: r#"headers = { Accept = "text/html", Cookie = ["a=1", "b=2"] }"#,
    },
    text("body", "at most 1 MiB (the whole plan)", Default::Words("none"), r#"body = "hello""#),
    text(
        "body_file",
        "a readable file of at most 32 MiB",
        Default::Words("none"),
        r#"body_file = "body.json""#,
    ),
    duration("timeout", (TICK, HOUR), Default::Value(r#""30s""#), r#"timeout = "10s""#),
    duration(
        "connect_timeout",
        (TICK, HOUR),
        Default::Value(r#""5s""#),
        r#"connect_timeout = "500ms""#,
    ),
    duration("grace", (TICK, HOUR), Default::Value(r#""5s""#), r#"grace = "1s""#),
    duration("give_up_after", (TICK, HOUR), Default::Value(r#""10s""#), r#"give_up_after = "1m""#),
    key(
        "expect.status",
        Kind::Statuses,
        Default::Words("every code below 400"),
        r#"status = [200, "300-399"]"#,
    ),
    key(
        "load.closed.connections",
        Kind::Connections { least: 1 },
        Default::Words("required, unless there are `steps`"),
        "connections = 1_000",
    ),
    count(
        "load.closed.requests",
        (1, MOST_REQUESTS),
        Default::Words("no count: a duration ends the load"),
        "requests = 100_000",
    ),
    duration(
        "load.closed.duration",
        (TICK, WEEK),
        Default::Words("no duration: `requests` ends the load"),
        r#"duration = "1m 30s""#,
    ),
    duration(
        "load.closed.ramp_up",
        (Duration::ZERO, WEEK),
        Default::Value(r#""0s""#),
        r#"ramp_up = "10s""#,
    ),
    key(
        "load.closed.think_time",
        Kind::ThinkTime,
        Default::Value(r#""0s""#),
        r#"think_time = { uniform = ["1s", "3s"] }"#,
    ),
    key(
        "load.closed.steps",
        Kind::Steps,
        Default::Words("none"),
        r#"steps = [{ connections = 10, duration = "1m" }, { connections = 50, duration = "5m" }]"#,
    ),
    key(
        "load.closed.steps.connections",
        Kind::Connections { least: 0 },
        Default::Required,
        "connections = { from = 10, to = 50 }",
    ),
    duration(
        "load.closed.steps.duration",
        (Duration::ZERO, WEEK),
        Default::Required,
        r#"duration = "30s""#,
    ),
    key(
        "load.open.rate",
        Kind::RateOrRamp { pause: false },
        Default::Words("what `requests` and `duration` make, or `steps`"),
        "rate = 5_000",
    ),
    duration(
        "load.open.duration",
        (TICK, WEEK),
        Default::Words("what `requests` take at `rate`"),
        r#"duration = "30s""#,
    ),
    count(
        "load.open.requests",
        (1, MOST_REQUESTS),
        Default::Words("what `rate` makes in `duration`"),
        "requests = 5_000",
    ),
    key(
        "load.open.arrivals",
        Kind::Choice(&["uniform", "poisson"]),
        Default::Value(r#""uniform""#),
        r#"arrivals = "poisson""#,
    ),
    count(
        "load.open.max_in_flight",
        (1, MOST_CONNECTIONS),
        Default::Words("10,000, or the number of requests where that is less"),
        "max_in_flight = 2_000",
    ),
    key(
        "load.open.on_overflow",
        Kind::Choice(&["queue", "drop"]),
        Default::Value(r#""queue""#),
        r#"on_overflow = "drop""#,
    ),
    key(
        "load.open.steps",
        Kind::Steps,
        Default::Words("none"),
        r#"steps = [{ rate = 100, duration = "1m" }, { rate = 0, duration = "10s" }]"#,
    ),
    key(
        "load.open.steps.rate",
        Kind::RateOrRamp { pause: true },
        Default::Required,
        "rate = { from = 100, to = 500 }",
    ),
    duration(
        "load.open.steps.duration",
        (Duration::ZERO, WEEK),
        Default::Required,
        r#"duration = "20s""#,
    ),
    text(
        "phases.name",
        "1 to 100 characters, one line, each name once",
        Default::Required,
        r#"name = "peak""#,
    ),
    key("phases.measure", Kind::Flag, Default::Value("true"), "measure = false"),
    duration(
        "phases.start_at",
        (Duration::ZERO, WEEK),
        Default::Words("the end of the phase before it in the plan"),
        r#"start_at = "30s""#,
    ),
    text(
        "phases.start_after",
        "the name of another phase",
        Default::Words("the phase before it in the plan"),
        r#"start_after = "warm-up""#,
    ),
    key(
        "phases.load",
        Kind::Load,
        Default::Required,
        r#"load.open = { rate = 50, duration = "1m" }"#,
    ),
    key("keep_alive", Kind::Flag, Default::Value("true"), "keep_alive = false"),
    count(
        "requests_per_connection",
        (1, MOST_REQUESTS),
        Default::Words("no limit"),
        "requests_per_connection = 100",
    ),
    key(
        "connect_rate",
        Kind::Rate,
        Default::Words("as fast as the target takes them"),
        "connect_rate = 1_000",
    ),
    key(
        "resolve",
        Kind::Choice(&["once", "per-connection"]),
        Default::Value(r#""once""#),
        r#"resolve = "per-connection""#,
    ),
    key(
        "connect_to",
        Kind::Addresses,
        Default::Words("where the URL says"),
        r#"connect_to = ["127.0.0.1:8081", "127.0.0.1:8082"]"#,
    ),
    count("hold", (0, MOST_CONNECTIONS), Default::Value("0"), "hold = 10_000"),
    count("seed", (0, u64::MAX), Default::Value("1"), "seed = 42"),
    count("agents.min", (1, 100_000), Default::Value("1"), "min = 3"),
    key(
        "agents.on_loss",
        Kind::Choice(&["abort", "continue"]),
        Default::Value(r#""abort""#),
        r#"on_loss = "continue""#,
    ),
    key(
        "thresholds",
        Kind::Thresholds { most: 100 },
        Default::Words("none"),
        r#"thresholds = ["p99(response_time) < 250ms", "failed_ratio < 0.1%"]"#,
    ),
    text(
        "stop_when.threshold",
        "a threshold; at most 20 such tables",
        Default::Required,
        r#"threshold = "failed_ratio < 5%""#,
    ),
    duration("stop_when.after", (SECOND, HOUR), Default::Value(r#""10s""#), r#"after = "30s""#),
    key("stop_when.abort", Kind::Flag, Default::Value("true"), "abort = false"),
];
