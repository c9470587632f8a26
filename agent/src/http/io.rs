//! A socket that keeps books: bytes in and out, when the first and the last byte came, and how it broke. And the plug by
//! which hyper is put on one socket after the other.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::timeline::Timeline;

/// A connection reads this much before it lets the others have their turn, each read counted with what it costs
/// however little it brings.
const BYTES_PER_TURN: usize = 512 << 10;
const BYTES_OF_A_READ: usize = 16 << 10;

/// What happened to the byte stream itself, whatever HTTP made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StreamState {
    /// Nothing wrong.
    #[default]
    Open,
    /// The peer ended its side.
    Ended,
    /// Reading failed: reset.
    ReadFailed,
    /// Writing failed: reset.
    WriteFailed,
}

/// How much of a request has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Nothing,
    Part,
    All,
}

/// The books of one connection, for the exchange on it now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meter {
    bytes_in: u64,
    bytes_out: u64,
    first_read: Option<u64>,
    last_read: u64,
    read_in_turn: usize,
    state: StreamState,
    unsent: bool,
}

impl Meter {
    pub(crate) const fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    pub(crate) const fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    /// When the first byte of the exchange came, in nanoseconds of the run.
    pub(crate) const fn first_read(&self) -> Option<u64> {
        self.first_read
    }

    /// When the latest byte came, in nanoseconds of the run.
    pub(crate) const fn last_read(&self) -> u64 {
        self.last_read
    }

    pub(crate) const fn state(&self) -> StreamState {
        self.state
    }

    pub(crate) const fn sent(&self) -> Sent {
        match (self.bytes_out, self.unsent) {
            (0, _) => Sent::Nothing,
            (_, true) => Sent::Part,
            (_, false) => Sent::All,
        }
    }

    /// A read or a write has failed. The kernel says "broken pipe" where a reset came after an orderly end.
    fn failed(&mut self, error: &io::Error, how: StreamState) {
        let orderly = error.kind() == io::ErrorKind::BrokenPipe;
        self.broke(if orderly { StreamState::Ended } else { how });
    }

    /// Only the first failure counts: what follows is its consequence.
    fn broke(&mut self, how: StreamState) {
        if self.state == StreamState::Open {
            self.state = how;
        }
    }
}

/// A connected socket, and its books.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    timeline: Timeline,
    meter: Meter,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, timeline: Timeline) -> Self {
        Self { stream, timeline, meter: Meter::default() }
    }

    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Opens a new page: what follows belongs to the next exchange.
    pub(crate) fn begin(&mut self) {
        self.meter.bytes_in = 0;
        self.meter.bytes_out = 0;
        self.meter.first_read = None;
        self.meter.unsent = true;
    }

    /// The connection was reset before it was used.
    pub(crate) fn was_reset(&mut self) {
        self.meter.broke(StreamState::ReadFailed);
    }

    /// Ready when there may be something to read, be it the end.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_read_ready(cx).map(drop)
    }

    /// Ready when there is something to read: the end, an error or a byte, which is lost.
    pub(crate) fn poll_noise(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.meter.read_in_turn = 0;
        self.poll_read(cx, &mut ReadBuf::new(&mut [0])).map(drop)
    }

    /// Whether the connection has read enough for one turn. hyper passes over any number of interim responses without
    /// coming back: a target that sends them for ever would keep the worker from everything else, timeouts included.
    fn has_had_its_turn(&self) -> bool {
        self.meter.read_in_turn >= BYTES_PER_TURN
    }

    fn read(&mut self, bytes: usize) {
        if bytes == 0 {
            return self.meter.broke(StreamState::Ended);
        }
        // The one reading of the clock per response that came in one piece.
        let now = self.timeline.now_ns();
        self.meter.last_read = now;
        self.meter.first_read.get_or_insert(now);
        self.meter.bytes_in += bytes as u64;
    }

    /// Books a write of what was `offered`, and tells what HTTP is to know of it.
    ///
    /// A target may answer before it has the whole request, and close: writing fails then, while the response lies
    /// unread in the socket. So a broken connection is told by the read that finds nothing more, and not by the write.
    fn wrote(
        &mut self,
        cx: &Context<'_>,
        offered: usize,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.meter.bytes_out += bytes as u64;
                self.meter.unsent = bytes < offered;
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => {
                let first = self.meter.state == StreamState::Open;
                self.meter.failed(&error, StreamState::WriteFailed);
                if !is_broken(&error) {
                    return Poll::Ready(Err(error));
                }
                if first {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads into `buffer`; a true answer says that there is no more for now.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        if self.has_had_its_turn() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled().len() - before;
                self.meter.read_in_turn += bytes + BYTES_OF_A_READ;
                self.read(bytes);
                if bytes == 0 && self.meter.state == StreamState::WriteFailed {
                    // The write has taken the error: without it, this would look like an orderly end.
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Poll::Ready(Ok(bytes > 0 && buffer.remaining() > 0))
            }
            Poll::Ready(Err(error)) => {
                self.meter.failed(&error, StreamState::ReadFailed);
                Poll::Ready(Err(error))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, bytes.len(), result)
    }

    fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(cx, slices.iter().map(|slice| slice.len()).sum(), result)
    }
}

/// Whether the peer is gone: then a read does not wait.
fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// What hyper will hand over to be written, and what is on the wire already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The first so many bytes.
    Bytes(usize),
    /// All that comes in the first write.
    Whole,
}

