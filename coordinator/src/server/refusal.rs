//! What is refused, in words that tell the remedy, and the gRPC code of each: the one table between the two.

use std::time::Duration;

use inrush_common::{
    assign::SplitError,
    id::{AgentName, InvalidName, RunId},
    join::Role,
    stats::SHAPE,
    units::Nanos,
    wire::WireError,
};
use inrush_proto::PROTOCOL_VERSION;
use tonic::{Code, Status};

use crate::{
    certs::{CertsError, Refused, revoked_words},
    registry::NotTaken,
    store::StoreError,
};

/// The version of this coordinator.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Status texts travel in a header, and clients bound their headers.
const LONGEST_TEXT: usize = 3_000;

/// Something that is not done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The two sides would misread each other.
    #[error(
        "this coordinator (Inrush {VERSION}) speaks protocol {PROTOCOL_VERSION}, {peer} speaks protocol {theirs}: \
         run the same version of Inrush on both sides"
    )]
    Protocol {
        /// "the agent lab1 (Inrush 0.2.0)".
        peer: String,
        /// What it speaks.
        theirs: u32,
    },
    /// Its numbers could not be merged.
    #[error(
        "the agent {agent} (Inrush {version}) records histograms of shape {theirs:?}, this coordinator (Inrush \
         {VERSION}) merges {SHAPE:?}: run the same version of Inrush on both sides"
    )]
    Shape {
        /// The agent.
        agent: String,
        /// Its version.
        version: String,
        /// Its shape.
        theirs: String,
    },
    /// Not how a session starts.
    #[error("expected hello as the first message of a session, got {0}")]
    NoHello(&'static str),
    /// Nothing came.
    #[error("no hello within {}", Nanos::from(*.0))]
    HelloOverdue(Duration),
    /// Too many at the door.
    #[error("too many agents are saying hello, there was no room within {}: try again", Nanos::from(*.0))]
    Crowded(Duration),
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A hello without a field, or with too much in it.
    #[error("the hello of {agent} {what}")]
    Hello {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The registry says no.
    #[error(transparent)]
    NotTaken(#[from] NotTaken),
    /// Bytes that are no message of ours.
    #[error(
        "a message of {agent} cannot be read: {cause}; run the same version of Inrush on both sides"
    )]
    Message {
        /// The agent.
        agent: String,
        /// Why.
        cause: String,
    },
    /// A snapshot that means nothing.
    #[error(
        "a snapshot of {agent} cannot be used: {error}; run the same version of Inrush on both sides"
    )]
    Snapshot {
        /// The agent.
        agent: String,
        /// Which field, what was expected.
        error: WireError,
    },
    /// A snapshot in another's name.
    #[error("the agent {agent} (epoch {epoch}) handed in a snapshot of {theirs}")]
    Foreign {
        /// The agent.
        agent: String,
        /// Its process.
        epoch: String,
        /// Whose it is.
        theirs: String,
    },
    /// A plan with problems, rendered.
    #[error("{0}")]
    Plan(String),
    /// Not enough agents.
    #[error(
        "the plan wants {wanted} agent{}, {} connected{}: start more with `inrush agent --coordinator {address}`{}",
        if *.wanted == 1 { "" } else { "s" },
        if *.connected == 1 { "1 is".to_owned() } else { format!("{} are", .connected) },
        if .names.is_empty() { String::new() } else { format!(" ({})", .names) },
        if *.wanted == 1 { "" } else { " or lower agents.min" },
    )]
    TooFewAgents {
        /// The plan's `agents.min`.
        wanted: u32,
        /// Connected.
        connected: usize,
        /// Their names.
        names: String,
        /// Where to dial.
        address: String,
    },
    /// The plan does not fit the agents.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// Enough is waiting.
    #[error(
        "{0} runs are waiting already: wait for some of them to end, or cancel them with `inrush cancel RUN`"
    )]
    QueueFull(usize),
    /// No such run.
    #[error(
        "there is no run {run}{}; `inrush runs` lists them",
        if .nearest.is_empty() { String::new() } else { format!(" (the nearest are {})", .nearest) },
    )]
    UnknownRun {
        /// What was asked for.
        run: String,
        /// Ids like it.
        nearest: String,
    },
    /// No run at all.
    #[error("there are no runs yet: submit one with `inrush submit PLAN`")]
    NoRuns,
    /// A run that is over.
    #[error("the run {run} is over ({state})")]
    Ended {
        /// The run.
        run: RunId,
        /// How.
        state: &'static str,
    },
    /// A number without a meaning.
    #[error("unknown mode of cancelling {0}: expected drain or abort")]
    Mode(i32),
    /// Disk trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report cannot be written as JSON.
    #[error("the report cannot be written: {0}")]
    Json(String),
    /// No certificate was shown.
    #[error(
        "this call needs a certificate: join first, {} with a token from `inrush certs token`",
        match .0 { Role::Agent => "an agent with --join", Role::User => "a user with `inrush certs join`," }
    )]
    Stranger(Role),
    /// A certificate that is worth nothing.
    #[error("{0}")]
    Certificate(String),
    /// A certificate that was revoked meanwhile.
    #[error("{}", revoked_words(.0))]
    Revoked(AgentName),
    /// A certificate of the wrong kind.
    #[error(
        "the certificate of {name} is for {is}s, and this call is for {needs}s: join with a token of the role {needs}"
    )]
    Role {
        /// Whose.
        name: AgentName,
        /// What it is.
        is: Role,
        /// What it should be.
        needs: Role,
    },
    /// A hello in another's name.
    #[error(
        "the certificate is {certified}'s, and the agent calls itself {called}: start it with --name {certified}"
    )]
    NotItsName {
        /// Whose the certificate is.
        certified: AgentName,
        /// Who it says it is.
        called: AgentName,
    },
    /// Too many connections.
    #[error("this coordinator has as many connections as it takes: try again")]
    NoSeat,
    /// A connection without an other end.
    #[error("nobody is known to be at the other end of this connection")]
    Unknown,
    /// Nobody can join here.
    #[error(
        "this coordinator has no CA, and so gives no certificates: make one with `inrush certs init` and start it again"
    )]
    NoAuthority,
    /// A request for a certificate that has not what it needs.
    #[error("expected {0}: run the same version of Inrush on both sides")]
    Enrollment(&'static str),
    /// A token that lets nobody in.
    #[error(transparent)]
    Join(Refused),
    /// The CA fails.
    #[error(transparent)]
    Certs(CertsError),
    /// Going down.
    #[error("the coordinator is stopping")]
    Stopping,
    /// The agent does not keep up.
    #[error("the agent does not take its messages in time")]
    Clogged,
    /// Another stream of this agent took over, or it was given up.
    #[error(
        "this session was ended by the coordinator: another one took over, or nothing was heard for too long"
    )]
    SessionEnded,
}

