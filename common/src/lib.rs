//! What Inrush means, without any I/O: plans, how they are split, what is recorded, how it is merged and reported.
//!
//! Everything here is a value or a pure function. There is no socket, no clock, no command line and no RPC in this
//! crate: time comes in as a parameter, and the [`wire`] module only converts between these types and the messages of
//! `inrush-proto`.
//!
//! The way of a run through this crate:
//!
//! ```text
//! plan::load ─▶ Plan ─ assign::split ─▶ Assignment × N ─ wire ─▶ agents
//! agents ─ wire ─▶ stats::Snapshot × many ─ stats::Totals ─▶ report::build ─▶ Report
//! ```

pub mod address;
pub mod assign;
pub mod capacity;
pub mod churn;
pub mod deadlines;
pub mod explain;
pub mod id;
pub mod join;
pub mod outcome;
pub mod plan;
pub mod report;
pub mod schedule;
pub mod stats;
pub mod threshold;
pub mod units;
pub mod wire;
