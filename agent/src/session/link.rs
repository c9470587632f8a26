//! The stream to the coordinator, and getting it back.
//!
//! A [`Link`] is always in one of three states: it waits before the next attempt, dials, or is up. It never gives up by
//! itself, save when the coordinator refuses the agent.

use std::{
    collections::hash_map::RandomState,
    fmt,
    future::Future,
    hash::{BuildHasher as _, Hasher as _},
    pin::Pin,
    time::{Duration, Instant},
};

use inrush_common::units::Nanos;
use inrush_proto::{
    MAX_MESSAGE_BYTES,
    v1::{
        self, AgentMessage, CoordinatorMessage, agent_message, coordinator_message,
        fleet_client::FleetClient,
    },
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming, transport::Endpoint};

use super::backoff;
use crate::{
    clock,
    credentials::{DialError, Renewal, Way, in_words},
};

/// To connect, and again to be welcomed.
const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// A connection on which this much time passes without any byte is asked for a sign of life, and is dead when
/// none comes in the same time again.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Messages on their way into the stream. When full, the session keeps its messages and waits to be told that there is
/// room ([`LinkEvent::Writable`]).
const QUEUE: usize = 16;

/// What a link reports.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// A new stream is up.
    Up(v1::Welcome),
    /// A message came.
    Message(coordinator_message::Kind),
    /// There is room for a message.
    Writable,
    /// The stream is gone. The link is getting another one.
    Lost,
    /// The coordinator does not want this agent. Nothing comes after it.
    Refused(Refused),
}

/// A final refusal, in the coordinator's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the coordinator at {coordinator} refuses this agent: {words}")]
pub struct Refused {
    /// Where.
    pub coordinator: String,
    /// Its words.
    pub words: String,
}

type Dialling = Pin<Box<dyn Future<Output = Result<(Stream, v1::Welcome), NoStream>> + Send>>;

enum State {
    Waiting(Instant),
    Dialling(Dialling),
    Up(Box<Stream>),
}

struct Stream {
    to: mpsc::Sender<AgentMessage>,
    from: Streaming<CoordinatorMessage>,
}

/// The way to one coordinator.
pub(super) struct Link {
    coordinator: Way,
    state: State,
    /// Attempts since the last stream.
    attempts: u32,
    /// What the last attempt said, so that it is not said every two seconds.
    complained: Option<String>,
    /// Of the certificate, planned at each welcome.
    renewal: Option<Renewal>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("coordinator", &self.coordinator).finish_non_exhaustive()
    }
}

impl Link {
    /// To `coordinator`; dials at the first [`event`](Self::event).
    pub(super) fn new(coordinator: Way) -> Self {
        let state = State::Waiting(clock::now());
        Self { coordinator, state, attempts: 0, complained: None, renewal: None }
    }

    /// Whether a stream is up.
    pub(super) const fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// The next event. Cancel safe: what is under way goes on at the next call.
    ///
    /// `hello` is asked for each time a stream is opened. `Writable` is only reported if `has_something_to_send`.
    pub(super) async fn event(
        &mut self,
        hello: impl Fn() -> v1::Hello,
        has_something_to_send: bool,
    ) -> LinkEvent {
        loop {
            match &mut self.state {
                State::Waiting(until) => {
                    tokio::time::sleep_until((*until).into()).await;
                    let dialling = dial(self.coordinator.clone(), hello());
                    self.state = State::Dialling(Box::pin(dialling));
                }
                State::Dialling(dialling) => match dialling.await {
                    Ok((stream, welcome)) => {
                        tracing::info!(
                            "connected to the coordinator at {}",
                            self.coordinator.address()
                        );
                        self.renewal = welcome.renew_in_s.and_then(|seconds| {
                            Renewal::plan(&self.coordinator, Duration::from_secs(seconds))
                        });
                        self.state = State::Up(Box::new(stream));
                        self.attempts = 0;
                        self.complained = None;
                        return LinkEvent::Up(welcome);
                    }
                    Err(NoStream::Refused(words)) => return self.refused(words),
                    Err(error) => self.complain(&error),
                },
                State::Up(stream) => {
                    let end = tokio::select! {
                        message = stream.from.message() => match message {
                            Ok(Some(CoordinatorMessage { kind: Some(kind) })) => {
                                return LinkEvent::Message(kind);
                            }
                            // A kind of a later protocol: the versions were compared, so it can be left out.
                            Ok(Some(_)) => continue,
                            Ok(None) => NoStream::Status("it closed the stream".to_owned()),
                            Err(status) => NoStream::from(status),
                        },
                        permit = stream.to.reserve(), if has_something_to_send => match permit {
                            Ok(_) => return LinkEvent::Writable,
                            Err(_) => NoStream::Status("the connection broke".to_owned()),
                        },
                    };
                    return match end {
                        NoStream::Refused(words) => self.refused(words),
                        lost => {
                            self.cut(&lost.to_string());
                            LinkEvent::Lost
                        }
                    };
                }
            }
        }
    }

