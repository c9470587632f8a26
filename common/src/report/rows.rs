//! The rows of the report's lists; part of the same contract as [`Report`](super::Report).

use serde::{Deserialize, Serialize};

use super::{Bytes, Connections, Distribution, Ledger, Model, Rates, SplitByOutcome};

/// Responses with one status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRow {
    /// The code.
    pub code: u16,
    /// How many.
    pub count: u64,
    /// How many of them the plan counts as failures.
    pub failed: u64,
}

/// Failures of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRow {
    /// The class.
    pub class: String,
    /// How many.
    pub count: u64,
    /// One of them in words.
    pub example: Option<String>,
}

/// One request of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRow {
    /// Its name in the plan.
    pub name: String,
    /// Its accounts. `planned` and `not_started` are null when the plan has several requests: they share its count.
    pub ledger: Ledger,
    /// Its rates, over the run's duration.
    pub rates: Rates,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its response times.
    pub response_time: SplitByOutcome,
    /// Its service times.
    pub service_time: SplitByOutcome,
    /// Its responses by status code.
    pub status: Vec<StatusRow>,
    /// Its failures without a response.
    pub errors: Vec<ErrorRow>,
}

/// One phase of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    /// Its name; a plan without phases has one, called `main`.
    pub name: String,
    /// Whether its requests are in the report's distributions and rates.
    pub measured: bool,
    /// Its load model.
    pub model: Model,
    /// The most connections that it may use at one instant: its connections, or its `max_in_flight`.
    pub connections: u64,
    /// When it starts, seconds since the start of the run.
    pub starts_at_s: f64,
    /// Planned duration in seconds; null when only a count is planned.
    pub planned_duration_s: Option<f64>,
    /// For how long it was at work, in seconds: to its end or the end of its last request, whichever is later.
    pub duration_s: f64,
    /// In the open model: what was planned to arrive, and how it did; null in the closed model.
    pub arrivals: Option<Arrivals>,
    /// Its accounts.
    pub ledger: Ledger,
    /// Its rates, over its duration.
    pub rates: Rates,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its response times.
    pub response_time: SplitByOutcome,
    /// Its service times.
    pub service_time: SplitByOutcome,
    /// Its schedule lag.
    pub schedule_lag: SplitByOutcome,
    /// Its times to the first byte.
    pub ttfb: SplitByOutcome,
    /// Its responses by status code.
    pub status: Vec<StatusRow>,
    /// Its failures without a response.
    pub errors: Vec<ErrorRow>,
    /// One row per request; empty unless the plan has several phases and several requests: the rows would be copies.
    pub requests: Vec<RequestRow>,
}

/// An open load beside its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// How arrivals lie within the rate: `uniform` or `poisson`.
    pub process: String,
    /// Requests per second that are planned.
    pub rate: PlannedRate,
    /// No more requests than this are in flight at one instant.
    pub max_in_flight: u64,
    /// What happens to a request that is due when so many are: `queue` or `drop`.
    pub on_overflow: String,
    /// Planned requests.
    pub planned: u64,
    /// Begun.
    pub started: u64,
    /// The largest relative difference of started and planned in any row of the series that lies within the phase, its
    /// first and last second left out; one request more or less is none. Null without such a row: below 3 s.
    pub rate_error: Option<f64>,
    /// Gaps between consecutive starts of each worker, as multiples of the intended gap (uniform) or the mean one (Poisson).
    pub gaps: Gaps,
    /// How far the gaps are from those of a Poisson process; null when arrivals are uniform, or gaps fewer than 35.
    pub ks: Option<KolmogorovSmirnov>,
}

/// A planned rate, per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRate {
    /// At the beginning of the phase.
    pub from: f64,
    /// At its end.
    pub to: f64,
    /// The highest.
    pub peak: f64,
}