impl Ahead {
    pub(crate) const NOTHING: Self = Self::Bytes(0);

    /// How many of `bytes` need not be written.
    fn take(&mut self, bytes: usize) -> usize {
        match self {
            Self::Whole => {
                *self = Self::NOTHING;
                bytes
            }
            Self::Bytes(ahead) => {
                let written = bytes.min(*ahead);
                *ahead -= written;
                written
            }
        }
    }
}

/// What is between hyper and the sockets it is lent to.
#[derive(Debug)]
pub(crate) struct Line {
    socket: Option<Socket>,
    ahead: Ahead,
    /// Bytes that were read before and are to be read again.
    again: Bytes,
    /// It is only looked at what is there: the socket is not to wake anybody.
    glance: bool,
    /// There is nothing more for now.
    drained: bool,
    /// hyper is set up for what responses mostly are: see [`Line::is_for_lean`].
    lean: bool,
    /// The response is not for such a hyper, and was kept from it.
    kept: bool,
}

/// So many bytes of a response show the first digit of its status code: `HTTP/1.1 2`.
const TELLING: usize = 10;

impl Line {
    /// Whether the beginning of a response shows that the head of the answer itself follows. After an interim response
    /// nobody could say what was consumed when hyper gives up, and another could not begin where it began.
    fn is_for_lean(start: &[u8]) -> bool {
        start.get(TELLING - 1).is_some_and(|digit| *digit != b'1')
    }
}

/// hyper's end of a [`Line`].
#[derive(Debug)]
pub(crate) struct Plug(Rc<RefCell<Line>>);

/// Our end of it.
#[derive(Debug)]
pub(crate) struct Outlet(Rc<RefCell<Line>>);

/// A line with nothing on it yet. A `lean` hyper does not get to see what it might not be able to read.
pub(crate) fn line(lean: bool) -> (Outlet, Plug) {
    let line = Rc::new(RefCell::new(Line {
        socket: None,
        ahead: Ahead::NOTHING,
        again: Bytes::new(),
        glance: false,
        drained: false,
        lean,
        kept: false,
    }));
    (Outlet(Rc::clone(&line)), Plug(line))
}

impl Outlet {
    /// Puts a socket on the line. What is `ahead` will not be written again, and before hyper has handed it over
    /// nothing is read: hyper would take an answer for noise. `again` is read before anything else.
    pub(crate) fn connect(&self, socket: Socket, ahead: Ahead, again: Bytes) {
        let mut line = self.0.borrow_mut();
        line.socket = Some(socket);
        line.ahead = ahead;
        line.again = again;
    }

    /// Takes the socket off the line.
    pub(crate) fn disconnect(&self) -> Option<Socket> {
        self.0.borrow_mut().socket.take()
    }

    /// Whether there is a response that hyper did not get to see.
    pub(crate) fn has_kept(&self) -> bool {
        self.0.borrow().kept
    }

    /// What was read and not given to hyper.
    pub(crate) fn take_kept(&self) -> Bytes {
        std::mem::take(&mut self.0.borrow_mut().again)
    }

    /// The socket's turn begins: it may read some more. For a `glance`, what is there is read, and a socket with nothing
    /// to read is not asked to wake anybody when there is.
    pub(crate) fn begin_turn(&self, glance: bool) {
        let mut line = self.0.borrow_mut();
        (line.glance, line.drained) = (glance, false);
        if let Some(socket) = &mut line.socket {
            socket.meter.read_in_turn = 0;
        }
    }

    /// Opens a new page in the socket's books.
    pub(crate) fn begin(&self) {
        if let Some(socket) = &mut self.0.borrow_mut().socket {
            socket.begin();
        }
    }

    pub(crate) fn meter(&self) -> Option<Meter> {
        self.0.borrow().socket.as_ref().map(|socket| socket.meter)
    }
}

impl AsyncRead for Plug {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut line = self.0.borrow_mut();
        let Line { socket: Some(socket), ahead, again, glance, drained, lean, kept } = &mut *line
        else {
            return Poll::Pending;
        };
        if *ahead != Ahead::NOTHING || *drained || *kept {
            return Poll::Pending;
        }
        if again.has_remaining() {
            let piece = again.split_to(again.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let begins = *lean && socket.meter.first_read.is_none();
        let emptied = ready!(socket.poll_read(cx, buffer))?;
        *drained = emptied && *glance;
        let (_, read) = buffer.filled().split_at(before);
        if begins && !read.is_empty() && !Line::is_for_lean(read) {
            *again = Bytes::copy_from_slice(read);
            *kept = true;
            buffer.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Plug {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut line = self.0.borrow_mut();
        match (line.ahead.take(bytes.len()), &mut line.socket) {
            (0, Some(socket)) => socket.poll_write(cx, bytes),
            (0, None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            (written, _) => Poll::Ready(Ok(written)),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut line = self.0.borrow_mut();
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        match (line.ahead.take(bytes), &mut line.socket) {
            (0, Some(socket)) => socket.poll_write_vectored(cx, slices),
            (0, None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            (written, _) => Poll::Ready(Ok(written)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        // That of every socket; there is none yet when hyper asks.
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0.borrow_mut().socket {
            Some(socket) => Pin::new(&mut socket.stream).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The socket is not hyper's to end: another codec may be able to go on with it, or it is dropped as a whole.
        Poll::Ready(Ok(()))
    }
}
