//! The sum over a run's snapshots, each counted once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Completion, Gauges, Histogram, Interval, Snapshot, SnapshotKey, Stats};
use crate::id::{AgentName, Epoch, SnapshotSeq};

/// The accounts of a run so far: a pure function of the *set* of snapshots given, whatever their order and however
/// often each came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    seen: BTreeSet<SnapshotKey>,
    agents: BTreeMap<AgentName, AgentTotals>,
    seconds: BTreeMap<u64, Encoded>,
}

/// One agent's part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentTotals {
    /// The sum over its snapshots.
    pub stats: Stats,
    /// Its intervals by process and number, for time series.
    pub intervals: BTreeMap<(Epoch, SnapshotSeq), IntervalTotals>,
    /// Why it ended, and in which snapshot it said so.
    completion: Option<((Epoch, SnapshotSeq), Completion)>,
}

impl AgentTotals {
    /// Why it ended; from its last snapshot.
    pub fn completion(&self) -> Option<&Completion> {
        self.completion.as_ref().map(|(_, completion)| completion)
    }

    /// Its latest interval: how things stood when it was last heard of.
    pub fn last_interval(&self) -> Option<&IntervalTotals> {
        self.intervals.last_key_value().map(|(_, interval)| interval)
    }
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
    fn new(snapshot: &Snapshot) -> Self {
        let mut interval = Self {
            interval: snapshot.interval,
            gauges: snapshot.gauges,
            started: 0,
            succeeded: 0,
            failed: 0,
        };
        for request in &snapshot.stats.requests {
            interval.started += request.started;
            interval.succeeded += request.succeeded;
            interval.failed += request.failed;
        }
        interval
    }

    /// The second of the run's timeline that the interval belongs to: the one its middle lies in.
    pub const fn second(&self) -> u64 {
        let middle = self.interval.from_ns + (self.interval.to_ns - self.interval.from_ns) / 2;
        middle / 1_000_000_000
    }

    /// Whether there was load: something began, ended or was under way.
    pub const fn is_active(&self) -> bool {
        self.started + self.succeeded + self.failed + self.gauges.in_flight > 0
    }
}

impl Totals {
    /// Counts a snapshot, unless it was counted before. Tells whether it was new.
    pub fn add(&mut self, snapshot: &Snapshot) -> bool {
        if !self.seen.insert(snapshot.key.clone()) {
            return false;
        }
        let interval = IntervalTotals::new(snapshot);
        let place = (snapshot.key.epoch, snapshot.key.seq);
        let agent = self.agents.entry(snapshot.key.agent.clone()).or_default();
        agent.stats.add_interval(&snapshot.stats);
        agent.intervals.insert(place, interval);
        if let Some(completion) = &snapshot.completion
            // The latest, so that the order of addition does not matter.
            && agent.completion.as_ref().is_none_or(|(earlier, _)| *earlier < place)
        {
            agent.completion = Some((place, completion.clone()));
        }
        self.add_second(interval.second(), &snapshot.stats);
        true
    }

    fn add_second(&mut self, second: u64, stats: &Stats) {
        let mut response_time = Histogram::default();
        for request in &stats.requests {
            response_time.add(&request.succeeded_times.response_time);
            response_time.add(&request.failed_times.response_time);
        }
        let kept = self.seconds.entry(second).or_default();
        if !response_time.is_empty() {
            response_time.add(&kept.decode());
            *kept = Encoded::from(&response_time);
        }
    }

    /// The agents that handed in anything, by name.
    pub const fn agents(&self) -> &BTreeMap<AgentName, AgentTotals> {
        &self.agents
    }

    /// The fleet's response times (succeeded and failed) in one second of the run's timeline.
    pub fn second(&self, second: u64) -> Histogram {
        self.seconds.get(&second).map(Encoded::decode).unwrap_or_default()
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

/// A histogram that waits: a few KB instead of 190 KiB, so that an hour of seconds stays below 20 MB. Adding to it
/// costs about 30 µs more than adding to one that is open, far less than decoding the snapshot did.
///
/// Equal samples have equal bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Encoded {
    v2: Box<[u8]>,
    overflow: u64,
}

impl Encoded {
    fn decode(&self) -> Histogram {
        Histogram::from_own_v2(&self.v2, self.overflow).expect("these bytes were encoded here")
    }
}

impl From<&Histogram> for Encoded {
    fn from(histogram: &Histogram) -> Self {
        Self { v2: histogram.to_v2().into(), overflow: histogram.overflow() }
    }
}
