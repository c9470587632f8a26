//! One connection, and the request on it now.
//!
//! A request whose bytes are known is written straight to the socket. When something comes back, the connection borrows
//! a codec, which is hyper: it is told of the request, reads the response, and is given back with the response's last
//! byte. Whatever is not as simple as that (a request that the socket does not take at once, something to read before it was
//! sent, a response in pieces) is hyper's business from there on, with the codec staying as long as it takes.
//!
//! hyper's connection and the response are driven by one poll: no task per connection, no wake-up from one to the
//! other. The body is dropped piece by piece as it comes.

use std::{
    error::Error as _,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use http::Version;
use http_body::Body as _;
use hyper::body::Incoming;
use inrush_common::outcome::ErrorClass;
use tokio::net::TcpStream;

use super::{
    classify::{self, Broken, Complaint, Stage},
    codec::{Codec, Codecs},
    io::{Ahead, Meter, Socket},
    request::{MOST_AHEAD, Prepared},
};
use crate::timeline::Timeline;

/// How often one poll goes round before it lets the other connections have their turn.
const ROUNDS: usize = 4;

/// How connections of a run are set up.
#[derive(Debug)]
pub(crate) struct Setup {
    codecs: Rc<Codecs>,
    timeline: Timeline,
}

impl Setup {
    pub(crate) fn new(timeline: Timeline, largest_body: usize) -> Self {
        // A larger body is not copied behind its head, but goes out beside it.
        Self { codecs: Rc::new(Codecs::new(largest_body > MOST_AHEAD)), timeline }
    }

    /// Puts HTTP on a connected socket. Nothing is sent.
    pub(crate) fn exchange(&self, stream: TcpStream) -> Exchange {
        Exchange {
            place: Place::Here(Socket::new(stream, self.timeline)),
            codecs: Rc::clone(&self.codecs),
            request: None,
            progress: Progress::Idle,
            served: false,
            waited: false,
            over: false,
        }
    }
}

/// A connection with at most one request on it.
#[derive(Debug)]
pub(crate) struct Exchange {
    place: Place,
    codecs: Rc<Codecs>,
    request: Option<Rc<Prepared>>,
    progress: Progress,
    /// It has brought a whole response.
    served: bool,
    /// It was opened long before its first request.
    waited: bool,
    /// The peer ended it, or sent what nobody asked for, while there was no request on it.
    over: bool,
}

/// Where the socket is.
#[derive(Debug)]
enum Place {
    Here(Socket),
    /// On a codec, which is used for nothing else meanwhile.
    On(Box<Codec>),
    /// On its way from one to the other.
    Between,
}

#[derive(Debug)]
enum Progress {
    Idle,
    /// The request is to be sent.
    Begun,
    /// The socket takes nothing yet: what comes before it does is taken for an answer.
    Held,
    /// All of it is on the wire, and hyper does not know of it.
    Sent,
    AwaitingHead,
    ReadingBody {
        head: Head,
        body: Incoming,
    },
}

/// What is kept of a response's head.
#[derive(Debug, Clone, Copy)]
struct Head {
    status: u16,
    version: Version,
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
    /// Takes on a request. The next [`poll`](Self::poll) writes it.
    pub(crate) fn start(&mut self, request: Rc<Prepared>) {
        match &mut self.place {
            Place::Here(socket) => {
                socket.begin();
                self.progress = Progress::Begun;
            }
            Place::On(codec) => {
                codec.begin();
                codec.start(request.to_http());
                self.progress = Progress::AwaitingHead;
            }
            Place::Between => {}
        }
        self.request = Some(request);
    }

    /// Writes, reads, and comes back with the status code when the whole response is there. Without a request it only
    /// looks whether the connection [is reusable](Self::is_reusable) still.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<u16, Failure>> {
        if matches!(self.progress, Progress::Begun | Progress::Held) {
            self.send(cx);
        } else if let Place::Here(socket) = &mut self.place
            && matches!(self.progress, Progress::Idle)
        {
            // What there is to read is the end, or nothing anybody asked for.
            self.over |= socket.poll_noise(cx).is_ready();
        } else if let Place::Here(socket) = &self.place
            && socket.poll_readable(cx).is_ready()
        {
            self.borrow_codec(Ahead::Whole);
            // Mostly all of it is there, and nobody needs to be woken for more.
            let glance = self.converse(&mut Context::from_waker(Waker::noop()), true);
            if glance.is_ready() {
                return glance;
            }
        }
        self.converse(cx, false)
    }

    /// Writes the request, or leaves it to hyper.
    fn send(&mut self, cx: &mut Context<'_>) {
        let (Place::Here(socket), Some(request)) = (&mut self.place, &self.request) else { return };
        let fresh = matches!(self.progress, Progress::Begun);
        let ahead = match request.wire() {
            // Nothing has come that nobody asked for, not even the end.
            Some(wire) if !fresh || socket.poll_readable(cx).is_pending() => {
                match socket.poll_write(cx, wire) {
                    Poll::Ready(Ok(bytes)) if bytes == wire.len() => {
                        self.progress = Progress::Sent;
                        if !fresh && socket.poll_readable(cx).is_ready() {
                            self.borrow_codec(Ahead::Whole);
                        }
                        return;
                    }
                    Poll::Ready(Ok(bytes)) => Ahead::Bytes(bytes),
                    // hyper meets with it too, and says it in its own words.
                    Poll::Ready(Err(_)) => Ahead::NOTHING,
                    Poll::Pending => {
                        self.progress = Progress::Held;
                        return;
                    }
                }
            }
            _ => Ahead::NOTHING,
        };
        self.borrow_codec(ahead);
    }

    /// Puts the socket on a codec, with the request if there is one, of which so much was written already.
    fn borrow_codec(&mut self, ahead: Ahead) {
        let Place::Here(socket) = std::mem::replace(&mut self.place, Place::Between) else {
            return;
        };
        let mut codec = self.codecs.lend();
        codec.connect(socket, ahead);
        if let Some(request) = &self.request {
            let request = match ahead {
                Ahead::Whole => request.stand_in(codec.spare_headers()),
                Ahead::Bytes(_) => request.to_http(),
            };
            codec.start(request);
            codec.hear(ahead);
            self.progress = Progress::AwaitingHead;
        }
        self.place = Place::On(codec);
    }

    fn converse(&mut self, cx: &mut Context<'_>, glance: bool) -> Poll<Result<u16, Failure>> {
        for round in 0..ROUNDS {
            let Place::On(codec) = &mut self.place else { return Poll::Pending };
            if round == 0 {
                codec.begin_turn(glance);
            }
            codec.poll(cx);
            if codec.is_unfit() {
                self.enlarge_codec();
                continue;
            }
            match advance(codec, &mut self.progress, cx) {
                Poll::Ready(Step::Done(head)) => {
                    self.progress = Progress::Idle;
                    self.served = true;
                    self.return_codec(head);
                    return Poll::Ready(Ok(head.status));
                }
                Poll::Ready(Step::Failed(error)) => {
                    let complaint = error.is_parse() && codec.is_lean();
                    if !complaint || !self.enlarge_codec() {
                        let failure = self.failure(error);
                        self.progress = Progress::Idle;
                        return Poll::Ready(Err(failure));
                    }
                }
                // A piece of the body was taken: hyper can go on.
                Poll::Ready(Step::Moved) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// After a whole response: the connection does without a codec until there is something to read again. One over
    /// which HTTP/1.0 is spoken keeps its own: hyper remembers, and speaks otherwise to it.
    fn return_codec(&mut self, head: Head) {
        match std::mem::replace(&mut self.place, Place::Between) {
            Place::On(codec) if codec.is_ready() && head.version == Version::HTTP_11 => {
                if let Some(socket) = codec.disconnect() {
                    self.place = Place::Here(socket);
                    self.codecs.give_back(codec);
                }
            }
            place => self.place = place,
        }
    }

    /// The response is read from its beginning by a codec that can take more, if it is not too late for that.
    fn enlarge_codec(&mut self) -> bool {
        let Some(request) = &self.request else { return false };
        match std::mem::replace(&mut self.place, Place::Between) {
            Place::On(codec) => match self.codecs.enlarge(codec) {
                Ok((mut codec, ahead)) => {
                    codec.start(request.to_http());
                    codec.hear(ahead);
                    self.place = Place::On(codec);
                    true
                }
                Err(codec) => {
                    self.place = Place::On(codec);
                    false
                }
            },
            place => {
                self.place = place;
                false
            }
        }
    }

    fn failure(&self, error: hyper::Error) -> Failure {
        let meter = self.meter();
        if error.is_canceled() && (self.served || self.waited) && meter.bytes_out() == 0 {
            return Failure::NotBegun;
        }
        let class = classify::exchange(Broken {
            stage: self.stage(),
            stream: meter.state(),
            complaint: Complaint::from(&error),
            received: meter.bytes_in(),
            sent: meter.sent(),
            reused: self.served,
        });
        Failure::Broken { class, error }
    }

    /// How far the response has come.
    pub(crate) fn stage(&self) -> Stage {
        match self.progress {
            Progress::ReadingBody { .. } => Stage::Body,
            _ => Stage::Head,
        }
    }

    /// Whether the connection can take another request after a whole response.
    ///
    /// Not when either side said `Connection: close`, when the server speaks HTTP/1.0, when bytes came that nobody asked
    /// for, or when the response came before the request was written.
    pub(crate) fn is_reusable(&self) -> bool {
        match &self.place {
            Place::Here(_) => !self.over,
            Place::On(codec) => codec.is_ready(),
            Place::Between => false,
        }
    }

    /// Says that the connection was opened long before its first request: a close found before that request is sent
    /// is then no failure of it.
    pub(crate) fn has_waited(&mut self) {
        self.waited = true;
    }

    /// Says that the connection was reset before it was used.
    pub(crate) fn was_reset(&mut self) {
        if let Place::Here(socket) = &mut self.place {
            socket.was_reset();
        }
    }

    pub(crate) fn meter(&self) -> Meter {
        match &self.place {
            Place::Here(socket) => *socket.meter(),
            Place::On(codec) => codec.meter(),
            Place::Between => Meter::default(),
        }
    }
}

/// What has come of it.
enum Step {
    /// Something, but this is not the end.
    Moved,
    Done(Head),
    Failed(hyper::Error),
}

fn advance(codec: &mut Codec, progress: &mut Progress, cx: &mut Context<'_>) -> Poll<Step> {
    let mut moved = false;
    loop {
        match progress {
            Progress::Idle | Progress::Begun | Progress::Held | Progress::Sent => {
                return Poll::Pending;
            }
            Progress::AwaitingHead => match codec.poll_response(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Step::Failed(error)),
                Poll::Ready(Ok(mut response)) => {
                    let head =
                        Head { status: response.status().as_u16(), version: response.version() };
                    codec.keep_headers(std::mem::take(response.headers_mut()));
                    *progress = Progress::ReadingBody { head, body: response.into_body() };
                }
            },
            Progress::ReadingBody { head, body } => {
                if body.is_end_stream() {
                    return Poll::Ready(Step::Done(*head));
                }
                match Pin::new(body).poll_frame(cx) {
                    Poll::Pending if moved => return Poll::Ready(Step::Moved),
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(_piece))) => moved = true,
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Step::Failed(error)),
                    Poll::Ready(None) => return Poll::Ready(Step::Done(*head)),
                }
            }
        }
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

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    use inrush_common::plan::{self, Expect};

    use super::*;
    use crate::clock;

    fn request() -> Rc<Prepared> {
        Rc::new(Prepared::new(&plan::Request {
            name: "it".to_owned(),
            method: http::Method::GET,
            url: "http://example.test/".parse().unwrap(),
            headers: Vec::new(),
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        }))
    }

    /// A connection, and the target's end of it.
    async fn pair() -> (Exchange, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let setup = Setup::new(Timeline::new(clock::now()), 0);
        (setup.exchange(stream), listener.accept().unwrap().0)
    }

    /// Polls a connection without a request until it is of no more use.
    async fn over(exchange: &mut Exchange) {
        poll_fn(|cx| {
            assert!(exchange.poll(cx).is_pending());
            if exchange.is_reusable() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    #[tokio::test]
    async fn a_connection_without_a_request_holds_no_codec_and_sees_its_end() {
        let (mut exchange, mut peer) = pair().await;
        exchange.start(request());
        assert!(poll_fn(|cx| Poll::Ready(exchange.poll(cx))).await.is_pending());
        let mut sent = [0; 1024];
        assert!(peer.read(&mut sent).unwrap() > 0);
        peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert_eq!(poll_fn(|cx| exchange.poll(cx)).await.unwrap(), 204);
        assert!(exchange.is_reusable() && matches!(exchange.place, Place::Here(_)));
        drop(peer);
        over(&mut exchange).await;
    }

    #[tokio::test]
    async fn a_byte_that_nobody_asked_for_ends_a_connection_without_a_request() {
        let (mut exchange, mut peer) = pair().await;
        assert!(exchange.is_reusable());
        peer.write_all(b"H").unwrap();
        over(&mut exchange).await;
    }
}