impl Refusal {
    const fn code(&self) -> Code {
        match self {
            Self::Protocol { .. }
            | Self::Shape { .. }
            | Self::TooFewAgents { .. }
            | Self::Split(_)
            | Self::NoAuthority
            | Self::Ended { .. } => Code::FailedPrecondition,
            Self::NoHello(_)
            | Self::Name(_)
            | Self::Hello { .. }
            | Self::Message { .. }
            | Self::Snapshot { .. }
            | Self::Foreign { .. }
            | Self::Plan(_)
            | Self::Enrollment(_)
            | Self::Mode(_) => Code::InvalidArgument,
            Self::HelloOverdue(_) => Code::DeadlineExceeded,
            Self::NotTaken(NotTaken::NameHeld { .. }) => Code::AlreadyExists,
            Self::NotTaken(NotTaken::TooMany { .. }) | Self::QueueFull(_) => {
                Code::ResourceExhausted
            }
            Self::UnknownRun { .. } | Self::NoRuns => Code::NotFound,
            // An agent keeps its snapshots and tries again.
            Self::Store(_) | Self::Stopping | Self::Clogged | Self::Crowded(_) | Self::NoSeat => {
                Code::Unavailable
            }
            Self::Stranger(_) => Code::Unauthenticated,
            Self::Certificate(_)
            | Self::Revoked(_)
            | Self::Role { .. }
            | Self::NotItsName { .. }
            | Self::Join(_) => Code::PermissionDenied,
            Self::SessionEnded => Code::Aborted,
            Self::Json(_) | Self::Unknown | Self::Certs(_) => Code::Internal,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let mut text = refusal.to_string();
        if text.len() > LONGEST_TEXT {
            text.truncate(text.floor_char_boundary(LONGEST_TEXT));
            text.push_str("\n… and more; `inrush check PLAN` shows everything");
        }
        Self::new(refusal.code(), text)
    }
}
