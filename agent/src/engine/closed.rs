//! The closed model: every connection sends its next request when its last response has ended.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use inrush_common::{
    outcome::{ErrorClass, NotStarted, Outcome},
    plan::{ClosedLoad, Load},
    stats::{Sample, Stats},
};
use tokio::net::TcpStream;

use super::{
    budget::Budget,
    opening::Opening,
    ready::Ready,
    route::Route,
    share::Share,
    slots::{Attempt, Busy, Slots, State},
    worker::Shared,
};
use crate::{
    clock,
    http::{
        classify,
        connect::{self, Connecting},
        exchange::{self, Failure, Setup},
        request::Prepared,
    },
    timeline::Timeline,
};

/// After a failed attempt a slot waits so long, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// When connection `index` of this agent opens.
fn opens_at(load: &ClosedLoad, index: u64) -> u64 {
    let lane = load.lanes.index(index);
    lane.and_then(|lane| load.profile.lane(lane).next()).map_or(0, |span| span.on_ns)
}

/// A worker's connections and accounts.
#[derive(Debug)]
pub(super) struct Closed {
    slots: Slots,
    ready: Arc<Ready>,
    opening: Opening,
    first: Option<OpenedBefore>,
    requests: Vec<Rc<Prepared>>,
    setup: Setup,
    timeline: Timeline,
    timeout_ns: u64,
    connect_timeout_ns: u64,
    shared: Arc<Shared>,
    budget: Budget,
    stats: Stats,
    open: u64,
    in_flight: u64,
    last_connect_error: Option<String>,
}

/// A connection opened while the run was prepared.
#[derive(Debug)]
pub(super) struct OpenedBefore {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) connect_ns: u64,
}

impl Closed {
    pub(super) fn new(
        shared: &Arc<Shared>,
        share: &Share,
        timeline: Timeline,
        first: Option<OpenedBefore>,
    ) -> Self {
        let workload = &shared.workload;
        let Load::Closed(load) = &workload.phases[0].load else {
            unreachable!("the engine takes only the closed model")
        };
        let opens_at: Vec<u64> = share.connections().map(|index| opens_at(load, index)).collect();
        let ready = Ready::new(opens_at.len());
        let requests: Vec<Rc<Prepared>> =
            workload.requests.iter().map(Prepared::new).map(Rc::new).collect();
        let largest_body = requests.iter().map(|request| request.body_len()).max().unwrap_or(0);
        Self {
            slots: Slots::new(opens_at, &ready),
            ready,
            opening: Opening::new(Route::new(&shared.addresses, &shared.sources, share.worker())),
            first,
            setup: Setup::new(timeline, largest_body),
            timeline,
            timeout_ns: clock::nanos(workload.timeout),
            connect_timeout_ns: clock::nanos(workload.connect_timeout),
            shared: Arc::clone(shared),
            budget: Budget::new(share.requests(), load.duration, requests.len()),
            stats: Stats::new(1, requests.len()),
            requests,
            open: 0,
            in_flight: 0,
            last_connect_error: None,
        }
    }

    /// Polls what wants to be polled. True: more has come up meanwhile.
    ///
    /// # Errors
    /// When the system does not say which connection attempts have ended.
    pub(super) fn turn(&mut self, worker: &Waker) -> io::Result<bool> {
        let ready = Arc::clone(&self.ready);
        ready.begin_turn(worker);
        ready.drain(|index| self.drive(index));
        self.open_more()?;
        Ok(ready.end_turn())
    }

