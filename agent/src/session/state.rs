//! The life of a run as the agent sees it, as one pure function.
//!
//! ```text
//! idle ─assign─▶ preparing ─▶ ready ─start─▶ running ─end or stop─▶ draining ─▶ handing in ─acks─▶ idle
//! ```
//!
//! A cut stream changes nothing here: the run goes on, results are kept, and only the lease ends it.

use std::collections::VecDeque;

use inrush_common::{id::RunId, outcome::NotStarted};

use crate::engine::StopMode;

/// How many executed runs are remembered, so that none is executed twice. The oldest is forgotten; a coordinator that
/// assigns one again after so many others is not of this world.
const REMEMBERED: usize = 1_000;

/// Where the agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for work.
    Idle,
    /// Resolves, checks limits, makes the first connection.
    Preparing(RunId),
    /// The engine is built and waits for its start.
    Ready(RunId),
    /// The engine makes load, or will at the instant agreed.
    Running(RunId),
    /// The engine was told to stop and its last interval is awaited.
    Draining(RunId),
    /// The last interval is in the uplink, and the coordinator has not all of it on disk.
    HandingIn(RunId),
}

impl Phase {
    /// The run it is about.
    pub(super) const fn run(&self) -> Option<&RunId> {
        match self {
            Self::Idle => None,
            Self::Preparing(run)
            | Self::Ready(run)
            | Self::Running(run)
            | Self::Draining(run)
            | Self::HandingIn(run) => Some(run),
        }
    }

    /// For people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Preparing(_) => "preparing",
            Self::Ready(_) => "ready",
            Self::Running(_) => "running",
            Self::Draining(_) => "draining",
            Self::HandingIn(_) => "handing in its results",
        }
    }
}

/// The agent's side of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    phase: Phase,
    executed: VecDeque<RunId>,
    leaving: bool,
}

/// What happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The coordinator gives work.
    Assign(RunId),
    /// The coordinator names the instant, in nanoseconds of its own clock.
    Start {
        /// The run.
        run: RunId,
        /// The instant.
        at_ns: u64,
    },
    /// The coordinator stops the run.
    Stop {
        /// The run.
        run: RunId,
        /// How.
        mode: StopMode,
        /// What becomes of the requests not started.
        reason: NotStarted,
    },
    /// The coordinator needs nothing more of the run.
    Release(RunId),
    /// A stream is up, and the coordinator still knows the run.
    Welcomed,
    /// A stream is up, and the coordinator does not know the run.
    WelcomedForget,
    /// Nothing was heard for the length of the lease.
    LeaseExpired,
    /// The engine is built.
    Prepared,
    /// It could not be.
    Unprepared {
        /// Whose fault.
        fault: Fault,
        /// In words.
        detail: String,
    },
    /// The engine's last interval is in the uplink.
    Completed,
    /// The engine was told to stop and did not in time.
    EngineStuck,
    /// The coordinator has all results on disk.
    Stored,
    /// The operator wants the agent to leave.
    Leave,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Prepare the assignment at hand.
    Prepare,
    /// Stop preparing.
    AbandonPreparing,
    /// Say that the agent is ready.
    SendReady(RunId),
    /// Say that it is not.
    SendNotReady {
        /// The run refused.
        run: RunId,
        /// Why.
        why: Refusal,
    },
    /// Start the engine at this instant of the coordinator's clock.
    StartEngine {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// Stop the engine.
    StopEngine {
        /// How.
        mode: StopMode,
        /// What becomes of the requests not started.
        reason: NotStarted,
    },
    /// Let go of the engine without its last interval, and say so in the results.
    GiveUpEngine,
    /// Forget engine and results.
    DropRun,
    /// Leave.
    Exit,
}

/// Whose fault it is that a run cannot be prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The target's, or the network's on the way to it.
    TargetUnreachable,
    /// This machine's: it is too small for the share.
    Capacity,
    /// The plan's: the agent's operator does not allow it.
    Forbidden,
    /// The agent's own, or a bad assignment's.
    Internal,
}

/// Why a run is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another one is under way.
    Busy,
    /// It was executed before.
    Executed,
    /// The agent is leaving.
    Leaving,
    /// It was stopped before the agent was ready.
    Stopped,
    /// Preparing failed.
    Failed {
        /// Whose fault.
        fault: Fault,
        /// In words.
        detail: String,
    },
}

impl Default for State {
    fn default() -> Self {
        Self { phase: Phase::Idle, executed: VecDeque::new(), leaving: false }
    }
}

