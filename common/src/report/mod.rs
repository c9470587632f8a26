//! The one report of a run: the model that is the JSON contract, how it is built from the totals, and the verdict.
//!
//! Renderers see only [`Report`].

mod agents;
mod build;
mod distribution;
mod facts;
mod ledger;
mod model;
mod names;
mod phases;
mod series;
mod verdict;

pub use build::build;
pub use facts::{AgentFacts, ClockOffset, Loss, RunFacts};
pub use model::{
    AgentRow, AgentState, Amount, Bytes, Connections, Distribution, ErrorRow, Ledger, Model,
    PhaseRow, PlanInfo, Rates, Reason, ReasonCode, Report, RequestRow, RunInfo, RunOutcome, SCHEMA,
    SeriesRow, Skew, SplitByOutcome, StatusRow, ThresholdRow, ThresholdUnit, Verdict,
    VerdictStatus,
};
pub use verdict::{Rule, rules};