/// Gaps between starts, without unit: 1 is as planned. Null as in a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// Null with fewer than 100.
    pub p90: Option<f64>,
    /// Null with fewer than 1,000.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// The test of Kolmogorov and Smirnov of gaps against the exponential distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KolmogorovSmirnov {
    /// The greatest distance between the two distributions.
    pub statistic: f64,
    /// The distance that chance alone exceeds once in a hundred times.
    pub critical: f64,
    /// Number of gaps.
    pub samples: u64,
    /// Whether the distance is within the critical one.
    pub passed: bool,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its machine.
    pub hostname: String,
    /// Its worker threads.
    pub workers: u32,
    /// Its part of the plan's connections at their peak, 0 to 1.
    pub share: f64,
    /// How its part ended.
    pub state: AgentState,
    /// The same in words, where there is something to say.
    pub detail: Option<String>,
    /// When it was lost, seconds since the start; null if it was not.
    pub lost_at_s: Option<f64>,
    /// Its accounts of the measured phases.
    pub ledger: Ledger,
    /// Its rates, over the run's duration: the agents' rates add up to the run's.
    pub rates: Rates,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its connections.
    pub connections: Connections,
    /// Its response times.
    pub response_time: SplitByOutcome,
    /// Its schedule lag.
    pub schedule_lag: Distribution,
    /// Its workers' lateness.
    pub worker_lag: Distribution,
    /// Share of its workers' CPU used, 0 to 1 (more if control adds to it): mean over its intervals.
    pub cpu_mean: Option<f64>,
    /// The busiest interval of at least half a second.
    pub cpu_peak: Option<f64>,
    /// For how long a CPU quota kept its control group from running, in seconds, added up over the cores.
    pub throttled_s: f64,
    /// Most memory resident.
    pub resident_peak_bytes: Option<u64>,
    /// The coordinator's clock minus its clock; null if never compared.
    pub clock_offset_ns: Option<i64>,
    /// The comparison may be off by this much.
    pub clock_bound_ns: Option<u64>,
    /// Start of its load after the earliest agent's; null when it is not known.
    pub started_after_ns: Option<u64>,
}

/// How an agent's part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Still at it.
    Running,
    /// Did its share.
    Done,
    /// Was told to stop.
    Stopped,
    /// Stopped by itself: could not reach the target (any more).
    TargetUnreachable,
    /// Stopped by itself: heard nothing from the coordinator for its lease.
    LeaseExpired,
    /// A worker failed.
    Failed,
    /// Was lost.
    Lost,
    /// Never reported ready.
    NotReady,
}

/// One row of the run's timeline, all agents: a second, or more in a long run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesRow {
    /// Its begin, seconds since the start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The phases that were at work in it, by name.
    pub phases: Vec<String>,
    /// Requests that the plan wants begun in it; null when a closed phase may begin some.
    pub planned: Option<u64>,
    /// Requests begun.
    pub started: u64,
    /// Requests ended well.
    pub succeeded: u64,
    /// Requests ended badly.
    pub failed: u64,
    /// Connections open at its end.
    pub open_connections: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Median response time of all that completed in it; null without.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the same; null with fewer than 1,000.
    pub p99_ns: Option<u64>,
    /// Agents that handed in anything for it.
    pub agents: u64,
}

/// A threshold of the plan against this report. While the run goes on, what it says is provisional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThresholdRow {
    /// The threshold, written in one way whatever the plan's.
    pub expression: String,
    /// What `observed` and `limit` are in.
    pub unit: ThresholdUnit,
    /// The figure; null where the report does not know it.
    pub observed: Option<Amount>,
    /// What it is compared with.
    pub limit: Amount,
    /// Whether it holds. What is not known does not.
    pub passed: bool,
    /// Why the figure is not known; null where it is.
    pub detail: Option<String>,
}

impl ThresholdRow {
    /// Whether the figure is known and beyond its limit. One that is not known yet breaks nothing.
    pub const fn is_broken(&self) -> bool {
        !self.passed && self.observed.is_some()
    }
}

/// What a threshold's numbers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdUnit {
    /// Whole nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A part of a whole, 0 to 1.
    Ratio,
    /// A number per second.
    PerSecond,
    /// A whole number.
    Count,
}

/// A number that keeps its kind in JSON: nanoseconds and counts have no point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// Nanoseconds, or a count.
    Whole(u64),
    /// A ratio, or a rate.
    Real(f64),
}

/// Connections to one address of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressRow {
    /// `ip:port`; `other` for all those together that are beyond the first 64.
    pub address: String,
    /// Connections made.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
}
