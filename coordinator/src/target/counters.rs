//! The target's own count of what reached it, whatever a load generator believes.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A reading of the target's counters.
///
/// Connections that only ask for `/__stats` stand in none of them; on a connection that does both,
/// all bytes count. Bytes are those on the wire, heads included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests received whole, since the last reset.
    pub requests: u64,
    /// Connections accepted since the last reset.
    pub connections: u64,
    /// Connections open now; a reset leaves it alone.
    pub open: u64,
    /// Bytes received since the last reset.
    pub bytes_in: u64,
    /// Bytes sent since the last reset.
    pub bytes_out: u64,
}

impl Stats {
    /// One line of JSON.
    pub(super) fn to_json(self) -> String {
        let Self { requests, connections, open, bytes_in, bytes_out } = self;
        format!(
            "{{\"requests\":{requests},\"connections\":{connections},\"open\":{open},\
             \"bytes_in\":{bytes_in},\"bytes_out\":{bytes_out}}}\n"
        )
    }
}

/// The counters. Each is exact by itself; a reading under load is not one instant.
#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// How often the counters were reset.
    resets: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Stats {
        Stats {
            requests: self.requests.load(Relaxed),
            connections: self.connections.load(Relaxed),
            open: self.open.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
        }
    }

    /// Sets the counters to zero and gives back what they were.
    pub(super) fn reset(&self) -> Stats {
        self.resets.fetch_add(1, Relaxed);
        Stats {
            requests: self.requests.swap(0, Relaxed),
            connections: self.connections.swap(0, Relaxed),
            open: self.open.load(Relaxed),
            bytes_in: self.bytes_in.swap(0, Relaxed),
            bytes_out: self.bytes_out.swap(0, Relaxed),
        }
    }
}

/// What a connection has shown itself to be.
const NEW: u8 = 0;
/// It brings load: it and its bytes are counted.
const LOADS: u8 = 1;
/// So far it only asked for the counters, and stands in none of them.
const WATCHES: u8 = 2;

/// One connection's place in the counters. It is counted from the start, and taken out again if its
/// first request asks for the counters.
#[derive(Debug)]
pub(super) struct Seat {
    counters: Arc<Counters>,
    is: AtomicU8,
    /// The number of resets when it was accepted.
    resets: u64,
    /// Bytes read before it is known what the connection is.
    held: AtomicU64,
}

impl Seat {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        counters.connections.fetch_add(1, Relaxed);
        counters.open.fetch_add(1, Relaxed);
        let resets = counters.resets.load(Relaxed);
        Self { counters, is: AtomicU8::new(NEW), resets, held: AtomicU64::new(0) }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A request for the counters came.
    pub(super) fn watches(&self) {
        if self.is.compare_exchange(NEW, WATCHES, Relaxed, Relaxed).is_ok() {
            self.held.store(0, Relaxed);
            self.counters.open.fetch_sub(1, Relaxed);
            if self.resets == self.counters.resets.load(Relaxed) {
                self.counters.connections.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Any other request came.
    pub(super) fn loads(&self) {
        match self.is.swap(LOADS, Relaxed) {
            NEW => {
                self.counters.bytes_in.fetch_add(self.held.swap(0, Relaxed), Relaxed);
            }
            WATCHES => {
                self.counters.open.fetch_add(1, Relaxed);
                self.counters.connections.fetch_add(1, Relaxed);
            }
            _ => {}
        }
    }

    /// A request is here, body and all.
    pub(super) fn request(&self) {
        self.counters.requests.fetch_add(1, Relaxed);
    }

    fn read(&self, n: u64) {
        match self.is.load(Relaxed) {
            NEW => self.held.fetch_add(n, Relaxed),
            LOADS => self.counters.bytes_in.fetch_add(n, Relaxed),
            _ => 0,
        };
    }

    fn writing(&self, n: u64) {
        if self.is.load(Relaxed) != WATCHES {
            self.counters.bytes_out.fetch_add(n, Relaxed);
        }
    }

    fn not_written(&self, n: u64) {
        if self.is.load(Relaxed) != WATCHES {
            self.counters.bytes_out.fetch_sub(n, Relaxed);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.is.load(Relaxed) != WATCHES {
            self.counters.bytes_in.fetch_add(self.held.load(Relaxed), Relaxed);
            self.counters.open.fetch_sub(1, Relaxed);
        }
    }
}

/// A stream whose bytes are counted.
pub(super) struct Counted<S> {
    stream: S,
    seat: Arc<Seat>,
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S, seat: Arc<Seat>) -> Self {
        Self { stream, seat }
    }

    /// Counts `offered` bytes before `write` and takes back what it did not take: whoever has
    /// received an answer finds all of it counted.
    fn write(
        &mut self,
        offered: usize,
        write: impl FnOnce(&mut S) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.seat.writing(offered as u64);
        let written = write(&mut self.stream);
        let taken = if let Poll::Ready(Ok(n)) = written { n } else { 0 };
        self.seat.not_written((offered - taken) as u64);
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.seat.read((buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(bytes.len(), |stream| Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = slices.iter().map(|slice| slice.len()).sum();
        self.write(offered, |stream| Pin::new(stream).poll_write_vectored(cx, slices))
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
