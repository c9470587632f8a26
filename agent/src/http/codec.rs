//! hyper, as the part of a connection that writes requests and reads responses.
//!
//! Its buffers, channels and states take about 20 KB a connection, and going round all of them is what makes a thousand
//! connections dearer than one. But a connection needs them only while a response comes in, which mostly is one read
//! long. So a worker keeps a few codecs and lends one to whichever connection has something to read. A connection that
//! only waits for its response is a socket and a few numbers.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio_util::sync::ReusableBoxFuture;

use super::{
    io::{Ahead, Meter, Outlet, Plug, Socket, line},
    request::Body,
};

/// A response may have so many headers. More is `header_too_large`.
const MOST_HEADERS: usize = 320;

/// So many codecs of a worker are kept for later; what is given back beyond that is freed.
const MOST_IDLE: usize = 64;

/// hyper's connection over a [`line`], and what belongs to the request on it now.
#[derive(Debug)]
pub(crate) struct Codec {
    connection: Option<Connection<TokioIo<Plug>, Body>>,
    sender: SendRequest<Body>,
    response: ReusableBoxFuture<'static, hyper::Result<Response<Incoming>>>,
    outlet: Outlet,
    /// An empty map that has its memory still.
    headers: HeaderMap,
    /// It takes as many headers as are taken at all, and folded lines. Both cost every response something, so one that
    /// does without them is tried first.
    roomy: bool,
    /// hyper is done with the connection and must not be polled again.
    ended: bool,
}

impl Codec {
    fn new(builder: &Builder, roomy: bool) -> Self {
        let (outlet, plug) = line(!roomy);
        let (sender, connection) = shake_hands(builder, TokioIo::new(plug));
        Self {
            connection: Some(connection),
            sender,
            response: ReusableBoxFuture::new(std::future::pending()),
            outlet,
            headers: HeaderMap::new(),
            roomy,
            ended: false,
        }
    }

    /// Puts a socket on the codec.
    pub(crate) fn connect(&self, socket: Socket, ahead: Ahead) {
        self.outlet.connect(socket, ahead, Bytes::new());
    }

    /// Takes the socket off the codec.
    pub(crate) fn disconnect(&self) -> Option<Socket> {
        self.outlet.disconnect()
    }

    /// The books of the socket that is on the codec.
    pub(crate) fn meter(&self) -> Meter {
        self.outlet.meter().unwrap_or_default()
    }

    /// Opens a new page in them.
    pub(crate) fn begin(&self) {
        self.outlet.begin();
    }

    /// A map for the headers of a request.
    pub(crate) fn spare_headers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.headers)
    }

    /// Takes back the map of a response's headers.
    pub(crate) fn keep_headers(&mut self, mut headers: HeaderMap) {
        headers.clear();
        self.headers = headers;
    }

    /// Hands a request to hyper. The next [`poll`](Self::poll) writes it.
    pub(crate) fn start(&mut self, request: Request<Body>) {
        self.response.set(self.sender.send_request(request));
    }

    /// Makes hyper take what was written for written: it looks for an answer only with the poll after that.
    pub(crate) fn hear(&mut self, ahead: Ahead) {
        if ahead != Ahead::NOTHING {
            self.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// The connection's turn begins: see [`Outlet::begin_turn`].
    pub(crate) fn begin_turn(&self, glance: bool) {
        self.outlet.begin_turn(glance);
    }

    /// Lets hyper write and read.
    ///
    /// What goes wrong with the request comes out of the response; an error here is about bytes that nobody asked for,
    /// after a whole response. Then the connection is of no more use.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && !self.ended
        {
            self.ended = Pin::new(connection).poll(cx).is_ready();
        }
    }

    pub(crate) fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<hyper::Result<Response<Incoming>>> {
        match self.response.poll(cx) {
            // The connection ended before it took the request. hyper says so when the connection is gone.
            Poll::Pending if self.ended => {
                self.connection = None;
                self.response.poll(cx)
            }
            result => result,
        }
    }

    /// Whether it can take another request after a whole response.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ended && self.sender.is_ready()
    }

    /// Whether another may be able to read what this one finds wrong.
    pub(crate) fn is_lean(&self) -> bool {
        !self.roomy
    }

    /// Whether there is a response that it cannot be trusted with.
    pub(crate) fn is_unfit(&self) -> bool {
        self.outlet.has_kept()
    }
}

