//! The one place that reads clocks in the coordinator.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime},
};

pub use inrush_common::units::nanos;

/// The present on the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn now() -> Instant {
    Instant::now()
}

/// The present by the wall clock: for people, never for measuring.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Nanoseconds since this process first asked: the clock that agents compare theirs with.
pub fn monotonic_ns() -> u64 {
    ns_at(now())
}

/// What [`monotonic_ns`] calls `instant`; 0 for instants before this process first asked.
pub fn ns_at(instant: Instant) -> u64 {
    nanos(instant.saturating_duration_since(origin()))
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(now)
}
