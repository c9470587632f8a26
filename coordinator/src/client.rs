//! A client of a coordinator: what the command line asks over gRPC, with errors in words.

use std::{collections::BTreeMap, error::Error, time::Duration};

use bytes::Bytes;
use inrush_agent::credentials::{DialError, Way, in_words};
use inrush_common::{
    address::{self, BadAddress},
    id::{AgentName, InvalidName, RunId},
    join::{Fingerprint, JoinToken, Role, Secret},
    report::Report,
};
use inrush_proto::{
    MAX_MESSAGE_BYTES, PROTOCOL_VERSION,
    v1::{
        AgentInfo, CancelRequest, GetReportRequest, InviteRequest, ListAgentsRequest,
        ListRunsRequest, RunInfo, RunUpdate, SubmitRequest, WatchRequest, cancel_request::Mode,
        control_client::ControlClient, enrollment_client::EnrollmentClient,
    },
};
use tonic::{
    Code, Status, Streaming,
    transport::{Channel, Endpoint},
};

use crate::exit::ExitStatus;

/// For a connection to the coordinator.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// For one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Between two updates of a watched run, which come once a second.
const UPDATE_WITHIN: Duration = Duration::from_secs(30);
/// An idle connection is tried this often, so that a coordinator whose machine is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Why a coordinator gave no answer, or not the wanted one.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No address.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// No connection.
    #[error(
        "no coordinator answers at {address} ({cause}); start one with `inrush serve`, or name another with \
         --coordinator"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        cause: String,
    },
    /// The user's certificate is of no use there.
    #[error("the coordinator at {address} cannot be used: {words}")]
    Useless {
        /// Where.
        address: String,
        /// Why, and what to do.
        words: String,
    },
    /// It went away while it was being asked or watched.
    #[error("the coordinator at {address} went away ({cause})")]
    Lost {
        /// Where.
        address: String,
        /// What was noticed.
        cause: String,
    },
    /// What was asked for is not possible; these are its own words.
    #[error("{0}")]
    Refused(String),
    /// It failed; these are its own words.
    #[error("the coordinator at {address} failed: {message}")]
    Failed {
        /// Where.
        address: String,
        /// Its words.
        message: String,
    },
    /// It speaks, but not our language.
    #[error(
        "the coordinator at {address} sent a {what} that this version of inrush does not understand ({cause}); use the \
         same version on both sides"
    )]
    Misunderstood {
        /// Where.
        address: String,
        /// Which thing.
        what: &'static str,
        /// Why.
        cause: String,
    },
}

impl ClientError {
    /// The exit status it stands for.
    pub const fn status(&self) -> ExitStatus {
        match self {
            Self::Address { .. } | Self::Refused(_) | Self::Useless { .. } => ExitStatus::Usage,
            Self::Unreachable { .. }
            | Self::Lost { .. }
            | Self::Failed { .. }
            | Self::Misunderstood { .. } => ExitStatus::Internal,
        }
    }
}

/// A connection to a coordinator.
#[derive(Debug, Clone)]
pub struct Client {
    address: String,
    channel: Channel,
    control: ControlClient<Channel>,
}

impl Client {
    /// Connects to the coordinator at `address`, `HOST:PORT`, without TLS. Proxies named in the environment are not used.
    ///
    /// # Errors
    /// When it is no address, or nobody answers there.
    pub async fn connect(address: &str) -> Result<Self, ClientError> {
        Self::dial(&Way::plain(address::coordinator(address)?)).await
    }

