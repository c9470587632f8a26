//! How the coordinator's monotonic clock stands to this agent's, from the timestamps of the heartbeats.
//!
//! An exchange has four timestamps. If both ways took equally long, the offset is exact; it can be wrong by half of
//! the round trip at most, whatever the two ways took. So of several exchanges the one with the shortest round trip is
//! believed, and its bound grows with its age, since the two clocks drift.

use std::collections::VecDeque;

/// Exchanges remembered; older ones are forgotten one by one.
const WINDOW: usize = 64;

/// How fast two undisciplined quartz clocks may drift apart, in parts per million.
const DRIFT_PPM: u64 = 50;

/// The four timestamps of one exchange, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// The agent sent its heartbeat (agent's clock).
    pub sent: u64,
    /// The coordinator received it (coordinator's clock).
    pub received: u64,
    /// The coordinator sent its reply (coordinator's clock).
    pub replied: u64,
    /// The agent received that (agent's clock).
    pub heard: u64,
}

/// An estimate: coordinator's clock minus agent's, and how wrong it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// Coordinator minus agent, in nanoseconds.
    pub nanos: i64,
    /// The true offset is within this of [`nanos`](Self::nanos).
    pub bound: u64,
}

impl Offset {
    /// What the agent's clock shows when the coordinator's shows `coordinator_ns`. Instants before the agent's clock
    /// began are its beginning.
    pub(super) fn to_agent(self, coordinator_ns: u64) -> u64 {
        clamp(i128::from(coordinator_ns) - i128::from(self.nanos))
    }

    /// What the coordinator's clock shows when the agent's shows `agent_ns`.
    pub(super) fn to_coordinator(self, agent_ns: u64) -> u64 {
        clamp(i128::from(agent_ns) + i128::from(self.nanos))
    }
}

fn clamp(nanos: i128) -> u64 {
    u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    offset: i64,
    half_trip: u64,
    heard: u64,
}

/// The exchanges with one life of a coordinator.
#[derive(Debug, Default)]
pub(super) struct ClockSync {
    window: VecDeque<Measured>,
}

impl ClockSync {
    /// Takes an exchange. One whose timestamps run backwards is ignored.
    pub(super) fn add(&mut self, exchange: Exchange) {
        let Exchange { sent, received, replied, heard } = exchange;
        let trip = (|| heard.checked_sub(sent)?.checked_sub(replied.checked_sub(received)?))();
        let there = i128::from(received) - i128::from(sent);
        let back = i128::from(replied) - i128::from(heard);
        let offset = i64::try_from((there + back).div_euclid(2));
        let (Some(trip), Ok(offset)) = (trip, offset) else { return };
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(Measured { offset, half_trip: trip.div_ceil(2), heard });
    }

    /// The best estimate at `now` on the agent's clock; `None` before the first exchange.
    pub(super) fn estimate(&self, now: u64) -> Option<Offset> {
        self.window
            .iter()
            .map(|measured| {
                let age = now.saturating_sub(measured.heard);
                let drift = age / 1_000_000 * DRIFT_PPM;
                Offset { nanos: measured.offset, bound: measured.half_trip.saturating_add(drift) }
            })
            .min_by_key(|offset| offset.bound)
    }

    /// Forgets everything: the next coordinator's clock is another one.
    pub(super) fn reset(&mut self) {
        self.window.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(offset: i64, sent: u64, there: u64, held: u64, back: u64) -> Exchange {
        let received = (i128::from(sent + there) + i128::from(offset)) as u64;
        Exchange { sent, received, replied: received + held, heard: sent + there + held + back }
    }

    #[test]
    fn equal_ways_give_the_exact_offset_and_half_the_round_trip_as_bound() {
        let mut sync = ClockSync::default();
        assert_eq!(sync.estimate(0), None);
        sync.add(exchange(5_000, 1_000, 40, 7, 40));
        assert_eq!(sync.estimate(1_087), Some(Offset { nanos: 5_000, bound: 40 }));
    }

    #[test]
    fn the_shortest_round_trip_is_believed_until_it_is_too_old() {
        let mut sync = ClockSync::default();
        sync.add(exchange(-700, 10_000, 10_000, 0, 10_000));
        sync.add(exchange(-700, 50_000, 100, 0, 300));
        sync.add(exchange(-700, 60_000, 90_000, 0, 20_000));
        assert_eq!(sync.estimate(170_000), Some(Offset { nanos: -800, bound: 200 }));
        // Ten minutes later a fresh exchange with a longer way is the better one.
        let later = 600_000_000_000;
        sync.add(exchange(-700, later, 50_000, 0, 50_000));
        assert_eq!(sync.estimate(later + 100_000), Some(Offset { nanos: -700, bound: 50_000 }));
    }

    #[test]
    fn timestamps_that_run_backwards_are_ignored() {
        let mut sync = ClockSync::default();
        sync.add(Exchange { sent: 10, received: 5, replied: 4, heard: 20 });
        sync.add(Exchange { sent: 10, received: 5, replied: 5, heard: 9 });
        sync.add(Exchange { sent: 10, received: 5, replied: 50, heard: 12 });
        assert_eq!(sync.estimate(0), None);
    }

    #[test]
    fn instants_translate_both_ways() {
        let offset = Offset { nanos: -500, bound: 0 };
        assert_eq!(offset.to_agent(1_000), 1_500);
        assert_eq!(offset.to_coordinator(1_500), 1_000);
        assert_eq!(offset.to_coordinator(100), 0);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_always_within_the_bound(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            trips in prop::collection::vec((0_u64..10_000_000, 0_u64..1_000_000, 0_u64..10_000_000), 1..100),
        ) {
            let mut sync = ClockSync::default();
            let mut now = 2_000_000_000_000;
            for (there, held, back) in trips {
                let exchange = exchange(offset, now, there, held, back);
                sync.add(exchange);
                now = exchange.heard + 1;
                let estimate = sync.estimate(now).unwrap();
                prop_assert!(estimate.nanos.abs_diff(offset) <= estimate.bound, "{estimate:?}");
            }
        }
    }
}
