//! The keys of a plan: one table, from which come the defaults, the limits, the suggestions for a mistyped key and
//! the test of the reference.
//!
//! A key is known by its path: `load.closed.connections`. What stands in an array has the same path in every element, and
//! a phase's `load` has the keys of the plan's.

mod table;

use std::time::Duration;

use crate::{
    schedule::{Rate, RateProfile},
    units::Count,
    wire::{MAX_CONNECT_TO, MAX_PHASES},
};
pub use table::KEYS;
use table::TICK;
pub(super) use table::{HOUR, MOST_CONNECTIONS};

const MOST_PER_SECOND: u64 = Rate::MAX.micro() / 1_000_000;

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
    /// A whole number.
    Count {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// So many per second, with a point where it is no whole number; above 0.
    Rate,
    /// `true` or `false`.
    Flag,
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
    /// A number of connections, or the two ends of a ramp.
    Connections {
        /// The least where it does not change; a ramp may have 0 at an end.
        least: u64,
    },
    /// A rate, or the two ends of a ramp.
    RateOrRamp {
        /// Whether it may be 0 where it does not change: a pause.
        pause: bool,
    },
    /// An array of tables, one for each stretch of time.
    Steps,
    /// A duration, or how it is drawn.
    ThinkTime,
    /// Addresses with ports.
    Addresses,
    /// The table of a load model.
    Load,
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

/// Tables that may stand in a plan several times: `[[stop_when]]`.
pub const REPEATED: &[&str] = &["phases", "stop_when"];

/// The entry of a key this version knows; of a part of its value (`load.open.rate.from`) that of the key.
pub(crate) fn find(path: &str) -> &'static Key {
    let shown = shown(path);
    let mut path = in_table(&shown);
    loop {
        if let Some(key) = KEYS.iter().find(|key| key.path == path) {
            return key;
        }
        path = path.rsplit_once('.').expect("the plan reader asks only for keys of the table").0;
    }
}

/// A path as people read it: without the places in arrays that tell `phases[0].name` from `phases[1].name`.
pub(crate) fn shown(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| shown + part.split_once(']').map_or(part, |(_, rest)| rest))
}

/// The path under which the table of keys has it: a phase's load is a load like any other.
fn in_table(shown: &str) -> &str {
    shown.strip_prefix("phases.").filter(|load| load.starts_with("load.")).unwrap_or(shown)
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
            Kind::Rate => "number",
            Kind::Flag => "boolean",
            Kind::Headers => "table of strings",
            Kind::Statuses => "array of integers and strings",
            Kind::Connections { .. } => "integer, or `{ from, to }`",
            Kind::RateOrRamp { .. } => "number, or `{ from, to }`",
            Kind::Thresholds { .. } => "array of strings",
            Kind::Steps => "array of tables",
            Kind::ThinkTime => "duration, `{ uniform }` or `{ exponential }`",
            Kind::Addresses => "string, or array of strings",
            Kind::Load => "table",
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
            Kind::Count { least, most } => format!("{least} to {}", grouped(most)),
            Kind::Rate => numbers(false, MOST_PER_SECOND),
            Kind::Connections { least: 0 } => numbers(true, MOST_CONNECTIONS),
            Kind::Connections { least } => {
                format!("{least} to {}; 0 at one end of a ramp", grouped(MOST_CONNECTIONS))
            }
            Kind::RateOrRamp { pause: true } => numbers(true, MOST_PER_SECOND),
            Kind::RateOrRamp { pause: false } => {
                format!("{}; 0 at one end of a ramp", numbers(false, MOST_PER_SECOND))
            }
            Kind::Steps => {
                let most = grouped(RateProfile::MAX_SEGMENTS as u64);
                format!("1 to {most} steps, at most 7d together")
            }
            Kind::ThinkTime => "0s or more, at most 1h".to_owned(),
            Kind::Addresses => {
                format!("1 to {}, each as \"host:port\"", grouped(MAX_CONNECT_TO as u64))
            }
            Kind::Load => {
                format!("a load model, in each of 1 to {MAX_PHASES} phases")
            }
            Kind::Thresholds { most } => format!("at most {most} thresholds"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Headers => "at most 100 lines, 64 KiB in all".to_owned(),
            Kind::Statuses => "100 to 999; ranges as \"200-299\"".to_owned(),
            Kind::Choice(words) => quoted(words, " or "),
        }
    }

    /// What a value that is no ramp may be, in words.
    pub(crate) fn range(&self) -> String {
        let limits = self.limits();
        limits.split_once(';').map_or(limits.clone(), |(range, _)| range.to_owned())
    }

    /// The text of a default that is a value, without quotes.
    pub(crate) fn default_text(&self) -> Option<&'static str> {
        match self.default {
            Default::Value(toml) => Some(toml.trim_matches('"')),
            Default::Required | Default::Words(_) => None,
        }
    }
}

fn numbers(zero: bool, most: u64) -> String {
    let least = if zero { "0 to" } else { "above 0, at most" };
    format!("{least} {}", grouped(most))
}

/// The words in quotes, with `last` before the last one.
pub(crate) fn quoted(words: &[&str], last: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(last)
}

/// A number with commas between the thousands.
pub(crate) fn grouped(number: u64) -> String {
    Count(number).to_string()
}

/// The names that may stand in a table ("" is the top), keys and tables alike, without repetition; also in a table that is
/// the value of a key.
pub(crate) fn names_in(table: &str) -> Vec<&'static str> {
    let shown = shown(table);
    let table = if shown == "phases.load" { "load" } else { in_table(&shown) };
    match KEYS.iter().find(|key| key.path == table).map(|key| key.kind) {
        Some(Kind::Connections { .. } | Kind::RateOrRamp { .. }) => return vec!["from", "to"],
        Some(Kind::ThinkTime) => return vec!["uniform", "exponential"],
        _ => {}
    }
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
        assert_eq!(names_in("load"), ["closed", "open"]);
        assert_eq!(names_in("phases[3].load"), ["closed", "open"]);
        assert_eq!(names_in("agents"), ["min", "on_loss"]);
        assert!(names_in("").ends_with(&["hold", "seed", "agents", "thresholds", "stop_when"]));
        assert!(names_in("").contains(&"phases"));
        assert_eq!(names_in("load.closed.connections"), ["from", "to"]);
        assert_eq!(names_in("phases[0].load.open.steps[17]"), ["rate", "duration"]);
        assert!(names_in("headers").is_empty());
    }

    #[test]
    fn a_phase_has_the_keys_of_a_load() {
        assert_eq!(find("phases[1].load.closed.requests"), find("load.closed.requests"));
        assert_eq!(find("phases[1].load.open.steps[2].rate").table(), "load.open.steps");
        assert_eq!(shown("phases[1].load.open.steps[20].rate"), "phases.load.open.steps.rate");
        assert_eq!(find("phases[0].load").kind, Kind::Load);
        assert_eq!(find("phases[0].load.open.rate.from"), find("load.open.rate"));
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
