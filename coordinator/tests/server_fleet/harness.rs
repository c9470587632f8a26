//! A coordinator on a port of its own, and agents that do what the test says, over real gRPC.

use std::{collections::BTreeMap, future::Future, time::Duration};

use inrush_common::{
    id::{Epoch, SnapshotSeq},
    outcome::Outcome,
    report::Report,
    stats::{Completion, Gauges, Interval, SHAPE, Sample, Snapshot, SnapshotKey, Stats},
};
use inrush_coordinator::server::{self, Config, Coordinator};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{
        self, AgentMessage, CoordinatorMessage, RunState, agent_message,
        control_client::ControlClient, coordinator_message::Kind, fleet_client::FleetClient,
    },
};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, transport::Channel};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// 100 requests over 4 connections.
pub(crate) const PLAN: &str =
    "url = 'http://127.0.0.1:9/'\n[load.closed]\nconnections = 4\nrequests = 100\n";

/// What takes longer has gone wrong.
const BOUND: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(BOUND, future).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

pub(crate) struct Fleet {
    pub(crate) coordinator: Coordinator,
    pub(crate) control: ControlClient<Channel>,
    shutdown: CancellationToken,
    data_dir: TempDir,
}

impl Fleet {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(configure: impl FnOnce(&mut Config)) -> Self {
        Self::on(TempDir::new().unwrap(), configure).await
    }

    pub(crate) async fn on(data_dir: TempDir, configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(data_dir.path());
        configure(&mut config);
        let shutdown = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let coordinator = server::start(listener, config, shutdown.clone()).await.unwrap();
        let address = format!("http://{}", coordinator.local_addr());
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        Self { coordinator, control: ControlClient::new(channel), shutdown, data_dir }
    }

    /// Stops it; the data directory outlives it.
    pub(crate) async fn stop(self) -> TempDir {
        self.shutdown.cancel();
        drop(self.control);
        within("stopping", self.coordinator.join()).await.unwrap();
        self.data_dir
    }

    pub(crate) async fn agent(&self, name: &str) -> Agent {
        Agent::dial(self, hello(name, 1)).await.unwrap()
    }

    /// The coordinator's database, in the hands of somebody else.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.data_dir.path().join("inrush.db")).unwrap()
    }

    pub(crate) async fn agents(&mut self) -> Vec<v1::AgentInfo> {
        let reply = within("a list", self.control.list_agents(v1::ListAgentsRequest {})).await;
        reply.unwrap().into_inner().agents
    }

    pub(crate) async fn submit(&mut self, plan: &str) -> Result<String, Status> {
        Self::submit_on(&mut self.control, plan).await
    }

    pub(crate) async fn submit_on(
        control: &mut ControlClient<Channel>,
        plan: &str,
    ) -> Result<String, Status> {
        let request = v1::SubmitRequest {
            protocol: PROTOCOL_VERSION,
            source_name: "plan.toml".to_owned(),
            source: plan.to_owned(),
            files: BTreeMap::new(),
        };
        let reply = within("submitting", control.submit(request)).await?;
        Ok(reply.into_inner().run)
    }

    pub(crate) async fn watch(&mut self, run: &str) -> Streaming<v1::RunUpdate> {
        let request = v1::WatchRequest { run: run.to_owned() };
        within("watching", self.control.watch(request)).await.unwrap().into_inner()
    }

    /// The last update of a run, with its report.
    pub(crate) async fn end_of(&mut self, run: &str) -> (v1::RunUpdate, Report) {
        let mut updates = self.watch(run).await;
        let mut last = None;
        while let Some(update) = within("an update", updates.message()).await.unwrap() {
            last = Some(update);
        }
        let last = last.unwrap();
        let report = serde_json::from_slice(&last.report_json)
            .unwrap_or_else(|error| panic!("{error}: {last:?}"));
        (last, report)
    }

    /// Waits until a run is in a state.
    pub(crate) async fn until(&mut self, run: &str, state: RunState) -> v1::RunUpdate {
        let mut updates = self.watch(run).await;
        loop {
            let update = within("an update", updates.message()).await.unwrap();
            let update = update.unwrap_or_else(|| panic!("{run} was never {state:?}"));
            if update.state() == state {
                return update;
            }
        }
    }

    pub(crate) async fn report(&mut self, run: &str) -> Vec<u8> {
        let request = v1::GetReportRequest { run: run.to_owned() };
        let reply = within("a report", self.control.get_report(request)).await.unwrap();
        reply.into_inner().report_json.to_vec()
    }

    pub(crate) async fn cancel(&mut self, run: &str, mode: v1::cancel_request::Mode) -> RunState {
        let request = v1::CancelRequest { run: run.to_owned(), mode: mode.into() };
        within("cancelling", self.control.cancel(request)).await.unwrap().into_inner().state()
    }
}

