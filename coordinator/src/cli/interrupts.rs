//! Ctrl-C and its like.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::CliError;

/// SIGINT, SIGTERM and SIGHUP (the terminal was closed), caught from its making on.
#[derive(Debug)]
pub(super) struct Interrupts {
    int: Signal,
    term: Signal,
    hup: Signal,
}

impl Interrupts {
    /// Starts catching. Until then, and in commands that have nothing to tidy up, a signal ends the process at once.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(super) fn catch() -> Result<Self, CliError> {
        let catch =
            |kind| signal(kind).map_err(|error| CliError::internal("cannot catch signals", error));
        Ok(Self {
            int: catch(SignalKind::interrupt())?,
            term: catch(SignalKind::terminate())?,
            hup: catch(SignalKind::hangup())?,
        })
    }

    /// The next one. May be dropped and called again without losing one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hup.recv() => {}
        }
    }
}