/// The codecs of a worker.
#[derive(Debug)]
pub(crate) struct Codecs {
    lean: Builder,
    roomy: Builder,
    /// There was a response that a lean one could not read.
    demanding: Cell<bool>,
    #[expect(clippy::vec_box, reason = "a codec is large, and moves twice for every response")]
    idle: RefCell<Vec<Box<Codec>>>,
}

impl Codecs {
    pub(crate) fn new(vectored_writes: bool) -> Self {
        let mut lean = Builder::new();
        lean.writev(vectored_writes);
        let mut roomy = lean.clone();
        // Folded header lines are obsolete, but a response that has them is a response.
        roomy.max_headers(MOST_HEADERS).allow_obsolete_multiline_headers_in_responses(true);
        Self { lean, roomy, demanding: Cell::new(false), idle: RefCell::default() }
    }

    /// Lends a codec that is ready for a request.
    pub(crate) fn lend(&self) -> Box<Codec> {
        if let Some(codec) = self.idle.borrow_mut().pop() {
            return codec;
        }
        let roomy = self.demanding.get();
        let builder = if roomy { &self.roomy } else { &self.lean };
        Box::new(Codec::new(builder, roomy))
    }

    /// Takes back a codec that is ready for the next request.
    pub(crate) fn give_back(&self, codec: Box<Codec>) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MOST_IDLE && codec.roomy == self.demanding.get() {
            idle.push(codec);
        }
    }

    /// A roomy codec in the place of a lean one that cannot read the response: it reads what the lean one has read, and
    /// goes on with its socket. The request on it is still to be handed over, and need not be written as far as it was.
    ///
    /// Gives the lean one back where it has got past the head: it was right to complain.
    pub(crate) fn enlarge(&self, mut codec: Box<Codec>) -> Result<(Box<Codec>, Ahead), Box<Codec>> {
        let meter = codec.meter();
        let mut read = codec.outlet.take_kept();
        if read.is_empty()
            && let Some(connection) = codec.connection.take()
        {
            read = connection.into_parts().read_buf;
        }
        if read.len() as u64 != meter.bytes_in() {
            return Err(codec);
        }
        self.demanding.set(true);
        self.idle.borrow_mut().clear();
        let roomy = Codec::new(&self.roomy, true);
        let written = usize::try_from(meter.bytes_out()).unwrap_or(usize::MAX);
        if let Some(socket) = codec.disconnect() {
            roomy.outlet.connect(socket, Ahead::Bytes(written), read);
        }
        Ok((Box::new(roomy), Ahead::Bytes(written)))
    }
}

fn shake_hands<T>(builder: &Builder, io: T) -> (SendRequest<Body>, Connection<T, Body>)
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let handshake = pin!(builder.handshake(io));
    let Poll::Ready(Ok(pair)) = handshake.poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("HTTP/1.1 has no handshake to wait for or to fail")
    };
    pair
}

/// The bytes that hyper makes of a request.
pub(crate) fn encoded(request: Request<Body>) -> Vec<u8> {
    let (mut sender, mut connection) = shake_hands(&Builder::new(), Sink::default());
    let _response = sender.send_request(request);
    // A sink takes all at once. Then the connection waits for a response.
    let _waits = Pin::new(&mut connection).poll(&mut Context::from_waker(Waker::noop()));
    connection.into_parts().io.0
}

/// Keeps what is written; nothing ever comes of it.
#[derive(Debug, Default)]
struct Sink(Vec<u8>);

impl hyper::rt::Read for Sink {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl hyper::rt::Write for Sink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http_body_util::Full;

    use super::*;

    #[test]
    fn the_bytes_of_a_request_are_those_that_hyper_sends() {
        let mut request = Request::new(Full::new(Bytes::from_static(b"a=1")));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = "/path?q=1".parse().unwrap();
        request.headers_mut().insert("host", "example.test".parse().unwrap());
        let bytes = encoded(request);
        let text = "POST /path?q=1 HTTP/1.1\r\nhost: example.test\r\ncontent-length: 3\r\n\r\na=1";
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }

    #[test]
    fn no_more_codecs_are_kept_than_are_of_use() {
        let codecs = Codecs::new(false);
        let lent: Vec<_> = (0..MOST_IDLE + 10).map(|_| codecs.lend()).collect();
        for codec in lent {
            codecs.give_back(codec);
        }
        assert_eq!(codecs.idle.borrow().len(), MOST_IDLE);
    }
}
