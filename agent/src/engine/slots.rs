//! A worker's connection slots: where each stands, and when it must be looked at.
//!
//! Times are no timers: every slot has at most one instant at which something is due (a timeout), and the worker's tick
//! looks for those that have passed. The instants lie side by side in memory, so that a look at thousands is cheap. What
//! is due is thus noticed up to one tick late, never early.

use std::{net::SocketAddr, task::Waker};

use super::{lookup::Lookup, ready::Ready};
use crate::http::{connect::Connecting, exchange::Exchange};

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// A place for one connection.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) waker: Waker,
    /// It had a working connection.
    pub(super) established: bool,
}

/// Where a slot stands. The large ones are boxed: most memory is in connections that are open.
#[derive(Debug)]
pub(super) enum State {
    /// Nobody uses it.
    Free,
    /// For its turn to connect.
    Queued(Purpose),
    /// The target's name is being looked up.
    Resolving(Box<Lookup>, Purpose),
    /// A connection attempt is under way.
    Connecting(Box<Attempt>),
    /// A request is on the connection.
    Busy(Box<Connection>),
    /// The connection waits for a request of whatever phase.
    Idle(Box<Connection>),
    /// The connection waits for the end of its lane's pause.
    Thinking(Box<Connection>),
    /// The connection is there to be there.
    Held(Box<Connection>),
}

/// What a connection is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For this lane of the closed model, which has a claim on a request.
    Lane {
        /// Its phase.
        phase: usize,
        /// Its place among the worker's.
        lane: u32,
    },
    /// For whichever request of this phase of the open model has waited longest.
    Open {
        /// The phase.
        phase: usize,
    },
    /// To be held.
    Hold,
}

impl Purpose {
    /// Whether it is one of this phase's.
    pub(super) fn is_of(self, wanted: usize) -> bool {
        matches!(self, Self::Lane { phase, .. } | Self::Open { phase } if phase == wanted)
    }
}

/// A connection attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) connecting: Connecting,
    pub(super) address: SocketAddr,
    pub(super) began_ns: u64,
    pub(super) purpose: Purpose,
}

/// A connection, with the request on it now or last.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) exchange: Exchange,
    pub(super) address: SocketAddr,
    /// Requests begun on it.
    pub(super) used: u64,
    /// Where it stands among the idle ones.
    pub(super) place: usize,
    pub(super) request: Request,
}

/// A request that is begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) order: Order,
    pub(super) kind: usize,
    pub(super) sent_ns: u64,
    /// It is in the accounts as started.
    pub(super) counted: bool,
}

/// A request that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) phase: usize,
    /// In the closed model, whose it is.
    pub(super) lane: u32,
    pub(super) intended_ns: u64,
}

/// All slots of a worker.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    due: Vec<u64>,
    /// Those that are free; the last one freed is the first to be used again.
    free: Vec<usize>,
}

impl Slots {
    /// A slot that nobody uses.
    pub(super) fn take_free(&mut self, ready: &mut Ready) -> usize {
        self.free.pop().unwrap_or_else(|| {
            let waker = ready.add();
            self.slots.push(Slot { state: State::Free, waker, established: false });
            self.due.push(NEVER);
            self.slots.len() - 1
        })
    }

    pub(super) fn get(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    pub(super) fn state(&self, index: usize) -> &State {
        &self.slots[index].state
    }

    /// Changes a slot's state, with when it is due next, and gives back the old one.
    pub(super) fn set(&mut self, index: usize, state: State, due: Option<u64>) -> State {
        self.due[index] = due.unwrap_or(NEVER);
        if matches!(state, State::Free) {
            self.free.push(index);
        }
        std::mem::replace(&mut self.slots[index].state, state)
    }

    /// The slot's connection gets a request.
    pub(super) fn engage(&mut self, index: usize) {
        self.change(index, State::Busy);
    }

    /// The slot's connection has no request any more, and nothing is due.
    pub(super) fn rest(&mut self, index: usize, state: impl FnOnce(Box<Connection>) -> State) {
        self.due[index] = NEVER;
        self.change(index, state);
    }

    fn change(&mut self, index: usize, to: impl FnOnce(Box<Connection>) -> State) {
        let state = &mut self.slots[index].state;
        *state = match std::mem::replace(state, State::Free) {
            State::Busy(it) | State::Idle(it) | State::Thinking(it) | State::Held(it) => to(it),
            other => other,
        };
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
}
