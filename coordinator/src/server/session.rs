//! One agent's stream: hello, then heartbeats, answers and snapshots until it breaks.
//!
//! A session decodes, answers heartbeats itself, and hands snapshots to the store; it acknowledges one only after the
//! store says that it is on disk. It decides nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use inrush_common::{
    capacity::Capacity,
    id::{AgentName, Epoch, RunId},
    report::ClockOffset,
    stats::{SHAPE, Snapshot},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{
        self, AgentMessage, CoordinatorMessage, agent_message::Kind, coordinator_message, not_ready,
    },
};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use super::{
    Refusal,
    event::{Event, Events, Hello, ask},
};
use crate::{
    aggregate::Digest,
    certs::Standing,
    clock,
    registry::{Identity, Link, Vitals},
    run::NotReadyKind,
    store::{Change, Store, StoreError, Written},
};

/// Messages waiting to be sent to one agent. When full, the agent does not read: the stream is ended.
pub(super) const OUTGOING: usize = 256;

/// Snapshots of one agent at the store. When full, nothing more is read from its stream: it keeps the rest.
const AT_THE_STORE: usize = 64;

/// A stream without a hello is no agent's.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// How long the store may take for what is left when a session ends.
const DRAINED_WITHIN: Duration = Duration::from_secs(4);

/// Longest words taken from an agent.
const LONGEST_WORDS: usize = 1_000;

/// A clock known no better than to an hour is not known: the figure says enough.
const WIDEST_BOUND_NS: u64 = 3_600_000_000_000;

/// Most labels of an agent.
const MOST_LABELS: usize = 64;

pub(super) struct Session {
    pub(super) peer: Option<SocketAddr>,
    /// The certificate that was shown; `None`: there is no TLS.
    pub(super) standing: Option<Arc<Standing>>,
    /// Places for sessions that have not said who they are.
    pub(super) strangers: Arc<Semaphore>,
    pub(super) link: u64,
    pub(super) out: mpsc::Sender<Result<CoordinatorMessage, Status>>,
    pub(super) events: Events,
    pub(super) store: Store,
    /// The coordinator stops.
    pub(super) stop: CancellationToken,
    /// This session is ended by the driver.
    pub(super) end: CancellationToken,
}

/// Who is at the other end.
struct Agent {
    name: AgentName,
    epoch: Epoch,
    vitals: Arc<Vitals>,
}

/// A snapshot that the store has not answered for.
struct Pending {
    digest: Digest,
    written: oneshot::Receiver<Result<Written, StoreError>>,
}

impl Session {
    pub(super) async fn run(self, mut inbound: Streaming<AgentMessage>) {
        let agent = match self.greet(&mut inbound).await {
            Ok(agent) => agent,
            Err(refusal) => {
                tracing::warn!(peer = ?self.peer, "an agent was refused: {refusal}");
                return self.finish(refusal);
            }
        };
        tracing::info!(agent = %agent.name, peer = ?self.peer, "an agent is connected");
        let ended = self.serve(&agent, &mut inbound).await;
        let gone = Event::Disconnected { agent: agent.name.clone(), link: self.link };
        if self.events.send(gone).await.is_err() {
            tracing::debug!(agent = %agent.name, "the session ended after the driver");
        }
        match ended {
            Ok(()) => tracing::info!(agent = %agent.name, "an agent's stream ended"),
            Err(refusal) => {
                // Whoever stops the coordinator knows.
                if matches!(refusal, Refusal::Stopping) {
                    tracing::info!(agent = %agent.name, "an agent's session ends: {refusal}");
                } else {
                    tracing::warn!(agent = %agent.name, "an agent's session ends: {refusal}");
                }
                self.finish(refusal);
            }
        }
    }

    /// The last words, if there is room for them.
    fn finish(self, refusal: Refusal) {
        if self.out.try_send(Err(refusal.into())).is_err() {
            tracing::debug!(peer = ?self.peer, "nobody reads why the session ends");
        }
    }