impl State {
    /// Where the agent stands.
    pub(super) const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether a silent coordinator has to end something.
    pub(super) const fn needs_lease(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::HandingIn(_))
    }

    /// What follows from `event`. Messages about a run that is not the one at hand change nothing.
    #[must_use]
    pub(super) fn step(mut self, event: Event) -> (Self, Vec<Action>) {
        let actions = match event {
            Event::Assign(run) => self.assign(run),
            Event::Start { run, at_ns } => self.start(run, at_ns),
            Event::Stop { run, mode, reason } => self.stop(&run, mode, reason),
            Event::Release(run) if self.phase.run() == Some(&run) => self.forget(),
            Event::Release(_) => vec![],
            Event::Welcomed => match &self.phase {
                // The first one may have been lost with the stream.
                Phase::Ready(run) => vec![Action::SendReady(run.clone())],
                _ => vec![],
            },
            Event::WelcomedForget => self.forget(),
            Event::LeaseExpired => match &self.phase {
                Phase::Preparing(_) => self.idle(vec![Action::AbandonPreparing]),
                Phase::Ready(_) | Phase::Running(_) | Phase::Draining(_) => {
                    self.halt(StopMode::Abort, NotStarted::LeaseExpired)
                }
                _ => vec![],
            },
            Event::Prepared => self.prepared(),
            Event::Unprepared { fault, detail } => self.unprepared(fault, detail),
            Event::Completed => self.ended(vec![]),
            Event::EngineStuck => self.ended(vec![Action::GiveUpEngine]),
            Event::Stored => self.stored(),
            Event::Leave => self.leave(),
        };
        (self, actions)
    }

    fn assign(&mut self, run: RunId) -> Vec<Action> {
        if self.leaving {
            return vec![Action::SendNotReady { run, why: Refusal::Leaving }];
        }
        if self.executed.contains(&run) {
            return vec![Action::SendNotReady { run, why: Refusal::Executed }];
        }
        match &self.phase {
            Phase::Idle => {
                self.phase = Phase::Preparing(run);
                vec![Action::Prepare]
            }
            Phase::Preparing(held) if *held == run => vec![],
            Phase::Ready(held) if *held == run => vec![Action::SendReady(run)],
            _ => vec![Action::SendNotReady { run, why: Refusal::Busy }],
        }
    }

    fn start(&mut self, run: RunId, at_ns: u64) -> Vec<Action> {
        if self.phase != Phase::Ready(run.clone()) {
            return vec![];
        }
        self.remember(run.clone());
        self.phase = Phase::Running(run);
        vec![Action::StartEngine { at_ns }]
    }

    fn stop(&mut self, run: &RunId, mode: StopMode, reason: NotStarted) -> Vec<Action> {
        if self.phase.run() != Some(run) {
            return vec![];
        }
        match &self.phase {
            Phase::Preparing(_) => {
                let no = Action::SendNotReady { run: run.clone(), why: Refusal::Stopped };
                self.idle(vec![Action::AbandonPreparing, no])
            }
            Phase::Ready(_) | Phase::Running(_) => self.halt(mode, reason),
            Phase::Draining(_) if mode == StopMode::Abort => self.halt(mode, reason),
            _ => vec![],
        }
    }

    /// From any phase with an engine to draining.
    fn halt(&mut self, mode: StopMode, reason: NotStarted) -> Vec<Action> {
        if let Some(run) = self.phase.run().cloned() {
            self.remember(run.clone());
            self.phase = Phase::Draining(run);
        }
        vec![Action::StopEngine { mode, reason }]
    }

    /// Nobody wants anything of the run any more.
    fn forget(&mut self) -> Vec<Action> {
        match &self.phase {
            Phase::Idle => vec![],
            Phase::Preparing(_) => self.idle(vec![Action::AbandonPreparing]),
            _ => self.idle(vec![Action::DropRun]),
        }
    }

    fn prepared(&mut self) -> Vec<Action> {
        let Phase::Preparing(run) = &self.phase else { return vec![] };
        let run = run.clone();
        self.phase = Phase::Ready(run.clone());
        vec![Action::SendReady(run)]
    }

    fn unprepared(&mut self, fault: Fault, detail: String) -> Vec<Action> {
        let Phase::Preparing(run) = &self.phase else { return vec![] };
        let run = run.clone();
        self.idle(vec![Action::SendNotReady { run, why: Refusal::Failed { fault, detail } }])
    }

    fn ended(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let (Phase::Ready(run) | Phase::Running(run) | Phase::Draining(run)) = &self.phase else {
            return vec![];
        };
        let run = run.clone();
        self.remember(run.clone());
        self.phase = Phase::HandingIn(run);
        actions
    }

    fn stored(&mut self) -> Vec<Action> {
        match &self.phase {
            // Nothing is left to wait for, not even the release: it may get lost with the stream.
            Phase::HandingIn(_) => self.idle(vec![Action::DropRun]),
            _ => vec![],
        }
    }

    fn leave(&mut self) -> Vec<Action> {
        self.leaving = true;
        match &self.phase {
            Phase::Idle => self.idle(vec![]),
            Phase::Preparing(run) => {
                let no = Action::SendNotReady { run: run.clone(), why: Refusal::Leaving };
                self.idle(vec![Action::AbandonPreparing, no])
            }
            Phase::Ready(_) | Phase::Running(_) => {
                self.halt(StopMode::Drain, NotStarted::AgentLost)
            }
            Phase::HandingIn(_) | Phase::Draining(_) => vec![],
        }
    }

    /// To idle, and out if the agent is leaving.
    fn idle(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        self.phase = Phase::Idle;
        if self.leaving {
            actions.push(Action::Exit);
        }
        actions
    }

    fn remember(&mut self, run: RunId) {
        if self.executed.contains(&run) {
            return;
        }
        if self.executed.len() == REMEMBERED {
            self.executed.pop_front();
        }
        self.executed.push_back(run);
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
