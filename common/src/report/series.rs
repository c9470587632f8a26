//! The run row by row: second by second, unless it is long.

use std::collections::BTreeMap;

use super::{SeriesRow, arrivals::planned_between, phases::Account};
use crate::{
    plan::Load,
    stats::{AgentTotals, Gauges, IntervalTotals, Totals},
};

const SECOND_NS: u64 = 1_000_000_000;

/// Rows of equal width from the start to the last one with load or a phase at work, at most
/// [`MAX_ROWS`](crate::stats::MAX_ROWS). One in which nothing came is there all the same. An interval counts in the row
/// that its middle lies in.
pub(super) fn series(totals: &Totals, phases: &[Account<'_>]) -> Vec<SeriesRow> {
    let intervals = totals.agents().values().flat_map(|agent| agent.intervals.values());
    let active = intervals.filter(|interval| interval.is_active());
    let Some(last) = active.map(IntervalTotals::second).max() else { return Vec::new() };
    let width_s = totals.row_width_s();
    let work_ends = phases.iter().map(|phase| phase.window().1.saturating_sub(1)).max();
    let at_work = work_ends.unwrap_or(0) / SECOND_NS / width_s;
    // Nobody's word makes more rows than were handed in.
    let last = at_work.min(totals.last_row()).max(last / width_s);
    let mut rows: Vec<SeriesRow> =
        (0..=last).map(|number| row(totals, phases, number, width_s)).collect();
    for agent in totals.agents().values() {
        for (number, (counts, gauges)) in by_row(agent, width_s) {
            let row = usize::try_from(number).ok().and_then(|number| rows.get_mut(number));
            let Some(row) = row else { continue };
            add(&mut row.started, counts.started);
            add(&mut row.succeeded, counts.succeeded);
            add(&mut row.failed, counts.failed);
            add(&mut row.open_connections, gauges.open_connections);
            add(&mut row.in_flight, gauges.in_flight);
            row.agents += 1;
        }
    }
    rows
}

const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn row(totals: &Totals, phases: &[Account<'_>], number: u64, width_s: u64) -> SeriesRow {
    let response_time = totals.row(number);
    let width_ns = width_s.saturating_mul(SECOND_NS);
    let (begin, end) = (number.saturating_mul(width_ns), (number + 1).saturating_mul(width_ns));
    let within = |(from, until): (u64, u64)| from < end && until > begin;
    let at_work = phases.iter().filter(|phase| within(phase.window()));
    let planned = phases.iter().map(|phase| match &phase.plan.load {
        Load::Open(open) => Some(planned_between(phase.plan, open, begin, end)),
        Load::Closed(_) => (!within(phase.begins())).then_some(0),
    });
    SeriesRow {
        from_s: (number * width_s) as f64,
        to_s: ((number + 1) * width_s) as f64,
        phases: at_work.map(|phase| phase.plan.name.clone()).collect(),
        planned: planned.sum(),
        started: 0,
        succeeded: 0,
        failed: 0,
        open_connections: 0,
        in_flight: 0,
        p50_ns: response_time.percentile(0.5),
        p99_ns: response_time.percentile(0.99),
        agents: 0,
    }
}

#[derive(Default)]
struct Counts {
    started: u64,
    succeeded: u64,
    failed: u64,
}

/// Counts of all intervals of a row, gauges of its last one.
fn by_row(agent: &AgentTotals, width_s: u64) -> BTreeMap<u64, (Counts, Gauges)> {
    let mut rows: BTreeMap<u64, (Counts, Gauges)> = BTreeMap::new();
    for interval in agent.intervals.values() {
        let (counts, gauges) = rows.entry(interval.second() / width_s).or_default();
        add(&mut counts.started, interval.started);
        add(&mut counts.succeeded, interval.succeeded);
        add(&mut counts.failed, interval.failed);
        *gauges = interval.gauges;
    }
    rows
}
