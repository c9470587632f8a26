//! One interval of one agent.

use super::Stats;
use crate::id::{AgentName, Epoch, RunId, SnapshotSeq};

/// A stretch of the run's timeline, nanoseconds since the start instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// Begin.
    pub from_ns: u64,
    /// End; at least `from_ns`.
    pub to_ns: u64,
}

/// What makes a snapshot the same snapshot when it is delivered again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotKey {
    /// The agent.
    pub agent: AgentName,
    /// Its process.
    pub epoch: Epoch,
    /// Its number.
    pub seq: SnapshotSeq,
}

/// One interval's accounts of one agent for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The run.
    pub run: RunId,
    /// Agent, process, number.
    pub key: SnapshotKey,
    /// When.
    pub interval: Interval,
    /// What happened in the interval.
    pub stats: Stats,
    /// How things stood at its end.
    pub gauges: Gauges,
    /// In the last snapshot only.
    pub completion: Option<Completion>,
}

/// How things stood at the end of an interval (or went, over it).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections open.
    pub open_connections: u64,
    /// Requests started and not completed. In the last snapshot: what was given up in flight.
    pub in_flight: u64,
    /// CPU time of the agent process in the interval.
    pub cpu_ns: u64,
    /// What it could have used: its workers, or what a quota allows if that is less, over the interval's length.
    pub cpu_capacity_ns: u64,
    /// For how long its control group was kept from running although it wanted to, because the quota was used up; 0
    /// without a quota. Added up over the cores, so it can be longer than the interval.
    pub throttled_ns: u64,
    /// Resident memory of the agent process.
    pub resident_bytes: u64,
}

/// Why an agent's part of a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// All requests were made, or the duration passed.
    Finished,
    /// The coordinator said so.
    Stopped,
    /// No connection could be made for too long; with the last error in words.
    TargetUnreachable(String),
    /// Nothing was heard from the coordinator for the length of the lease.
    LeaseExpired,
    /// A worker failed; with the words.
    Internal(String),
}
