//! One phase of the plan as a worker knows it: its share, what of it is in flight, and where it stands.

use inrush_common::{
    plan::{self, Load, Workload},
    schedule::ArrivalsError,
};

use super::{budget::Budget, lanes::Lanes, open::Open, share::Part};
use crate::clock;

/// A worker's part of a phase. Its instants are on the run's timeline.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) budget: Budget,
    /// Requests begun and not ended, those given up included.
    pub(super) in_flight: u64,
    pub(super) stage: Stage,
    pub(super) model: Model,
    pub(super) starts_ns: u64,
    /// `u64::MAX` when only a count ends it.
    pub(super) ends_ns: u64,
    /// A stop ended it, and not its own time or count.
    pub(super) stopped: bool,
    connections: u64,
}

/// Where a phase stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its start is still to come.
    Ahead,
    /// Requests of it come up.
    On,
    /// None come up any more, but some are on their way.
    Ending,
    /// All is accounted for.
    Over,
}

/// How load is made.
#[derive(Debug)]
pub(super) enum Model {
    Closed(Lanes),
    Open(Box<Open>),
}

impl Phase {
    /// # Errors
    /// When more arrivals are dealt than the load's rate makes.
    pub(super) fn new(
        workload: &Workload,
        index: usize,
        part: Part,
    ) -> Result<Self, ArrivalsError> {
        let phase: &plan::Phase = &workload.phases[index];
        let starts_ns = clock::nanos(phase.starts_at);
        let ends_ns = phase.ends_at().map_or(u64::MAX, clock::nanos);
        let seed = (workload.seed, index);
        let model = match &phase.load {
            Load::Closed(load) => Model::Closed(Lanes::new(load, part, seed, starts_ns)),
            Load::Open(load) => {
                Model::Open(Box::new(Open::new(load, part, seed, starts_ns, ends_ns)?))
            }
        };
        let idle = part.connections() == 0 || part.requests() == Some(0);
        Ok(Self {
            budget: Budget::new(part.requests(), ends_ns, workload.requests.len()),
            in_flight: 0,
            stage: if idle { Stage::Over } else { Stage::Ahead },
            model,
            starts_ns,
            ends_ns,
            stopped: false,
            connections: part.connections(),
        })
    }

    /// How many connections it may use at one instant from now on.
    pub(super) fn connections(&self) -> u64 {
        match (&self.stage, &self.model) {
            (Stage::Ending | Stage::Over, _) => 0,
            (Stage::On, Model::Closed(lanes)) => lanes.alive,
            (Stage::Ahead, _) | (Stage::On, Model::Open(_)) => self.connections,
        }
    }

    /// Whether nothing more will come of it, so that it can be closed.
    pub(super) fn is_through(&self) -> bool {
        let waits = match &self.model {
            Model::Closed(lanes) => lanes.alive > 0,
            Model::Open(open) => open.waits(),
        };
        match self.stage {
            Stage::Ahead | Stage::Over => false,
            Stage::Ending => self.in_flight == 0 && !waits,
            Stage::On => match self.model {
                Model::Closed(_) => {
                    let nobody_left = self.ends_ns == u64::MAX && !waits;
                    self.in_flight == 0 && (nobody_left || self.budget.is_all_begun())
                }
                // The time after its last request is a part of it too.
                Model::Open(_) => false,
            },
        }
    }
}
