//! Snapshots, as messages and as the bytes that the store keeps.

use inrush_proto::v1;
use prost::Message as _;

use super::{MAX_DETAIL_BYTES, MAX_TIMELINE_NS, WireError, count, cut};
use crate::{
    id::{Epoch, RunId, SnapshotSeq},
    stats::{Completion, Gauges, Interval, Snapshot, SnapshotKey},
};

/// The snapshot as bytes: the same message that travels.
pub fn encode_snapshot(snapshot: &Snapshot) -> Vec<u8> {
    v1::Snapshot::from(snapshot).encode_to_vec()
}

/// The reverse of [`encode_snapshot`].
///
/// # Errors
/// When the bytes are no such message (the path is then `snapshot`), or one with a field that does not fit.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Snapshot, WireError> {
    v1::Snapshot::decode(bytes)
        .map_err(|error| WireError::new("snapshot", format!("a Snapshot message: {error}")))?
        .try_into()
}

impl From<&Snapshot> for v1::Snapshot {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            run: snapshot.run.to_string(),
            agent: snapshot.key.agent.to_string(),
            epoch: snapshot.key.epoch.0,
            seq: snapshot.key.seq.0,
            from_ns: snapshot.interval.from_ns,
            to_ns: snapshot.interval.to_ns,
            stats: Some((&snapshot.stats).into()),
            gauges: Some((&snapshot.gauges).into()),
            completion: snapshot.completion.as_ref().map(v1::Completion::from),
        }
    }
}

impl TryFrom<v1::Snapshot> for Snapshot {
    type Error = WireError;

    fn try_from(message: v1::Snapshot) -> Result<Self, WireError> {
        let (from_ns, to_ns) = (message.from_ns, message.to_ns);
        if to_ns < from_ns || to_ns > MAX_TIMELINE_NS {
            let expected = format!("from_ns ({from_ns}) to {MAX_TIMELINE_NS}, got {to_ns}");
            return Err(WireError::new("to_ns", expected));
        }
        if message.seq < SnapshotSeq::FIRST.0 {
            return Err(WireError::new("seq", "at least 1, got 0"));
        }
        let key = SnapshotKey {
            agent: name("agent", &message.agent)?,
            epoch: Epoch(message.epoch),
            // The number after it must exist.
            seq: SnapshotSeq(count("seq", message.seq)?),
        };
        Ok(Self {
            run: name::<RunId>("run", &message.run)?,
            key,
            interval: Interval { from_ns, to_ns },
            stats: message
                .stats
                .ok_or_else(|| WireError::missing("stats"))?
                .try_into()
                .map_err(|error: WireError| error.under("stats"))?,
            gauges: message
                .gauges
                .ok_or_else(|| WireError::missing("gauges"))?
                .try_into()
                .map_err(|error: WireError| error.under("gauges"))?,
            completion: message
                .completion
                .map(Completion::try_from)
                .transpose()
                .map_err(|error| error.under("completion"))?,
        })
    }
}

fn name<N>(field: &str, text: &str) -> Result<N, WireError>
where
    N: std::str::FromStr<Err = crate::id::InvalidName>,
{
    text.parse().map_err(|error| WireError::new(field, error))
}

impl From<&Gauges> for v1::Gauges {
    fn from(gauges: &Gauges) -> Self {
        Self {
            open_connections: gauges.open_connections,
            in_flight: gauges.in_flight,
            cpu_ns: gauges.cpu_ns,
            cpu_capacity_ns: gauges.cpu_capacity_ns,
            throttled_ns: gauges.throttled_ns,
            resident_bytes: gauges.resident_bytes,
        }
    }
}

impl TryFrom<v1::Gauges> for Gauges {
    type Error = WireError;

    fn try_from(message: v1::Gauges) -> Result<Self, WireError> {
        Ok(Self {
            open_connections: count("open_connections", message.open_connections)?,
            in_flight: count("in_flight", message.in_flight)?,
            cpu_ns: message.cpu_ns,
            cpu_capacity_ns: message.cpu_capacity_ns,
            throttled_ns: message.throttled_ns,
            resident_bytes: message.resident_bytes,
        })
    }
}

impl From<&Completion> for v1::Completion {
    fn from(completion: &Completion) -> Self {
        use v1::completion::Reason;
        let (reason, detail) = match completion {
            Completion::Finished => (Reason::Finished, ""),
            Completion::Stopped => (Reason::Stopped, ""),
            Completion::TargetUnreachable(detail) => (Reason::TargetUnreachable, detail.as_str()),
            Completion::LeaseExpired => (Reason::LeaseExpired, ""),
            Completion::Internal(detail) => (Reason::Internal, detail.as_str()),
        };
        Self { reason: reason.into(), detail: detail.to_owned() }
    }
}

impl TryFrom<v1::Completion> for Completion {
    type Error = WireError;

    fn try_from(message: v1::Completion) -> Result<Self, WireError> {
        use v1::completion::Reason;
        let detail = cut(message.detail, MAX_DETAIL_BYTES);
        match Reason::try_from(message.reason) {
            Ok(Reason::Finished) => Ok(Self::Finished),
            Ok(Reason::Stopped) => Ok(Self::Stopped),
            Ok(Reason::TargetUnreachable) => Ok(Self::TargetUnreachable(detail)),
            Ok(Reason::LeaseExpired) => Ok(Self::LeaseExpired),
            Ok(Reason::Internal) => Ok(Self::Internal(detail)),
            Ok(Reason::Unspecified) | Err(_) => {
                let expected =
                    format!("a reason known to this version, got number {}", message.reason);
                Err(WireError::new("reason", expected))
            }
        }
    }
}
