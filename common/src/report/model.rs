//! The report as data. This is the JSON contract `inrush.report/v1`: every change here is a change of
//! `docs/report.schema.json` and `docs/report-reference.md`.
//!
//! Times are integer nanoseconds with the unit in the key. What does not apply, or has no sample behind it, is null;
//! counts and rates of nothing are 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AddressRow, AgentRow, ErrorRow, PhaseRow, RequestRow, SeriesRow, StatusRow, ThresholdRow,
};

/// The value of `schema`.
pub const SCHEMA: &str = "inrush.report/v1";

/// Everything that is said about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run, when, and how it ended.
    pub run: RunInfo,
    /// Which plan.
    pub plan: PlanInfo,
    /// May the numbers be believed?
    pub verdict: Verdict,
    /// Which load model made the load.
    pub model: Model,
    /// For how long the measured phases were at work, in seconds: from the start of each to its end or the end of its last
    /// request, whichever is later; time that two of them share counts once. Every rate is a count divided by this.
    pub duration_s: f64,
    /// How far apart the agents started; null unless two agents said when.
    pub start_skew: Option<Skew>,
    /// The accounts of the measured phases, as all figures up to `requests` are, but for connections.
    pub ledger: Ledger,
    /// The accounts of all phases, warm-ups included: what the target saw.
    pub total_ledger: Ledger,
    /// Per second, over `duration_s`.
    pub rates: Rates,
    /// Bytes on the wire, heads included.
    pub bytes: Bytes,
    /// Connections.
    pub connections: Connections,
    /// Intended start to last byte.
    pub response_time: SplitByOutcome,
    /// Start of sending to last byte.
    pub service_time: SplitByOutcome,
    /// Actual minus intended start.
    pub schedule_lag: SplitByOutcome,
    /// Start of sending to first byte.
    pub ttfb: SplitByOutcome,
    /// Successful TCP connects, one sample per connection.
    pub connect: Distribution,
    /// TLS handshakes, one sample per connection; empty in plain HTTP.
    pub tls: Distribution,
    /// Lateness of the workers' own periodic ticks: the generator's slowness.
    pub worker_lag: Distribution,
    /// Responses by status code, in order.
    pub status: Vec<StatusRow>,
    /// Failures without a response, in order of the stages of a request; classes without any are left out.
    pub errors: Vec<ErrorRow>,
    /// One row per request of the plan.
    pub requests: Vec<RequestRow>,
    /// One row per phase of the plan, warm-ups included.
    pub phases: Vec<PhaseRow>,
    /// One row per agent, lost ones included, by name.
    pub agents: Vec<AgentRow>,
    /// Rows of equal width over the run's timeline.
    pub series: Vec<SeriesRow>,
    /// One row per threshold of the plan, in its order.
    pub thresholds: Vec<ThresholdRow>,
}

/// Which run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// When it was submitted, RFC 3339 UTC.
    pub submitted_at: String,
    /// When the load started by the coordinator's wall clock, RFC 3339 UTC; null if it never did.
    pub started_at: Option<String>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The same in words, where there is something to say.
    pub detail: Option<String>,
    /// The coordinator's version.
    pub version: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Not yet: this is a look at a run under way.
    Running,
    /// All was done.
    Finished,
    /// The user stopped it.
    Cancelled,
    /// A threshold that the plan stops on was broken.
    StoppedByThreshold,
    /// A fault ended it: an agent was lost and the plan says abort, every agent was lost, it went on beyond its duration,
    /// or the coordinator stopped in mid-run.
    Aborted,
    /// The target could not be reached when the agents got ready: no load was made.
    TargetUnreachable,
    /// The operator of an agent does not allow what the plan wants: no load was made.
    Forbidden,
    /// It never started, for another reason.
    Failed,
}

/// Which plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanInfo {
    /// Its name.
    pub name: String,
    /// SHA-256 of its source, hexadecimal.
    pub sha256: String,
    /// The first request's URL.
    pub url: String,
    /// Most connections planned at one instant, in all phases: those that work and those that are held.
    pub connections: u64,
    /// Planned requests of all phases; null when one of them has no count.
    pub requests: Option<u64>,
    /// Planned end of the last phase, seconds since the start; null when only a count ends it.
    pub duration_s: Option<f64>,
    /// What happens when an agent is lost.
    pub on_loss: String,
}

/// May the numbers be believed?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The answer.
    pub status: VerdictStatus,
    /// Why not, worst first; empty when valid.
    pub reasons: Vec<Reason>,
}

/// The answer. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictStatus {
    /// Yes.
    Valid,
    /// With care: the reasons say what is doubtful.
    Degraded,
    /// No.
    Invalid,
}

