//! What is recorded, and how it is added up.
//!
//! A worker records into a [`Stats`] of its own. Each interval's `Stats` become part of a [`Snapshot`]. The totals of a
//! run are the sum over its snapshots, each counted once: addition is associative and commutative, the empty
//! `Stats` are its identity, and [`Totals`] makes it idempotent by the snapshot's key.

mod addresses;
mod counters;
mod encoding;
mod histogram;
mod snapshot;
mod totals;

pub use addresses::{AddressCount, AddressCounts, MAX_ADDRESSES};
pub use counters::{
    ConnectionStats, EXAMPLE_BYTES, Example, PhaseStats, RequestStats, Sample, Stats, StatusCount,
    Times,
};
pub use encoding::HistogramError;
pub use histogram::{Histogram, SHAPE};
pub use snapshot::{Completion, Gauges, Interval, Snapshot, SnapshotKey};
pub use totals::{AgentTotals, IntervalTotals, MAX_ROWS, Totals};
