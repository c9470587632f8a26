//! How fast an agent opens connections, where its plan says so.
//!
//! The k-th opening has its instant, k divided by the rate after the start of the run, and none comes before its own. The
//! workers take the instants from one counter, so that however the connections are spread over them, the agent keeps to
//! its rate. Touched once for each new connection, never by a request on one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use inrush_common::schedule::Rate;

/// An opening that is late by no more than this is made up for; instants further back have passed unused. So nobody sees a
/// burst after a pause, of more than a twentieth of a second's openings.
const CATCH_UP_NS: u64 = 50_000_000;

/// A rate is in millionths per second, an instant in nanoseconds.
const UNITS: u128 = 1_000_000_000_000_000;

/// The instants of an agent's openings.
#[derive(Debug)]
pub(super) struct Pace {
    micro: u128,
    /// The number of the next instant that nobody has.
    next: AtomicU64,
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        Self { micro: u128::from(rate.micro().max(1)), next: AtomicU64::new(0) }
    }

    /// The next instant for the caller alone, in nanoseconds since the start of the run.
    pub(super) fn take(&self, now_ns: u64) -> u64 {
        let since = u128::from(now_ns.saturating_sub(CATCH_UP_NS));
        let oldest = u64::try_from((since * self.micro).div_ceil(UNITS)).unwrap_or(u64::MAX);
        let taken = |next: u64| Some(next.max(oldest).saturating_add(1));
        let before = self.next.fetch_update(Relaxed, Relaxed, taken).unwrap_or_else(|next| next);
        self.instant(before.max(oldest))
    }

    fn instant(&self, number: u64) -> u64 {
        u64::try_from((u128::from(number) * UNITS).div_ceil(self.micro)).unwrap_or(u64::MAX)
    }

    /// Whether an instant is so long past that it does not count any more.
    pub(super) fn is_stale(at_ns: u64, now_ns: u64) -> bool {
        at_ns < now_ns.saturating_sub(CATCH_UP_NS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn pace(per_second: u64) -> Pace {
        Pace::new(Rate::per_second(per_second).unwrap())
    }

    #[test]
    fn the_kth_opening_is_at_k_over_the_rate_without_drift() {
        let three = pace(3);
        let instants: Vec<u64> = (0..7).map(|_| three.take(0)).collect();
        assert_eq!(
            instants,
            [
                0,
                333_333_334,
                666_666_667,
                1_000_000_000,
                1_333_333_334,
                1_666_666_667,
                2_000_000_000
            ]
        );
    }

    #[test]
    fn what_is_a_little_late_is_made_up_for_and_a_pause_is_not() {
        let thousand = pace(1_000);
        assert_eq!(thousand.take(0), 0);
        assert_eq!(thousand.take(20 * MS), MS, "20 ms late");
        // After a pause of a second: 50 of them at once, then one per millisecond.
        let now = 1_000 * MS;
        let at_once = (0..100).filter(|_| thousand.take(now) <= now).count();
        assert_eq!(at_once, 51);
        assert_eq!(thousand.take(now), 1_050 * MS);
    }

    #[test]
    fn a_rate_below_one_per_second_has_no_burst_at_all() {
        let slow = Pace::new(Rate::from_micro(100_000).unwrap());
        assert_eq!(slow.take(0), 0);
        assert_eq!(slow.take(0), 10_000 * MS);
        assert_eq!(slow.take(95_000 * MS), 100_000 * MS);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_its_rate_and_the_catch_up(
            micro in 1_u64..100_000_000_000, pauses in proptest::collection::vec(0_u64..200 * MS, 1..300),
        ) {
            let pace = Pace::new(Rate::from_micro(micro).unwrap());
            let mut now = 0;
            let mut opened = Vec::new();
            for pause in pauses {
                let at = pace.take(now);
                opened.push(now.max(at));
                now = now.max(at) + pause;
            }
            let most = 1 + u128::from(micro) * u128::from(1_000 * MS + CATCH_UP_NS) / UNITS;
            for (place, from) in opened.iter().enumerate() {
                let within = opened[place..].iter().filter(|at| **at < from + 1_000 * MS).count();
                prop_assert!(within as u128 <= most + 1, "{within} of {most}");
            }
        }
    }
}
