//! A coordinator for tests: real gRPC on port 0, and each test says what it answers.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "test support, of which each test binary uses a part"
)]

use std::{future::Future, net::SocketAddr, num::NonZeroUsize, time::Duration};

use inrush_agent::{
    bounds::Bounds,
    capacity::Limits,
    clock,
    credentials::Way,
    session::{self, Config, Means, SessionError},
};
use inrush_common::{
    id::Epoch,
    plan::{ClosedLoad, ConnectionPolicy, Expect, Load, Phase, Request, ThinkTime, Workload},
    schedule::{ConnectionProfile, Interleave},
    stats::Snapshot,
};
use inrush_proto::v1::{
    self, AgentMessage, CoordinatorMessage, agent_message, coordinator_message,
    fleet_server::{Fleet, FleetServer},
};
use inrush_testkit::LONG;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Status, Streaming, transport::Server};

/// The fake coordinator's clock runs so far ahead of the agent's.
pub const AHEAD_NS: u64 = 5_000_000_000;

/// Fails the test when what should come does not come.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LONG, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not come within {LONG:?}"),
    }
}

/// Where agents dial in.
pub struct Coordinator {
    pub addr: SocketAddr,
    streams: mpsc::Receiver<Conn>,
    server: JoinHandle<()>,
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Service {
    streams: mpsc::Sender<Conn>,
    refuse: Option<Status>,
}

#[tonic::async_trait]
impl Fleet for Service {
    type SessionStream = ReceiverStream<Result<CoordinatorMessage, Status>>;

    async fn session(
        &self,
        request: tonic::Request<Streaming<AgentMessage>>,
    ) -> Result<tonic::Response<Self::SessionStream>, Status> {
        if let Some(status) = &self.refuse {
            return Err(status.clone());
        }
        let mut from = request.into_inner();
        let first = from.message().await?.and_then(|message| message.kind);
        let Some(agent_message::Kind::Hello(hello)) = first else {
            return Err(Status::invalid_argument("no hello"));
        };
        let (to, messages) = mpsc::channel(64);
        let conn = Conn { hello, from, to, answers: true, heartbeats: vec![] };
        self.streams.send(conn).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(tonic::Response::new(ReceiverStream::new(messages)))
    }
}

impl Coordinator {
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// One that answers each hello with this status.
    pub async fn refusing(status: Status) -> Self {
        Self::with(Some(status)).await
    }

    async fn with(refuse: Option<Status>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (to, streams) = mpsc::channel(16);
        let service = FleetServer::new(Service { streams: to, refuse });
        let server = tokio::spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self { addr, streams, server }
    }

    /// The next agent that says hello. It is not welcomed yet.
    pub async fn hello(&mut self) -> Conn {
        soon("a hello", self.streams.recv()).await.expect("the server lives")
    }

    /// The next agent, welcomed with a long lease.
    pub async fn welcome(&mut self) -> Conn {
        let conn = self.hello().await;
        conn.welcome(Duration::from_secs(60), false).await;
        conn
    }
}

/// One agent's stream.
pub struct Conn {
    pub hello: v1::Hello,
    pub heartbeats: Vec<v1::Heartbeat>,
    from: Streaming<AgentMessage>,
    to: mpsc::Sender<Result<CoordinatorMessage, Status>>,
    answers: bool,
}

impl Conn {
    pub async fn send(&self, kind: coordinator_message::Kind) {
        let message = CoordinatorMessage { kind: Some(kind) };
        self.to.send(Ok(message)).await.expect("the agent's stream is up");
    }

    pub async fn welcome(&self, lease: Duration, forget_run: bool) {
        let lease_ns = clock::nanos(lease);
        let heartbeat_ns = lease_ns / 10;
        let welcome = v1::Welcome { lease_ns, heartbeat_ns, forget_run, renew_in_s: None };
        self.send(coordinator_message::Kind::Welcome(welcome)).await;
    }

    pub async fn assign(&self, run: &str, workload: &Workload) {
        self.send(coordinator_message::Kind::Assign(v1::Assign {
            run: run.to_owned(),
            workload: Some(workload.into()),
            ready_within_ns: clock::nanos(LONG),
        }))
        .await;
    }

    /// Starts the run of an agent in another process, whose clock is another one: at an instant that has passed.
    pub async fn start_now(&self, run: &str) {
        let start = v1::Start { run: run.to_owned(), at_ns: 0 };
        self.send(coordinator_message::Kind::Start(start)).await;
    }

    /// Starts the run as soon as a fleet could. Gives back the instant on the coordinator's clock.
    pub async fn start(&self, run: &str) -> u64 {
        let at_ns = clock::monotonic_ns() + AHEAD_NS + 20_000_000;
        let start = v1::Start { run: run.to_owned(), at_ns };
        self.send(coordinator_message::Kind::Start(start)).await;
        at_ns
    }

    pub async fn stop(&self, run: &str, mode: v1::stop::Mode, reason: &str) {
        self.send(coordinator_message::Kind::Stop(v1::Stop {
            run: run.to_owned(),
            mode: mode.into(),
            reason: reason.to_owned(),
        }))
        .await;
    }

    pub async fn ack(&self, snapshot: &v1::Snapshot) {
        let (run, seq) = (snapshot.run.clone(), snapshot.seq);
        self.send(coordinator_message::Kind::SnapshotAck(v1::SnapshotAck { run, seq })).await;
    }

    pub async fn release(&self, run: &str) {
        self.send(coordinator_message::Kind::Release(v1::Release { run: run.to_owned() })).await;
    }

    /// From now on heartbeats get no answer.
    pub fn fall_silent(&mut self) {
        self.answers = false;
    }

