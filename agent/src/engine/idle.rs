//! Connections without a request: idle, held, and ended.

use std::collections::VecDeque;

use super::{
    alarms::Alarm,
    phase::Stage,
    slots::{Connection, Purpose, State},
    traffic::Traffic,
};

/// So long a connection that has carried its last request is left open, for the target to close it first.
const LINGER_NS: u64 = 50_000_000;

/// So many of them at most; when there are more the oldest is closed.
pub(crate) const MOST_LINGERING: usize = 256;

/// A held connection that the target closed, or that could not be opened, is opened again after this time.
const HOLD_PAUSE_NS: u64 = 1_000_000_000;

/// Connections that have carried their last request, and said so.
///
/// Who closes first keeps the pair of ports for a minute (`TIME_WAIT`). A client has some 28,000 ports for a target and is
/// soon at the end of them; the target has only the one, which costs it nothing. So the target gets its chance.
#[derive(Debug, Default)]
pub(super) struct Lingering(VecDeque<(u64, Box<Connection>)>);

impl Lingering {
    fn add(&mut self, now_ns: u64, connection: Box<Connection>) {
        if self.0.len() == MOST_LINGERING {
            self.0.pop_front();
        }
        self.0.push_back((now_ns.saturating_add(LINGER_NS), connection));
    }

    /// Closes those that had their time.
    pub(super) fn expire(&mut self, now_ns: u64) {
        while self.0.front().is_some_and(|(until_ns, _)| *until_ns <= now_ns) {
            self.0.pop_front();
        }
    }
}

impl Traffic {
    /// The slot's connection has no request and no lane any more: whoever waits for one gets it, and else it is idle, or
    /// closed when nobody will need it. Like all that happens to a connection, it is to be driven by the caller.
    pub(super) fn release(&mut self, index: usize) {
        if self.offer(index) {
            return;
        }
        if self.open - self.held > self.needed() {
            return self.close(index, State::Free);
        }
        self.begin_idle(index);
    }

    /// Gives the connection to whoever waits for one. False: nobody does.
    pub(super) fn offer(&mut self, index: usize) -> bool {
        self.slots.engage(index);
        for place in 0..self.open_on.len() {
            if self.begin_waiting(index, self.open_on[place]) {
                return true;
            }
        }
        let State::Busy(connection) = self.slots.state(index) else { return false };
        // The lanes of one phase each open a connection: that they do is what the phase is about.
        let from = connection.request.order.phase;
        let lane_of_another = |slot| match self.slots.state(slot) {
            State::Queued(Purpose::Lane { phase, .. }) => *phase != from,
            _ => false,
        };
        if let Some(other) = self.opening.take(lane_of_another)
            && let State::Queued(Purpose::Lane { phase, lane }) = *self.slots.state(other)
        {
            self.slots.set(other, State::Free, None);
            let now = self.timeline.now_ns();
            self.begin_of_lane(index, phase, lane, now);
            return true;
        }
        false
    }

    /// The slot's connection is idle from now on.
    pub(super) fn begin_idle(&mut self, index: usize) {
        self.slots.rest(index, State::Idle);
        if let State::Idle(connection) = &mut self.slots.get(index).state {
            connection.place = self.idle.len();
            self.idle.push(index);
        }
    }

    /// The idle connection that was used last.
    pub(super) fn take_idle(&mut self) -> Option<usize> {
        self.idle.pop()
    }

    /// How many connections phases may use at one instant from now on.
    fn needed(&self) -> u64 {
        let now: u64 = self
            .phases
            .iter()
            .filter(|phase| phase.stage == Stage::On)
            .map(|phase| phase.connections())
            .fold(0, u64::saturating_add);
        now.max(self.needed_later[self.begun])
    }

    /// Closes idle connections that nobody will need.
    pub(super) fn close_surplus(&mut self) {
        let mut surplus = (self.open - self.held).saturating_sub(self.needed());
        while surplus > 0 {
            let Some(index) = self.take_idle() else { return };
            self.close(index, State::Free);
            surplus -= 1;
        }
    }

    /// The target has ended a connection on which there was no request: that is its right, and no error.
    pub(super) fn ended_idle(&mut self, index: usize) {
        match self.slots.state(index) {
            State::Idle(connection) => {
                let place = connection.place;
                self.idle.swap_remove(place);
                if let Some(moved) = self.idle.get(place)
                    && let State::Idle(connection) = &mut self.slots.get(*moved).state
                {
                    connection.place = place;
                }
            }
            State::Thinking(connection) => {
                let order = connection.request.order;
                self.lane_lost(order);
            }
            State::Held(_) => {
                self.held -= 1;
                let now = self.timeline.now_ns();
                self.hold_again(now);
            }
            _ => {}
        }
        self.close(index, State::Free);
    }

    /// One held connection more is wanted, after a pause.
    pub(super) fn hold_again(&mut self, now: u64) {
        self.alarms.set(now.saturating_add(HOLD_PAUSE_NS), Alarm::Hold);
    }

    /// Ends the slot's connection.
    pub(super) fn close(&mut self, index: usize, state: State) {
        self.stats.connections.closed += 1;
        self.open -= 1;
        self.shared.reach.lost();
        if let State::Busy(connection) = self.slots.set(index, state, None)
            && connection.used >= self.requests_per_connection
        {
            self.lingering.add(self.timeline.now_ns(), connection);
        }
    }

    /// Ends every connection.
    pub(super) fn close_all(&mut self) {
        for index in 0..self.slots.len() {
            let open = match self.slots.state(index) {
                State::Free | State::Queued(_) | State::Resolving(..) | State::Connecting(_) => {
                    false
                }
                State::Busy(_) | State::Idle(_) | State::Thinking(_) | State::Held(_) => true,
            };
            if open {
                self.close(index, State::Free);
            }
        }
        self.idle.clear();
        self.held = 0;
    }

    /// Ends the connections that carry requests of this phase.
    pub(super) fn close_busy(&mut self, phase: usize) {
        for index in 0..self.slots.len() {
            if let State::Busy(connection) = self.slots.state(index)
                && connection.request.order.phase == phase
            {
                self.close(index, State::Free);
            }
        }
    }
}
