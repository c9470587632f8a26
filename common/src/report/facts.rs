//! What a report needs to know of a run beside its snapshots. All of it is stored by the coordinator, so that a report
//! is a pure function of stored rows.

use std::time::SystemTime;

use super::RunOutcome;
use crate::{
    id::{AgentName, RunId},
    plan::Plan,
};

/// A run, beside its numbers.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// The run.
    pub run: RunId,
    /// What was to be done.
    pub plan: Plan,
    /// SHA-256 of the plan's source, hexadecimal.
    pub plan_sha256: String,
    /// When it was submitted, by the coordinator's wall clock.
    pub submitted_at: SystemTime,
    /// When the load was to start, by the coordinator's wall clock; `None`: it never got so far.
    pub started_at: Option<SystemTime>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The same in words.
    pub detail: Option<String>,
    /// The coordinator's version.
    pub version: String,
    /// The agents that were given a share, by name.
    pub agents: Vec<AgentFacts>,
}

/// An agent's part in a run, beside its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFacts {
    /// Its name.
    pub name: AgentName,
    /// Its version.
    pub version: String,
    /// Its machine.
    pub hostname: String,
    /// Its worker threads.
    pub workers: u32,
    /// Its share of the most connections that may be open at one instant.
    pub connections: u64,
    /// How many of them must have been made when all has gone well.
    pub requested: u64,
    /// Its share of the requests of each phase, in the plan's order; `None` in a phase without a count.
    pub planned: Vec<Option<u64>>,
    /// Why it did not report ready, in words; `None` if it did.
    pub not_ready: Option<String>,
    /// When and on what evidence it was lost; `None` if it was not.
    pub lost: Option<Loss>,
    /// Coordinator's clock minus its clock in nanoseconds, and the bound of that; `None` if never compared.
    pub clock: Option<ClockOffset>,
    /// When its load started on the coordinator's clock, nanoseconds after the agreed instant (negative: before).
    pub started_after_ns: Option<i64>,
}

/// A loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// When it was last known to live, nanoseconds since the start instant; 0 when that was before.
    pub at_ns: u64,
    /// In words: "its process ended (signal 9)", "nothing heard for 10.0 s".
    pub evidence: String,
}

/// A comparison of two monotonic clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Coordinator minus agent.
    pub offset_ns: i64,
    /// May be off by this much.
    pub bound_ns: u64,
}
