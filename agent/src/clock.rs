//! The one place that reads clocks in an agent.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub use inrush_common::units::nanos;

/// The present on the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since this process first asked: the clock that offsets are measured on.
pub fn monotonic_ns() -> u64 {
    to_monotonic_ns(now())
}

/// What [`monotonic_ns`] calls `instant`; 0 for one before it was first asked.
pub fn to_monotonic_ns(instant: Instant) -> u64 {
    nanos(instant.saturating_duration_since(origin()))
}

/// The instant that [`monotonic_ns`] calls `nanos`.
pub fn at_monotonic_ns(nanos: u64) -> Instant {
    origin() + Duration::from_nanos(nanos)
}

/// A number that differs between two starts of a process on one machine.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn boot_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos)
}

/// Seconds since the Unix epoch by the wall clock: for files, never for measuring.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn wall_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(now)
}
