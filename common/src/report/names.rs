//! The names that the report's closed sets have in JSON, for texts.

use std::fmt;

use super::{AgentState, Model, ReasonCode, RunOutcome, ThresholdUnit, VerdictStatus};

macro_rules! names {
    ($($type:ident { $($variant:ident => $name:literal),+ $(,)? })+) => {$(
        impl $type {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in every output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )+};
}

names! {
    VerdictStatus { Valid => "valid", Degraded => "degraded", Invalid => "invalid" }
    Model { Closed => "closed", Open => "open", Mixed => "mixed" }
    ThresholdUnit {
        Nanoseconds => "ns",
        Ratio => "ratio",
        PerSecond => "per_second",
        Count => "count",
    }
    RunOutcome {
        Running => "running",
        Finished => "finished",
        Cancelled => "cancelled",
        StoppedByThreshold => "stopped_by_threshold",
        Aborted => "aborted",
        TargetUnreachable => "target_unreachable",
        Forbidden => "forbidden",
        Failed => "failed",
    }
    AgentState {
        Running => "running",
        Done => "done",
        Stopped => "stopped",
        TargetUnreachable => "target_unreachable",
        LeaseExpired => "lease_expired",
        Failed => "failed",
        Lost => "lost",
        NotReady => "not_ready",
    }
    ReasonCode {
        LedgerFailed => "ledger_failed",
        AgentLost => "agent_lost",
        AgentFailed => "agent_failed",
        NothingMeasured => "nothing_measured",
        TargetUnreachable => "target_unreachable",
        Incomplete => "incomplete",
        LocalLimits => "local_limits",
        UnmadeConnections => "unmade_connections",
        AgentCpu => "agent_cpu",
        AgentThrottled => "agent_throttled",
        WorkerLag => "worker_lag",
        StartSkew => "start_skew",
        Overload => "overload",
        RateMissed => "rate_missed",
        WarmUp => "warm_up",
        HistogramOverflow => "histogram_overflow",
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    fn check<T: Serialize + fmt::Display>(all: &[T]) {
        for one in all {
            assert_eq!(serde_json::to_value(one).unwrap(), one.to_string());
        }
    }

    #[test]
    fn the_names_in_texts_are_the_names_in_json() {
        check(VerdictStatus::ALL);
        check(Model::ALL);
        check(RunOutcome::ALL);
        check(AgentState::ALL);
        check(ReasonCode::ALL);
        check(ThresholdUnit::ALL);
    }
}
