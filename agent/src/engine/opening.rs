//! The connection attempts of a worker: which slot's turn it is, how many are under way, which are done.

use std::{collections::VecDeque, io, sync::Arc};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
};

use super::{
    pace::Pace,
    slots::{Slots, State},
};

/// So many attempts of a worker are under way at once. A target's queue for new connections is often 128 long; what finds
/// it full is dropped by the kernel and tried again only after a second. This is the only limit of a plan without a
/// `connect_rate`: connections are opened as fast as the target takes them.
const MAX_UNDER_WAY: usize = 128;

/// Slots on their way to a connection.
#[derive(Debug)]
pub(super) struct Opening {
    /// Slots in state `Queued`. At most one entry per slot.
    queue: VecDeque<usize>,
    /// Slots in state `Connecting` or `Resolving`.
    under_way: Vec<usize>,
    pace: Option<Arc<Pace>>,
    /// The next opening's instant, once it is taken.
    at_ns: Option<u64>,
}

impl Opening {
    pub(super) fn new(pace: Option<Arc<Pace>>) -> Self {
        let under_way = Vec::with_capacity(MAX_UNDER_WAY);
        Self { queue: VecDeque::new(), under_way, pace, at_ns: None }
    }

    /// Puts a slot at the end of the queue.
    pub(super) fn enqueue(&mut self, index: usize) {
        self.queue.push_back(index);
    }

    /// The slot that may connect now, and what the clock said.
    pub(super) fn next(&mut self, clock: impl Fn() -> u64) -> Option<(usize, u64)> {
        if self.is_held_up() {
            return None;
        }
        let now = clock();
        if let Some(pace) = &self.pace {
            let taken = self.at_ns.filter(|at| !Pace::is_stale(*at, now));
            let at = taken.unwrap_or_else(|| pace.take(now));
            if at > now {
                self.at_ns = Some(at);
                return None;
            }
            self.at_ns = None;
        }
        self.queue.pop_front().map(|index| (index, now))
    }

    /// When the next slot may connect, if it is only the time that it waits for.
    pub(super) fn next_at_ns(&self) -> Option<u64> {
        if self.is_held_up() { None } else { self.at_ns }
    }

    fn is_held_up(&self) -> bool {
        self.queue.is_empty() || self.under_way.len() >= MAX_UNDER_WAY
    }

    /// The slot's attempt is under way.
    pub(super) fn began(&mut self, index: usize) {
        self.under_way.push(index);
    }

    /// The slot's attempt has ended.
    pub(super) fn ended(&mut self, index: usize) {
        if let Some(place) = self.under_way.iter().position(|other| *other == index) {
            self.under_way.swap_remove(place);
        }
    }

    /// Whether nobody waits for a turn.
    pub(super) fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Only these wait still.
    pub(super) fn retain(&mut self, waits: impl Fn(usize) -> bool) {
        self.queue.retain(|index| waits(*index));
    }

    /// Takes the first of these out of the queue: it does not need to connect any more.
    pub(super) fn take(&mut self, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let place = self.queue.iter().position(|index| wanted(*index))?;
        self.queue.remove(place)
    }

    /// The slots whose attempt has ended, one way or the other.
    ///
    /// The runtime tells too, but first come, first served: behind thousands of busy connections an attempt that took
    /// microseconds would look as if it had taken as long as all of them, and opening the rest would take for ever.
    pub(super) fn answered(&self, slots: &Slots) -> io::Result<Vec<usize>> {
        if self.under_way.is_empty() {
            return Ok(Vec::new());
        }
        let attempts = self.under_way.iter().filter_map(|index| match slots.state(*index) {
            State::Connecting(attempt) => Some((*index, attempt.connecting.stream())),
            _ => None,
        });
        let (indices, mut sockets): (Vec<usize>, Vec<PollFd<'_>>) =
            attempts.map(|(index, stream)| (index, PollFd::new(stream, PollFlags::OUT))).unzip();
        let at_once = Timespec::default();
        retry_on_intr(|| poll(&mut sockets, Some(&at_once)))?;
        let answered = indices.into_iter().zip(&sockets);
        Ok(answered
            .filter(|(_, socket)| !socket.revents().is_empty())
            .map(|(index, _)| index)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use inrush_common::schedule::Rate;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_paced_slot_waits_for_its_instant_and_says_when_that_is() {
        let pace = Arc::new(Pace::new(Rate::per_second(100).unwrap()));
        let mut opening = Opening::new(Some(Arc::clone(&pace)));
        assert_eq!((opening.next(|| 0), opening.next_at_ns()), (None, None), "nobody waits");
        opening.enqueue(7);
        opening.enqueue(8);
        assert_eq!(opening.next(|| 0), Some((7, 0)));
        assert_eq!((opening.next(|| 5 * MS), opening.next_at_ns()), (None, Some(10 * MS)));
        // Another worker takes the instant after that.
        assert_eq!(pace.take(5 * MS), 20 * MS);
        assert_eq!(opening.next(|| 11 * MS), Some((8, 11 * MS)));
        assert_eq!(opening.next_at_ns(), None);
        opening.enqueue(9);
        assert_eq!((opening.next(|| 12 * MS), opening.next_at_ns()), (None, Some(30 * MS)));
    }

    #[test]
    fn attempts_under_way_hold_up_others_with_and_without_a_pace() {
        let pace = Arc::new(Pace::new(Rate::per_second(1_000_000).unwrap()));
        for pace in [None, Some(pace)] {
            let mut opening = Opening::new(pace);
            (0..=MAX_UNDER_WAY).for_each(|index| opening.enqueue(index));
            for index in 0..MAX_UNDER_WAY {
                assert_eq!(opening.next(|| 10 * MS), Some((index, 10 * MS)));
                opening.began(index);
            }
            assert_eq!((opening.next(|| 10 * MS), opening.next_at_ns()), (None, None));
            opening.ended(0);
            assert_eq!(opening.next(|| 10 * MS), Some((MAX_UNDER_WAY, 10 * MS)));
        }
    }
}
