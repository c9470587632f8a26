//! What can happen to a run, and what is to be done about it.

use std::time::{Duration, Instant};

use inrush_common::{id::AgentName, outcome::NotStarted, stats::Completion};

/// How load is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Nothing new starts; what is in flight may finish within the grace.
    Drain,
    /// Everything ends now.
    Abort,
}

/// Why an agent cannot take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReadyKind {
    /// The target answers no connection.
    TargetUnreachable,
    /// Its operator does not allow it.
    Forbidden,
    /// Anything else.
    Other,
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named for what they are")]
pub enum Event {
    /// Its turn has come, and these agents have a share.
    Prepare { now: Instant, agents: Vec<AgentName> },
    /// Its turn has come, and it cannot be done.
    GiveUp { detail: String },
    /// An agent is ready. `round_trip` is that of its messages, as far as known.
    Ready { now: Instant, agent: AgentName, round_trip: Duration },
    /// An agent cannot take part.
    NotReady { agent: AgentName, kind: NotReadyKind, detail: String },
    /// A snapshot is stored; the agent's last one if it says why there are no more.
    Stored { now: Instant, agent: AgentName, last: Option<Completion> },
    /// An agent is lost. `heard` is when it was last known to live: that is its time of loss, not when it was noticed.
    Lost { now: Instant, heard: Instant, agent: AgentName, evidence: String },
    /// A stop rule of the plan is broken.
    Broken { now: Instant, mode: StopMode, evidence: String },
    /// The user wants it to end.
    Cancel { now: Instant, mode: StopMode },
    /// Time passes.
    Tick { now: Instant },
}

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named for what they are")]
pub enum Action {
    /// Send the agent its share.
    Assign { agent: AgentName },
    /// Tell the agent when to start.
    Start { agent: AgentName, at: Instant },
    /// Tell the agent to stop, and what to call the requests it has not started.
    Stop { agent: AgentName, mode: StopMode, reason: NotStarted },
    /// Tell the agent that the run is over for it.
    Release { agent: AgentName },
    /// Note that the agent did not get ready.
    NoteNotReady { agent: AgentName, detail: String },
    /// Note that the agent is lost, and when after the start.
    NoteLost { agent: AgentName, after_start: Duration, evidence: String },
}
