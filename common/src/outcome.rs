//! How a request can end. Closed sets, counted in arrays: the text of an error is only ever an example beside a count.

use std::fmt;

/// Why a request got no usable response, by the stage at which it broke.
///
/// An HTTP status is a response and never one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum ErrorClass {
    /// The target's name did not resolve.
    DnsFailed,
    /// This machine has no local port left for the target (EADDRNOTAVAIL). The generator's fault.
    LocalPortExhausted,
    /// The agent may open no more files (EMFILE, ENFILE). The generator's fault.
    FdExhausted,
    /// The target answered the connection attempt with a reset: nobody listens there.
    ConnectRefused,
    /// No answer to the connection attempt within `connect_timeout`.
    ConnectTimeout,
    /// No route to the target, or the attempt failed in another way.
    ConnectUnreachable,
    /// The connection broke while the request was being written, with nothing received.
    SendFailed,
    /// The target closed a fresh connection without one byte of response.
    ClosedBeforeResponse,
    /// The target closed a connection that had served before, just when it was used again: the keep-alive race.
    ClosedOnReuse,
    /// The connection was reset (ECONNRESET).
    Reset,
    /// No complete response head within `timeout`.
    ResponseTimeout,
    /// What came back is no HTTP response head.
    HeaderParse,
    /// The response head is larger than the agent accepts.
    HeaderTooLarge,
    /// The head came, the body did not end within `timeout`.
    BodyTimeout,
    /// The connection ended before the announced end of the body.
    BodyTruncated,
    /// The body's framing is wrong (a bad chunk).
    BodyDecode,
    /// Another breach of HTTP.
    Protocol,
}

impl ErrorClass {
    /// All classes, in the order of the stages of a request.
    pub const ALL: [Self; 17] = [
        Self::DnsFailed,
        Self::LocalPortExhausted,
        Self::FdExhausted,
        Self::ConnectRefused,
        Self::ConnectTimeout,
        Self::ConnectUnreachable,
        Self::SendFailed,
        Self::ClosedBeforeResponse,
        Self::ClosedOnReuse,
        Self::Reset,
        Self::ResponseTimeout,
        Self::HeaderParse,
        Self::HeaderTooLarge,
        Self::BodyTimeout,
        Self::BodyTruncated,
        Self::BodyDecode,
        Self::Protocol,
    ];

    /// The name used in every output and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DnsFailed => "dns_failed",
            Self::LocalPortExhausted => "local_port_exhausted",
            Self::FdExhausted => "fd_exhausted",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectUnreachable => "connect_unreachable",
            Self::SendFailed => "send_failed",
            Self::ClosedBeforeResponse => "closed_before_response",
            Self::ClosedOnReuse => "closed_on_reuse",
            Self::Reset => "reset",
            Self::ResponseTimeout => "response_timeout",
            Self::HeaderParse => "header_parse",
            Self::HeaderTooLarge => "header_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyTruncated => "body_truncated",
            Self::BodyDecode => "body_decode",
            Self::Protocol => "protocol",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the request failed before any connection carried it: the target never saw it.
    pub const fn is_connect(self) -> bool {
        matches!(
            self,
            Self::DnsFailed
                | Self::LocalPortExhausted
                | Self::FdExhausted
                | Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectUnreachable
        )
    }

    /// Whether a limit of the generating machine caused it, so that it says nothing about the target.
    pub const fn is_generator_fault(self) -> bool {
        matches!(self, Self::LocalPortExhausted | Self::FdExhausted)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a planned request was never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum NotStarted {
    /// The user cancelled the run.
    Cancelled,
    /// The run was aborted, for instance because an agent was lost under `on_loss = "abort"`.
    Aborted,
    /// The agent that had it to do was lost.
    AgentLost,
    /// The duration passed first.
    DurationEnded,
    /// No connection could be made for so long that the agent gave up.
    TargetUnreachable,
    /// The agent heard nothing from its coordinator for the length of its lease and stopped.
    LeaseExpired,
    /// As many requests as the plan allows were in flight when it was due, and the plan says to drop it then.
    Dropped,
    /// It was due and waited for a connection until its phase and its grace were over.
    StillQueued,
    /// A threshold that the plan stops on was broken.
    ThresholdBroken,
}

impl NotStarted {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Cancelled,
        Self::Aborted,
        Self::AgentLost,
        Self::DurationEnded,
        Self::TargetUnreachable,
        Self::LeaseExpired,
        Self::Dropped,
        Self::StillQueued,
        Self::ThresholdBroken,
    ];

    /// The name used in every output and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Aborted => "aborted",
            Self::AgentLost => "agent_lost",
            Self::DurationEnded => "duration_ended",
            Self::TargetUnreachable => "target_unreachable",
            Self::LeaseExpired => "lease_expired",
            Self::Dropped => "dropped",
            Self::StillQueued => "still_queued",
            Self::ThresholdBroken => "threshold_broken",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A whole response came; whether its status is a success is the plan's rule.
    Response {
        /// The status code.
        status: u16,
        /// Whether the plan counts it as success.
        success: bool,
    },
    /// No usable response.
    Error(ErrorClass),
}

impl Outcome {
    /// Whether the request counts as succeeded.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Response { success: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_reasons_stand_at_their_own_index_and_are_found_by_name() {
        for (index, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, index);
            assert_eq!(ErrorClass::from_name(class.name()), Some(class));
        }
        for (index, reason) in NotStarted::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(NotStarted::from_name(reason.name()), Some(reason));
        }
    }
}
