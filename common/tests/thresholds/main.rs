//! Thresholds: whatever is typed is read or refused with a place, what is read is written in one way, and figures are
//! compared exactly.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

#[cfg(test)]
mod figures;
#[cfg(test)]
mod reading;

use inrush_common::{
    report::{Report, ThresholdRow},
    threshold::{self, Known, Threshold},
};

pub(crate) const ANY: Known<'_> = Known { requests: None, phases: None };

pub(crate) fn read(text: &str) -> Threshold {
    threshold::parse(text, &ANY).unwrap_or_else(|faults| panic!("{text}: {faults:#?}"))
}

/// A report with thresholds in it that are not looked at: 20,000 requests in 4.5 s.
pub(crate) fn report() -> Report {
    serde_json::from_str(include_str!("../report/golden/normal.json")).unwrap()
}

/// One of a run in which nothing was done.
pub(crate) fn empty() -> Report {
    serde_json::from_str(include_str!("../report/golden/empty.json")).unwrap()
}

pub(crate) fn row(text: &str, report: &Report) -> ThresholdRow {
    threshold::evaluate(&read(text), report)
}
