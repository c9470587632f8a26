//! A socket that keeps books: bytes in and out, when the first and the last byte came, and how it broke.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::timeline::Timeline;

/// A connection reads this often, and about so much, before it lets the others have their turn.
const READS_PER_TURN: u32 = 32;
const BYTES_PER_TURN: u64 = 512 * 1024;

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
#[derive(Debug)]
pub(crate) struct Meter {
    timeline: Timeline,
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
    first_read: Cell<Option<u64>>,
    last_read: Cell<u64>,
    state: Cell<StreamState>,
    unsent: Cell<bool>,
    reads: Cell<u32>,
    read_in_turn: Cell<u64>,
}

impl Meter {
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self {
            timeline,
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
            first_read: Cell::new(None),
            last_read: Cell::new(0),
            state: Cell::default(),
            unsent: Cell::new(false),
            reads: Cell::new(0),
            read_in_turn: Cell::new(0),
        }
    }

    /// Opens a new page: what follows belongs to the next exchange.
    pub(crate) fn begin(&self) {
        self.bytes_in.set(0);
        self.bytes_out.set(0);
        self.first_read.set(None);
        self.unsent.set(true);
    }

    /// The connection has its turn: it may read some more.
    pub(crate) fn begin_turn(&self) {
        self.reads.set(0);
        self.read_in_turn.set(0);
    }

    /// Whether the connection has read enough for one turn. hyper passes over any number of interim responses without
    /// coming back: a target that sends them for ever would keep the worker from everything else, timeouts included.
    fn has_had_its_turn(&self) -> bool {
        let reads = self.reads.get();
        self.reads.set(reads + 1);
        reads >= READS_PER_TURN || self.read_in_turn.get() >= BYTES_PER_TURN
    }

    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    pub(crate) fn bytes_out(&self) -> u64 {
        self.bytes_out.get()
    }

    /// When the first byte of the exchange came, in nanoseconds of the run.
    pub(crate) fn first_read(&self) -> Option<u64> {
        self.first_read.get()
    }

    /// When the latest byte came, in nanoseconds of the run.
    pub(crate) fn last_read(&self) -> u64 {
        self.last_read.get()
    }

    pub(crate) fn state(&self) -> StreamState {
        self.state.get()
    }

    pub(crate) fn sent(&self) -> Sent {
        match (self.bytes_out(), self.unsent.get()) {
            (0, _) => Sent::Nothing,
            (_, true) => Sent::Part,
            (_, false) => Sent::All,
        }
    }

    /// The connection was reset before it was used.
    pub(crate) fn was_reset(&self) {
        self.broke(StreamState::ReadFailed);
    }

    /// A read or a write has failed. The kernel says "broken pipe" where a reset came after an orderly end.
    fn failed(&self, error: &io::Error, how: StreamState) {
        let orderly = error.kind() == io::ErrorKind::BrokenPipe;
        self.broke(if orderly { StreamState::Ended } else { how });
    }

    fn read(&self, bytes: usize) {
        if bytes == 0 {
            return self.broke(StreamState::Ended);
        }
        // The one reading of the clock per response that came in one piece.
        let now = self.timeline.now_ns();
        self.last_read.set(now);
        if self.first_read.get().is_none() {
            self.first_read.set(Some(now));
        }
        self.bytes_in.set(self.bytes_in.get() + bytes as u64);
        self.read_in_turn.set(self.read_in_turn.get() + bytes as u64);
    }

    /// Only the first failure counts: what follows is its consequence.
    fn broke(&self, how: StreamState) {
        if self.state.get() == StreamState::Open {
            self.state.set(how);
        }
    }

    /// Books a write of what was `offered`, and tells what HTTP is to know of it.
    ///
    /// A target may answer before it has the whole request, and close: writing fails then, while the response lies
    /// unread in the socket. So a broken connection is told by the read that finds nothing more, and not by the write.
    fn wrote(
        &self,
        cx: &Context<'_>,
        offered: usize,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(bytes)) => {
                self.bytes_out.set(self.bytes_out.get() + bytes as u64);
                self.unsent.set(bytes < offered);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => {
                let first = self.state.get() == StreamState::Open;
                self.failed(&error, StreamState::WriteFailed);
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
}

/// Whether the peer is gone: then a read does not wait.
fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// The socket, and its meter.
#[derive(Debug)]
pub(crate) struct Metered {
    stream: TcpStream,
    meter: Rc<Meter>,
}

impl Metered {
    pub(crate) fn new(stream: TcpStream, meter: Rc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.meter.has_had_its_turn() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match &result {
            Poll::Ready(Ok(())) => {
                let bytes = buffer.filled().len() - before;
                self.meter.read(bytes);
                if bytes == 0 && self.meter.state() == StreamState::WriteFailed {
                    // The write has taken the error: without it, this would look like an orderly end.
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
            }
            Poll::Ready(Err(error)) => self.meter.failed(error, StreamState::ReadFailed),
            Poll::Pending => {}
        }
        result
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.meter.wrote(cx, bytes.len(), result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.meter.wrote(cx, slices.iter().map(|slice| slice.len()).sum(), result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