    fn refused(&mut self, words: String) -> LinkEvent {
        self.state = State::Waiting(clock::now());
        LinkEvent::Refused(Refused { coordinator: self.coordinator.address().to_owned(), words })
    }

    /// Puts a message on its way, or gives it back when there is no room or no stream.
    ///
    /// # Errors
    /// With the message.
    pub(super) fn send(
        &self,
        message: agent_message::Kind,
    ) -> Result<(), Box<agent_message::Kind>> {
        let State::Up(stream) = &self.state else { return Err(Box::new(message)) };
        stream.to.try_send(AgentMessage { kind: Some(message) }).map_err(|error| {
            let (mpsc::error::TrySendError::Full(message)
            | mpsc::error::TrySendError::Closed(message)) = error;
            Box::new(message.kind.expect("it was sent with a kind"))
        })
    }

    /// Lets go of the stream, for the reason given. The next [`event`](Self::event) gets another one.
    pub(super) fn cut(&mut self, why: &str) {
        tracing::warn!(
            "lost the coordinator at {}: {why}; connecting again",
            self.coordinator.address()
        );
        self.state = State::Waiting(clock::now() + self.next_wait());
    }

    /// Ends the stream in order: what was sent is delivered, and the coordinator sees the end. Bounded.
    pub(super) async fn close(self, within: Duration) {
        let State::Up(stream) = self.state else { return };
        let Stream { to, mut from } = *stream;
        drop(to);
        let end = async { while let Ok(Some(_)) = from.message().await {} };
        if timeout(within, end).await.is_err() {
            tracing::debug!("the coordinator did not close the stream in return");
        }
    }

    fn next_wait(&mut self) -> Duration {
        let wait = backoff::delay(self.attempts, RandomState::new().build_hasher().finish());
        self.attempts = self.attempts.saturating_add(1);
        wait
    }

    fn complain(&mut self, error: &NoStream) {
        let text = error.to_string();
        if self.complained.as_ref() == Some(&text) {
            tracing::debug!("{text}");
        } else {
            tracing::warn!(
                "no coordinator at {}: {text}; trying again until it is there (is `inrush serve` running, and is \
                 --coordinator right?)",
                self.coordinator.address()
            );
            self.complained = Some(text);
        }
        self.state = State::Waiting(clock::now() + self.next_wait());
    }
}

/// Why there is no stream, or no longer one.
#[derive(Debug, thiserror::Error)]
enum NoStream {
    #[error("{0}")]
    Connect(String),
    #[error("no {what} within {}", Nanos::from(DIAL_WITHIN))]
    Deadline { what: &'static str },
    #[error("it answered with something else than a welcome")]
    NoWelcome,
    #[error("{0}")]
    Status(String),
    #[error("{0}")]
    Refused(String),
}

impl From<Status> for NoStream {
    fn from(status: Status) -> Self {
        match in_words(&status) {
            Some(error) => error.into(),
            None => refusal(&status).map_or_else(|| Self::Status(words(&status)), Self::Refused),
        }
    }
}

impl From<DialError> for NoStream {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Failed(words) => Self::Connect(words),
            DialError::Useless(words) => Self::Refused(words),
        }
    }
}

/// The words of a status that another attempt would only get again.
fn refusal(status: &Status) -> Option<String> {
    match status.code() {
        Code::FailedPrecondition
        | Code::AlreadyExists
        | Code::InvalidArgument
        | Code::PermissionDenied
        | Code::Unauthenticated => Some(status.message().to_owned()),
        Code::Unimplemented => Some(format!("it is no Inrush coordinator ({})", words(status))),
        _ => None,
    }
}

fn words(status: &Status) -> String {
    if status.message().is_empty() {
        status.code().description().to_lowercase()
    } else {
        status.message().to_owned()
    }
}

async fn dial(coordinator: Way, hello: v1::Hello) -> Result<(Stream, v1::Welcome), NoStream> {
    let tune = |endpoint: Endpoint| {
        endpoint
            .connect_timeout(DIAL_WITHIN)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
    };
    let channel = timeout(DIAL_WITHIN, coordinator.connect(tune))
        .await
        .map_err(|_| NoStream::Deadline { what: "connection" })??;
    let (to, messages) = mpsc::channel(QUEUE);
    let hello = AgentMessage { kind: Some(agent_message::Kind::Hello(hello)) };
    to.try_send(hello).expect("a new queue has room");
    let mut client = FleetClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let greet = async {
        let mut from = client.session(ReceiverStream::new(messages)).await?.into_inner();
        let first = from.message().await?.and_then(|message| message.kind);
        let Some(coordinator_message::Kind::Welcome(welcome)) = first else {
            return Err(NoStream::NoWelcome);
        };
        Ok((Stream { to, from }, welcome))
    };
    timeout(DIAL_WITHIN, greet).await.unwrap_or(Err(NoStream::Deadline { what: "welcome" }))
}
