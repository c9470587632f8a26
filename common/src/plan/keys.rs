//! The keys of a plan: one table, from which come the defaults, the limits, the suggestions for a mistyped key and
//! the test of the reference.

use std::time::Duration;

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text {
        /// What it can be, in words.
        limits: &'static str,
    },
    /// A string with a number and its unit.
    Duration {
        /// The least; zero where the key allows it.
        least: Duration,
        /// The most.
        most: Duration,
    },
    /// A whole number, at least 1.
    Count {
        /// The most.
        most: u64,
    },
    /// A table from header names to values.
    Headers,
    /// An array of status codes and ranges of them.
    Statuses,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// An array of strings, each a threshold.
    Thresholds {
        /// How many at most.
        most: usize,
    },
    /// `true` or `false`.
    Flag,
}

/// What holds where the plan does not give the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// The plan must give it.
    Required,
    /// A value, as it would be written in a plan.
    Value(&'static str),
    /// Something that is no value of its own, in words.
    Words(&'static str),
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// With the tables it stands in: `load.closed.connections`.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds without it.
    pub default: Default,
    /// A line that sets it, in its table.
    pub example: &'static str,
}

const HOUR: Duration = Duration::from_secs(3_600);
const WEEK: Duration = Duration::from_secs(7 * 86_400);
const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_nanos(1);

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

const fn count(path: &'static str, most: u64, default: Default, example: &'static str) -> Key {
    Key { path, kind: Kind::Count { most }, default, example }
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
    Key {
        path: "expect.status",
        kind: Kind::Statuses,
        default: Default::Words("every code below 400"),
        example: r#"status = [200, "300-399"]"#,
    },
    count("load.closed.connections", 10_000_000, Default::Required, "connections = 1_000"),
    count(
        "load.closed.requests",
        1_000_000_000_000_000,
        Default::Words("no count: `duration` ends the run"),
        "requests = 100_000",
    ),
    duration(
        "load.closed.duration",
        (TICK, WEEK),
        Default::Words("no duration: `requests` ends the run"),
        r#"duration = "1m 30s""#,
    ),
    duration(
        "load.closed.ramp_up",
        (Duration::ZERO, WEEK),
        Default::Value(r#""0s""#),
        r#"ramp_up = "10s""#,
    ),
    count("agents.min", 100_000, Default::Value("1"), "min = 3"),
    Key {
        path: "agents.on_loss",
        kind: Kind::Choice(&["abort", "continue"]),
        default: Default::Value(r#""abort""#),
        example: r#"on_loss = "continue""#,
    },
    Key {
        path: "thresholds",
        kind: Kind::Thresholds { most: 100 },
        default: Default::Words("none"),
        example: r#"thresholds = ["p99(response_time) < 250ms", "failed_ratio < 0.1%"]"#,
    },
    text(
        "stop_when.threshold",
        "a threshold; at most 20 such tables",
        Default::Required,
        r#"threshold = "failed_ratio < 5%""#,
    ),
    duration("stop_when.after", (SECOND, HOUR), Default::Value(r#""10s""#), r#"after = "30s""#),
    Key {
        path: "stop_when.abort",
        kind: Kind::Flag,
        default: Default::Value("true"),
        example: "abort = false",
    },
];

/// Tables that may stand in a plan several times: `[[stop_when]]`.
pub const REPEATED: &[&str] = &["stop_when"];

/// The entry of a key this version knows.
pub(crate) fn find(path: &str) -> &'static Key {
    KEYS.iter()
        .find(|key| key.path == path)
        .expect("the plan reader asks only for keys of the table")
}

impl Key {
    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The table the key stands in; empty at the top.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }

    /// The type in words, as the reference names it.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Text { .. } | Kind::Choice(_) => "string",
            Kind::Duration { .. } => "duration",
            Kind::Count { .. } => "integer",
            Kind::Headers => "table of strings",
            Kind::Statuses => "array of integers and strings",
            Kind::Thresholds { .. } => "array of strings",
            Kind::Flag => "boolean",
        }
    }

    /// What the value may be, in words, as the reference says it.
    pub fn limits(&self) -> String {
        match self.kind {
            Kind::Text { limits } => limits.to_owned(),
            Kind::Duration { least, most } => {
                let most = humantime::format_duration(most).to_string().replace("days", "d");
                let least = match least {
                    Duration::ZERO => "0s or more".to_owned(),
                    TICK => "above 0s".to_owned(),
                    least => format!("{} or more", humantime::format_duration(least)),
                };
                format!("{least}, at most {most}")
            }
            Kind::Count { most } => format!("1 to {}", grouped(most)),
            Kind::Headers => "at most 100 lines, 64 KiB in all".to_owned(),
            Kind::Statuses => "100 to 999; ranges as \"200-299\"".to_owned(),
            Kind::Choice(words) => quoted(words, " or "),
            Kind::Thresholds { most } => format!("at most {most} thresholds"),
            Kind::Flag => "true or false".to_owned(),
        }
    }

    /// The text of a default that is a value, without quotes.
    pub(crate) fn default_text(&self) -> Option<&'static str> {
        match self.default {
            Default::Value(toml) => Some(toml.trim_matches('"')),
            Default::Required | Default::Words(_) => None,
        }
    }
}

/// The words in quotes, with `last` before the last one.
pub(crate) fn quoted(words: &[&str], last: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(last)
}

/// A number with commas between the thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The names that may stand in a table ("" is the top), keys and tables alike, without repetition.
pub(crate) fn names_in(table: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for key in KEYS {
        let inside = if table.is_empty() {
            Some(key.path)
        } else {
            key.path.strip_prefix(table).and_then(|rest| rest.strip_prefix('.'))
        };
        if let Some(name) = inside.and_then(|rest| rest.split('.').next())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_table_are_its_keys_and_its_tables() {
        assert_eq!(names_in("load"), ["closed"]);
        assert_eq!(names_in("agents"), ["min", "on_loss"]);
        assert!(names_in("").ends_with(&["load", "agents", "thresholds", "stop_when"]));
        assert!(names_in("load.closed.connections").is_empty());
    }

    #[test]
    fn paths_are_there_once() {
        for key in KEYS {
            assert_eq!(KEYS.iter().filter(|other| other.path == key.path).count(), 1);
        }
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(1), "1");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(10_000_000), "10,000,000");
    }
}
