//! New connections that a workload asks for beyond those it has open, and the local ports they take.
//!
//! A port is not free when its connection has ended: the side that closed first keeps it for a while (TIME_WAIT). A load that
//! opens a connection for every few requests can so run out of ports with few connections open.

use std::time::Duration;

use crate::{
    capacity::Capacity,
    plan::{Load, Phase, Workload},
    units::{Count, Nanos, nanos},
};

/// Ports that are free again so soon are not what limits a load whose rate nobody knows: one pair of addresses then carries
/// more new connections per second than an agent opens.
const SOON: Duration = Duration::from_secs(1);

/// The new connections of a workload that does not keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Churn {
    /// In all; `None`: as many as the time allows.
    pub total: Option<u64>,
    /// Per second, in millionths, at most; `None`: as fast as the target answers.
    pub rate_micro: Option<u64>,
}

/// The ports that connections take which are no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// At most so many at one instant.
    AtMost(u64),
    /// That depends on how fast the target answers.
    Unknown,
}

/// New connections need more ports than there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the load opens {} a port is in use for {hold} after its connection was closed (TIME_WAIT), and there are {ports} \
     ports × {paths} pairs of source and target address, enough for {} new connections per second: use {pairs} pairs \
     (--source-ip), set `connect_rate` to at most that, or send more requests on each connection",
    .churn.describe(),
    Count(*.sustained),
    hold = Nanos::from(*.hold)
)]
pub struct TooFast {
    /// What is wanted.
    pub churn: Churn,
    /// For how long a port is not free.
    pub hold: Duration,
    /// Ports per pair.
    pub ports: u64,
    /// Pairs of a source and a target address.
    pub paths: u64,
    /// New connections per second that this carries for ever.
    pub sustained: u64,
    /// Pairs that would do.
    pub pairs: u64,
}

impl Churn {
    /// That of `workload`; `None` when it keeps its connections.
    pub fn of(workload: &Workload) -> Option<Self> {
        let each = workload.connections.requests_per_connection?.max(1);
        let mut totals = workload.phases.iter().map(|phase| {
            let planned = phase.load.planned()?;
            // Every connection may be left with a part of its requests.
            let opened = planned.div_ceil(each).saturating_add(phase.load.connections());
            Some(opened.min(planned))
        });
        let total = totals.try_fold(0_u64, |sum, total| Some(sum.saturating_add(total?)));
        let rate_micro = match workload.connections.connect_rate {
            Some(rate) => Some(rate.micro()),
            None => scheduled_rate(&workload.phases, each),
        };
        Some(Self { total, rate_micro })
    }

    /// The ports that are not free although their connections have ended, when each is so for `hold`.
    pub fn waiting(&self, hold: Duration) -> Waiting {
        let by_rate = self.rate_micro.map(|micro| {
            let ports = u128::from(micro) * u128::from(nanos(hold)) / 1_000_000_000_000_000;
            u64::try_from(ports).unwrap_or(u64::MAX)
        });
        match (self.total, by_rate) {
            (Some(total), Some(by_rate)) => Waiting::AtMost(total.min(by_rate)),
            (None, Some(by_rate)) => Waiting::AtMost(by_rate),
            (_, None) if hold <= SOON => Waiting::AtMost(0),
            (Some(total), None) => Waiting::AtMost(total),
            (None, None) => Waiting::Unknown,
        }
    }

    /// Whether `capacity` has the ports for it over `paths` pairs of a source and a target address, beside `open`
    /// connections. What cannot be known beforehand passes.
    ///
    /// # Errors
    /// With the arithmetic.
    pub fn check(
        self,
        capacity: &Capacity,
        (open, paths): (u64, u64),
        hold: Duration,
    ) -> Result<(), TooFast> {
        let ports = capacity.ports;
        let Waiting::AtMost(waiting) = self.waiting(hold) else { return Ok(()) };
        let needed = waiting.saturating_add(open);
        // No load takes more ports than it opens connections.
        let needed = self.total.map_or(needed, |total| needed.min(total.max(open)));
        if needed <= ports.saturating_mul(paths) {
            return Ok(());
        }
        let sustained = sustained(ports.saturating_mul(paths).saturating_sub(open), hold);
        let pairs = needed.checked_div(ports).map_or(u64::MAX, |_| needed.div_ceil(ports));
        Err(TooFast { churn: self, hold, ports, paths, sustained, pairs })
    }

