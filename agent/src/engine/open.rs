//! The open model: requests start on a schedule, whatever the responses do.
//!
//! A request that is due takes a connection that is idle, the one used last, or else has one opened. It is not tied to the
//! connection that was opened for it: whichever is free first takes the request that has waited longest.

use std::{collections::VecDeque, sync::Arc};

use inrush_common::{
    plan::{ArrivalProcess, OpenLoad, Overflow},
    schedule::{ArrivalKind, Arrivals, ArrivalsError, Seed, Worker},
    stats::Histogram,
};

use super::{
    gaps::Gaps,
    phase::{Model, Stage},
    share::Part,
    slots::{Order, Purpose, State},
    traffic::Traffic,
};

/// So many requests of a phase at most are sent in one turn of a worker: responses must not wait for longer.
const STARTS_PER_TURN: usize = 32;

/// So many connections of a phase at most wait for their turn to connect: more attempts than that are not under way at once.
const MOST_OPENING: u64 = 128;

/// A worker's part of an open phase.
#[derive(Debug)]
pub(super) struct Open {
    arrivals: Arrivals,
    starts_ns: u64,
    /// When the requests that are due and not begun were wanted; the one that waits longest is the first. What bounds it is
    /// the number of requests of the phase, at 8 bytes each; with `on_overflow = "drop"` it is `max_in_flight`.
    waiting: VecDeque<u64>,
    /// Connections being opened for it.
    opening: u64,
    max_in_flight: u64,
    on_overflow: Overflow,
    gaps: Gaps,
}

impl Open {
    /// # Errors
    /// When more arrivals are dealt than the load's rate makes.
    pub(super) fn new(
        load: &OpenLoad,
        part: Part,
        (seed, phase): (u64, usize),
        starts_ns: u64,
        ends_ns: u64,
    ) -> Result<Self, ArrivalsError> {
        let kind = match load.arrivals {
            ArrivalProcess::Uniform => ArrivalKind::Uniform,
            ArrivalProcess::Poisson => ArrivalKind::Poisson(Seed {
                plan: seed,
                phase: u32::try_from(phase).expect("a plan has fewer phases than that"),
            }),
        };
        let worker = part.worker().unwrap_or(Worker::ALONE);
        let profile = Arc::new(load.profile.clone());
        let arrivals = Arrivals::new(Arc::clone(&profile), kind, load.slots.clone(), worker)?;
        let gaps = Gaps::new(load, profile, arrivals.remaining(), (starts_ns, ends_ns));
        Ok(Self {
            arrivals,
            starts_ns,
            waiting: VecDeque::new(),
            opening: 0,
            max_in_flight: part.connections(),
            on_overflow: load.on_overflow,
            gaps,
        })
    }

    /// When the next request is due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.arrivals.peek().map(|arrival| self.starts_ns.saturating_add(arrival.due_ns))
    }

    /// The next request that is due: when it was.
    fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.next_due().filter(|due_ns| *due_ns <= now_ns)?;
        self.arrivals.next();
        Some(due_ns)
    }

    /// Whether requests wait to be begun.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the requests that wait.
    pub(super) fn clear_waiting(&mut self) {
        self.waiting = VecDeque::new();
    }

    /// Takes the request that has waited longest, if one more may be in flight.
    fn take_waiting(&mut self, in_flight: u64) -> Option<u64> {
        if in_flight < self.max_in_flight { self.waiting.pop_front() } else { None }
    }

    /// How many more connections it needs than are idle or being opened.
    fn lacking(&self, in_flight: u64) -> u64 {
        let may_start = self.max_in_flight.saturating_sub(in_flight);
        let wanted = may_start.min(self.waiting.len() as u64).min(MOST_OPENING);
        wanted.saturating_sub(self.opening)
    }

    /// A request that was wanted at `due_ns` has been begun at `sent_ns`.
    pub(super) fn started(&mut self, due_ns: u64, sent_ns: u64, gaps: &mut Histogram) {
        self.gaps.started(due_ns, sent_ns, gaps);
    }
}

