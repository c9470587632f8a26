//! The connection attempts of a worker: which slot's turn it is, how many are under way, which are done.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
};

use super::{
    route::Route,
    slots::{Slots, State},
};

/// So many attempts of a worker are under way at once. A target's queue for new connections is often 128 long; what finds
/// it full is dropped by the kernel and tried again only after a second.
const MAX_UNDER_WAY: usize = 128;

/// Slots on their way to a connection.
#[derive(Debug)]
pub(super) struct Opening {
    /// Slots in state `Queued`. At most one entry per slot.
    queue: VecDeque<usize>,
    /// Slots in state `Connecting`.
    under_way: Vec<usize>,
    route: Route,
}

impl Opening {
    pub(super) fn new(route: Route) -> Self {
        Self { queue: VecDeque::new(), under_way: Vec::with_capacity(MAX_UNDER_WAY), route }
    }

    /// Puts a slot at the end of the queue.
    pub(super) fn enqueue(&mut self, index: usize) {
        self.queue.push_back(index);
    }

    /// The slot that may connect now, with the pair of addresses to use.
    pub(super) fn next(&mut self) -> Option<(usize, (SocketAddr, Option<IpAddr>))> {
        if self.under_way.len() >= MAX_UNDER_WAY {
            return None;
        }
        let index = self.queue.pop_front()?;
        Some((index, self.route.next()))
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