    async fn greet(&self, inbound: &mut Streaming<AgentMessage>) -> Result<Agent, Refusal> {
        // Before anything is read: what strangers can make this process hold is bounded.
        let _place = tokio::select! {
            place = timeout(HELLO_WITHIN, self.strangers.acquire()) => match place {
                Ok(Ok(place)) => place,
                Ok(Err(_)) => return Err(Refusal::Stopping),
                Err(_) => return Err(Refusal::Crowded(HELLO_WITHIN)),
            },
            () = self.stop.cancelled() => return Err(Refusal::Stopping),
        };
        let first = tokio::select! {
            first = timeout(HELLO_WITHIN, inbound.message()) => first,
            () = self.stop.cancelled() => return Err(Refusal::Stopping),
        };
        let hello = match first {
            Err(_) => return Err(Refusal::HelloOverdue(HELLO_WITHIN)),
            Ok(Ok(Some(AgentMessage { kind: Some(Kind::Hello(hello)) }))) => hello,
            Ok(Ok(Some(_))) => return Err(Refusal::NoHello("another message")),
            Ok(Ok(None)) => return Err(Refusal::NoHello("the end of the stream")),
            Ok(Err(_)) => return Err(Refusal::NoHello("a broken stream")),
        };
        let holds = (!hello.run.is_empty()).then(|| hello.run.parse::<RunId>()).transpose()?;
        let identity = identity(hello, self.peer)?;
        if let Some(standing) = self.standing.as_ref().filter(|it| it.name != identity.name) {
            let (certified, called) = (standing.name.clone(), identity.name);
            return Err(Refusal::NotItsName { certified, called });
        }
        let holds = match holds {
            Some(run) => {
                let known = self.store.is_assigned(&run, &identity.name, identity.epoch).await?;
                Some((run, known))
            }
            None => None,
        };
        let vitals = Arc::new(Vitals::new(clock::monotonic_ns()));
        let agent = Agent {
            name: identity.name.clone(),
            epoch: identity.epoch,
            vitals: Arc::clone(&vitals),
        };
        let link = Link { id: self.link, out: self.out.clone(), end: self.end.clone() };
        let renew_in = self.standing.as_ref().map(|standing| standing.renew_in);
        let hello = Box::new(Hello { identity, vitals, link, holds, renew_in });
        ask(&self.events, |reply| Event::Hello { hello, reply }).await??;
        Ok(agent)
    }

    async fn serve(
        &self,
        agent: &Agent,
        inbound: &mut Streaming<AgentMessage>,
    ) -> Result<(), Refusal> {
        let mut pending = VecDeque::new();
        let ended = self.listen(agent, inbound, &mut pending).await;
        // What has arrived counts, however the session ended, and although nobody waits for the acknowledgement any more.
        let left = pending.len();
        if timeout(DRAINED_WITHIN, self.drain(pending)).await.is_err() {
            tracing::error!(agent = %agent.name, left, "the store does not answer for an agent's snapshots");
        }
        ended
    }