impl Traffic {
    /// Takes in what is due of all open phases.
    pub(super) fn take_due(&mut self, now: u64) {
        for place in 0..self.open_on.len() {
            let phase = self.open_on[place];
            let entry = &mut self.phases[phase];
            let Model::Open(open) = &mut entry.model else { continue };
            while let Some(due_ns) = open.take_due(now) {
                self.stats.worker_lag.record(now - due_ns);
                let taken = entry.in_flight + open.waiting.len() as u64;
                if open.on_overflow == Overflow::Drop && taken >= open.max_in_flight {
                    entry.budget.skip(&mut self.stats.phases[phase]);
                } else {
                    open.waiting.push_back(due_ns);
                }
            }
        }
    }

    /// Begins what waits as far as there are connections, and asks for more. True: there is more to begin.
    pub(super) fn start_waiting(&mut self) -> bool {
        let mut again = false;
        for place in 0..self.open_on.len() {
            // A phase may come to its end on the way.
            let Some(phase) = self.open_on.get(place).copied() else { break };
            let mut starts = 0;
            while starts < STARTS_PER_TURN && self.start_one(phase) {
                starts += 1;
            }
            again |= starts == STARTS_PER_TURN;
            self.open_for(phase);
        }
        again
    }

    /// Begins the request that has waited longest on an idle connection. False: there is none of the one or the other.
    fn start_one(&mut self, phase: usize) -> bool {
        let entry = &mut self.phases[phase];
        let Model::Open(open) = &mut entry.model else { return false };
        if !open.waits() || entry.in_flight >= open.max_in_flight {
            return false;
        }
        let Some(index) = self.take_idle() else { return false };
        self.slots.engage(index);
        if self.begin_waiting(index, phase) {
            self.drive(index);
        }
        true
    }

    /// Begins the request of the phase that has waited longest on a connection, if there is one.
    pub(super) fn begin_waiting(&mut self, index: usize, phase: usize) -> bool {
        let entry = &mut self.phases[phase];
        let Model::Open(open) = &mut entry.model else { return false };
        let Some(intended_ns) = open.take_waiting(entry.in_flight) else { return false };
        let now = self.timeline.now_ns();
        self.begin(index, Order { phase, lane: 0, intended_ns }, now);
        true
    }

    /// Asks for connections for the requests that wait.
    fn open_for(&mut self, phase: usize) {
        let entry = &mut self.phases[phase];
        let Model::Open(open) = &mut entry.model else { return };
        let lacking = open.lacking(entry.in_flight);
        open.opening += lacking;
        for _ in 0..lacking {
            let index = self.slots.take_free(&mut self.ready);
            self.enqueue(index, Purpose::Open { phase });
        }
    }

    /// A connection attempt for the phase has ended. When it failed, the request that has waited longest fails with it:
    /// when that was wanted.
    pub(super) fn opened_for(&mut self, phase: usize, failed: bool) -> Option<u64> {
        let Model::Open(open) = &mut self.phases[phase].model else { return None };
        open.opening -= 1;
        if failed { open.waiting.pop_front() } else { None }
    }

    /// A request of an open phase has ended.
    pub(super) fn request_is_over(&mut self, index: usize, order: Order, reusable: bool) {
        let stage = self.phases[order.phase].stage;
        if !reusable {
            self.close(index, State::Free);
        } else if !self.begin_waiting(index, order.phase) {
            if stage != Stage::On {
                self.release(index);
            } else if !self.offer(index) {
                // The phase may need it again at any time.
                self.begin_idle(index);
            }
        }
        if stage == Stage::Ending {
            let now = self.timeline.now_ns();
            self.look_through(order.phase, now);
        }
    }

    /// The connection was gone before the request had begun: it waits on, as the first.
    pub(super) fn restore(&mut self, index: usize, order: Order) {
        self.close(index, State::Free);
        if let Model::Open(open) = &mut self.phases[order.phase].model {
            open.waiting.push_front(order.intended_ns);
        }
    }
}