pub(crate) fn hello(name: &str, epoch: u64) -> v1::Hello {
    v1::Hello {
        protocol: PROTOCOL_VERSION,
        version: "0.1.0".to_owned(),
        name: name.to_owned(),
        epoch,
        labels: BTreeMap::new(),
        capacity: Some(v1::Capacity {
            workers: 1,
            files: 1_000,
            ports: 28_232,
            sources: 1,
            ..v1::Capacity::default()
        }),
        histogram_shape: SHAPE.to_owned(),
        run: String::new(),
        host: Some(v1::Host { hostname: "host.example.test".to_owned() }),
    }
}

pub(crate) struct Agent {
    pub(crate) welcome: v1::Welcome,
    name: String,
    epoch: u64,
    to: mpsc::Sender<AgentMessage>,
    from: Streaming<CoordinatorMessage>,
}

impl Agent {
    pub(crate) async fn dial(fleet: &Fleet, hello: v1::Hello) -> Result<Self, Status> {
        let (name, epoch) = (hello.name.clone(), hello.epoch);
        let mut agent = Self::open(fleet, &name, epoch).await?;
        agent.say(agent_message::Kind::Hello(hello)).await;
        match agent.next().await? {
            Kind::Welcome(welcome) => agent.welcome = welcome,
            other => panic!("expected a welcome, got {other:?}"),
        }
        Ok(agent)
    }

    /// A stream on which nothing is said yet.
    pub(crate) async fn open(fleet: &Fleet, name: &str, epoch: u64) -> Result<Self, Status> {
        let address = format!("http://{}", fleet.coordinator.local_addr());
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let (to, messages) = mpsc::channel(64);
        let mut client = FleetClient::new(channel);
        let session = within("a session", client.session(ReceiverStream::new(messages))).await?;
        let (name, from) = (name.to_owned(), session.into_inner());
        Ok(Self { welcome: v1::Welcome::default(), name, epoch, to, from })
    }

