//! Whether the target can be reached at all: what the workers of one agent know about it together.
//!
//! Touched when a connection is attempted, made or lost, and once per tick; never by a request on a connection.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};

use crate::clock;

/// Shared by the workers.
#[derive(Debug, Default)]
pub(super) struct Reach {
    alive: AtomicU64,
    /// When the first attempt was made of those since the last success, plus 1; 0: no attempt since.
    trying_since: AtomicU64,
}

impl Reach {
    /// A connection is attempted.
    pub(super) fn attempt(&self, now_ns: u64) {
        if self.alive.load(Relaxed) == 0 && self.trying_since.load(Relaxed) == 0 {
            // The first of several workers sets it.
            let _first =
                self.trying_since.compare_exchange(0, now_ns.saturating_add(1), SeqCst, SeqCst);
        }
    }

    /// A connection was made.
    pub(super) fn made(&self) {
        self.alive.fetch_add(1, SeqCst);
        self.trying_since.store(0, SeqCst);
    }

    /// A connection that was made is gone.
    pub(super) fn lost(&self) {
        self.alive.fetch_sub(1, SeqCst);
    }

    /// Failures so far do not count: nobody has tried for a while.
    pub(super) fn begin_anew(&self) {
        self.trying_since.store(0, SeqCst);
    }

    /// Whether no connection is alive and attempts have failed for as long as `limit`.
    pub(super) fn is_hopeless(&self, now_ns: u64, limit: Duration) -> bool {
        let since = self.trying_since.load(SeqCst);
        since != 0
            && self.alive.load(SeqCst) == 0
            && now_ns.saturating_sub(since - 1) >= clock::nanos(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_attempts_without_any_success_for_the_whole_time_are_hopeless() {
        let limit = Duration::from_nanos(100);
        let reach = Reach::default();
        assert!(!reach.is_hopeless(1_000, limit), "nobody has tried");
        reach.attempt(1_000);
        reach.attempt(1_090);
        assert!(!reach.is_hopeless(1_099, limit));
        assert!(reach.is_hopeless(1_100, limit));
        reach.made();
        reach.attempt(1_100);
        assert!(!reach.is_hopeless(9_000, limit), "a connection is alive");
        reach.lost();
        assert!(!reach.is_hopeless(9_000, limit), "nobody has tried since");
        reach.attempt(9_000);
        assert!(reach.is_hopeless(9_100, limit));
        reach.begin_anew();
        assert!(!reach.is_hopeless(99_000, limit), "nobody tries");
    }
}
