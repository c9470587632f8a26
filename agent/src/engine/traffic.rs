//! All that a worker's connections do: its slots, its phases, its accounts.
//!
//! What happens to a connection is in `connecting.rs` (until it stands), `requesting.rs` (a request on it) and `idle.rs`
//! (without one); who wants requests in `closed.rs` and `open.rs`; when phases come and go in `phases.rs`.

use std::{
    io,
    rc::Rc,
    sync::Arc,
    task::{Context, Waker},
};

use inrush_common::{schedule::ArrivalsError, stats::Stats};

use super::{
    alarms::{Alarm, Alarms},
    idle::Lingering,
    job::FirstConnection,
    opening::Opening,
    phase::{Model, Phase, Stage},
    ready::Ready,
    route::Route,
    share::Share,
    slots::{Slots, State},
    worker::Shared,
};
use crate::{
    clock,
    http::{exchange::Setup, request::Prepared},
    timeline::Timeline,
};

/// A worker's connections and accounts.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) slots: Slots,
    pub(super) ready: Ready,
    pub(super) opening: Opening,
    pub(super) route: Route,
    pub(super) alarms: Alarms,
    /// Slots with a connection that waits for a request of whatever phase; the one used last is the last.
    pub(super) idle: Vec<usize>,
    pub(super) lingering: Lingering,
    pub(super) phases: Vec<Phase>,
    /// The most connections that phases which have not begun will need at one instant, by the number of those that have.
    pub(super) needed_later: Vec<u64>,
    /// How many phases have begun.
    pub(super) begun: usize,
    /// The phases of the open model from which requests come up or wait.
    pub(super) open_on: Vec<usize>,
    pub(super) requests: Vec<Rc<Prepared>>,
    /// The same as the last on their connections; empty where connections are kept for ever.
    pub(super) last_requests: Vec<Rc<Prepared>>,
    pub(super) requests_per_connection: u64,
    pub(super) setup: Setup,
    pub(super) timeline: Timeline,
    pub(super) timeout_ns: u64,
    pub(super) connect_timeout_ns: u64,
    pub(super) grace_ns: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) stats: Stats,
    /// Connections open, those that are held included.
    pub(super) open: u64,
    /// Connections held, and those still to be opened for it.
    pub(super) held: u64,
    pub(super) to_hold: u64,
    /// A stop kept a phase from coming to its own end.
    pub(super) interrupted: bool,
    pub(super) last_connect_error: Option<String>,
    /// The worker must take another turn, and nothing else will wake it.
    pub(super) again: bool,
}

impl Traffic {
    /// # Errors
    /// When an open load has more arrivals dealt than its rate makes.
    pub(super) fn new(
        shared: &Arc<Shared>,
        share: &Share,
        timeline: Timeline,
    ) -> Result<Self, ArrivalsError> {
        let workload = &shared.workload;
        let phases = (0..workload.phases.len())
            .map(|index| Phase::new(workload, index, share.part(index)))
            .collect::<Result<Vec<_>, _>>()?;
        let requests: Vec<Rc<Prepared>> =
            workload.requests.iter().map(Prepared::new).map(Rc::new).collect();
        let limit = workload.connections.requests_per_connection;
        let last_requests = match limit {
            Some(_) => workload.requests.iter().map(Prepared::last).map(Rc::new).collect(),
            None => Vec::new(),
        };
        let largest_body = requests.iter().map(|request| request.body_len()).max().unwrap_or(0);
        let mut alarms = Alarms::default();
        for (index, phase) in phases.iter().enumerate() {
            if phase.stage == Stage::Ahead {
                alarms.set(phase.starts_ns, Alarm::PhaseBegins(index));
            }
        }
        Ok(Self {
            slots: Slots::default(),
            ready: Ready::new(),
            opening: Opening::new(shared.pace.clone()),
            route: Route::new(&shared.addresses, &shared.sources, share.worker()),
            alarms,
            idle: Vec::new(),
            lingering: Lingering::default(),
            needed_later: super::phases::needed_later(&phases),
            begun: 0,
            open_on: Vec::new(),
            stats: Stats::new(phases.len(), requests.len()),
            phases,
            requests,
            last_requests,
            requests_per_connection: limit.unwrap_or(u64::MAX),
            setup: Setup::new(timeline, largest_body),
            timeline,
            timeout_ns: clock::nanos(workload.timeout),
            connect_timeout_ns: clock::nanos(workload.connect_timeout),
            grace_ns: clock::nanos(workload.grace),
            shared: Arc::clone(shared),
            open: 0,
            held: 0,
            to_hold: share.held(),
            interrupted: false,
            last_connect_error: None,
            again: false,
        })
    }

