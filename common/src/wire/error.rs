//! What is wrong with a message.

use std::fmt;

/// A message that means nothing to us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}")]
pub struct WireError {
    /// The field, from the top of the message: `stats.requests[0].errors[2].class`.
    pub path: String,
    /// What should have been there, and what was.
    pub expected: String,
}

impl WireError {
    pub(super) fn new(path: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self { path: path.to_string(), expected: expected.to_string() }
    }

    /// A field that should have been there.
    pub(super) fn missing(path: &str) -> Self {
        Self::new(path, "a value, got none")
    }

    /// The same, seen from the message that has it in the field `parent`.
    pub(super) fn under(self, parent: impl fmt::Display) -> Self {
        Self { path: format!("{parent}.{}", self.path), ..self }
    }

    /// The same, seen from the message that has it as element `index` of the list `parent`.
    pub(super) fn element(self, parent: &str, index: usize) -> Self {
        self.under(format_args!("{parent}[{index}]"))
    }
}
