//! The built `inrush`, as a user or a CI job meets it: arguments and signals in, streams and exit codes out.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod bodies;
mod explain;
mod field;
mod fleet;
mod kill;
mod plain;
mod process;
mod run;
mod signals;
mod stop_rules;
mod support;
mod thresholds;
