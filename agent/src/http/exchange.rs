//! One connection, and the request on it now.
//!
//! hyper's connection and the response are driven by one poll: no task per connection, no wake-up from one to the
//! other. The body is dropped piece by piece as it comes.

use std::{
    error::Error as _,
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

use http_body::Body as _;
use hyper::{
    Response,
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use inrush_common::outcome::ErrorClass;
use tokio::net::TcpStream;
use tokio_util::sync::ReusableBoxFuture;

use super::{
    classify::{self, Broken, Complaint, Stage},
    io::{Meter, Metered},
    request::{Body, Prepared},
};
use crate::timeline::Timeline;

/// A body up to this size is written together with the head by copying it behind it; a larger one is not copied.
const FLATTEN_BODIES_UP_TO: usize = 4096;

/// A response may have so many headers. More is `header_too_large`.
const MAX_HEADERS: usize = 320;

/// How often one poll goes round before it lets the other connections have their turn.
const ROUNDS: usize = 4;

/// How connections of a run are set up.
#[derive(Debug)]
pub(crate) struct Setup {
    builder: Builder,
    timeline: Timeline,
}

impl Setup {
    pub(crate) fn new(timeline: Timeline, largest_body: usize) -> Self {
        let mut builder = Builder::new();
        builder
            .writev(largest_body > FLATTEN_BODIES_UP_TO)
            .max_headers(MAX_HEADERS)
            // Folded header lines are obsolete, but a response that has them is a response.
            .allow_obsolete_multiline_headers_in_responses(true);
        Self { builder, timeline }
    }

    /// Puts HTTP on a connected socket. Nothing is sent.
    pub(crate) fn exchange(&self, stream: TcpStream) -> Exchange {
        let meter = Rc::new(Meter::new(self.timeline));
        let io = TokioIo::new(Metered::new(stream, Rc::clone(&meter)));
        let handshake = pin!(self.builder.handshake(io));
        let Poll::Ready(Ok((sender, connection))) =
            handshake.poll(&mut Context::from_waker(Waker::noop()))
        else {
            unreachable!("HTTP/1.1 has no handshake to wait for or to fail")
        };
        Exchange {
            connection,
            sender,
            response: ReusableBoxFuture::new(std::future::pending()),
            progress: Progress::Idle,
            ended: false,
            served: false,
            waited: false,
            meter,
        }
    }
}

/// A connection with at most one request on it.
#[derive(Debug)]
pub(crate) struct Exchange {
    connection: Connection<TokioIo<Metered>, Body>,
    sender: SendRequest<Body>,
    response: ReusableBoxFuture<'static, hyper::Result<Response<Incoming>>>,
    progress: Progress,
    /// hyper is done with the connection and must not be polled again.
    ended: bool,
    /// It has brought a whole response.
    served: bool,
    /// It was opened long before its first request.
    waited: bool,
    meter: Rc<Meter>,
}

#[derive(Debug)]
enum Progress {
    Idle,
    AwaitingHead,
    ReadingBody { status: u16, body: Incoming },
}

/// How an exchange failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The peer had closed the connection before the first byte of the request was written: the request has not begun.
    NotBegun,
    /// The request was begun and is lost.
    Broken { class: ErrorClass, error: hyper::Error },
}

impl Exchange {
    /// Hands a request to the connection. The next [`poll`](Self::poll) writes it.
    pub(crate) fn start(&mut self, request: &Prepared) {
        self.meter.begin();
        self.response.set(self.sender.send_request(request.to_http()));
        self.progress = Progress::AwaitingHead;
    }

    /// Writes, reads, and comes back with the status code when the whole response is there.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<u16, Failure>> {
        self.meter.begin_turn();
        for _ in 0..ROUNDS {
            if !self.ended {
                // What goes wrong with the request comes out of the response; an error here is about bytes that
                // nobody asked for, after a whole response. Then the connection is of no more use.
                self.ended = Pin::new(&mut self.connection).poll(cx).is_ready();
            }
            match self.advance(cx) {
                Poll::Ready(Some(result)) => {
                    let result = result.map_err(|error| self.failure(error));
                    self.progress = Progress::Idle;
                    self.served |= result.is_ok();
                    return Poll::Ready(result);
                }
                // A piece of the body was taken: hyper can go on.
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// `Ready(None)`: something moved, but this was not the end.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<u16, hyper::Error>>> {
        let mut moved = false;
        loop {
            match &mut self.progress {
                Progress::Idle => return Poll::Pending,
                Progress::AwaitingHead => match self.response.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok(response)) => {
                        let status = response.status().as_u16();
                        let body = response.into_body();
                        self.progress = Progress::ReadingBody { status, body };
                    }
                },
                Progress::ReadingBody { status, body } => {
                    if body.is_end_stream() {
                        return Poll::Ready(Some(Ok(*status)));
                    }
                    match Pin::new(body).poll_frame(cx) {
                        Poll::Pending if moved => return Poll::Ready(None),
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Some(Ok(_piece))) => moved = true,
                        Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                        Poll::Ready(None) => return Poll::Ready(Some(Ok(*status))),
                    }
                }
            }
        }
    }

    fn failure(&self, error: hyper::Error) -> Failure {
        if error.is_canceled() && (self.served || self.waited) && self.meter.bytes_out() == 0 {
            return Failure::NotBegun;
        }
        let class = classify::exchange(Broken {
            stage: self.stage(),
            stream: self.meter.state(),
            complaint: Complaint::from(&error),
            received: self.meter.bytes_in(),
            sent: self.meter.sent(),
            reused: self.served,
        });
        Failure::Broken { class, error }
    }

    /// How far the response has come.
    pub(crate) fn stage(&self) -> Stage {
        match self.progress {
            Progress::ReadingBody { .. } => Stage::Body,
            Progress::Idle | Progress::AwaitingHead => Stage::Head,
        }
    }

    /// Whether the connection can take another request after a whole response.
    ///
    /// Not when either side said `Connection: close`, when the server speaks HTTP/1.0, when bytes came that nobody asked
    /// for, or when the response came before the request was written.
    pub(crate) fn is_reusable(&self) -> bool {
        !self.ended && self.sender.is_ready()
    }

    /// Says that the connection was opened long before its first request: a close found before that request is sent
    /// is then no failure of it.
    pub(crate) fn has_waited(&mut self) {
        self.waited = true;
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// hyper's error and its causes in words.
pub(crate) fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
