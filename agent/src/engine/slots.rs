//! A worker's connection slots: where each stands, and when it must be looked at.
//!
//! Times are no timers: every slot has at most one instant at which something is due (opening, a timeout, the end of a
//! pause), and the worker's tick looks for those that have passed. The instants lie side by side in memory, so that a
//! look at thousands is cheap. What is due is thus noticed up to one tick late, never early.

use std::{net::SocketAddr, sync::Arc, task::Waker};

use super::ready::Ready;
use crate::http::{connect::Connecting, exchange::Exchange};

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// One of the connections the plan asks for: it is opened, used, and opened again when it was closed.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) waker: Waker,
    /// When the next request was wanted. `None`: as soon as the connection stands.
    pub(super) intended: Option<u64>,
    /// Connection attempts that failed since the last success.
    pub(super) failures: u32,
    /// It had a working connection.
    pub(super) established: bool,
}

/// Where a slot stands. The large ones are boxed: most memory is in connections that are open.
#[derive(Debug)]
pub(super) enum State {
    /// Until it is due to open; without a claim on a request.
    Waiting,
    /// For its turn to connect; with a claim.
    Queued,
    /// A connection attempt is under way; with a claim.
    Connecting(Box<Attempt>),
    /// A request is on the connection.
    Busy(Box<Busy>),
    /// There is nothing more to do.
    Done,
}

/// A connection attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) connecting: Connecting,
    pub(super) address: SocketAddr,
    pub(super) began_ns: u64,
}

/// A connection with a request on it.
#[derive(Debug)]
pub(super) struct Busy {
    pub(super) exchange: Exchange,
    pub(super) address: SocketAddr,
    pub(super) kind: usize,
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
    /// The request is in the accounts as started.
    pub(super) counted: bool,
}

/// All slots of a worker.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    due: Vec<u64>,
    live: usize,
    waiting: usize,
}

impl Slots {
    /// As many slots as `opens_at` has times, each waiting for its own.
    pub(super) fn new(opens_at: Vec<u64>, ready: &Arc<Ready>) -> Self {
        let slots: Vec<Slot> = (0..opens_at.len())
            .map(|index| Slot {
                state: State::Waiting,
                waker: ready.waker(index),
                intended: None,
                failures: 0,
                established: false,
            })
            .collect();
        Self { live: slots.len(), waiting: slots.len(), slots, due: opens_at }
    }

    pub(super) fn get(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    pub(super) fn state(&self, index: usize) -> &State {
        &self.slots[index].state
    }

    /// Changes a slot's state, with when it is due next, and gives back the old one.
    pub(super) fn set(&mut self, index: usize, state: State, due: Option<u64>) -> State {
        self.waiting += usize::from(matches!(state, State::Waiting));
        self.live -= usize::from(matches!(state, State::Done));
        self.due[index] = due.unwrap_or(NEVER);
        let old = std::mem::replace(&mut self.slots[index].state, state);
        self.waiting -= usize::from(matches!(old, State::Waiting));
        self.live += usize::from(matches!(old, State::Done));
        old
    }

    /// Changes only when a slot is due.
    pub(super) fn set_due(&mut self, index: usize, due: u64) {
        self.due[index] = due;
    }

    /// The first slot from `from` on that is due.
    pub(super) fn next_due(&self, from: usize, now_ns: u64) -> Option<usize> {
        self.due[from..].iter().position(|due| *due <= now_ns).map(|found| from + found)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Slots that have something to do or to wait for.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Slots that wait for when they are due to open.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
}
