//! Which class an error belongs to: from where the request stood, what the stream did, and what hyper said.
//!
//! Pure, and without hyper's words: its error texts are examples for people, never matched.

use std::io;

use inrush_common::outcome::ErrorClass;
use rustix::io::Errno;

use super::io::{Sent, StreamState};

/// Where an exchange stood when it broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No complete response head yet.
    Head,
    /// The head was there, the body was not.
    Body,
}

/// What hyper found wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// The response head is larger than accepted.
    TooLarge,
    /// The response head is none.
    Parse,
    /// Something else: the stream's state tells what.
    Other,
}

impl From<&hyper::Error> for Complaint {
    fn from(error: &hyper::Error) -> Self {
        if error.is_parse_too_large() {
            Self::TooLarge
        } else if error.is_parse() {
            Self::Parse
        } else {
            Self::Other
        }
    }
}

/// All that is known of an exchange that broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) stage: Stage,
    pub(crate) stream: StreamState,
    pub(crate) complaint: Complaint,
    /// How many bytes of the response came.
    pub(crate) received: u64,
    /// How much of the request was written.
    pub(crate) sent: Sent,
    /// Whether the connection had served a request before.
    pub(crate) reused: bool,
}

/// A head of fewer bytes is neither too long nor has it too many headers. hyper says "too large" of such a one when the
/// length it announces is beyond what a number holds.
const LEAST_TOO_LARGE: u64 = 1024;

/// The class of an exchange that broke.
pub(crate) fn exchange(broken: Broken) -> ErrorClass {
    match broken.complaint {
        Complaint::TooLarge if broken.received >= LEAST_TOO_LARGE => {
            return ErrorClass::HeaderTooLarge;
        }
        Complaint::TooLarge | Complaint::Parse => return ErrorClass::HeaderParse,
        Complaint::Other => {}
    }
    let silent = broken.received == 0;
    match (broken.stage, broken.stream) {
        (_, StreamState::Ended | StreamState::ReadFailed | StreamState::WriteFailed)
            if silent && broken.reused =>
        {
            ErrorClass::ClosedOnReuse
        }
        (_, StreamState::Ended | StreamState::ReadFailed | StreamState::WriteFailed)
            if silent && broken.sent == Sent::Part =>
        {
            ErrorClass::SendFailed
        }
        (Stage::Head, StreamState::Ended) if silent => ErrorClass::ClosedBeforeResponse,
        (_, StreamState::ReadFailed | StreamState::WriteFailed) => ErrorClass::Reset,
        // It ended within the head: what came is no head.
        (Stage::Head, StreamState::Ended) => ErrorClass::HeaderParse,
        (Stage::Body, StreamState::Ended) => ErrorClass::BodyTruncated,
        (Stage::Body, StreamState::Open) => ErrorClass::BodyDecode,
        // It spoke before it was asked: what came is no answer.
        (Stage::Head, StreamState::Open) if broken.sent == Sent::Nothing => ErrorClass::HeaderParse,
        (Stage::Head, StreamState::Open) => ErrorClass::Protocol,
    }
}

/// The class of an exchange that took too long.
pub(crate) fn timeout(stage: Stage) -> ErrorClass {
    match stage {
        Stage::Head => ErrorClass::ResponseTimeout,
        Stage::Body => ErrorClass::BodyTimeout,
    }
}

/// The class of a connection attempt that failed.
pub(crate) fn connect(error: &io::Error) -> ErrorClass {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => ErrorClass::FdExhausted,
        // With a source address bound without a port, a full range shows as "in use" on older kernels.
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => ErrorClass::LocalPortExhausted,
        Some(Errno::CONNREFUSED) => ErrorClass::ConnectRefused,
        Some(Errno::TIMEDOUT) => ErrorClass::ConnectTimeout,
        Some(_) => ErrorClass::ConnectUnreachable,
        None if error.kind() == io::ErrorKind::TimedOut => ErrorClass::ConnectTimeout,
        None => ErrorClass::ConnectUnreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_break_has_its_class() {
        use Complaint::{Other, Parse, TooLarge};
        use ErrorClass as E;
        use Sent::{All, Nothing, Part};
        use Stage::{Body, Head};
        use StreamState::{Ended, Open, ReadFailed, WriteFailed};
        // stage, stream, complaint, bytes received, request sent, reused
        let cases = [
            ((Head, Ended, Other, 0, Nothing, false), E::ClosedBeforeResponse),
            ((Head, Ended, Other, 0, Part, false), E::SendFailed),
            ((Head, Ended, Other, 0, All, false), E::ClosedBeforeResponse),
            ((Head, Ended, Other, 0, All, true), E::ClosedOnReuse),
            ((Head, ReadFailed, Other, 0, All, true), E::ClosedOnReuse),
            ((Head, WriteFailed, Other, 0, Part, true), E::ClosedOnReuse),
            ((Head, ReadFailed, Other, 0, Nothing, false), E::Reset),
            ((Head, WriteFailed, Other, 0, Nothing, false), E::Reset),
            ((Head, ReadFailed, Other, 0, Part, false), E::SendFailed),
            ((Head, WriteFailed, Other, 0, Part, false), E::SendFailed),
            ((Head, ReadFailed, Other, 0, All, false), E::Reset),
            ((Head, ReadFailed, Other, 9, All, true), E::Reset),
            ((Head, WriteFailed, Other, 9, Part, false), E::Reset),
            ((Head, Ended, Other, 9, All, true), E::HeaderParse),
            ((Head, Open, Parse, 9, All, false), E::HeaderParse),
            ((Head, Ended, Parse, 9, All, false), E::HeaderParse),
            ((Head, Open, TooLarge, 5000, All, true), E::HeaderTooLarge),
            ((Head, Open, TooLarge, 50, All, true), E::HeaderParse),
            ((Head, Open, Other, 9, Nothing, false), E::HeaderParse),
            ((Head, Open, Other, 9, All, true), E::Protocol),
            ((Body, Ended, Other, 9, All, true), E::BodyTruncated),
            ((Body, ReadFailed, Other, 9, All, false), E::Reset),
            ((Body, WriteFailed, Other, 9, Part, false), E::Reset),
            ((Body, Open, Other, 9, All, false), E::BodyDecode),
        ];
        for ((stage, stream, complaint, received, sent, reused), class) in cases {
            let broken = Broken { stage, stream, complaint, received, sent, reused };
            assert_eq!(exchange(broken), class, "{broken:?}");
        }
    }

    #[test]
    fn limits_of_this_machine_are_told_from_a_target_that_is_not_there() {
        let class = |errno: Errno| connect(&io::Error::from(errno));
        assert_eq!(class(Errno::MFILE), ErrorClass::FdExhausted);
        assert_eq!(class(Errno::NFILE), ErrorClass::FdExhausted);
        assert_eq!(class(Errno::ADDRNOTAVAIL), ErrorClass::LocalPortExhausted);
        assert_eq!(class(Errno::CONNREFUSED), ErrorClass::ConnectRefused);
        assert_eq!(class(Errno::TIMEDOUT), ErrorClass::ConnectTimeout);
        assert_eq!(class(Errno::HOSTUNREACH), ErrorClass::ConnectUnreachable);
        assert_eq!(class(Errno::NETUNREACH), ErrorClass::ConnectUnreachable);
    }
}
