//! A request on a connection, from its first byte to its end.

use std::{rc::Rc, task::Poll, time::Duration};

use inrush_common::{
    outcome::{ErrorClass, Outcome},
    stats::Sample,
};

use super::{
    phase::Model,
    slots::{Order, Request, State},
    traffic::Traffic,
};
use crate::http::{
    classify,
    exchange::{self, Failure},
};

impl Traffic {
    /// Hands the next request of a phase to the slot's connection.
    pub(super) fn begin(&mut self, index: usize, order: Order, now: u64) {
        let kind = self.phases[order.phase].budget.next_kind();
        if let State::Busy(connection) = &mut self.slots.get(index).state {
            connection.used += 1;
            let last = connection.used >= self.requests_per_connection;
            let request = if last { &self.last_requests[kind] } else { &self.requests[kind] };
            connection.request = Request { order, kind, sent_ns: now, counted: false };
            connection.exchange.start(Rc::clone(request));
            // A wake-up for the new request is not needed: it is polled right now anyway.
            self.ready.clear(index);
        }
    }

    /// A connection with a request was polled.
    pub(super) fn polled(&mut self, index: usize, result: Poll<Result<u16, Failure>>) -> Poll<()> {
        let State::Busy(connection) = &mut self.slots.get(index).state else {
            return Poll::Pending;
        };
        let request = &mut connection.request;
        if !request.counted {
            if let Poll::Ready(Err(Failure::NotBegun)) = result {
                let order = request.order;
                self.begin_elsewhere(index, order);
                return Poll::Ready(());
            }
            request.counted = true;
            let Request { order, sent_ns, .. } = *request;
            let stats = &mut self.stats.phases[order.phase];
            let phase = &mut self.phases[order.phase];
            request.kind = phase.budget.begin(stats);
            phase.in_flight += 1;
            if let Model::Open(open) = &mut phase.model {
                open.started(order.intended_ns, sent_ns, &mut stats.gaps);
            }
            self.slots.set_due(index, sent_ns.saturating_add(self.timeout_ns));
        }
        match result {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(status)) => self.answered(index, status),
            Poll::Ready(Err(Failure::Broken { class, error })) => {
                self.failed(index, class, || exchange::describe(&error));
            }
            // Only a request that is not counted can be one that has not begun.
            Poll::Ready(Err(Failure::NotBegun)) => {
                self.failed(index, ErrorClass::ClosedOnReuse, || "connection closed".to_owned());
            }
        }
        Poll::Ready(())
    }

    fn answered(&mut self, index: usize, status: u16) {
        let State::Busy(connection) = &mut self.slots.get(index).state else { return };
        let Request { order, kind, sent_ns, .. } = connection.request;
        let meter = connection.exchange.meter();
        let ended = meter.last_read();
        let success = self.requests[kind].expect.accepts(status);
        let sample = Sample {
            outcome: Outcome::Response { status, success },
            response_time: ended.saturating_sub(order.intended_ns),
            service_time: Some(ended.saturating_sub(sent_ns)),
            schedule_lag: Some(sent_ns.saturating_sub(order.intended_ns)),
            ttfb: meter.first_read().map(|first| first.saturating_sub(sent_ns)),
            bytes_out: meter.bytes_out(),
            bytes_in: meter.bytes_in(),
        };
        let reusable =
            connection.exchange.is_reusable() && connection.used < self.requests_per_connection;
        self.stats.phases[order.phase].requests[kind].record(&sample);
        let phase = &mut self.phases[order.phase];
        phase.in_flight -= 1;
        match &phase.model {
            Model::Closed(lanes) => {
                let now = self.timeline.now_ns();
                if reusable && lanes.goes_straight_on(order.lane, now) && phase.budget.claim(now) {
                    self.begin(index, Order { intended_ns: ended, ..order }, now);
                } else {
                    self.lane_is_free(index, order, ended, reusable);
                }
            }
            Model::Open(_) => self.request_is_over(index, order, reusable),
        }
    }

    fn failed(&mut self, index: usize, class: ErrorClass, describe: impl FnOnce() -> String) {
        let now = self.timeline.now_ns();
        let State::Busy(connection) = &mut self.slots.get(index).state else { return };
        let Request { order, kind, sent_ns, .. } = connection.request;
        let meter = connection.exchange.meter();
        let sample = Sample {
            outcome: Outcome::Error(class),
            response_time: now.saturating_sub(order.intended_ns),
            service_time: Some(now.saturating_sub(sent_ns)),
            schedule_lag: Some(sent_ns.saturating_sub(order.intended_ns)),
            ttfb: meter.first_read().map(|first| first.saturating_sub(sent_ns)),
            bytes_out: meter.bytes_out(),
            bytes_in: meter.bytes_in(),
        };
        let address = connection.address;
        let stats = &mut self.stats.phases[order.phase].requests[kind];
        stats.record(&sample);
        stats.keep_example(class, now, || format!("{address}: {} ({class})", describe()));
        let phase = &mut self.phases[order.phase];
        phase.in_flight -= 1;
        match phase.model {
            Model::Closed(_) => self.lane_is_free(index, order, now, false),
            Model::Open(_) => self.request_is_over(index, order, false),
        }
    }

    /// The connection was gone before its request had begun.
    fn begin_elsewhere(&mut self, index: usize, order: Order) {
        match self.phases[order.phase].model {
            Model::Closed(_) => self.reconnect_lane(index, order),
            Model::Open(_) => self.restore(index, order),
        }
    }

    /// A time limit of the slot is over.
    pub(super) fn expire(&mut self, index: usize) {
        match self.slots.state(index) {
            State::Resolving(..) => {
                let limit = Duration::from_nanos(self.connect_timeout_ns);
                self.resolved(index, Err(format!("no answer within {limit:?}")));
            }
            State::Connecting(_) => {
                self.attempted(index, Err(std::io::ErrorKind::TimedOut.into()));
            }
            State::Busy(connection) => {
                let class = classify::timeout(connection.exchange.stage());
                let limit = Duration::from_nanos(self.timeout_ns);
                self.failed(index, class, || format!("no whole response within {limit:?}"));
                // The connection may have gone to somebody else.
                self.drive(index);
            }
            _ => {}
        }
    }
}