    async fn listen(
        &self,
        agent: &Agent,
        inbound: &mut Streaming<AgentMessage>,
        pending: &mut VecDeque<Pending>,
    ) -> Result<(), Refusal> {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Err(Refusal::Stopping),
                () = self.end.cancelled() => return Err(Refusal::SessionEnded),
                name = revoked(self.standing.as_deref()) => return Err(Refusal::Revoked(name)),
                written = answer(pending) => {
                    let (digest, written) = written?;
                    self.stored(digest, written).await?;
                }
                message = inbound.message(), if pending.len() < AT_THE_STORE => match message {
                    Ok(Some(AgentMessage { kind: Some(kind) })) => {
                        let now_ns = clock::monotonic_ns();
                        agent.vitals.hear(now_ns);
                        if let Some(snapshot) = self.take(agent, kind, now_ns).await? {
                            pending.push_back(snapshot);
                        }
                    }
                    // A message of a kind that this version does not know.
                    Ok(Some(AgentMessage { kind: None })) => {}
                    Err(status) if matches!(status.code(), Code::Internal | Code::OutOfRange) => {
                        return Err(Refusal::Message {
                            agent: agent.name.to_string(),
                            cause: status.message().to_owned(),
                        });
                    }
                    Ok(None) | Err(_) => return Ok(()),
                },
            }
        }
    }

    /// Tells the driver of those that the store still takes.
    async fn drain(&self, pending: VecDeque<Pending>) {
        for Pending { digest, written } in pending {
            // One that failed is not stored, and was not acknowledged: the agent has it still.
            let Ok(Ok(written)) = written.await else { continue };
            if self.tell(Event::Stored { digest, written }).await.is_err() {
                return;
            }
        }
    }

    async fn take(
        &self,
        agent: &Agent,
        kind: Kind,
        now_ns: u64,
    ) -> Result<Option<Pending>, Refusal> {
        let name = || agent.name.clone();
        match kind {
            Kind::Hello(_) => {
                return Err(Refusal::Hello {
                    agent: agent.name.to_string(),
                    what: "came twice on one stream",
                });
            }
            Kind::Heartbeat(heartbeat) => {
                if let Some(offset_ns) = heartbeat.offset_ns {
                    let bound_ns = heartbeat.offset_bound_ns.min(WIDEST_BOUND_NS);
                    agent.vitals.set_clock(ClockOffset { offset_ns, bound_ns });
                }
                self.send(coordinator_message::Kind::HeartbeatReply(v1::HeartbeatReply {
                    agent_sent_ns: heartbeat.sent_ns,
                    received_ns: now_ns,
                    sent_ns: clock::monotonic_ns(),
                }))?;
            }
            Kind::Ready(ready) => {
                self.tell(Event::Ready { agent: name(), run: ready.run.parse()? }).await?;
            }
            Kind::NotReady(no) => {
                let run = no.run.parse()?;
                let (kind, detail) = why_not_ready(no);
                self.tell(Event::NotReady { agent: name(), run, kind, detail }).await?;
            }
            Kind::Started(started) => {
                let (run, at_ns) = (started.run.parse()?, started.at_ns);
                self.tell(Event::Started { agent: name(), run, at_ns }).await?;
            }
            Kind::Snapshot(snapshot) => {
                let snapshot = own_snapshot(agent, snapshot)?;
                let digest = Digest::from(&snapshot);
                let payload = digest.encoded.clone();
                let (run, key) = (snapshot.run, snapshot.key);
                let written = self.store.begin(Change::Snapshot { run, key, payload }).await?;
                return Ok(Some(Pending { digest, written }));
            }
        }
        Ok(None)
    }

    /// Acknowledges a snapshot, and tells the driver of it in the same breath: an agent that has all its acknowledgements
    /// may go, and one that is released has them all.
    async fn stored(&self, digest: Digest, written: Written) -> Result<(), Refusal> {
        let (run, seq) = (digest.run.to_string(), digest.seq.0);
        let place = self.events.reserve().await.map_err(|_| Refusal::Stopping)?;
        let sent = self.send(match written {
            Written::New | Written::Duplicate => {
                coordinator_message::Kind::SnapshotAck(v1::SnapshotAck { run, seq })
            }
            Written::NotAssigned => coordinator_message::Kind::Release(v1::Release { run }),
        });
        place.send(Event::Stored { digest, written });
        sent
    }

    async fn tell(&self, event: Event) -> Result<(), Refusal> {
        self.events.send(event).await.map_err(|_| Refusal::Stopping)
    }

    fn send(&self, kind: coordinator_message::Kind) -> Result<(), Refusal> {
        let message = CoordinatorMessage { kind: Some(kind) };
        self.out.try_send(Ok(message)).map_err(|_| Refusal::Clogged)
    }
}

