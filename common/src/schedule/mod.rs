//! When requests start and connections are open: schedules worked out from an index, in integers.
//!
//! A schedule is a pure function. Nothing here reads a clock or adds up as it goes, so an agent that is asked for its
//! millionth request answers without the ones before, and all agents together answer what one machine would.
//!
//! * [`Rate`], [`RateProfile`]: how many requests, and when each of them is due.
//! * [`Interleave`]: which of them are whose.
//! * [`Arrivals`]: what a worker of an agent starts, one after the other, evenly or as a Poisson process.
//! * [`ConnectionProfile`]: how many connections a closed load has, and when each opens and closes.
//! * [`distance_to_exponential`]: how far real arrivals are from a Poisson process.
//!
//! Times are nanoseconds after the beginning of the load.

mod amount;
mod arrivals;
mod connections;
mod interleave;
mod kolmogorov;
mod poisson;
mod profile;
mod random;
mod rate;
mod segment;

pub use amount::Amount;
pub use arrivals::{Arrival, ArrivalKind, Arrivals, ArrivalsError, Seed, Worker};
pub use connections::{
    ConnectionProfile, ConnectionProfileError, ConnectionShape, ConnectionStep, Lane, Span,
};
pub use interleave::{Group, Interleave, InterleaveError};
pub use kolmogorov::{critical_distance, distance_of_buckets, distance_to_exponential};
pub use profile::{Cursor, ProfileError, RateProfile};
pub use random::Random;
pub use rate::{Rate, RateError};
pub use segment::Segment;