    /// Takes over the connection that was opened before the start.
    pub(super) fn take_over(&mut self, first: FirstConnection) {
        if let Ok(stream) = tokio::net::TcpStream::from_std(first.stream) {
            let index = self.slots.take_free(&mut self.ready);
            self.install(index, stream, first.address, first.connect_ns, State::Busy);
            if let State::Busy(connection) = &mut self.slots.get(index).state {
                connection.exchange.has_waited();
            }
            self.begin_idle(index);
            self.drive(index);
        }
    }

    /// Sees to what is due and polls what wants to be polled. True: more has come up meanwhile.
    ///
    /// # Errors
    /// When the system does not say which connection attempts have ended.
    pub(super) fn turn(&mut self, worker: &Waker, now: Option<u64>) -> io::Result<bool> {
        self.ready.begin_turn(worker);
        if let Some(now) = now {
            self.see_to_alarms(now);
            self.take_due(now);
        }
        let mut from = 0;
        while let Some(taken) = self.ready.take(from) {
            from = taken.next_word();
            for index in taken {
                self.drive(index);
            }
        }
        let more = self.start_waiting();
        self.open_more()?;
        Ok(self.ready.end_turn() | more | std::mem::take(&mut self.again))
    }

    fn see_to_alarms(&mut self, now: u64) {
        while let Some((at, alarm)) = self.alarms.take_due(now) {
            match alarm {
                Alarm::PhaseBegins(phase) => self.begin_phase(phase, now),
                Alarm::PhaseEnds(phase) => self.end_phase(phase, now),
                Alarm::GraceEnds(phase) => self.give_up(phase, at),
                Alarm::Lane { phase, lane } => self.wake_lane(phase, lane, at, now),
                Alarm::Hold => self.to_hold += 1,
            }
        }
    }

    /// When something is due next that nobody will wake the worker for.
    pub(super) fn next_due(&self) -> Option<u64> {
        let arrivals = self.open_on.iter().filter_map(|phase| match &self.phases[*phase].model {
            Model::Open(open) => open.next_due(),
            Model::Closed(_) => None,
        });
        arrivals.chain(self.alarms.next_due()).chain(self.opening.next_at_ns()).min()
    }

    /// Whether there is nothing left to do or to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.phases.iter().all(|phase| phase.stage == Stage::Over)
    }

    /// Sees to all timeouts.
    pub(super) fn sweep(&mut self, now: u64) {
        let mut from = 0;
        while let Some(index) = self.slots.next_due(from, now) {
            self.expire(index);
            from = index + 1;
        }
        self.lingering.expire(now);
    }

    /// Connections open, requests in flight.
    pub(super) fn gauges(&self) -> (u64, u64) {
        (self.open, self.phases.iter().map(|phase| phase.in_flight).sum())
    }

    /// Polls one slot until it has to wait.
    pub(super) fn drive(&mut self, index: usize) {
        while self.step(index).is_ready() {}
    }

    fn step(&mut self, index: usize) -> std::task::Poll<()> {
        let slot = self.slots.get(index);
        let mut cx = Context::from_waker(&slot.waker);
        match &mut slot.state {
            State::Busy(connection) => {
                let result = connection.exchange.poll(&mut cx);
                self.polled(index, result)
            }
            State::Resolving(lookup, _) => {
                lookup.poll(&mut cx).map(|answer| self.resolved(index, answer))
            }
            State::Connecting(attempt) => {
                attempt.connecting.poll(&mut cx).map(|result| self.attempted(index, result))
            }
            State::Idle(connection) | State::Thinking(connection) | State::Held(connection) => {
                let _nothing = connection.exchange.poll(&mut cx);
                if !connection.exchange.is_reusable() {
                    self.ended_idle(index);
                }
                std::task::Poll::Pending
            }
            State::Free | State::Queued(_) => std::task::Poll::Pending,
        }
    }
}