    /// Whether there is nothing left to do or to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.slots.live() == 0
    }

    /// Sees to all that is due.
    pub(super) fn sweep(&mut self, now_ns: u64) {
        let mut from = 0;
        while let Some(index) = self.slots.next_due(from, now_ns) {
            self.expire(index, now_ns);
            from = index + 1;
        }
        // Slots that still wait to open have nothing to open for.
        if self.budget.is_spent() && self.slots.waiting() > 0 {
            for index in 0..self.slots.len() {
                if matches!(self.slots.get(index).state, State::Waiting) {
                    self.slots.set(index, State::Done, None);
                }
            }
        }
        self.connect_queued();
    }

    /// No request begins any more; those on their way go on.
    pub(super) fn stop_beginning(&mut self) {
        self.budget.close();
        self.opening.clear_queue();
        for index in 0..self.slots.len() {
            match &self.slots.get(index).state {
                State::Waiting => {}
                State::Queued => self.budget.release(),
                State::Connecting(_) => {
                    self.budget.release();
                    self.opening.ended(index);
                }
                State::Busy(_) | State::Done => continue,
            }
            self.slots.set(index, State::Done, None);
        }
    }

    /// Gives up what is on its way: it stays in the accounts as in flight.
    pub(super) fn abandon(&mut self) {
        self.stop_beginning();
        for index in 0..self.slots.len() {
            if matches!(self.slots.get(index).state, State::Busy(_)) {
                self.close(index);
                self.slots.set(index, State::Done, None);
            }
        }
    }

    /// Puts what was never begun into the accounts.
    pub(super) fn settle(&mut self, reason: NotStarted) {
        for (kind, left) in self.budget.left_by_kind().into_iter().enumerate() {
            self.stats.phases[0].requests[kind].not_started[reason as usize] += left;
        }
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        self.budget.is_over(now_ns)
    }

    /// Whether the whole share was begun and has ended. Never so for a share without a number.
    pub(super) fn is_complete(&self) -> bool {
        self.in_flight == 0 && self.budget.is_all_begun()
    }

    pub(super) fn stats(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Connections open, requests in flight.
    pub(super) fn gauges(&self) -> (u64, u64) {
        (self.open, self.in_flight)
    }

    pub(super) fn last_connect_error(&self) -> Option<&str> {
        self.last_connect_error.as_deref()
    }

    /// Polls one slot until it has to wait.
    fn drive(&mut self, index: usize) {
        while self.step(index).is_ready() {}
    }

    fn step(&mut self, index: usize) -> Poll<()> {
        let slot = self.slots.get(index);
        let mut cx = Context::from_waker(&slot.waker);
        match &mut slot.state {
            State::Connecting(attempt) => match attempt.connecting.poll(&mut cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(result) => self.attempted(index, result),
            },
            State::Busy(busy) => {
                let result = busy.exchange.poll(&mut cx);
                if !busy.counted {
                    if let Poll::Ready(Err(Failure::NotBegun)) = result {
                        self.reconnect(index);
                        return Poll::Ready(());
                    }
                    busy.counted = true;
                    busy.kind = self.budget.begin(&mut self.stats);
                    self.in_flight += 1;
                    let deadline = busy.sent_ns.saturating_add(self.timeout_ns);
                    self.slots.set_due(index, deadline);
                }
                match result {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(status)) => self.answered(index, status),
                    Poll::Ready(Err(Failure::Broken { class, error })) => {
                        self.failed(index, class, || exchange::describe(&error));
                    }
                    // Only a request that is not counted can be one that has not begun.
                    Poll::Ready(Err(Failure::NotBegun)) => {
                        self.failed(index, ErrorClass::ClosedOnReuse, || {
                            "connection closed".to_owned()
                        });
                    }
                }
            }
            State::Waiting | State::Queued | State::Done => return Poll::Pending,
        }
        Poll::Ready(())
    }

    fn expire(&mut self, index: usize, now_ns: u64) {
        match &self.slots.get(index).state {
            State::Waiting if !self.budget.claim(now_ns) => {
                self.slots.set(index, State::Done, None);
            }
            State::Waiting => match self.first.take_if(|_| index == 0) {
                Some(opened) => self.use_opened(index, opened),
                None => self.enqueue(index),
            },
            State::Connecting(_) => self.attempted(index, Err(io::ErrorKind::TimedOut.into())),
            State::Busy(busy) => {
                let class = classify::timeout(busy.exchange.stage());
                let limit = Duration::from_nanos(self.timeout_ns);
                self.failed(index, class, || format!("no whole response within {limit:?}"));
            }
            State::Queued | State::Done => {}
        }
    }

    fn enqueue(&mut self, index: usize) {
        self.slots.set(index, State::Queued, None);
        self.opening.enqueue(index);
    }

    fn connect_queued(&mut self) {
        while let Some((index, pair)) = self.opening.next() {
            self.connect(index, pair);
        }
    }

    /// Goes on with the attempts that have ended, and begins others.
    fn open_more(&mut self) -> io::Result<()> {
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

    fn connect(&mut self, index: usize, (address, source): (SocketAddr, Option<IpAddr>)) {
        let now = self.timeline.now_ns();
        self.shared.reach.attempt(now);
        let slot = self.slots.get(index);
        if slot.failures > 0 {
            // The pause before this attempt was ours, not the target's.
            slot.intended = Some(now);
        }
        match Connecting::begin(address, source) {
            Ok(connecting) => {
                self.opening.began(index);
                let attempt = Attempt { connecting, address, began_ns: now };
                let due = now.saturating_add(self.connect_timeout_ns);
                self.slots.set(index, State::Connecting(Box::new(attempt)), Some(due));
                self.drive(index);
            }
            Err(error) => self.connect_failed(index, address, now, &error),
        }
    }

    /// The request that the connection was for fails with it.
    fn connect_failed(
        &mut self,
        index: usize,
        address: SocketAddr,
        began_ns: u64,
        error: &io::Error,
    ) {
        let now = self.timeline.now_ns();
        let class = classify::connect(error);
        let text = format!("{address}: {} ({class})", connect::describe(error));
        let slot = self.slots.get(index);
        let sample = Sample {
            outcome: Outcome::Error(class),
            response_time: now.saturating_sub(slot.intended.unwrap_or(began_ns)),
            service_time: None,
            schedule_lag: None,
            ttfb: None,
            bytes_out: 0,
            bytes_in: 0,
        };
        let pause = FIRST_PAUSE.saturating_mul(1 << slot.failures.min(16)).min(LONGEST_PAUSE);
        slot.failures += 1;
        let kind = self.budget.begin(&mut self.stats);
        self.stats.connections.failed += 1;
        self.stats.phases[0].requests[kind].record(&sample);
        self.stats.phases[0].requests[kind].keep_example(class, now, || text.clone());
        self.last_connect_error = Some(text);
        self.slots.set(index, State::Waiting, Some(now.saturating_add(clock::nanos(pause))));
    }

    /// The slot's attempt has ended.
    fn attempted(&mut self, index: usize, result: io::Result<()>) {
        self.opening.ended(index);
        let State::Connecting(attempt) = self.slots.set(index, State::Queued, None) else {
            unreachable!("only a slot that connects has an attempt")
        };
        let reset = result.as_ref().is_err_and(connect::was_made);
        if let Err(error) = result
            && !reset
        {
            return self.connect_failed(index, attempt.address, attempt.began_ns, &error);
        }
        let now = self.timeline.now_ns();
        let opened = OpenedBefore {
            stream: attempt.connecting.into_stream(),
            address: attempt.address,
            connect_ns: now.saturating_sub(attempt.began_ns),
        };
        self.use_connection(index, opened, now, false);
        if let State::Busy(busy) = &mut self.slots.get(index).state
            && reset
        {
            busy.exchange.was_reset();
        }
    }

    fn use_opened(&mut self, index: usize, opened: OpenedBefore) {
        let now = self.timeline.now_ns();
        self.use_connection(index, opened, now, true);
        self.drive(index);
    }

    fn use_connection(&mut self, index: usize, opened: OpenedBefore, now: u64, waited: bool) {
        self.shared.reach.made();
        self.open += 1;
        let slot = self.slots.get(index);
        slot.failures = 0;
        let connections = &mut self.stats.connections;
        connections.opened += 1;
        connections.established += u64::from(!std::mem::replace(&mut slot.established, true));
        connections.peak = connections.peak.max(self.open);
        connections.connect.record(opened.connect_ns);
        let intended_ns = slot.intended.take().unwrap_or(now);
        let mut exchange = self.setup.exchange(opened.stream);
        if waited {
            exchange.has_waited();
        }
        let address = opened.address;
        let busy = Busy { exchange, address, kind: 0, intended_ns, sent_ns: now, counted: false };
        self.slots.set(index, State::Busy(Box::new(busy)), None);
        if self.budget.is_over(now) {
            self.budget.release();
            self.close(index);
            self.slots.set(index, State::Done, None);
        } else {
            self.begin(index, now, intended_ns);
        }
    }

    /// Hands the next request to the slot's connection. The claim on it is made.
    fn begin(&mut self, index: usize, now: u64, intended_ns: u64) {
        let request = Rc::clone(&self.requests[self.budget.next_kind()]);
        if let State::Busy(busy) = &mut self.slots.get(index).state {
            busy.intended_ns = intended_ns;
            busy.sent_ns = now;
            busy.counted = false;
            busy.exchange.start(request);
            // hyper's own wake-up for the new request: it is polled right now anyway.
            self.ready.clear(index);
        }
    }

    fn answered(&mut self, index: usize, status: u16) {
        let State::Busy(busy) = &mut self.slots.get(index).state else { return };
        let meter = busy.exchange.meter();
        let ended = meter.last_read();
        let success = self.requests[busy.kind].expect.accepts(status);
        let sample = Sample {
            outcome: Outcome::Response { status, success },
            response_time: ended.saturating_sub(busy.intended_ns),
            service_time: Some(ended.saturating_sub(busy.sent_ns)),
            schedule_lag: Some(busy.sent_ns.saturating_sub(busy.intended_ns)),
            ttfb: meter.first_read().map(|first| first.saturating_sub(busy.sent_ns)),
            bytes_out: meter.bytes_out(),
            bytes_in: meter.bytes_in(),
        };
        let (kind, reusable) = (busy.kind, busy.exchange.is_reusable());
        self.stats.phases[0].requests[kind].record(&sample);
        self.in_flight -= 1;
        let now = self.timeline.now_ns();
        if reusable && self.budget.claim(now) {
            self.begin(index, now, ended);
        } else {
            self.go_on_elsewhere(index, now, ended);
        }
    }

    fn failed(&mut self, index: usize, class: ErrorClass, describe: impl FnOnce() -> String) {
        let now = self.timeline.now_ns();
        let State::Busy(busy) = &mut self.slots.get(index).state else { return };
        let meter = busy.exchange.meter();
        let sample = Sample {
            outcome: Outcome::Error(class),
            response_time: now.saturating_sub(busy.intended_ns),
            service_time: Some(now.saturating_sub(busy.sent_ns)),
            schedule_lag: Some(busy.sent_ns.saturating_sub(busy.intended_ns)),
            ttfb: meter.first_read().map(|first| first.saturating_sub(busy.sent_ns)),
            bytes_out: meter.bytes_out(),
            bytes_in: meter.bytes_in(),
        };
        let (kind, address) = (busy.kind, busy.address);
        self.stats.phases[0].requests[kind].record(&sample);
        self.stats.phases[0].requests[kind]
            .keep_example(class, now, || format!("{address}: {} ({class})", describe()));
        self.in_flight -= 1;
        self.go_on_elsewhere(index, now, now);
    }

    /// Closes the slot's connection and gets another one if there is a request for it.
    fn go_on_elsewhere(&mut self, index: usize, now: u64, free_since_ns: u64) {
        self.close(index);
        if self.budget.claim(now) {
            self.slots.get(index).intended = Some(free_since_ns);
            self.enqueue(index);
        } else {
            self.slots.set(index, State::Done, None);
        }
    }

    /// The connection was gone before its request had begun: the claim goes on to the next one.
    fn reconnect(&mut self, index: usize) {
        if let State::Busy(busy) = &self.slots.get(index).state {
            let intended = busy.intended_ns;
            self.slots.get(index).intended = Some(intended);
        }
        self.close(index);
        self.enqueue(index);
    }

    /// Ends the slot's connection. Its state is the caller's to set.
    fn close(&mut self, index: usize) {
        self.slots.set(index, State::Queued, None);
        self.stats.connections.closed += 1;
        self.open -= 1;
        self.shared.reach.lost();
    }
}
