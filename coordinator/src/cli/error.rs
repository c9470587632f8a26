//! Why a command failed, and the exit status that says so.

use std::io;

use crate::{client::ClientError, exit::ExitStatus, local::LocalError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The plan has problems; this is the whole of them, rendered.
    #[error("{0}")]
    Plan(String),
    /// A coordinator could not be asked, or refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Local agents could not be had.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Stdout takes no more.
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    /// Stopped before there was a run to report on.
    #[error("{0}")]
    Cancelled(String),
    /// Another failure of this side.
    #[error("{0}")]
    Internal(String),
}

impl CliError {
    /// The exit status it stands for.
    pub(super) fn status(&self) -> ExitStatus {
        match self {
            Self::Usage(_) | Self::Plan(_) => ExitStatus::Usage,
            Self::Client(error) => error.status(),
            Self::Local(error) => error.status(),
            Self::Cancelled(_) => ExitStatus::Cancelled,
            Self::Stdout(_) | Self::Internal(_) => ExitStatus::Internal,
        }
    }

    /// A failure of this side, with what was being done.
    pub(super) fn internal(doing: &str, error: impl std::fmt::Display) -> Self {
        Self::Internal(format!("{doing}: {error}"))
    }
}
