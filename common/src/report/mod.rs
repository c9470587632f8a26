//! The one report of a run: the model that is the JSON contract, how it is built from the totals, and the verdict.
//!
//! Renderers see only [`Report`].

mod agents;
mod arrivals;
mod build;
mod distribution;
mod facts;
mod ledger;
mod model;
mod names;
mod phases;
mod rows;
mod series;
mod verdict;

pub use build::build;
pub use facts::{AgentFacts, ClockOffset, Loss, RunFacts};
pub use model::{
    Bytes, Connections, Distribution, Ledger, Model, PlanInfo, Rates, Reason, ReasonCode, Report,
    RunInfo, RunOutcome, SCHEMA, Skew, SplitByOutcome, Verdict, VerdictStatus,
};
pub use rows::{
    AddressRow, AgentRow, AgentState, Amount, Arrivals, ErrorRow, Gaps, KolmogorovSmirnov,
    PhaseRow, PlannedRate, RequestRow, SeriesRow, StatusRow, ThresholdRow, ThresholdUnit,
};
pub use verdict::{Rule, rules};