/// One thing that makes the numbers doubtful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Which thing.
    pub code: ReasonCode,
    /// What it alone makes of the verdict.
    pub status: VerdictStatus,
    /// The agent concerned; null when it is the run.
    pub agent: Option<String>,
    /// In words, with the numbers.
    pub text: String,
}

/// The things that make numbers doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The accounts do not add up.
    LedgerFailed,
    /// An agent was lost.
    AgentLost,
    /// A worker of an agent failed.
    AgentFailed,
    /// Nothing was completed.
    NothingMeasured,
    /// The target could not be reached (any more).
    TargetUnreachable,
    /// The run was cut short.
    Incomplete,
    /// Local ports or files ran out.
    LocalLimits,
    /// Not all connections of the plan were made though the run went to its end.
    UnmadeConnections,
    /// An agent's CPU was used up.
    AgentCpu,
    /// A CPU quota kept an agent from running.
    AgentThrottled,
    /// An agent's workers ran late.
    WorkerLag,
    /// Agents started far apart.
    StartSkew,
    /// An open load could not be kept up with: requests were dropped, or waited for others to end.
    Overload,
    /// An open load started fewer requests than planned, and not for want of answers.
    RateMissed,
    /// A phase that is not measured went wrong.
    WarmUp,
    /// Samples above the top of the histograms.
    HistogramOverflow,
}

/// Which load model made the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Connections that each send after their last response.
    Closed,
    /// Requests that start on a schedule.
    Open,
    /// Some measured phases are closed, others open.
    Mixed,
}

/// How far apart the agents started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skew {
    /// Latest minus earliest start.
    pub skew_ns: u64,
    /// The clock comparison may be off by this much.
    pub bound_ns: u64,
}

/// Accounts. `planned = started + not_started`, `started = completed + in_flight_at_end`,
/// `completed = succeeded + failed`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Null when the plan has no count.
    pub planned: Option<u64>,
    /// Begun.
    pub started: u64,
    /// Ended.
    pub completed: u64,
    /// Ended well.
    pub succeeded: u64,
    /// Ended badly: by status or by error.
    pub failed: u64,
    /// Planned and not begun; null when the plan has no count.
    pub not_started: Option<u64>,
    /// The same by reason, reasons without any left out. While the run goes on, what is still to come is `pending`.
    pub not_started_by_reason: BTreeMap<String, u64>,
    /// Begun and neither answered nor failed when the load stopped.
    pub in_flight_at_end: u64,
}

/// Per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// What the plan wants started: planned requests over planned time; null where the closed model is in it.
    pub target: Option<f64>,
    /// Begun.
    pub started: f64,
    /// Ended.
    pub completed: f64,
    /// Ended well.
    pub throughput: f64,
}

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// Sent.
    pub out: u64,
    /// Received.
    #[serde(rename = "in")]
    pub received: u64,
}

/// Connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// How many the plan wants to have been made: those of the closed model (or its requests, where they are fewer) and
    /// those that are held, at their peak. The open model opens as many as it needs and asks for none.
    pub requested: u64,
    /// Connection slots that ever had a working connection.
    pub established: u64,
    /// Connections made, reconnects included.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Most open at one instant (the agents' own peaks added up).
    pub peak: u64,
    /// The same by the target's address, in the order of the addresses.
    pub addresses: Vec<AddressRow>,
}

/// A distribution by how the requests ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitByOutcome {
    /// All completed requests.
    pub all: Distribution,
    /// The succeeded.
    pub succeeded: Distribution,
    /// The failed.
    pub failed: Distribution,
}

/// A distribution. Percentiles from p90 up are null with fewer than 10/(1−q) samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Samples, those above the top included.
    pub count: u64,
    /// Lower edge of the lowest bucket with a sample.
    pub min_ns: Option<u64>,
    /// Arithmetic mean; null when a sample was above the top.
    pub mean_ns: Option<u64>,
    /// Median: upper edge of its bucket, as for all percentiles.
    pub p50_ns: Option<u64>,
    /// Null with fewer than 100 samples.
    pub p90_ns: Option<u64>,
    /// Null with fewer than 200 samples.
    pub p95_ns: Option<u64>,
    /// Null with fewer than 1,000 samples.
    pub p99_ns: Option<u64>,
    /// Null with fewer than 10,000 samples.
    pub p99_9_ns: Option<u64>,
    /// Null with fewer than 100,000 samples.
    pub p99_99_ns: Option<u64>,
    /// Upper edge of the highest bucket with a sample; null when a sample was above the top.
    pub max_ns: Option<u64>,
    /// Standard deviation; null when a sample was above the top.
    pub stdev_ns: Option<u64>,
    /// Samples above the histograms' top of one hour.
    pub overflow: u64,
    /// HdrHistogram V2 deflate, base64; empty without samples.
    pub histogram: String,
}
