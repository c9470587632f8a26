//! The sum over a run's snapshots, each counted once.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter, mem,
};

use super::{Completion, Gauges, Histogram, Interval, Snapshot, SnapshotKey, Stats};
use crate::id::{AgentName, Epoch, SnapshotSeq};

/// The accounts of a run so far: a pure function of the *set* of snapshots given, whatever their order and however
/// often each came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    seen: BTreeSet<SnapshotKey>,
    agents: BTreeMap<AgentName, AgentTotals>,
    /// Response times by row of the timeline.
    rows: BTreeMap<u64, Encoded>,
    /// Requests begun, by row of the timeline and phase of the plan: the fleet's sums and only those above 0, so that
    /// there are at most rows × phases of them, whatever the number of agents.
    starts: BTreeMap<(u64, usize), u64>,
    /// The latest second that a snapshot belongs to.
    last_second: u64,
}

/// Most rows of a timeline: an hour of seconds.
pub const MAX_ROWS: u64 = 3_600;

/// Widths of a row in seconds. Each divides the next, so rows become wider ones by being added up.
const WIDTHS_S: [u64; 7] = [1, 2, 10, 30, 60, 120, 240];

/// The smallest width with which the timeline up to `last_second` has no more than [`MAX_ROWS`] rows.
fn width_s(last_second: u64) -> u64 {
    // The last one is enough for ten days, more than a snapshot from the wire can have. Beyond it, go on by doubling.
    let beyond = iter::successors(Some(480_u64), |width| width.checked_mul(2));
    let mut widths = WIDTHS_S.into_iter().chain(beyond);
    widths.find(|width| last_second / width < MAX_ROWS).unwrap_or(u64::MAX)
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
        for request in snapshot.stats.phases.iter().flat_map(|phase| &phase.requests) {
            interval.started = interval.started.saturating_add(request.started);
            interval.succeeded = interval.succeeded.saturating_add(request.succeeded);
            interval.failed = interval.failed.saturating_add(request.failed);
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
        self.started > 0 || self.succeeded > 0 || self.failed > 0 || self.gauges.in_flight > 0
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
        self.widen(second);
        let mut response_time = Histogram::default();
        for request in stats.phases.iter().flat_map(|phase| &phase.requests) {
            response_time.add(&request.succeeded_times.response_time);
            response_time.add(&request.failed_times.response_time);
        }
        let row = second / self.row_width_s();
        if !response_time.is_empty() {
            self.rows.entry(row).or_default().add(&response_time);
        }
        for (phase, stats) in stats.phases.iter().enumerate() {
            let started = stats.requests.iter().map(|request| request.started);
            let started = started.fold(0, u64::saturating_add);
            if started > 0 {
                let sum = self.starts.entry((row, phase)).or_default();
                *sum = sum.saturating_add(started);
            }
        }
    }

    /// Makes the rows so wide that the timeline up to `second` fits. The width depends on the latest second alone, and
    /// adding is exact, so it does not matter when this happens.
    fn widen(&mut self, second: u64) {
        let before = self.row_width_s();
        self.last_second = self.last_second.max(second);
        let times = self.row_width_s() / before;
        if times == 1 {
            return;
        }
        for (row, encoded) in mem::take(&mut self.rows) {
            self.rows.entry(row / times).or_default().add(&encoded.decode());
        }
        for ((row, phase), started) in mem::take(&mut self.starts) {
            let sum = self.starts.entry((row / times, phase)).or_default();
            *sum = sum.saturating_add(started);
        }
    }

    /// Seconds per row of the timeline: 1, and more when the run is so long that there would be more than [`MAX_ROWS`].
    pub fn row_width_s(&self) -> u64 {
        width_s(self.last_second)
    }

    /// The agents that handed in anything, by name.
    pub const fn agents(&self) -> &BTreeMap<AgentName, AgentTotals> {
        &self.agents
    }

    /// The fleet's response times (succeeded and failed) in one row of the run's timeline; row 0 begins at the start.
    pub fn row(&self, row: u64) -> Histogram {
        self.rows.get(&row).map(Encoded::decode).unwrap_or_default()
    }

    /// Requests of one phase that the fleet began in one row of the run's timeline.
    pub fn started(&self, row: u64, phase: usize) -> u64 {
        self.starts.get(&(row, phase)).copied().unwrap_or(0)
    }

    /// The last row that anything was handed in for.
    pub fn last_row(&self) -> u64 {
        self.last_second / self.row_width_s()
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

/// A histogram that waits: a few KB instead of 190 KiB, so that all rows stay below 20 MB. Adding to it
/// costs about 30 µs more than adding to one that is open, far less than decoding the snapshot did.
///
/// Equal samples have equal bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Encoded {
    v2: Box<[u8]>,
    overflow: u64,
}

impl Encoded {
    fn add(&mut self, more: &Histogram) {
        let mut sum = self.decode();
        sum.add(more);
        *self = Self::from(&sum);
    }

    fn decode(&self) -> Histogram {
        Histogram::from_own_v2(&self.v2, self.overflow).expect("these bytes were encoded here")
    }
}

impl From<&Histogram> for Encoded {
    fn from(histogram: &Histogram) -> Self {
        Self { v2: histogram.to_v2().into(), overflow: histogram.overflow() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_narrow_as_fits_and_every_width_divides_the_next() {
        let hours = [1, 2, 10, 30, 60, 120, 240, 480].map(|hours| hours * 3_600);
        for (hours, width) in hours.into_iter().zip([1, 2, 10, 30, 60, 120, 240, 480]) {
            assert_eq!(width_s(hours - 1), width);
            assert!(width_s(hours) > width && width_s(hours).is_multiple_of(width));
        }
        assert_eq!(width_s(0), 1);
        assert!(u64::MAX / width_s(u64::MAX) < MAX_ROWS);
    }
}
