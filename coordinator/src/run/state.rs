//! The states of a run, with what each of them has to remember.

use std::{fmt, time::Instant};

use inrush_common::report::RunOutcome;
use inrush_proto::v1;

use super::StopMode;

/// Where a run stands, as it is told to people and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Waits for its turn.
    Queued,
    /// The agents have their shares and get ready.
    Preparing,
    /// All are ready; the start is agreed and lies ahead.
    Ready,
    /// Load is made.
    Running,
    /// Told to stop; the last numbers come in.
    Draining,
    /// Ended as planned.
    Finished,
    /// Ended otherwise.
    Failed,
    /// Ended because the user said so.
    Cancelled,
}

impl RunState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Preparing,
        Self::Ready,
        Self::Running,
        Self::Draining,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name used in every output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether nothing more happens.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<RunState> for v1::RunState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Queued => Self::Queued,
            RunState::Preparing => Self::Preparing,
            RunState::Ready => Self::Ready,
            RunState::Running => Self::Running,
            RunState::Draining => Self::Draining,
            RunState::Finished => Self::Finished,
            RunState::Failed => Self::Failed,
            RunState::Cancelled => Self::Cancelled,
        }
    }
}

/// A state with its memory. Every wait in it has an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Waits for its turn; the queue ahead of it is bounded by the ends of those runs.
    Queued,
    /// Waits for every agent's ready.
    Preparing {
        /// No longer than this.
        until: Instant,
    },
    /// Waits for the agreed instant.
    Ready {
        /// The instant.
        start: Instant,
    },
    /// Waits for every agent's last snapshot.
    Running {
        /// The agreed instant.
        start: Instant,
    },
    /// Waits for the last snapshot of every agent that was told to stop.
    Draining {
        /// The agreed instant.
        start: Instant,
        /// Why it was told.
        cause: Cause,
        /// What it was told last.
        mode: StopMode,
        /// No longer than this.
        until: Instant,
    },
    /// Over.
    Ended(Ending),
}

impl Phase {
    /// The state as it is told to people.
    pub const fn state(&self) -> RunState {
        match self {
            Self::Queued => RunState::Queued,
            Self::Preparing { .. } => RunState::Preparing,
            Self::Ready { .. } => RunState::Ready,
            Self::Running { .. } => RunState::Running,
            Self::Draining { .. } => RunState::Draining,
            Self::Ended(ending) => ending.state(),
        }
    }
}

/// Why a run was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The user said so.
    Cancelled,
    /// A stop rule of the plan was broken; which, and by what figure.
    Broken(String),
    /// Something else, in words: an agent was lost, or went on beyond the plan's end.
    Aborted(String),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub outcome: RunOutcome,
    /// The same in words, where there is something to say.
    pub detail: Option<String>,
}

impl Ending {
    /// The state it is told as.
    pub const fn state(&self) -> RunState {
        match self.outcome {
            RunOutcome::Finished => RunState::Finished,
            RunOutcome::Cancelled => RunState::Cancelled,
            RunOutcome::Running
            | RunOutcome::StoppedByThreshold
            | RunOutcome::Aborted
            | RunOutcome::TargetUnreachable
            | RunOutcome::Forbidden
            | RunOutcome::Failed => RunState::Failed,
        }
    }
}
