//! What the workers are told.

use std::time::Instant;

use inrush_common::outcome::NotStarted;

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopMode {
    /// Begin nothing more; wait for what is in flight, at most as long as the plan's `grace`.
    Drain,
    /// Drop what is in flight at once.
    Abort,
}

/// An order to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) mode: StopMode,
    pub(super) reason: NotStarted,
}

/// All orders so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Command {
    pub(super) start: Option<Instant>,
    pub(super) stop: Option<Stop>,
}

impl Command {
    /// The first start counts. True: the order changed something.
    pub(super) fn start(&mut self, at: Instant) -> bool {
        let first = self.start.is_none();
        if first {
            self.start = Some(at);
        }
        first
    }

    /// A stop can only get harder; the first reason stays. True: the order changed something.
    pub(super) fn stop(&mut self, mode: StopMode, reason: NotStarted) -> bool {
        match &mut self.stop {
            None => self.stop = Some(Stop { mode, reason }),
            Some(stop) if stop.mode < mode => stop.mode = mode,
            Some(_) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_first_start_and_the_first_reason_stay_and_a_stop_only_gets_harder() {
        let mut command = Command::default();
        let at = clock::now();
        assert!(command.start(at));
        assert!(!command.start(at + std::time::Duration::from_secs(1)));
        assert_eq!(command.start, Some(at));
        assert!(command.stop(StopMode::Drain, NotStarted::Cancelled));
        assert!(!command.stop(StopMode::Drain, NotStarted::Aborted));
        assert!(command.stop(StopMode::Abort, NotStarted::Aborted));
        assert!(!command.stop(StopMode::Drain, NotStarted::Aborted));
        assert_eq!(
            command.stop,
            Some(Stop { mode: StopMode::Abort, reason: NotStarted::Cancelled })
        );
    }
}