/// Whose certificate was revoked, once it is.
async fn revoked(standing: Option<&Standing>) -> AgentName {
    let Some(standing) = standing else { return std::future::pending().await };
    standing.revoked.cancelled().await;
    standing.name.clone()
}

/// The store's answer for the oldest of the pending; never, if there are none. Nothing is lost when it is dropped.
async fn answer(pending: &mut VecDeque<Pending>) -> Result<(Digest, Written), Refusal> {
    let Some(oldest) = pending.front_mut() else { return std::future::pending().await };
    let written = (&mut oldest.written).await;
    let oldest = pending.pop_front().expect("it is still there");
    Ok((oldest.digest, written.map_err(|_| StoreError::Closed)??))
}

fn identity(hello: v1::Hello, peer: Option<SocketAddr>) -> Result<Identity, Refusal> {
    let version = words(hello.version);
    let called = words(hello.name.clone());
    // First of all: another protocol may mean something else by every other field.
    if hello.protocol != PROTOCOL_VERSION {
        let peer = format!("the agent {called} (Inrush {version})");
        return Err(Refusal::Protocol { peer, theirs: hello.protocol });
    }
    if hello.histogram_shape != SHAPE {
        let theirs = words(hello.histogram_shape);
        return Err(Refusal::Shape { agent: called, version, theirs });
    }
    let wrong = |what| Refusal::Hello { agent: called.clone(), what };
    let capacity = hello.capacity.ok_or_else(|| wrong("says nothing about its capacity"))?;
    if hello.labels.len() > MOST_LABELS {
        return Err(wrong("has more than 64 labels"));
    }
    let labels: BTreeMap<String, String> =
        hello.labels.into_iter().map(|(key, value)| (words(key), words(value))).collect();
    Ok(Identity {
        name: hello.name.parse()?,
        epoch: Epoch(hello.epoch),
        version,
        hostname: words(hello.host.unwrap_or_default().hostname),
        labels,
        capacity: Capacity::from(capacity),
        peer,
    })
}

fn own_snapshot(agent: &Agent, snapshot: v1::Snapshot) -> Result<Snapshot, Refusal> {
    let name = agent.name.to_string();
    let snapshot = Snapshot::try_from(snapshot)
        .map_err(|error| Refusal::Snapshot { agent: name.clone(), error })?;
    if snapshot.key.agent == agent.name && snapshot.key.epoch == agent.epoch {
        return Ok(snapshot);
    }
    let theirs = format!("{} (epoch {})", snapshot.key.agent, snapshot.key.epoch);
    Err(Refusal::Foreign { agent: name, epoch: agent.epoch.to_string(), theirs })
}

fn why_not_ready(no: v1::NotReady) -> (NotReadyKind, String) {
    use not_ready::Kind;
    let (kind, otherwise) = match no.kind() {
        Kind::TargetUnreachable => (NotReadyKind::TargetUnreachable, "no connection could be made"),
        Kind::Busy => (NotReadyKind::Other, "it is busy with something else"),
        Kind::Capacity => (NotReadyKind::Other, "a limit of its machine is too low"),
        Kind::Forbidden => (NotReadyKind::Forbidden, "its operator does not allow it"),
        Kind::Internal | Kind::Unspecified => (NotReadyKind::Other, "it does not say why"),
    };
    let detail = words(no.detail);
    (kind, if detail.is_empty() { otherwise.to_owned() } else { detail })
}

/// A stranger's words, bounded and on one line.
fn words(text: String) -> String {
    let cut = text.floor_char_boundary(LONGEST_WORDS);
    text.chars()
        .scan(0, |at, c| {
            *at += c.len_utf8();
            (*at <= cut).then_some(if c.is_control() { ' ' } else { c })
        })
        .collect()
}
