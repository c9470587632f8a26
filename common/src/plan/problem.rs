//! What is wrong with a plan, as a value.

use std::{fmt, ops::Range};

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The plan is refused.
    Error,
    /// The plan runs, but probably not as meant.
    Warning,
}

/// One thing wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable, for people to search for and tools to match: `plan::unknown_key`.
    pub code: &'static str,
    /// Whether the plan can still run.
    pub severity: Severity,
    /// What is wrong, with the value in question; lower case, no full stop.
    pub message: String,
    /// The place in the plan's source, in bytes; empty ranges point between two characters.
    pub span: Range<usize>,
    /// What stands at the place, in a few words ("not a known key").
    pub label: String,
    /// What to do about it.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
