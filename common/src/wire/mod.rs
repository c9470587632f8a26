//! Between the domain's types and the wire's messages.
//!
//! To the wire is `From`; from the wire is `TryFrom`, because bytes come from strangers: a message may be anything.
//! What does not fit is refused with the field's path ([`WireError`]), and nothing is allocated by a length that
//! only the message claims. What an old or a new peer may leave out has its default; what it must not make up (an
//! unknown error class, a count beyond any plan) is an error.

mod capacity;
mod error;
mod phase;
mod snapshot;
mod stats;
mod workload;

use crate::schedule::Rate;
pub use error::WireError;
pub use snapshot::{decode_snapshot, encode_snapshot};

/// Most requests in a plan. Each has its own histograms, about 190 KiB each once used.
pub const MAX_REQUESTS: usize = 256;

/// Most phases of a plan.
pub const MAX_PHASES: usize = 100;

/// Most pairs of a phase and a request. Each has its own histograms.
pub const MAX_ROWS: usize = 2_000;

/// Most addresses to connect to instead of the URL's.
pub const MAX_CONNECT_TO: usize = 1_000;

/// Largest count of anything in one message: more than any plan asks for, and small enough that thousands of them
/// can be added.
pub const MAX_COUNT: u64 = 1_000_000_000_000_000;

/// Latest instant on a run's timeline, 8 days: a plan's longest duration of 7 days, and time for its end.
pub const MAX_TIMELINE_NS: u64 = 8 * 24 * 3_600 * 1_000_000_000;

/// Longest detail kept of a stranger's words, in bytes. What is longer is cut.
const MAX_DETAIL_BYTES: usize = 1_000;

fn count(field: &str, count: u64) -> Result<u64, WireError> {
    if count <= MAX_COUNT {
        Ok(count)
    } else {
        Err(WireError::new(field, format!("at most {MAX_COUNT}, got {count}")))
    }
}

fn unknown(field: &str, number: i32) -> WireError {
    WireError::new(field, format!("a value known to this version, got number {number}"))
}

fn rate(field: &str, micro: u64) -> Result<Rate, WireError> {
    Rate::from_micro(micro).map_err(|error| WireError::new(field, error))
}

fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}
