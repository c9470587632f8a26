//! The coordinator as a server: one listener, two gRPC services, one driver.
//!
//! The gRPC handlers only translate. All that is known of agents and runs belongs to one task, the driver, which reacts to
//! events one at a time. Snapshots go past it to the store and reach it when they are on disk.

mod control;
mod door;
mod driver;
mod enrollment;
mod event;
mod farewell;
mod fleet;
mod lobby;
mod peer;
mod refusal;
mod session;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use inrush_common::{id::AgentName, join::Role};
use inrush_proto::{
    MAX_MESSAGE_BYTES,
    v1::{
        control_server::ControlServer, enrollment_server::EnrollmentServer,
        fleet_server::FleetServer,
    },
};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{service::interceptor::InterceptedService, transport::Server};

pub use refusal::{Refusal, VERSION};

use crate::{
    certs::{CertsError, Standings},
    store::{Store, StoreError, Writer},
};
use door::Lock;
use driver::Driver;
pub(crate) use enrollment::LONGEST_TOKEN;
use event::{Event, QUEUED_EVENTS, ask};

/// How long everything may take to end once it is told to; what then is left is dropped.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Largest message of an agent: a snapshot is some kilobytes for each request of the plan. What a client sends holds a
/// plan's files and may be larger.
const LARGEST_FROM_AN_AGENT: usize = 8 << 20;

/// Largest message of somebody who joins: a token, a key and two names.
const LARGEST_FROM_A_STRANGER: usize = 4 << 10;

/// Calls at a time on one connection. An agent has one, a client few.
const STREAMS_OF_A_CONNECTION: u32 = 256;

/// How the coordinator works.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the store is.
    pub data_dir: PathBuf,
    /// An agent that was not heard of for so long is lost; one that did not hear of us for so long stops its load.
    pub lease: Duration,
    /// How often agents give a sign of life. Several fit into a lease.
    pub heartbeat: Duration,
    /// How long agents may take to get ready.
    pub ready_within: Duration,
    /// The CA whose certificates are asked for; `None`: no TLS, and whoever connects may do everything.
    pub standings: Option<Standings>,
}

impl Config {
    /// The usual times.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            lease: Duration::from_secs(10),
            heartbeat: Duration::from_secs(1),
            ready_within: Duration::from_secs(30),
            standings: None,
        }
    }
}

/// Why the coordinator does not start, or what went wrong in it.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The certificates.
    #[error(transparent)]
    Certs(#[from] CertsError),
    /// The listener.
    #[error("the listening socket cannot be used: {0}")]
    Listener(#[from] std::io::Error),
    /// The gRPC server.
    #[error("the gRPC server failed: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// A part of the coordinator broke down.
    #[error("the coordinator's {part} broke down: {cause}")]
    Broken {
        /// Which.
        part: &'static str,
        /// How.
        cause: String,
    },
    /// A part of the coordinator does not end.
    #[error(
        "the coordinator's {part} did not end within {}",
        inrush_common::units::Nanos::from(END_WITHIN)
    )]
    Stuck {
        /// Which.
        part: &'static str,
    },
}

/// A running coordinator: a cheap handle.
#[derive(Debug, Clone)]
pub struct Coordinator {
    address: SocketAddr,
    events: event::Events,
    stop: CancellationToken,
    parts: Arc<Mutex<Option<Parts>>>,
}

#[derive(Debug)]
struct Parts {
    server: JoinHandle<Result<(), tonic::transport::Error>>,
    driver: JoinHandle<()>,
    tasks: TaskTracker,
    writer: Writer,
}

