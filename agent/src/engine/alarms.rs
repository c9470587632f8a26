//! What a worker has to do at an instant of the run, whatever the target does.

use std::{cmp::Reverse, collections::BinaryHeap};

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// Nothing of this phase starts any more.
    PhaseEnds(usize),
    /// What of this phase is in flight is given up.
    GraceEnds(usize),
    /// This phase begins.
    PhaseBegins(usize),
    /// A lane of the closed model turns on, or goes on after a pause.
    Lane {
        /// Its phase.
        phase: usize,
        /// Its place among the worker's.
        lane: u32,
    },
    /// A held connection is opened, again or for the first time.
    Hold,
}

/// Alarms by their instants. Of two at one instant an end comes before a beginning.
///
/// There are at most two for each phase, and one for each lane and each held connection.
#[derive(Debug, Default)]
pub(super) struct Alarms(BinaryHeap<Reverse<(u64, Alarm)>>);

impl Alarms {
    pub(super) fn set(&mut self, at_ns: u64, alarm: Alarm) {
        self.0.push(Reverse((at_ns, alarm)));
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The next one, if it is due, with its instant.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(u64, Alarm)> {
        let due = self.next_due().is_some_and(|at_ns| at_ns <= now_ns);
        if due { self.0.pop().map(|Reverse(next)| next) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_come_in_the_order_of_their_instants_and_not_before() {
        let mut alarms = Alarms::default();
        alarms.set(20, Alarm::PhaseBegins(1));
        alarms.set(30, Alarm::Lane { phase: 1, lane: 7 });
        alarms.set(20, Alarm::PhaseEnds(0));
        alarms.set(10, Alarm::Hold);
        assert_eq!(alarms.next_due(), Some(10));
        assert_eq!(alarms.take_due(9), None);
        let due: Vec<_> = std::iter::from_fn(|| alarms.take_due(25)).collect();
        assert_eq!(
            due,
            [(10, Alarm::Hold), (20, Alarm::PhaseEnds(0)), (20, Alarm::PhaseBegins(1))]
        );
        assert_eq!(alarms.next_due(), Some(30));
    }
}
