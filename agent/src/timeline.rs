//! The run's time: nanoseconds since its start.

use std::time::{Duration, Instant};

use crate::clock;

/// Tells the time since the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    start: Instant,
}

impl Timeline {
    pub(crate) const fn new(start: Instant) -> Self {
        Self { start }
    }

    /// Nanoseconds since the start; 0 before it.
    pub(crate) fn now_ns(self) -> u64 {
        clock::nanos(clock::now().saturating_duration_since(self.start))
    }

    /// The instant at which the timeline says `nanos`.
    pub(crate) fn at(self, nanos: u64) -> Instant {
        self.start + Duration::from_nanos(nanos)
    }
}