/// Starts a coordinator on `listener`, until `shutdown` is cancelled.
///
/// # Errors
/// When the data directory cannot be used.
pub async fn start(
    listener: TcpListener,
    config: Config,
    shutdown: CancellationToken,
) -> Result<Coordinator, ServerError> {
    let address = listener.local_addr()?;
    let lock = Lock::new(config.standings.as_ref())?;
    let data_dir = config.data_dir.clone();
    let opened = tokio::task::spawn_blocking(move || Store::open(&data_dir)).await;
    let (store, writer) = opened
        .map_err(|error| ServerError::Broken { part: "store", cause: error.to_string() })??;
    let (events, inbox) = mpsc::channel(QUEUED_EVENTS);
    // Cancelled when told to, and when one of the parts breaks down: half a coordinator is none.
    let stop = shutdown.child_token();
    // Cancelled after it, when the driver has told agents and watchers: then sessions and connections end.
    let closing = CancellationToken::new();
    let tasks = TaskTracker::new();

    let fleet = fleet::Sessions::new(events.clone(), store.clone(), closing.clone(), tasks.clone());
    let control =
        control::Clients::new(events.clone(), store.clone(), closing.clone(), tasks.clone());
    let fleet = FleetServer::new(fleet)
        .max_decoding_message_size(LARGEST_FROM_AN_AGENT)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let control = ControlServer::new(control)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let desk = enrollment::Desk::new(config.standings.clone());
    let desk = EnrollmentServer::new(desk).max_decoding_message_size(LARGEST_FROM_A_STRANGER);
    let router = Server::builder()
        .http2_keepalive_interval(Some(config.lease))
        .http2_keepalive_timeout(Some(config.lease))
        .max_concurrent_streams(STREAMS_OF_A_CONNECTION)
        .add_service(InterceptedService::new(fleet, peer::only(Role::Agent)))
        .add_service(InterceptedService::new(control, peer::only(Role::User)))
        .add_service(desk);

    if let Some(standings) = config.standings.clone() {
        tasks.spawn(standings.watch(stop.clone()));
    }
    let driver = Driver::new(config, address, store, tasks.clone());
    let driver = tokio::spawn({
        let guards = (stop.clone().drop_guard(), closing.clone().drop_guard());
        let stop = stop.clone();
        async move {
            let _cancelled_however_it_ends = guards;
            driver.run(inbox, stop).await;
        }
    });
    let server = tokio::spawn({
        let guard = stop.clone().drop_guard();
        let incoming = door::open(listener, lock, closing.clone());
        async move {
            let _cancelled_however_it_ends = guard;
            router.serve_with_incoming_shutdown(incoming, closing.cancelled_owned()).await
        }
    });
    let parts = Parts { server, driver, tasks, writer };
    Ok(Coordinator { address, events, stop, parts: Arc::new(Mutex::new(Some(parts))) })
}

impl Coordinator {
    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A local agent's process ended: it is lost now, there is no need to wait for its lease. `evidence` in words:
    /// "its process ended (signal 9)".
    pub async fn agent_process_ended(&self, name: &AgentName, evidence: String) {
        let agent = name.clone();
        let told = ask(&self.events, |done| Event::ProcessEnded { agent, evidence, done }).await;
        if told.is_err() {
            tracing::debug!(agent = %name, "an agent's process ended after the coordinator");
        }
    }

    /// Waits until the coordinator stopped, because it was told to or because a part of it broke down, and then
    /// until all of it ended, within a bound. The first of several handles to ask gets the error.
    ///
    /// # Errors
    /// When a part broke down, or did not end.
    pub async fn join(self) -> Result<(), ServerError> {
        self.stop.cancelled().await;
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(self.events);
        let Some(parts) = parts else { return Ok(()) };
        parts.tasks.close();
        let driver = ended("driver", parts.driver).await;
        let server = ended("gRPC server", parts.server).await;
        let tasks = timeout(END_WITHIN, parts.tasks.wait()).await;
        let tasks = tasks.map_err(|_| ServerError::Stuck { part: "sessions" });
        let writer = tokio::task::spawn_blocking(move || parts.writer.close());
        let writer = ended("store", writer).await;
        driver?;
        match server {
            // A peer that does not let go of its connection is no fault of ours.
            Err(ServerError::Stuck { .. }) => tracing::warn!("some connections had to be dropped"),
            server => server??,
        }
        tasks?;
        writer
    }
}

async fn ended<T>(part: &'static str, mut task: JoinHandle<T>) -> Result<T, ServerError> {
    match timeout(END_WITHIN, &mut task).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(ServerError::Broken { part, cause: error.to_string() }),
        Err(_) => {
            task.abort();
            Err(ServerError::Stuck { part })
        }
    }
}
