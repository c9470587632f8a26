//! The gaps between the actual starts of an open load, against those that were intended.

use std::sync::Arc;

use inrush_common::{
    plan::{ArrivalProcess, OpenLoad},
    schedule::{Amount, RateProfile},
    stats::Histogram,
};

/// What a gap as intended is recorded as.
const AS_INTENDED: u64 = 1_000_000_000;

/// Compares each start with the one before.
#[derive(Debug)]
pub(super) struct Gaps {
    against: Against,
    starts_ns: u64,
    ends_ns: u64,
}

#[derive(Debug)]
enum Against {
    /// The schedule's own gaps. The last start, and when it was due.
    Schedule { last: Option<(u64, u64)> },
    /// The mean gap at the rate of the moment, which for independent arrivals is all that is planned. How much had come
    /// together at the last start.
    Mean { profile: Arc<RateProfile>, per_unit: f64, last: Option<u128> },
}

impl Gaps {
    /// For a worker that starts so many of the load's requests.
    pub(super) fn new(
        load: &OpenLoad,
        profile: Arc<RateProfile>,
        count: u64,
        (starts_ns, ends_ns): (u64, u64),
    ) -> Self {
        let against = match load.arrivals {
            ArrivalProcess::Uniform => Against::Schedule { last: None },
            ArrivalProcess::Poisson => {
                let space = profile.total().min(Amount::requests(load.slots.total()));
                let per_unit = count as f64 / space.units().max(1) as f64;
                Against::Mean { profile, per_unit, last: None }
            }
        };
        Self { against, starts_ns, ends_ns }
    }

    /// A request that was due at one instant has started at another.
    ///
    /// Left out are starts after the load's time, when nothing is planned any more, and those that were overtaken by a
    /// later one: their connection had to be opened.
    pub(super) fn started(&mut self, due_ns: u64, sent_ns: u64, gaps: &mut Histogram) {
        if sent_ns >= self.ends_ns {
            return;
        }
        match &mut self.against {
            Against::Schedule { last } => {
                if let Some((last_sent, last_due)) = *last {
                    if due_ns <= last_due {
                        return;
                    }
                    let actual = u128::from(sent_ns.saturating_sub(last_sent));
                    let intended = u128::from(due_ns - last_due);
                    let gap = actual * u128::from(AS_INTENDED) / intended;
                    gaps.record(u64::try_from(gap).unwrap_or(u64::MAX));
                }
                *last = Some((sent_ns, due_ns));
            }
            Against::Mean { profile, per_unit, last } => {
                let together = profile.cumulative(sent_ns.saturating_sub(self.starts_ns)).units();
                if let Some(last) = *last {
                    let gap = together.saturating_sub(last) as f64 * *per_unit;
                    gaps.record((gap * AS_INTENDED as f64) as u64);
                }
                *last = Some(together);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use inrush_common::{
        plan::Overflow,
        schedule::{
            ArrivalKind, Arrivals, Interleave, Rate, Seed, Worker, critical_distance,
            distance_to_exponential,
        },
    };

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn load(arrivals: ArrivalProcess) -> OpenLoad {
        let rate = |per_second: u64| Rate::from_micro(per_second * 1_000_000).unwrap();
        let profile = RateProfile::ramp(rate(100), rate(900), 10 * SECOND_NS).unwrap();
        OpenLoad {
            slots: Interleave::whole(profile.count()),
            profile,
            arrivals,
            max_in_flight: 1,
            on_overflow: Overflow::Queue,
        }
    }

    fn of(load: &OpenLoad, starts: impl IntoIterator<Item = (u64, u64)>) -> Histogram {
        let times = (SECOND_NS, 11 * SECOND_NS);
        let mut gaps = Gaps::new(load, Arc::new(load.profile.clone()), load.slots.count(), times);
        let mut histogram = Histogram::default();
        for (due, sent) in starts {
            gaps.started(due, sent, &mut histogram);
        }
        histogram
    }

    #[test]
    fn starts_on_schedule_have_the_gaps_that_were_intended_also_on_a_ramp() {
        let load = load(ArrivalProcess::Uniform);
        let due = (0..load.slots.count()).filter_map(|k| load.profile.due(k));
        let on_time = of(&load, due.map(|due| SECOND_NS + due).map(|due| (due, due)));
        assert_eq!(on_time.count(), load.slots.count() - 1);
        let (min, max) = (on_time.min().unwrap(), on_time.max().unwrap());
        assert!(min <= AS_INTENDED && AS_INTENDED <= max && max - min < 2_000_000, "{min} {max}");
    }

    #[test]
    fn a_start_that_was_overtaken_or_comes_after_the_time_is_left_out() {
        let load = load(ArrivalProcess::Uniform);
        let base = 2 * SECOND_NS;
        let starts =
            [(base, base), (base + 20, base + 30), (base + 10, base + 40), (base + 30, base + 45)];
        let gaps = of(&load, starts.into_iter().chain([(base + 40, 11 * SECOND_NS)]));
        assert_eq!(gaps.count(), 2);
        assert_eq!(gaps.max().unwrap() / 1_000_000, 1_500);
    }

    #[test]
    fn independent_starts_on_a_ramp_are_exponential_in_units_of_the_mean() {
        let load = load(ArrivalProcess::Poisson);
        let kind = ArrivalKind::Poisson(Seed { plan: 3, phase: 0 });
        let profile = Arc::new(load.profile.clone());
        let arrivals = Arrivals::new(profile, kind, load.slots.clone(), Worker::ALONE).unwrap();
        let starts = arrivals.map(|arrival| SECOND_NS + arrival.due_ns).map(|due| (due, due));
        let gaps = of(&load, starts);
        let mut found: Vec<f64> = gaps
            .buckets()
            .into_iter()
            .flat_map(|(gap, count)| vec![gap as f64 / AS_INTENDED as f64; count as usize])
            .collect();
        found.sort_by(f64::total_cmp);
        let distance = distance_to_exponential(&found).unwrap();
        assert!(distance < critical_distance(gaps.count()), "{distance}");
    }
}
