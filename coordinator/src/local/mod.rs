//! Agents of this machine: how many, and as child processes that never outlive us.
//!
//! There is no local mode below this: the children are agents like any other, which connect to a coordinator over
//! gRPC. They are processes and not threads because each process has a file limit of its own.

mod agents;
mod process;
mod size;

pub use agents::{AwaitError, Death, LocalAgents};
pub use process::{Process, ProcessSpec};
pub use size::{Fleet, Machine, SizeError, TargetReach, Wanted, size};

use crate::exit::ExitStatus;

/// Why there are no local agents.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The plan does not fit on this machine.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A child process could not be started.
    #[error("cannot start {name} as a child process: {error}")]
    Spawn {
        /// Which.
        name: String,
        /// Why.
        error: std::io::Error,
    },
    /// A child process ended before it was of use.
    #[error("{name} did not start: {evidence}{last_words}")]
    Ended {
        /// Which.
        name: String,
        /// How it ended.
        evidence: String,
        /// What it said last; empty, or on lines of its own.
        last_words: String,
    },
    /// Children run, but did not report in time.
    #[error("{names} did not connect to the coordinator of this run within {within_s} s")]
    Missing {
        /// Which.
        names: String,
        /// How long was waited.
        within_s: u64,
    },
}

impl LocalError {
    /// The exit status it stands for.
    pub const fn status(&self) -> ExitStatus {
        match self {
            Self::Size(_) => ExitStatus::Usage,
            Self::Spawn { .. } | Self::Ended { .. } | Self::Missing { .. } => ExitStatus::Internal,
        }
    }
}
