//! Heartbeats, lease and clock: what shows that the other side lives, and how its clock stands.

use std::time::{Duration, Instant};

use inrush_common::units::Nanos;
use inrush_proto::v1;

use super::clock_sync::{ClockSync, Exchange, Offset};
use crate::clock;

/// Right after a welcome the clocks are compared this often, so that a start soon after is a sharp one.
const BURST: u32 = 8;
const BURST_EVERY: Duration = Duration::from_millis(5);

/// Shorter periods in a welcome are taken for this: a heartbeat must not become a load of its own.
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// The life signs of one coordinator after the other.
#[derive(Debug)]
pub(super) struct Pulse {
    clock: ClockSync,
    terms: Option<Terms>,
    heard_at: Instant,
    /// The lease ran out since something was heard last.
    expired: bool,
    next_beat: Instant,
    burst_left: u32,
    due: bool,
}

#[derive(Debug, Clone, Copy)]
struct Terms {
    lease: Duration,
    heartbeat: Duration,
}

impl Pulse {
    /// Of nobody yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            clock: ClockSync::default(),
            terms: None,
            heard_at: now,
            expired: false,
            next_beat: now,
            burst_left: 0,
            due: false,
        }
    }

    /// A new stream begins on these terms. Its other end may be another process with another clock.
    pub(super) fn welcomed(&mut self, welcome: &v1::Welcome, now: Instant) {
        let heartbeat = Duration::from_nanos(welcome.heartbeat_ns).max(SHORTEST_HEARTBEAT);
        let lease = Duration::from_nanos(welcome.lease_ns).max(2 * heartbeat);
        self.terms = Some(Terms { lease, heartbeat });
        self.clock.reset();
        self.burst_left = BURST;
        self.next_beat = now;
        self.beat(now);
        self.heard(now);
    }

    /// The stream is gone. The lease goes on.
    pub(super) fn lost(&mut self) {
        self.clock.reset();
        self.due = false;
    }

    /// Something came from the coordinator.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.expired = false;
    }

    /// A heartbeat was answered.
    pub(super) fn answered(&mut self, reply: v1::HeartbeatReply) {
        self.clock.add(Exchange {
            sent: reply.agent_sent_ns,
            received: reply.received_ns,
            replied: reply.sent_ns,
            heard: clock::monotonic_ns(),
        });
    }

    /// Whether the clocks were compared on this stream.
    pub(super) fn is_synchronised(&self) -> bool {
        self.offset().is_some()
    }

    /// The best estimate now.
    pub(super) fn offset(&self) -> Option<Offset> {
        self.clock.estimate(clock::monotonic_ns())
    }

    /// When the lease ends, unless it ended already.
    pub(super) fn lease_ends_at(&self) -> Option<Instant> {
        let terms = self.terms.filter(|_| !self.expired)?;
        Some(self.heard_at + terms.lease)
    }

    /// The lease is over. Tells how long nothing was heard.
    pub(super) fn expire(&mut self, now: Instant) -> Nanos {
        self.expired = true;
        Nanos::from(now.saturating_duration_since(self.heard_at))
    }

    /// When the next heartbeat is due.
    pub(super) fn heartbeat_at(&self) -> Option<Instant> {
        self.terms.map(|_| self.next_beat)
    }

    /// Makes a heartbeat due if it is time.
    pub(super) fn beat(&mut self, now: Instant) {
        let Some(terms) = self.terms.filter(|_| self.next_beat <= now) else { return };
        self.due = true;
        let wait = if self.burst_left > 0 {
            self.burst_left -= 1;
            BURST_EVERY
        } else {
            terms.heartbeat
        };
        self.next_beat = now + wait;
    }

    /// Whether a heartbeat is due. At most one is: when the stream is stuck, none pile up.
    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// The heartbeat that is due, with the time of now.
    pub(super) fn take_due(&mut self) -> Option<v1::Heartbeat> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let offset = self.offset();
        Some(v1::Heartbeat {
            sent_ns: clock::monotonic_ns(),
            offset_ns: offset.map(|offset| offset.nanos),
            offset_bound_ns: offset.map_or(0, |offset| offset.bound),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(lease_ms: u64, heartbeat_ms: u64) -> v1::Welcome {
        v1::Welcome {
            lease_ns: lease_ms * 1_000_000,
            heartbeat_ns: heartbeat_ms * 1_000_000,
            forget_run: false,
            renew_in_s: None,
        }
    }

    #[test]
    fn a_welcome_is_followed_by_a_burst_and_then_by_the_agreed_beat() {
        let start = clock::now();
        let mut pulse = Pulse::new(start);
        assert_eq!(pulse.heartbeat_at(), None, "nobody to beat for");
        pulse.welcomed(&welcome(10_000, 1_000), start);
        let mut beats = 0;
        let mut now = start;
        while now - start < Duration::from_millis(900) {
            assert!(pulse.take_due().is_some());
            assert!(pulse.take_due().is_none());
            beats += 1;
            now = pulse.heartbeat_at().unwrap();
            pulse.beat(now);
        }
        assert_eq!(beats, BURST + 1);
        assert_eq!(now - start, BURST_EVERY * BURST + Duration::from_secs(1));
    }

    #[test]
    fn the_lease_ends_once_and_is_renewed_by_whatever_is_heard() {
        let start = clock::now();
        let mut pulse = Pulse::new(start);
        assert_eq!(pulse.lease_ends_at(), None);
        pulse.welcomed(&welcome(300, 100), start);
        let later = start + Duration::from_millis(200);
        pulse.heard(later);
        let end = later + Duration::from_millis(300);
        assert_eq!(pulse.lease_ends_at(), Some(end));
        assert_eq!(pulse.expire(end).to_string(), "300 ms");
        assert_eq!(pulse.lease_ends_at(), None);
        pulse.heard(end);
        assert!(pulse.lease_ends_at().is_some());
    }

    #[test]
    fn a_welcome_without_times_does_not_make_a_storm() {
        let start = clock::now();
        let mut pulse = Pulse::new(start);
        pulse.welcomed(&welcome(0, 0), start);
        assert!(pulse.lease_ends_at().unwrap() >= start + 2 * SHORTEST_HEARTBEAT);
    }
}
