//! The target's counters, and waiting for them.

use std::{
    fmt,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::sync::Notify;

/// What the target has seen and done; a moment's reading of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// The most connections that were open at once.
    pub peak_open: u64,
    /// Requests received whole, body included.
    pub requests: u64,
    /// Requests received whole whose steps are not done.
    pub in_flight: u64,
    /// The most requests that were in flight at once.
    pub peak_in_flight: u64,
    /// Responses written whole by [`Step::Respond`](super::Step::Respond).
    pub responses: u64,
    /// Connections ended because what came was not HTTP/1.1.
    pub malformed: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Whether the listener is open.
    pub listening: bool,
}

/// The counters did not come to what a test waited for.
#[derive(Clone, Copy, Debug)]
pub struct NotSeen {
    /// How long it waited.
    pub within: Duration,
    /// The counters at the end.
    pub last: Counts,
}

impl fmt::Display for NotSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the target did not see it within {:?}; its counters: {:?}",
            self.within, self.last
        )
    }
}

impl std::error::Error for NotSeen {}

/// The counters themselves.
///
/// Sequentially consistent, because of [`changed`](Self::changed): either a change sees the one who
/// waits, or the one who waits sees the change.
#[derive(Default)]
pub(super) struct Counters {
    connections: AtomicU64,
    open: AtomicU64,
    peak_open: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicU64,
    peak_in_flight: AtomicU64,
    responses: AtomicU64,
    malformed: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    listening: AtomicBool,
    waiting: AtomicU64,
    lock: Mutex<()>,
    blocked: Condvar,
    parked: Notify,
}

impl Counters {
    pub(super) fn read(&self) -> Counts {
        Counts {
            connections: self.connections.load(SeqCst),
            open: self.open.load(SeqCst),
            peak_open: self.peak_open.load(SeqCst),
            requests: self.requests.load(SeqCst),
            in_flight: self.in_flight.load(SeqCst),
            peak_in_flight: self.peak_in_flight.load(SeqCst),
            responses: self.responses.load(SeqCst),
            malformed: self.malformed.load(SeqCst),
            bytes_in: self.bytes_in.load(SeqCst),
            bytes_out: self.bytes_out.load(SeqCst),
            listening: self.listening.load(SeqCst),
        }
    }

    pub(super) fn listening(&self, listening: bool) {
        self.listening.store(listening, SeqCst);
        self.changed();
    }

    pub(super) fn opened(&self) {
        self.connections.fetch_add(1, SeqCst);
        raise(&self.open, &self.peak_open);
        self.changed();
    }

    pub(super) fn closed(&self) {
        self.open.fetch_sub(1, SeqCst);
        self.changed();
    }

    /// A request is here; its number over the whole target comes back.
    pub(super) fn received(&self) -> u64 {
        raise(&self.in_flight, &self.peak_in_flight);
        let number = self.requests.fetch_add(1, SeqCst);
        self.changed();
        number
    }

    pub(super) fn done(&self) {
        self.in_flight.fetch_sub(1, SeqCst);
        self.changed();
    }

    pub(super) fn responded(&self) {
        self.responses.fetch_add(1, SeqCst);
        self.changed();
    }

    pub(super) fn malformed(&self) {
        self.malformed.fetch_add(1, SeqCst);
        self.changed();
    }

    pub(super) fn read_bytes(&self, n: usize) {
        self.bytes_in.fetch_add(n as u64, SeqCst);
        self.changed();
    }

    pub(super) fn wrote_bytes(&self, n: usize) {
        self.bytes_out.fetch_add(n as u64, SeqCst);
        self.changed();
    }

    /// Wakes those who wait; costs one load when nobody does.
    fn changed(&self) {
        if self.waiting.load(SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.blocked.notify_all();
            self.parked.notify_waiters();
        }
    }

    pub(super) fn wait(
        &self,
        within: Duration,
        wanted: impl Fn(&Counts) -> bool,
    ) -> Result<Counts, NotSeen> {
        let _waiting = Waiting::new(&self.waiting);
        let mut last = Counts::default();
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let unsatisfied = |_: &mut ()| {
            last = self.read();
            !wanted(&last)
        };
        let (_guard, waited) = self
            .blocked
            .wait_timeout_while(guard, within, unsatisfied)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { Err(NotSeen { within, last }) } else { Ok(last) }
    }

    pub(super) async fn wait_async(
        &self,
        within: Duration,
        wanted: impl Fn(&Counts) -> bool,
    ) -> Result<Counts, NotSeen> {
        let _waiting = Waiting::new(&self.waiting);
        let seen = async {
            loop {
                let mut change = std::pin::pin!(self.parked.notified());
                change.as_mut().enable();
                let now = self.read();
                if wanted(&now) {
                    return now;
                }
                change.await;
            }
        };
        tokio::time::timeout(within, seen).await.map_err(|_| NotSeen { within, last: self.read() })
    }
}

/// Adds one, and keeps the peak.
fn raise(now: &AtomicU64, peak: &AtomicU64) {
    let value = now.fetch_add(1, SeqCst) + 1;
    peak.fetch_max(value, SeqCst);
}

/// Counted among those who wait, as long as it lives.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicU64) -> Self {
        waiting.fetch_add(1, SeqCst);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
