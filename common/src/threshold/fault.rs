//! What is wrong with a threshold, as a value.

use std::ops::Range;

use crate::plan::{Problem, code};

/// One thing wrong with a threshold, with its place in the threshold's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A code of the plan's problems.
    pub code: &'static str,
    /// Where, in bytes; empty: between two characters.
    pub part: Range<usize>,
    /// What is wrong; lower case, no full stop.
    pub message: String,
    /// What stands at the place, in a few words.
    pub label: String,
    /// The remedy.
    pub help: String,
}

impl Fault {
    pub(super) fn new(
        code: &'static str,
        part: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { code, part, message: message.into(), label: label.into(), help: help.into() }
    }

    /// The grammar is broken here.
    pub(super) fn unreadable(part: Range<usize>, label: &str, help: impl Into<String>) -> Self {
        Self::new(code::BAD_THRESHOLD, part, "a threshold cannot be read", label, help)
    }

    /// The same as a problem of the plan, whose place `place` finds.
    pub(crate) fn problem(self, place: impl FnOnce(Range<usize>) -> Range<usize>) -> Problem {
        Problem::error(self.code, place(self.part), self.message, self.label, self.help)
    }
}

/// At most 40 characters of what somebody typed.
pub(super) fn shown(typed: &str) -> String {
    typed.chars().take(40).collect()
}
