//! The sum over a run's snapshots, each counted once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Completion, Gauges, Histogram, Interval, Snapshot, SnapshotKey, Stats};
use crate::id::{AgentName, SnapshotSeq};

/// The accounts of a run so far: a pure function of the *set* of snapshots given, whatever their order and however
/// often each came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    seen: BTreeSet<SnapshotKey>,
    agents: BTreeMap<AgentName, AgentTotals>,
    seconds: BTreeMap<u64, Histogram>,
}

/// One agent's part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentTotals {
    /// The sum over its snapshots.
    pub stats: Stats,
    /// Its intervals by number, for time series.
    pub intervals: BTreeMap<SnapshotSeq, IntervalTotals>,
    /// Why it ended; from its last snapshot.
    pub completion: Option<Completion>,
}

/// What is kept of one snapshot beside the sums: few numbers, no histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalTotals {
    /// When.
    pub interval: Interval,
    /// How things stood.
    pub gauges: Gauges,
    /// Requests begun.
    pub started: u64,
    /// Requests succeeded.
    pub succeeded: u64,
    /// Requests failed.
    pub failed: u64,
}

impl IntervalTotals {
    /// The second of the run's timeline that the interval belongs to: the one its middle lies in.
    pub const fn second(&self) -> u64 {
        let middle = self.interval.from_ns + (self.interval.to_ns - self.interval.from_ns) / 2;
        middle / 1_000_000_000
    }
}

impl Totals {
    /// Counts a snapshot, unless it was counted before. Tells whether it was new.
    pub fn add(&mut self, snapshot: &Snapshot) -> bool {
        if !self.seen.insert(snapshot.key.clone()) {
            return false;
        }
        let agent = self.agents.entry(snapshot.key.agent.clone()).or_default();
        agent.stats.add_interval(&snapshot.stats);
        if snapshot.completion.is_some() {
            agent.completion.clone_from(&snapshot.completion);
        }
        let total = snapshot.stats.total();
        let interval = IntervalTotals {
            interval: snapshot.interval,
            gauges: snapshot.gauges,
            started: total.started,
            succeeded: total.succeeded,
            failed: total.failed,
        };
        let mut response_time = total.succeeded_times.response_time;
        response_time.add(&total.failed_times.response_time);
        let second = self.seconds.entry(interval.second()).or_default();
        response_time.add(second);
        *second = response_time;
        agent.intervals.insert(snapshot.key.seq, interval);
        true
    }

    /// The agents that handed in anything, by name.
    pub const fn agents(&self) -> &BTreeMap<AgentName, AgentTotals> {
        &self.agents
    }

    /// The fleet's response times (succeeded and failed) by second of the run's timeline.
    pub const fn seconds(&self) -> &BTreeMap<u64, Histogram> {
        &self.seconds
    }

    /// The fleet's sum.
    pub fn fleet(&self) -> Stats {
        let mut fleet = Stats::default();
        for agent in self.agents.values() {
            fleet.add_parallel(&agent.stats);
        }
        fleet
    }
}
