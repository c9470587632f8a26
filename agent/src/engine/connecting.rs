//! A connection until it stands: its turn, the attempt, and what comes of it.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use inrush_common::{
    outcome::{ErrorClass, Outcome},
    stats::Sample,
};
use tokio::net::TcpStream;

use super::{
    phase::Model,
    slots::{Attempt, Connection, Order, Purpose, Request, State},
    traffic::Traffic,
};
use crate::http::{
    classify,
    connect::{self, Connecting},
};

/// A connection that could not be made.
#[derive(Debug)]
struct Unmade {
    class: ErrorClass,
    /// In words, with where it was to go.
    text: String,
    began_ns: u64,
}

impl Unmade {
    fn new(address: SocketAddr, began_ns: u64, error: &io::Error) -> Self {
        let class = classify::connect(error);
        let text = format!("{address}: {} ({class})", connect::describe(error));
        Self { class, text, began_ns }
    }

    fn unresolved(words: &str, began_ns: u64) -> Self {
        let class = ErrorClass::DnsFailed;
        Self { class, text: format!("{words} ({class})"), began_ns }
    }
}

impl Traffic {
    /// The slot waits for its turn to connect.
    pub(super) fn enqueue(&mut self, index: usize, purpose: Purpose) {
        self.slots.set(index, State::Queued(purpose), None);
        self.opening.enqueue(index);
    }

    /// Goes on with the attempts that have ended, and begins others.
    pub(super) fn open_more(&mut self) -> io::Result<()> {
        for index in self.opening.answered(&self.slots)? {
            if let State::Connecting(attempt) = self.slots.state(index) {
                let result = attempt.connecting.result();
                self.attempted(index, result);
                self.drive(index);
            }
        }
        self.connect_queued();
        Ok(())
    }

    fn connect_queued(&mut self) {
        loop {
            // Those that are held are opened when nobody else has a use for the turn.
            if self.to_hold > 0 && self.opening.is_queue_empty() {
                self.to_hold -= 1;
                let index = self.slots.take_free(&mut self.ready);
                self.enqueue(index, Purpose::Hold);
            }
            let timeline = self.timeline;
            let Some((index, now)) = self.opening.next(|| timeline.now_ns()) else { return };
            self.connect(index, now);
        }
    }

    fn connect(&mut self, index: usize, now: u64) {
        let State::Queued(purpose) = *self.slots.state(index) else { return };
        self.shared.reach.attempt(now);
        if let Purpose::Lane { phase, lane } = purpose {
            self.lane_connects(phase, lane, now);
        }
        let Some(lookups) = &self.shared.lookups else {
            let pair = self.route.next();
            self.opening.began(index);
            return self.attempt(index, purpose, pair, now);
        };
        match lookups.begin() {
            Ok(lookup) => {
                self.opening.began(index);
                let due = now.saturating_add(self.connect_timeout_ns);
                self.slots.set(index, State::Resolving(Box::new(lookup), purpose), Some(due));
                self.drive(index);
            }
            Err(words) => {
                self.connect_failed(index, purpose, Unmade::unresolved(&words, now));
            }
        }
    }

    /// The target's name was looked up, or cannot be.
    pub(super) fn resolved(&mut self, index: usize, answer: Result<Vec<SocketAddr>, String>) {
        let State::Resolving(lookup, purpose) =
            self.slots.set(index, State::Queued(Purpose::Hold), None)
        else {
            unreachable!("only a slot that looks a name up has an answer")
        };
        let now = self.timeline.now_ns();
        let pair = answer.and_then(|addresses| {
            let pair = self.route.next_of(&addresses);
            pair.ok_or_else(|| {
                "it has no address of a family that was there at the start".to_owned()
            })
        });
        match pair {
            Ok(pair) => self.attempt(index, purpose, pair, now),
            Err(words) => {
                self.opening.ended(index);
                let words = format!("{} does not resolve: {words}", lookup.host());
                self.connect_failed(index, purpose, Unmade::unresolved(&words, now));
            }
        }
    }

    /// Begins the attempt of a slot that has its turn.
    fn attempt(
        &mut self,
        index: usize,
        purpose: Purpose,
        (address, source): (SocketAddr, Option<IpAddr>),
        now: u64,
    ) {
        match Connecting::begin(address, source) {
            Ok(connecting) => {
                let attempt = Attempt { connecting, address, began_ns: now, purpose };
                let due = now.saturating_add(self.connect_timeout_ns);
                self.slots.set(index, State::Connecting(Box::new(attempt)), Some(due));
                self.drive(index);
            }
            Err(error) => {
                self.opening.ended(index);
                self.stats.connections.addresses.failed(address);
                self.connect_failed(index, purpose, Unmade::new(address, now, &error));
            }
        }
    }