    pub(crate) async fn say(&self, kind: agent_message::Kind) {
        self.to.send(AgentMessage { kind: Some(kind) }).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Result<Kind, Status> {
        let message = within("a message", self.from.message()).await?;
        Ok(message.and_then(|message| message.kind).expect("the stream goes on"))
    }

    /// The words and the code with which the coordinator ends the session.
    pub(crate) async fn refusal(&mut self) -> Status {
        loop {
            if let Err(status) = within("the end", self.from.message()).await {
                return status;
            }
        }
    }

    pub(crate) async fn assigned(&mut self) -> v1::Assign {
        match self.next().await.unwrap() {
            Kind::Assign(assign) => assign,
            other => panic!("expected an assignment, got {other:?}"),
        }
    }

    pub(crate) async fn ready(&mut self, run: &str) {
        self.say(agent_message::Kind::Ready(v1::Ready { run: run.to_owned() })).await;
    }

    pub(crate) async fn not_ready(&mut self, run: &str, kind: v1::not_ready::Kind, detail: &str) {
        let (run, detail) = (run.to_owned(), detail.to_owned());
        let no = v1::NotReady { run, kind: kind.into(), detail };
        self.say(agent_message::Kind::NotReady(no)).await;
    }

    pub(crate) async fn start(&mut self) -> v1::Start {
        match self.next().await.unwrap() {
            Kind::Start(start) => start,
            other => panic!("expected a start, got {other:?}"),
        }
    }

    pub(crate) async fn stopped(&mut self) -> v1::Stop {
        match self.next().await.unwrap() {
            Kind::Stop(stop) => stop,
            other => panic!("expected a stop, got {other:?}"),
        }
    }

    pub(crate) async fn released(&mut self, run: &str) {
        match self.next().await.unwrap() {
            Kind::Release(release) => assert_eq!(release.run, run),
            other => panic!("expected a release, got {other:?}"),
        }
    }

    /// From the assignment to the start, with another agent or several.
    pub(crate) async fn get_ready(&mut self) -> v1::Assign {
        let assign = self.assigned().await;
        self.ready(&assign.run).await;
        assign
    }

    /// A snapshot in which each of `millis` is the response time of a request.
    pub(crate) fn snapshot(&self, run: &str, seq: u64, millis: &[u64]) -> Snapshot {
        let mut stats = Stats::new(1, 1);
        stats.phases[0].until_ns = seq * SECOND_NS;
        for millis in millis {
            stats.phases[0].requests[0].started += 1;
            stats.phases[0].requests[0].record(&Sample {
                outcome: Outcome::Response { status: 200, success: true },
                response_time: millis * 1_000_000,
                service_time: Some(millis * 1_000_000),
                schedule_lag: Some(1_000),
                ttfb: Some(millis * 900_000),
                bytes_out: 50,
                bytes_in: 100,
            });
        }
        Snapshot {
            run: run.parse().unwrap(),
            key: SnapshotKey {
                agent: self.name.parse().unwrap(),
                epoch: Epoch(self.epoch),
                seq: SnapshotSeq(seq),
            },
            interval: Interval { from_ns: (seq - 1) * SECOND_NS, to_ns: seq * SECOND_NS },
            stats,
            gauges: Gauges { cpu_ns: 1, cpu_capacity_ns: SECOND_NS, ..Gauges::default() },
            completion: None,
        }
    }

    pub(crate) async fn hand_in(&mut self, snapshot: &Snapshot) {
        self.say(agent_message::Kind::Snapshot(snapshot.into())).await;
    }

    pub(crate) async fn acknowledged(&mut self, seq: u64) {
        match self.next().await.unwrap() {
            Kind::SnapshotAck(ack) => assert_eq!(ack.seq, seq),
            other => panic!("expected an acknowledgement, got {other:?}"),
        }
    }

    /// The last snapshot, taken and acknowledged.
    pub(crate) async fn complete(&mut self, run: &str, seq: u64, millis: &[u64], why: Completion) {
        let last = Snapshot { completion: Some(why), ..self.snapshot(run, seq, millis) };
        self.hand_in(&last).await;
        self.acknowledged(seq).await;
    }

    pub(crate) async fn heartbeat(&self, sent_ns: u64) {
        let heartbeat = v1::Heartbeat { sent_ns, offset_ns: Some(-5), offset_bound_ns: 7 };
        self.say(agent_message::Kind::Heartbeat(heartbeat)).await;
    }
}

/// Two agents with a run that has started.
pub(crate) async fn two_at_work(fleet: &mut Fleet, plan: &str) -> (String, Agent, Agent) {
    let (mut lab1, mut lab2) = (fleet.agent("lab1").await, fleet.agent("lab2").await);
    let run = fleet.submit(plan).await.unwrap();
    lab1.get_ready().await;
    lab2.get_ready().await;
    lab1.start().await;
    lab2.start().await;
    (run, lab1, lab2)
}
