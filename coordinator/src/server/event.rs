//! What the driver hears of: everything that happens, from sessions, clients and the process itself, in one queue.

use std::{sync::Arc, time::Duration};

use inrush_common::{
    id::{AgentName, RunId},
    plan::Plan,
};
use inrush_proto::v1;
use tokio::sync::{mpsc, oneshot, watch};

use super::Refusal;
use crate::{
    aggregate::Digest,
    registry::{Identity, Link, Vitals},
    run::{NotReadyKind, RunState, StopMode},
    store::Written,
};

/// Events waiting for the driver. When full, sessions and clients wait: agents go on making load by themselves, their
/// heartbeats are answered by their sessions.
pub(super) const QUEUED_EVENTS: usize = 4_096;

/// Where to ask the driver.
pub(super) type Events = mpsc::Sender<Event>;

/// The answer to a question.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// Something happened.
pub(super) enum Event {
    /// An agent says hello.
    Hello { hello: Box<Hello>, reply: Reply<()> },
    /// Its stream ended.
    Disconnected { agent: AgentName, link: u64 },
    /// It is ready.
    Ready { agent: AgentName, run: RunId },
    /// It cannot take part.
    NotReady { agent: AgentName, run: RunId, kind: NotReadyKind, detail: String },
    /// Its load started at that time of our clock.
    Started { agent: AgentName, run: RunId, at_ns: u64 },
    /// A snapshot of it was dealt with by the store.
    Stored { digest: Digest, written: Written },
    /// Its process ended.
    ProcessEnded { agent: AgentName, evidence: String, done: oneshot::Sender<()> },
    /// A client wants a run of this plan: would it be taken?
    Check { plan: Arc<Plan>, reply: Reply<()> },
    /// A run that a client wants is stored, and is to be queued.
    Submit { run: RunId, plan: Box<Plan>, reply: Reply<()> },
    /// A client wants to follow a run; `None`: it is over, or there is none.
    Watch { run: RunId, reply: oneshot::Sender<Option<watch::Receiver<v1::RunUpdate>>> },
    /// A client wants a run to end; `None`: it is over, or there is none.
    Cancel { run: RunId, mode: StopMode, reply: oneshot::Sender<Option<RunState>> },
    /// A client wants to see the agents.
    Agents { reply: oneshot::Sender<Vec<v1::AgentInfo>> },
}

/// A hello that was checked as far as it can be alone.
pub(super) struct Hello {
    pub(super) identity: Identity,
    pub(super) vitals: Arc<Vitals>,
    pub(super) link: Link,
    /// The run it holds, and whether it has a share of it.
    pub(super) holds: Option<(RunId, bool)>,
    /// When its certificate should be renewed; `None`: there is no TLS.
    pub(super) renew_in: Option<Duration>,
}

/// Puts a question to the driver and waits for the answer.
pub(super) async fn ask<T>(
    events: &Events,
    question: impl FnOnce(oneshot::Sender<T>) -> Event,
) -> Result<T, Refusal> {
    let (reply, answer) = oneshot::channel();
    events.send(question(reply)).await.map_err(|_| Refusal::Stopping)?;
    answer.await.map_err(|_| Refusal::Stopping)
}
