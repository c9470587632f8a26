//! The rules of the verdict, with their numbers.

use super::super::{ReasonCode, VerdictStatus};
use crate::units::{Count, Nanos};

use ReasonCode as Code;
use VerdictStatus::{Degraded, Invalid};

/// Share of started requests that may fail by limits of the agents' machines before the numbers are invalid.
pub(super) const LOCAL_LIMITS_INVALID: f64 = 0.01;
/// Share of the connections that must have been made.
pub(super) const CONNECTIONS_INVALID: f64 = 0.95;
/// Mean CPU use of an agent's workers from which on its measurements are doubtful.
pub(super) const CPU_DEGRADED: f64 = 0.85;
/// A shorter look at the CPU says nothing.
pub(super) const CPU_SEEN_NS: u64 = 1_000_000_000;
/// Part of the time for which a quota may have kept an agent's control group from running.
pub(super) const THROTTLED: f64 = 0.01;
/// Lateness of an agent's workers: its 99th percentile degrades, its median may invalidate.
pub(super) const WORKER_LAG_NS: u64 = 10_000_000;
/// Lateness of an agent's workers that is small whatever they measure.
pub(super) const WORKER_LAG_SMALL_NS: u64 = 1_000_000;
/// The part of a response time from which on the generator's own lateness has made it.
pub(super) const LAG_PART: u64 = 4;
/// With fewer ticks the 99th percentile is one single tick.
pub(super) const WORKER_LAG_TICKS: u64 = 100;
/// The wait of an open load's requests for a connection: p99 above this, and above this part of p99(response_time).
pub(super) const WAIT_NS: u64 = 10_000_000;
pub(super) const WAIT_PART: u64 = 10;
/// What may be missing of the starts planned in a second.
pub(super) const MISSED: f64 = 0.01;
/// Share of the seconds in which more may be missing, but one in any case.
pub(super) const MISSED_SECONDS: f64 = 0.01;
/// Poisson arrivals are fewer than planned by chance: by this many standard deviations less than once in a million
/// seconds.
pub(super) const CHANCE: f64 = 5.0;
/// Share of an unmeasured phase's requests that may fail.
pub(super) const WARM_UP_FAILED: f64 = 0.5;
/// Latest start after the earliest.
pub(super) const START_SKEW_NS: u64 = 50_000_000;
/// More findings about the accounts than this are counted and not listed.
pub(super) const FINDINGS_SHOWN: usize = 8;

/// One rule of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it finds.
    pub code: ReasonCode,
    /// What that makes of the verdict.
    pub status: VerdictStatus,
    /// When it applies.
    pub when: String,
}

/// All rules, as they are documented. The numbers are those that are applied.
pub fn rules() -> Vec<Rule> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let rule = |code, status, when: &str| Rule { code, status, when: when.to_owned() };
    vec![
        rule(
            Code::LedgerFailed,
            Invalid,
            "a balance of the accounts fails, or a snapshot is missing",
        ),
        rule(Code::AgentLost, Invalid, "an agent was lost, or left in mid-run"),
        rule(
            Code::AgentFailed,
            Invalid,
            "a worker of an agent failed, its lease expired, it did not get ready, or its last numbers never came",
        ),
        rule(Code::NothingMeasured, Invalid, "the run is over and no request completed"),
        rule(
            Code::TargetUnreachable,
            Invalid,
            "the target could not be reached at the start, or an agent gave up on it in mid-run",
        ),
        rule(Code::Incomplete, Invalid, "the run was aborted"),
        rule(Code::Incomplete, Degraded, "the run was cancelled, or stopped by a threshold"),
        rule(
            Code::LocalLimits,
            Invalid,
            &format!(
                "{} or more of the started requests failed for want of local ports or files",
                percent(LOCAL_LIMITS_INVALID)
            ),
        ),
        rule(Code::LocalLimits, Degraded, "any request failed for want of local ports or files"),
        rule(
            Code::UnmadeConnections,
            Invalid,
            &format!(
                "the run finished with fewer than {} of the requested connections ever made",
                percent(CONNECTIONS_INVALID)
            ),
        ),
        rule(
            Code::UnmadeConnections,
            Degraded,
            "the run finished without having made every requested connection",
        ),
        rule(
            Code::AgentCpu,
            Degraded,
            &format!(
                "an agent used {} or more of its workers' CPU, in the mean over at least {}",
                percent(CPU_DEGRADED),
                Nanos(CPU_SEEN_NS)
            ),
        ),
        rule(
            Code::AgentThrottled,
            Degraded,
            &format!(
                "a CPU quota kept an agent's control group from running for more than {} of the time, over at least {}",
                percent(THROTTLED),
                Nanos(CPU_SEEN_NS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Invalid,
            &format!(
                "p50(worker_lag) of an agent is above {} and above half of its median response time",
                Nanos(WORKER_LAG_NS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Degraded,
            &format!(
                "p99(worker_lag) of an agent is above {}, over at least {} ticks",
                Nanos(WORKER_LAG_NS),
                Count(WORKER_LAG_TICKS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Degraded,
            &format!(
                "p50(worker_lag) of an agent is above {} and above a quarter of its median response time",
                Nanos(WORKER_LAG_SMALL_NS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Degraded,
            &format!(
                "in an agent's open phases both p99(worker_lag) and p99(schedule_lag) are above {} and above a quarter of \
                 p99(response_time), over at least {} ticks",
                Nanos(WORKER_LAG_SMALL_NS),
                Count(WORKER_LAG_TICKS)
            ),
        ),
        rule(
            Code::StartSkew,
            Degraded,
            &format!("the agents started more than {} apart", Nanos(START_SKEW_NS)),
        ),
        rule(
            Code::Overload,
            Degraded,
            "requests of an open phase were dropped because `max_in_flight` were in flight, or were still waiting at its \
             end",
        ),
        rule(
            Code::Overload,
            Degraded,
            &format!(
                "requests of an open phase waited for others to end: an agent had its part of `max_in_flight` in flight, \
                 p99(schedule_lag) is above {} and above {} of p99(response_time), and p99(worker_lag) is below half of \
                 it",
                Nanos(WAIT_NS),
                percent(1.0 / WAIT_PART as f64)
            ),
        ),
        rule(
            Code::RateMissed,
            Degraded,
            &format!(
                "a measured open phase started over {} fewer requests than planned in more than {} of its whole seconds \
                 and at least two, its first and last left out, without an overload that explains it and beyond what chance \
                 does to Poisson arrivals",
                percent(MISSED),
                percent(MISSED_SECONDS)
            ),
        ),
        rule(
            Code::WarmUp,
            Degraded,
            &format!(
                "in a phase that is not measured nothing succeeded, or more than {} failed",
                percent(WARM_UP_FAILED)
            ),
        ),
        rule(
            Code::HistogramOverflow,
            Degraded,
            "a time is above one hour, the top of the histograms",
        ),
    ]
}