    /// The slot's attempt has ended.
    pub(super) fn attempted(&mut self, index: usize, result: io::Result<()>) {
        self.opening.ended(index);
        let State::Connecting(attempt) = self.slots.set(index, State::Queued(Purpose::Hold), None)
        else {
            unreachable!("only a slot that connects has an attempt")
        };
        let Attempt { connecting, address, began_ns, purpose } = *attempt;
        let reset = result.as_ref().is_err_and(connect::was_made);
        if let Err(error) = result
            && !reset
        {
            self.stats.connections.addresses.failed(address);
            return self.connect_failed(index, purpose, Unmade::new(address, began_ns, &error));
        }
        let now = self.timeline.now_ns();
        let connect_ns = now.saturating_sub(began_ns);
        let stream = connecting.into_stream();
        match purpose {
            Purpose::Lane { phase, lane } => {
                self.install(index, stream, address, connect_ns, State::Busy);
                self.connected_lane(index, phase, lane, now);
            }
            Purpose::Open { phase } => {
                self.install(index, stream, address, connect_ns, State::Busy);
                self.opened_for(phase, false);
                if !self.begin_waiting(index, phase) {
                    self.release(index);
                }
            }
            Purpose::Hold => {
                self.install(index, stream, address, connect_ns, State::Held);
                self.held += 1;
            }
        }
        if let State::Busy(connection) = &mut self.slots.get(index).state
            && reset
        {
            connection.exchange.was_reset();
        }
    }

    fn connected_lane(&mut self, index: usize, phase: usize, lane: u32, now: u64) {
        if now >= self.phases[phase].ends_ns {
            self.phases[phase].budget.release();
            self.release(index);
        } else {
            self.begin_of_lane(index, phase, lane, now);
        }
    }

    /// Puts a connection that stands into the slot, and into the accounts.
    pub(super) fn install(
        &mut self,
        index: usize,
        stream: TcpStream,
        address: SocketAddr,
        connect_ns: u64,
        state: impl FnOnce(Box<Connection>) -> State,
    ) {
        self.shared.reach.made();
        self.open += 1;
        let slot = self.slots.get(index);
        let connections = &mut self.stats.connections;
        connections.opened += 1;
        connections.established += u64::from(!std::mem::replace(&mut slot.established, true));
        connections.peak = connections.peak.max(self.open);
        connections.connect.record(connect_ns);
        connections.addresses.opened(address);
        let order = Order { phase: 0, lane: 0, intended_ns: 0 };
        let connection = Connection {
            exchange: self.setup.exchange(stream),
            address,
            used: 0,
            place: 0,
            request: Request { order, kind: 0, sent_ns: 0, counted: false },
        };
        self.slots.set(index, state(Box::new(connection)), None);
    }

    /// The request that the connection was for fails with it.
    fn connect_failed(&mut self, index: usize, purpose: Purpose, unmade: Unmade) {
        let now = self.timeline.now_ns();
        let Unmade { class, text, began_ns } = unmade;
        self.stats.connections.failed += 1;
        self.slots.set(index, State::Free, None);
        let wanted = match purpose {
            Purpose::Lane { phase, lane } => {
                Some((phase, self.lane_failed(phase, lane, now).unwrap_or(began_ns)))
            }
            Purpose::Open { phase } => {
                self.opened_for(phase, true).map(|intended_ns| (phase, intended_ns))
            }
            Purpose::Hold => {
                self.hold_again(now);
                None
            }
        };
        if let Some((phase, intended_ns)) = wanted {
            let sample = Sample {
                outcome: Outcome::Error(class),
                response_time: now.saturating_sub(intended_ns),
                service_time: None,
                schedule_lag: None,
                ttfb: None,
                bytes_out: 0,
                bytes_in: 0,
            };
            let stats = &mut self.stats.phases[phase];
            let kind = self.phases[phase].budget.begin(stats);
            stats.requests[kind].record(&sample);
            stats.requests[kind].keep_example(class, now, || text.clone());
            self.look_through(phase, now);
        }
        self.last_connect_error = Some(text);
        // Others may wait for a connection still, and nothing else wakes the worker for them.
        self.again = true;
    }

    /// Connections that nobody of this phase needs any more are not opened, and the claims for them are given back.
    pub(super) fn stop_opening_for(&mut self, phase: usize) {
        for index in 0..self.slots.len() {
            let purpose = match self.slots.state(index) {
                State::Queued(purpose) | State::Resolving(_, purpose) => *purpose,
                State::Connecting(attempt) => attempt.purpose,
                _ => continue,
            };
            if !purpose.is_of(phase) {
                continue;
            }
            self.opening.ended(index);
            self.slots.set(index, State::Free, None);
            match &self.phases[phase].model {
                Model::Closed(_) => self.phases[phase].budget.release(),
                Model::Open(_) => drop(self.opened_for(phase, false)),
            }
        }
        let slots = &self.slots;
        self.opening.retain(|index| matches!(slots.state(index), State::Queued(_)));
    }
}