    /// Connects to the coordinator at the end of `way`.
    ///
    /// # Errors
    /// When nobody answers there, or somebody else, or our certificate is of no use.
    pub async fn dial(way: &Way) -> Result<Self, ClientError> {
        let address = way.address().to_owned();
        let tune = |endpoint: Endpoint| {
            endpoint
                .connect_timeout(CONNECT_WITHIN)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .tcp_nodelay(true)
        };
        let late = || DialError::Failed(format!("no answer within {} s", CONNECT_WITHIN.as_secs()));
        let channel = tokio::time::timeout(CONNECT_WITHIN, way.connect(tune)).await;
        let channel = channel.unwrap_or_else(|_| Err(late())).map_err(|error| match error {
            DialError::Failed(cause) => {
                ClientError::Unreachable { address: address.clone(), cause }
            }
            DialError::Useless(words) => ClientError::Useless { address: address.clone(), words },
        })?;
        let control = ControlClient::new(channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { address, channel, control })
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Submits a plan: its source as written, and the files it names.
    ///
    /// # Errors
    /// When it is refused or nobody answers; so for all calls here.
    pub async fn submit(
        &mut self,
        source_name: &str,
        source: &str,
        files: BTreeMap<String, Bytes>,
    ) -> Result<RunId, ClientError> {
        let request = SubmitRequest {
            protocol: PROTOCOL_VERSION,
            source_name: source_name.to_owned(),
            source: source.to_owned(),
            files,
        };
        let reply = answer(&self.address, self.control.submit(request)).await?;
        self.run_id(&reply.run)
    }

    /// Watches a run; without an id, the newest.
    pub async fn watch(&mut self, run: Option<&RunId>) -> Result<Watch, ClientError> {
        let request = WatchRequest { run: id_or_newest(run) };
        let updates = answer(&self.address, self.control.watch(request)).await?;
        Ok(Watch { address: self.address.clone(), updates })
    }

    /// Stops a run.
    pub async fn cancel(&mut self, run: &RunId, mode: Mode) -> Result<(), ClientError> {
        let request = CancelRequest { run: run.to_string(), mode: mode.into() };
        answer(&self.address, self.control.cancel(request)).await.map(drop)
    }

    /// The agents.
    pub async fn agents(&mut self) -> Result<Vec<AgentInfo>, ClientError> {
        let asked = self.control.list_agents(ListAgentsRequest {});
        Ok(answer(&self.address, asked).await?.agents)
    }

    /// The runs, newest first.
    pub async fn runs(&mut self) -> Result<Vec<RunInfo>, ClientError> {
        let asked = self.control.list_runs(ListRunsRequest {});
        Ok(answer(&self.address, asked).await?.runs)
    }

    /// The report of a run; without an id, of the newest.
    pub async fn report(&mut self, run: Option<&RunId>) -> Result<Report, ClientError> {
        let request = GetReportRequest { run: id_or_newest(run) };
        let reply = answer(&self.address, self.control.get_report(request)).await?;
        report(&self.address, &reply.report_json)
    }

    /// Has a token made for one more agent.
    pub async fn invite(
        &mut self,
        name: Option<&AgentName>,
        expires_in: Duration,
    ) -> Result<JoinToken, ClientError> {
        let request = InviteRequest {
            name: name.map(AgentName::to_string).unwrap_or_default(),
            expires_in_s: expires_in.as_secs(),
        };
        let mut desk = EnrollmentClient::new(self.channel.clone());
        let invitation = answer(&self.address, desk.invite(request)).await?;
        let misunderstood = |cause: std::array::TryFromSliceError| ClientError::Misunderstood {
            address: self.address.clone(),
            what: "token",
            cause: cause.to_string(),
        };
        let ca = invitation.ca_fingerprint.as_ref().try_into().map_err(misunderstood)?;
        let secret = invitation.secret.as_ref().try_into().map_err(misunderstood)?;
        Ok(JoinToken { role: Role::Agent, ca: Fingerprint(ca), secret: Secret(secret) })
    }

    fn run_id(&self, text: &str) -> Result<RunId, ClientError> {
        text.parse().map_err(|error: InvalidName| ClientError::Misunderstood {
            address: self.address.clone(),
            what: "run id",
            cause: error.to_string(),
        })
    }
}

/// A watched run.
#[derive(Debug)]
pub struct Watch {
    address: String,
    updates: Streaming<RunUpdate>,
}

impl Watch {
    /// The next update. May be dropped and called again without losing one.
    ///
    /// # Errors
    /// When the coordinator went away, or says nothing for half a minute.
    pub async fn next(&mut self) -> Result<RunUpdate, ClientError> {
        let lost = |cause| ClientError::Lost { address: self.address.clone(), cause };
        let next = tokio::time::timeout(UPDATE_WITHIN, self.updates.message());
        match next.await {
            Ok(Ok(Some(update))) => Ok(update),
            Ok(Ok(None)) => Err(lost("it ended the stream before the run's end".to_owned())),
            Ok(Err(status)) => Err(from_status(&self.address, &status)),
            Err(_) => Err(lost(format!("nothing heard for {} s", UPDATE_WITHIN.as_secs()))),
        }
    }

    /// The report in a run's last update; `None` in the updates before.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn report(&self, update: &RunUpdate) -> Result<Option<Report>, ClientError> {
        if update.report_json.is_empty() {
            return Ok(None);
        }
        report(&self.address, &update.report_json).map(Some)
    }
}

fn report(address: &str, json: &[u8]) -> Result<Report, ClientError> {
    serde_json::from_slice(json).map_err(|error| ClientError::Misunderstood {
        address: address.to_owned(),
        what: "report",
        cause: error.to_string(),
    })
}

fn id_or_newest(run: Option<&RunId>) -> String {
    run.map(RunId::to_string).unwrap_or_default()
}

async fn answer<T>(
    address: &str,
    asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, ClientError> {
    match tokio::time::timeout(ANSWER_WITHIN, asked).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(from_status(address, &status)),
        Err(_) => Err(ClientError::Lost {
            address: address.to_owned(),
            cause: format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
        }),
    }
}

/// The one table from gRPC codes to what they mean for a user.
fn from_status(address: &str, status: &Status) -> ClientError {
    let address = address.to_owned();
    match in_words(status) {
        Some(DialError::Useless(words)) => return ClientError::Useless { address, words },
        Some(DialError::Failed(cause)) => return ClientError::Lost { address, cause },
        None => {}
    }
    let message = status.message().to_owned();
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::ResourceExhausted
        | Code::OutOfRange => ClientError::Refused(message),
        Code::Unimplemented => ClientError::Misunderstood {
            address,
            what: "refusal",
            cause: format!("it does not know the call: {message}"),
        },
        // What the transport makes of a broken connection has its reason in the source.
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::DeadlineExceeded
            if status.source().is_some() =>
        {
            ClientError::Lost { address, cause: root_cause(status) }
        }
        Code::Unavailable | Code::Cancelled => ClientError::Lost { address, cause: message },
        _ => ClientError::Failed { address, message },
    }
}

/// The innermost error: the outer ones say "transport error".
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_asked_wrongly_is_a_usage_error_and_what_broke_is_not() {
        let of = |code| from_status("127.0.0.1:7070", &Status::new(code, "words")).status();
        assert_eq!(of(Code::InvalidArgument), ExitStatus::Usage);
        assert_eq!(of(Code::NotFound), ExitStatus::Usage);
        assert_eq!(of(Code::Unavailable), ExitStatus::Internal);
        assert_eq!(of(Code::Internal), ExitStatus::Internal);
    }

    #[tokio::test]
    async fn nobody_there_is_said_with_the_remedy() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let error = Client::connect(&address).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&address) && text.contains("refused"), "{text}");
        assert!(text.contains("inrush serve"), "{text}");
    }
}
