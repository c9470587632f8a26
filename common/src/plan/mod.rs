//! The plan: what a test is.
//!
//! `parse` reads the TOML into a raw form that keeps every place, `compile` checks it and applies the defaults. A [`Plan`]
//! comes only out of [`load`], so a `Plan` in hand is a valid one. All problems are found at once; each has a
//! code, a place, what was expected and a remedy ([`Problem`]).

mod model;
mod problem;

pub use model::{AgentsPolicy, ClosedLoad, Expect, Header, Load, OnLoss, Plan, Request, Workload};
pub use problem::{Problem, Severity};
