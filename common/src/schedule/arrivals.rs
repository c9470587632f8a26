//! One worker's arrivals of an open load.

use std::sync::Arc;

use super::{Amount, Cursor, Interleave, Random, RateProfile, poisson::Scatter};

/// A request of an open load that is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// Its number among all requests of the load, over all agents, from 0.
    pub index: u64,
    /// Its intended start, in nanoseconds after the beginning of the load.
    pub due_ns: u64,
}

/// How arrivals lie on the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    /// As evenly as the profile goes: request `k` when `k` requests have come together.
    Uniform,
    /// Independently of each other. Each worker draws its own stream, of exactly its count.
    Poisson(Seed),
}

/// What a stream of Poisson arrivals begins with, beside the agent's place and the worker's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// The plan's seed.
    pub plan: u64,
    /// The phase's number, so that two phases do not repeat each other.
    pub phase: u32,
}

/// Which worker of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// Why there can be no such arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalsError {
    /// More requests are dealt than the profile has.
    #[error("{dealt} requests are dealt, but only {due} are due in the load's time")]
    TooMany {
        /// Dealt to all agents.
        dealt: u64,
        /// Of the profile.
        due: u64,
    },
    /// A worker beyond the last.
    #[error("worker {} of {}: expected a number below the number of workers", _0.number, _0.of)]
    NoSuchWorker(Worker),
}

/// The arrivals of one worker, in the order of their intended starts.
///
/// Of its agent's requests it takes every so many-th. With uniform arrivals all workers of all agents together make the
/// timeline of one big machine, to the nanosecond. When fewer requests are dealt than the profile has, the load ends
/// early: uniform arrivals with the last one dealt, Poisson ones before the instant at which one more would be due.
///
/// The times of Poisson arrivals are in order, and so are the indices; but which index starts first over several workers
/// is left to chance.
#[derive(Debug, Clone)]
pub struct Arrivals {
    profile: Arc<RateProfile>,
    part: Interleave,
    worker: Worker,
    /// How many have been made, and are to be made in all.
    made: u64,
    count: u64,
    cursor: Cursor,
    /// The amounts at which they are due, where that is not the index.
    scatter: Option<Scatter>,
    next: Option<Arrival>,
}

impl Arrivals {
    /// The arrivals of a worker of the agent that has this part of the requests.
    ///
    /// # Errors
    /// When more requests are dealt than the profile has, or there is no such worker.
    pub fn new(
        profile: Arc<RateProfile>,
        kind: ArrivalKind,
        part: Interleave,
        worker: Worker,
    ) -> Result<Self, ArrivalsError> {
        let (dealt, due) = (part.total(), profile.count());
        if dealt > due {
            return Err(ArrivalsError::TooMany { dealt, due });
        }
        if worker.number >= worker.of {
            return Err(ArrivalsError::NoSuchWorker(worker));
        }
        let count = part.worker_count(worker);
        let scatter = match kind {
            ArrivalKind::Uniform => None,
            ArrivalKind::Poisson(seed) => {
                let path = [seed.phase, part.place(), worker.number].map(u64::from);
                let space = profile.total().min(Amount::requests(dealt));
                Some(Scatter::new(Random::stream(seed.plan, &path), count, space))
            }
        };
        let cursor = Cursor::default();
        let mut arrivals =
            Self { profile, part, worker, made: 0, count, cursor, scatter, next: None };
        arrivals.next = arrivals.make();
        Ok(arrivals)
    }

    /// The next arrival, without taking it.
    pub fn peek(&self) -> Option<Arrival> {
        self.next
    }

    /// How many are still to be taken.
    pub fn remaining(&self) -> u64 {
        self.count - self.made + u64::from(self.next.is_some())
    }

    fn make(&mut self) -> Option<Arrival> {
        if self.made == self.count {
            return None;
        }
        let index = self.part.index(self.worker.takes(self.made))?;
        let amount = match &mut self.scatter {
            None => Amount::requests(index),
            Some(scatter) => scatter.next()?,
        };
        let due_ns = self.profile.instant_near(amount, &mut self.cursor)?;
        self.made += 1;
        Some(Arrival { index, due_ns })
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let next = self.next.take();
        self.next = self.make();
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let remaining = usize::try_from(self.remaining());
        (remaining.unwrap_or(usize::MAX), remaining.ok())
    }
}

impl Worker {
    /// The only one.
    pub const ALONE: Self = Self { number: 0, of: 1 };

    /// Which of the agent's own indices is its `i`-th.
    pub(super) fn takes(self, i: u64) -> u64 {
        u64::from(self.number) + i * u64::from(self.of)
    }
}
