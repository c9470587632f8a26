//! The run second by second.

use std::collections::BTreeMap;

use super::{Distribution, SeriesRow};
use crate::stats::{AgentTotals, Gauges, IntervalTotals, Totals};

/// One row per whole second, from the start to the last second with load. A second in which nothing came is there all
/// the same. An interval counts in the second that its middle lies in.
pub(super) fn series(totals: &Totals) -> Vec<SeriesRow> {
    let intervals = totals.agents().values().flat_map(|agent| agent.intervals.values());
    let active = intervals.filter(|interval| interval.is_active());
    let Some(last) = active.map(IntervalTotals::second).max() else { return Vec::new() };
    let mut rows: Vec<SeriesRow> = (0..=last).map(|second| row(totals, second)).collect();
    for agent in totals.agents().values() {
        for (second, (counts, gauges)) in by_second(agent) {
            let row = usize::try_from(second).ok().and_then(|second| rows.get_mut(second));
            let Some(row) = row else { continue };
            row.started += counts.started;
            row.succeeded += counts.succeeded;
            row.failed += counts.failed;
            row.open_connections += gauges.open_connections;
            row.in_flight += gauges.in_flight;
            row.agents += 1;
        }
    }
    rows
}

fn row(totals: &Totals, second: u64) -> SeriesRow {
    let of = Distribution::from(&totals.second(second));
    SeriesRow {
        from_s: second as f64,
        to_s: (second + 1) as f64,
        started: 0,
        succeeded: 0,
        failed: 0,
        open_connections: 0,
        in_flight: 0,
        p50_ns: of.p50_ns,
        p99_ns: of.p99_ns,
        agents: 0,
    }
}

#[derive(Default)]
struct Counts {
    started: u64,
    succeeded: u64,
    failed: u64,
}

/// Counts of all intervals of a second, gauges of its last one.
fn by_second(agent: &AgentTotals) -> BTreeMap<u64, (Counts, Gauges)> {
    let mut seconds: BTreeMap<u64, (Counts, Gauges)> = BTreeMap::new();
    for interval in agent.intervals.values() {
        let (counts, gauges) = seconds.entry(interval.second()).or_default();
        counts.started += interval.started;
        counts.succeeded += interval.succeeded;
        counts.failed += interval.failed;
        *gauges = interval.gauges;
    }
    seconds
}
