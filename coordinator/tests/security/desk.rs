//! A coordinator with a CA in this process, and clients with and without certificates.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use inrush_agent::credentials::{JoinError, Keyring, Vault, Way, enrol};
use inrush_common::{
    id::AgentName,
    join::{JoinToken, Role},
    stats::SHAPE,
};
use inrush_coordinator::{
    certs::{Authority, Grant, Register, Standings},
    clock,
    server::{self, Config, Coordinator},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{self, AgentMessage, CoordinatorMessage, agent_message, fleet_client::FleetClient},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming, transport::Channel};

/// What takes longer has gone wrong.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(BOUND, future).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

pub(crate) struct Desk {
    pub(crate) address: String,
    pub(crate) dir: TempDir,
    coordinator: Coordinator,
    shutdown: CancellationToken,
}

impl Desk {
    pub(crate) async fn open() -> Self {
        Self::with_certificates_of(inrush_coordinator::certs::LIFETIME).await
    }

    pub(crate) async fn with_certificates_of(lifetime: Duration) -> Self {
        let dir = TempDir::new().unwrap();
        let (authority, _) = Authority::init(dir.path(), clock::wall()).unwrap();
        let standings = Standings::open(authority.with_lifetime(lifetime), dir.path()).unwrap();
        let config = Config { standings: Some(standings), ..Config::new(dir.path()) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shutdown = CancellationToken::new();
        let coordinator = server::start(listener, config, shutdown.clone()).await.unwrap();
        let address = coordinator.local_addr().to_string();
        Self { address, dir, coordinator, shutdown }
    }

    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        within("stopping", self.coordinator.join()).await.unwrap();
    }

    pub(crate) fn register(&self) -> Register {
        Register::open(self.dir.path()).unwrap()
    }

    pub(crate) fn token(&self, role: Role, name: Option<&str>) -> JoinToken {
        self.token_for(role, name, HOUR)
    }

    pub(crate) fn token_for(&self, role: Role, name: Option<&str>, life: Duration) -> JoinToken {
        let authority = Authority::open(self.dir.path()).unwrap();
        let name = name.map(|name| name.parse().unwrap());
        let grant = Grant { role, name, expires_in: life, made_by: None };
        let secret = self.register().invite(&grant, clock::wall()).unwrap();
        JoinToken { role, ca: authority.fingerprint(), secret }
    }

    pub(crate) async fn join_with(&self, token: &JoinToken) -> Result<Keyring, JoinError> {
        let vault = Vault::new(&self.dir.path().join("newcomer"));
        let host: AgentName = "host".parse().unwrap();
        within("joining", enrol::join(&self.address, token, None, &host, &vault)).await
    }

    pub(crate) async fn join(&self, role: Role, name: &str) -> Arc<Keyring> {
        Arc::new(self.join_with(&self.token(role, Some(name))).await.unwrap())
    }

    pub(crate) async fn channel(&self, keyring: &Arc<Keyring>) -> Channel {
        connect(&Way::secured(&self.address, Arc::clone(keyring))).await
    }
}

pub(crate) async fn connect(way: &Way) -> Channel {
    within("a connection", way.connect(|endpoint| endpoint)).await.unwrap()
}

/// An agent's stream after its hello, and the first answer.
pub(crate) async fn hello(
    channel: Channel,
    name: &str,
) -> Result<(mpsc::Sender<AgentMessage>, Streaming<CoordinatorMessage>, v1::Welcome), Status> {
    let (to, messages) = mpsc::channel(8);
    let hello = v1::Hello {
        protocol: PROTOCOL_VERSION,
        version: "0.1.0".to_owned(),
        name: name.to_owned(),
        epoch: 1,
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
        host: None,
    };
    to.try_send(AgentMessage { kind: Some(agent_message::Kind::Hello(hello)) }).unwrap();
    let mut fleet = FleetClient::new(channel);
    let mut from =
        within("a session", fleet.session(ReceiverStream::new(messages))).await?.into_inner();
    let first = within("a welcome", from.message()).await?.and_then(|message| message.kind);
    match first {
        Some(v1::coordinator_message::Kind::Welcome(welcome)) => Ok((to, from, welcome)),
        other => panic!("expected a welcome, got {other:?}"),
    }
}
