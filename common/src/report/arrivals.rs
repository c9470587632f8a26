//! Open loads beside their plan: what was to arrive, and what did.

use std::collections::BTreeSet;

use super::{
    Arrivals, Gaps, KolmogorovSmirnov, PlannedRate, RunFacts, RunOutcome, agents::Agent,
    phases::Account,
};
use crate::{
    plan::{ArrivalProcess, Load, OpenLoad, Phase},
    schedule::{critical_distance, distance_of_buckets},
    stats::{Histogram, Totals},
    units::nanos,
};

/// A gap as planned, in the histograms of gaps.
const AS_PLANNED: f64 = 1e9;
/// The critical distance holds from so many gaps on.
const GAPS_TO_TEST: u64 = 35;
const SECOND_NS: u64 = 1_000_000_000;

/// How many requests of an open load are due before `t_ns` nanoseconds after its beginning.
fn planned_before(open: &OpenLoad, t_ns: u64) -> u64 {
    open.profile.planned_before(t_ns).min(open.slots.count())
}

/// How many requests of an open load are due in a stretch of the run's timeline.
pub(super) fn planned_between(phase: &Phase, open: &OpenLoad, from_ns: u64, to_ns: u64) -> u64 {
    let start = nanos(phase.starts_at);
    let before = |instant: u64| planned_before(open, instant.saturating_sub(start));
    before(to_ns).saturating_sub(before(from_ns))
}

/// Where in the series started and planned can be set side by side.
pub(super) struct Timeline<'a> {
    totals: &'a Totals,
    width_ns: u64,
    /// Rows that are only known together with the next one: an agent handed in an interval that lies in both.
    joined: BTreeSet<u64>,
    /// The first row that not all agents have handed in whole.
    end: u64,
    /// Whether the run went to its end: then every row must have what was planned for it.
    whole: bool,
}

/// Started and planned requests of one phase in one row, or in several that are only known together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) planned: u64,
    pub(super) started: u64,
}

impl Stretch {
    /// Started of planned.
    pub(super) fn share(self) -> f64 {
        self.started as f64 / self.planned.max(1) as f64
    }

    /// The relative difference. A start that is due at the end of a second may come in the next one, by a few
    /// microseconds: one request more or less is no difference.
    fn error(self) -> f64 {
        match self.started.abs_diff(self.planned) {
            0 | 1 => 0.0,
            difference => difference as f64 / self.planned.max(1) as f64,
        }
    }
}

impl<'a> Timeline<'a> {
    pub(super) fn new(facts: &RunFacts, totals: &'a Totals, agents: &[Agent<'_>]) -> Self {
        let width_ns = totals.row_width_s().saturating_mul(SECOND_NS);
        let mut joined = BTreeSet::new();
        let intervals = agents.iter().flat_map(|agent| agent.totals.intervals.values());
        for interval in intervals.map(|interval| interval.interval) {
            let last = interval.to_ns.saturating_sub(1).max(interval.from_ns) / width_ns;
            joined.extend(interval.from_ns / width_ns..last);
        }
        let heard_of = agents.iter().map(|agent| {
            agent.totals.last_interval().map_or(0, |interval| interval.interval.to_ns)
        });
        let end = heard_of.min().unwrap_or(0) / width_ns;
        Self { totals, width_ns, joined, end, whole: facts.outcome == RunOutcome::Finished }
    }

    /// The rows that lie within an open phase, without its first and last second.
    pub(super) fn stretches(&self, index: usize, phase: &Phase, open: &OpenLoad) -> Vec<Stretch> {
        let start = nanos(phase.starts_at);
        // With fewer requests than the rate would make, it ends when the next one would be due.
        let length =
            open.profile.due(open.slots.count()).unwrap_or_else(|| open.profile.duration_ns());
        let first = start.saturating_add(SECOND_NS).div_ceil(self.width_ns);
        let end = start.saturating_add(length).saturating_sub(SECOND_NS) / self.width_ns;
        let mut end = end.min(self.end);
        if !self.whole {
            // When it was cut short, nothing says at which instant: the last row with a start may not be whole.
            let last = (first..end).rev().find(|row| self.totals.started(*row, index) > 0);
            end = last.unwrap_or(first);
        }
        let mut stretches = Vec::new();
        let mut begun: Option<(u64, u64)> = None;
        for row in first..end {
            let (from, started) = begun.unwrap_or((row, 0));
            let started = started.saturating_add(self.totals.started(row, index));
            if self.joined.contains(&row) {
                begun = Some((from, started));
                continue;
            }
            begun = None;
            if from == first && first > 0 && self.joined.contains(&(first - 1)) {
                continue;
            }
            let (from_ns, to_ns) = (from * self.width_ns, (row + 1) * self.width_ns);
            let planned = planned_between(phase, open, from_ns, to_ns);
            stretches.push(Stretch { planned, started });
        }
        stretches
    }
}