    fn describe(&self) -> String {
        match (self.total, self.rate_micro) {
            (_, Some(micro)) => {
                format!("up to {} new connections per second;", Count(micro.div_ceil(1_000_000)))
            }
            (Some(total), None) => {
                format!("{} new connections as fast as the target answers;", Count(total))
            }
            (None, None) => "new connections as fast as the target answers;".to_owned(),
        }
    }
}

/// New connections per second that `ports` carry for ever, when each is free again after `hold`.
pub fn sustained(ports: u64, hold: Duration) -> u64 {
    let per_second = u128::from(ports) * 1_000_000_000;
    per_second
        .checked_div(hold.as_nanos())
        .map_or(u64::MAX, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// The most connections per second, in millionths, that the schedules of open loads ask for; `None` when a phase has none.
fn scheduled_rate(phases: &[Phase], each: u64) -> Option<u64> {
    let rate = |phase: &Phase| match &phase.load {
        Load::Closed(_) => None,
        Load::Open(open) => {
            let (part, whole) = (open.slots.count(), open.slots.total().max(1));
            let micro = u128::from(open.profile.peak().micro()) * u128::from(part);
            u64::try_from(micro.div_ceil(u128::from(whole) * u128::from(each))).ok()
        }
    };
    // The sum grows only where a phase begins.
    let mut sums = phases.iter().map(|begins| {
        let together = phases.iter().filter(|phase| phase.is_on_at(begins.starts_at));
        together.map(rate).try_fold(0_u64, |sum, rate| Some(sum.saturating_add(rate?)))
    });
    sums.try_fold(0, |most, sum| Some(most.max(sum?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const LAB: Capacity = Capacity {
        workers: 2,
        files: 1_000_000,
        ports: 28_232,
        sources: 1,
        memory: None,
        cpu_quota_millis: None,
    };

    fn churn(total: Option<u64>, per_second: Option<u64>) -> Churn {
        Churn { total, rate_micro: per_second.map(|rate| rate * 1_000_000) }
    }

    #[test]
    fn no_more_connections_than_ports_fit_however_fast_they_come() {
        assert_eq!(churn(Some(28_232), None).check(&LAB, (64, 1), MINUTE), Ok(()));
        assert_eq!(churn(Some(28_232), Some(9_000)).check(&LAB, (64, 1), MINUTE), Ok(()));
    }

    #[test]
    fn more_are_refused_with_the_rate_and_the_pairs_that_would_do() {
        let refused = churn(Some(200_000), None).check(&LAB, (64, 1), MINUTE).unwrap_err();
        assert_eq!((refused.sustained, refused.pairs), (469, 8));
        let text = refused.to_string();
        assert!(text.starts_with("the load opens 200,000 new connections as fast as"), "{text}");
        assert!(text.contains("60.0 s after its connection was closed (TIME_WAIT)"), "{text}");
        assert!(text.contains("28232 ports × 1 pairs"), "{text}");
        assert!(text.contains("use 8 pairs (--source-ip)"), "{text}");
        assert!(text.contains("`connect_rate`"), "{text}");
        assert_eq!(churn(Some(200_000), None).check(&LAB, (64, 8), MINUTE), Ok(()));
        assert_eq!(churn(Some(200_000), Some(469)).check(&LAB, (64, 1), MINUTE), Ok(()));
    }

    #[test]
    fn a_rate_without_an_end_needs_the_ports_of_one_waiting_time() {
        assert_eq!(churn(None, Some(470)).check(&LAB, (32, 1), MINUTE), Ok(()));
        let refused = churn(None, Some(1_000)).check(&LAB, (0, 1), MINUTE).unwrap_err();
        assert_eq!(refused.pairs, 3);
        assert!(refused.to_string().contains("up to 1,000 new connections per second"));
    }

    #[test]
    fn ports_that_are_free_again_soon_carry_what_has_no_known_rate() {
        let second = Duration::from_secs(1);
        assert_eq!(churn(Some(200_000), None).check(&LAB, (64, 1), second), Ok(()));
        assert!(churn(None, Some(30_000)).check(&LAB, (64, 1), second).is_err());
        assert_eq!(churn(None, None).waiting(MINUTE), Waiting::Unknown);
        assert_eq!(churn(None, None).check(&LAB, (64, 1), MINUTE), Ok(()));
    }
}