    /// The next message that is no heartbeat; heartbeats are answered meanwhile.
    pub async fn next(&mut self) -> agent_message::Kind {
        soon("a message", async {
            loop {
                let message = self.from.message().await.expect("the agent's stream is up");
                let kind = message.and_then(|message| message.kind);
                match kind.expect("the agent sends on") {
                    agent_message::Kind::Heartbeat(heartbeat) => self.answer(heartbeat).await,
                    kind => return kind,
                }
            }
        })
        .await
    }

    async fn answer(&mut self, heartbeat: v1::Heartbeat) {
        self.heartbeats.push(heartbeat);
        if self.answers {
            let now = clock::monotonic_ns() + AHEAD_NS;
            self.send(coordinator_message::Kind::HeartbeatReply(v1::HeartbeatReply {
                agent_sent_ns: heartbeat.sent_ns,
                received_ns: now,
                sent_ns: now,
            }))
            .await;
        }
    }

    /// Until the agent ends the stream.
    pub async fn end(mut self) {
        soon("the end of the stream", async {
            while let Ok(Some(_)) = self.from.message().await {}
        })
        .await;
    }

    pub async fn ready(&mut self, run: &str) {
        match self.next().await {
            agent_message::Kind::Ready(ready) => assert_eq!(ready.run, run),
            other => panic!("expected ready, got {other:?}"),
        }
    }

    pub async fn not_ready(&mut self, run: &str) -> (v1::not_ready::Kind, String) {
        match self.next().await {
            agent_message::Kind::NotReady(no) => {
                assert_eq!(no.run, run);
                (no.kind(), no.detail)
            }
            other => panic!("expected not ready, got {other:?}"),
        }
    }

    pub async fn started(&mut self, run: &str) -> v1::Started {
        match self.next().await {
            agent_message::Kind::Started(started) => {
                assert_eq!(started.run, run);
                started
            }
            other => panic!("expected started, got {other:?}"),
        }
    }

    /// The next snapshot. On a stream that is not the run's first the start is told again, some time.
    pub async fn snapshot(&mut self) -> v1::Snapshot {
        loop {
            match self.next().await {
                agent_message::Kind::Snapshot(snapshot) => return snapshot,
                agent_message::Kind::Started(_) => {}
                other => panic!("expected a snapshot, got {other:?}"),
            }
        }
    }

    /// All snapshots of a run, the last included; each is acknowledged.
    pub async fn results(&mut self) -> Vec<Snapshot> {
        let mut all = Vec::new();
        loop {
            let snapshot = self.snapshot().await;
            self.ack(&snapshot).await;
            let snapshot = Snapshot::try_from(snapshot).unwrap();
            let last = snapshot.completion.is_some();
            all.push(snapshot);
            if last {
                return all;
            }
        }
    }

    /// From an assignment to a running load.
    pub async fn run(&mut self, run: &str, workload: &Workload) {
        self.assign(run, workload).await;
        self.ready(run).await;
        self.start(run).await;
        self.started(run).await;
    }
}

/// An agent in this process.
pub struct Agent {
    pub end: JoinHandle<Result<(), SessionError>>,
    pub interrupts: mpsc::Sender<()>,
}

impl Agent {
    pub fn start(coordinator: &Coordinator) -> Self {
        Self::with(coordinator, None)
    }

    pub fn with(coordinator: &Coordinator, ceiling: Option<u64>) -> Self {
        let workers = NonZeroUsize::MIN;
        let config = Config {
            coordinator: Way::plain(coordinator.addr.to_string()),
            name: "lab1".parse().unwrap(),
            epoch: Epoch(7),
            labels: [("rack".to_owned(), "2".to_owned())].into(),
            means: Means {
                workers,
                sources: vec![],
                limits: Limits::read(workers, &[], ceiling),
                bounds: Bounds::default(),
            },
        };
        let (interrupts, received) = mpsc::channel(2);
        Self { end: tokio::spawn(session::run(config, received)), interrupts }
    }

    pub async fn interrupt(&self) {
        self.interrupts.send(()).await.expect("the agent lives");
    }

    pub async fn end(self) -> Result<(), SessionError> {
        soon("the agent's end", self.end).await.expect("the agent does not panic")
    }
}

/// A share of a plan against `url`.
pub fn workload(url: &str, connections: u64, requests: u64) -> Workload {
    Workload {
        requests: vec![Request {
            name: "hello".to_owned(),
            method: http::Method::GET,
            url: url.parse().unwrap(),
            headers: vec![],
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        }],
        phases: vec![Phase {
            name: Phase::ONLY.to_owned(),
            measure: true,
            starts_at: Duration::ZERO,
            load: Load::Closed(ClosedLoad {
                profile: ConnectionProfile::constant(connections, 0).unwrap(),
                lanes: Interleave::whole(requests.min(connections)),
                requests: Some(requests),
                duration: None,
                think_time: ThinkTime::None,
            }),
        }],
        timeout: LONG,
        connect_timeout: Duration::from_secs(5),
        grace: LONG,
        give_up_after: LONG,
        connections: ConnectionPolicy::default(),
        seed: 0,
    }
}

/// Sums over a run's snapshots.
pub struct Sum {
    pub started: u64,
    pub succeeded: u64,
    pub not_started: u64,
}

pub fn sum(snapshots: &[Snapshot]) -> Sum {
    let mut totals = inrush_common::stats::Totals::default();
    for snapshot in snapshots {
        totals.add(snapshot);
    }
    let total = totals.fleet().total();
    Sum {
        started: total.started,
        succeeded: total.succeeded,
        not_started: total.not_started_total(),
    }
}