/// An open phase beside its plan; `None` for a closed one.
pub(super) fn of(account: &Account<'_>, stretches: &[Stretch]) -> Option<Arrivals> {
    let Load::Open(open) = &account.plan.load else { return None };
    let gaps = &account.stats.gaps;
    let segments = open.profile.segments();
    let rate = |of: Option<crate::schedule::Rate>| of.map_or(0.0, crate::schedule::Rate::as_f64);
    Some(Arrivals {
        process: open.arrivals.name().to_owned(),
        rate: PlannedRate {
            from: rate(segments.first().map(|segment| segment.from)),
            to: rate(segments.last().map(|segment| segment.to)),
            peak: open.profile.peak().as_f64(),
        },
        max_in_flight: open.max_in_flight,
        on_overflow: open.on_overflow.name().to_owned(),
        planned: open.slots.count(),
        started: account.sum.started,
        rate_error: stretches.iter().map(|stretch| stretch.error()).max_by(f64::total_cmp),
        gaps: Gaps::from(gaps),
        ks: (open.arrivals == ArrivalProcess::Poisson).then(|| test(gaps)).flatten(),
    })
}

impl From<&Histogram> for Gaps {
    fn from(gaps: &Histogram) -> Self {
        let ratio = |billionths: Option<u64>| billionths.map(|gap| gap as f64 / AS_PLANNED);
        Self {
            count: gaps.count(),
            mean: ratio(gaps.mean()),
            p50: ratio(gaps.percentile(0.5)),
            p90: ratio(gaps.percentile(0.9)),
            p99: ratio(gaps.percentile(0.99)),
            max: ratio(gaps.max()),
        }
    }
}

/// Gaps against the exponential distribution with mean 1. What is counted up to the edge of a bucket is exact; within a
/// bucket, 0.1 % wide, lies at most 0.0004 of the distribution, by which the distance may be too small and never too
/// large. So the buckets let nothing fail.
fn test(gaps: &Histogram) -> Option<KolmogorovSmirnov> {
    let samples = gaps.count();
    if samples < GAPS_TO_TEST {
        return None;
    }
    let buckets = gaps.buckets();
    let within = buckets.iter().map(|(edge, count)| (*edge as f64 / AS_PLANNED, *count));
    let beyond = (gaps.overflow() > 0).then_some((f64::INFINITY, gaps.overflow()));
    let statistic = distance_of_buckets(within.chain(beyond))?;
    let critical = critical_distance(samples);
    Some(KolmogorovSmirnov { statistic, critical, samples, passed: statistic <= critical })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Random;

    fn tested(gaps: impl Iterator<Item = f64>) -> Option<KolmogorovSmirnov> {
        let mut histogram = Histogram::default();
        gaps.for_each(|gap| histogram.record((gap * AS_PLANNED) as u64));
        test(&histogram)
    }

    #[test]
    fn the_buckets_of_the_histogram_let_no_poisson_process_fail() {
        // Enough gaps that a distance of 0.001 would count.
        let count = 2_000_000;
        let mut random = Random::stream(5, &[]);
        let found = tested((0..count).map(|_| random.exponential())).unwrap();
        assert!(found.passed && found.samples == count, "{found:?}");
        let mut random = Random::stream(5, &[]);
        let late = tested((0..count).map(|_| random.exponential() + 0.01)).unwrap();
        assert!(!late.passed && late.statistic > 0.005, "{late:?}");
    }

    #[test]
    fn few_gaps_are_not_tested_and_even_ones_fail() {
        assert_eq!(tested((0..34).map(|_| 1.0)), None);
        assert!(!tested((0..35).map(|_| 1.0)).unwrap().passed);
    }

    #[test]
    fn gaps_beyond_the_top_of_the_histogram_are_gaps_all_the_same() {
        let mut random = Random::stream(9, &[]);
        let usual = (0..1_000).map(|_| random.exponential());
        let found = tested(usual.chain((0..400).map(|_| 5_000.0))).unwrap();
        assert!(found.samples == 1_400 && !found.passed, "{found:?}");
        assert!(found.statistic > 0.25, "{found:?}");
    }

    #[test]
    fn one_request_over_the_edge_of_a_second_is_no_error() {
        let error = |planned, started| Stretch { planned, started }.error();
        assert_eq!([error(1, 0), error(0, 1), error(5_000, 5_001), error(0, 0)], [0.0; 4]);
        assert_eq!([error(100, 98), error(100, 103)], [0.02, 0.03]);
        assert_eq!(error(0, 2), 2.0);
    }
}
