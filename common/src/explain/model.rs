//! The explanation as data. This is the JSON contract `inrush.explain/v1`: every change here is a change of
//! `docs/explain.schema.json` and `docs/explain.md`.
//!
//! Times are integer nanoseconds with the unit in the key. What cannot be known before the run, or does not apply, is
//! null.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::{plan::StopRule, units::nanos};

/// The value of `schema`.
pub const SCHEMA: &str = "inrush.explain/v1";

/// What a run would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The plan's name.
    pub plan: String,
    /// Whether the run would be taken: there are no refusals.
    pub can_run: bool,
    /// Why it would not be taken.
    pub refusals: Vec<Refusal>,
    /// What is probably not meant, or will make the numbers doubtful.
    pub warnings: Vec<Warning>,
    /// All phases together.
    pub run: RunRow,
    /// One row per request of the plan.
    pub requests: Vec<RequestRow>,
    /// One row per phase of the plan.
    pub phases: Vec<PhaseRow>,
    /// Where the agents come from.
    pub fleet: FleetSource,
    /// One row per agent, by name.
    pub agents: Vec<AgentRow>,
    /// What it takes to close connections early; null: connections are kept.
    pub reuse: Option<Reuse>,
    /// What the run must reach, as the plan's `thresholds` say it.
    pub thresholds: Vec<String>,
    /// What ends the run before its time.
    pub stop_when: Vec<StopRow>,
    /// How long requests in flight may go on after the end.
    pub grace_ns: u64,
    /// From the start of sending to the last byte of a response.
    pub timeout_ns: u64,
    /// With fewer agents the run is refused.
    pub agents_min: u32,
    /// What happens when an agent is lost.
    pub on_loss: String,
}

/// Where the agents come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetSource {
    /// They are assumed.
    Assumed,
    /// They are connected to a coordinator.
    Coordinator,
    /// `inrush run` would start them.
    Local,
}

/// Why a run would not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Which rule.
    pub code: RefusalCode,
    /// With the numbers.
    pub text: String,
    /// Each of these would do.
    pub remedies: Vec<Remedy>,
}

/// The rules by which runs are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The plan's `agents.min`.
    TooFewAgents,
    /// Together the agents cannot carry the connections.
    TooManyConnections,
    /// Connections that are not kept need more local ports than an agent has.
    PortsInTimeWait,
    /// This machine cannot start agents for it.
    LocalFleet,
}

impl RefusalCode {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::TooFewAgents, Self::TooManyConnections, Self::PortsInTimeWait, Self::LocalFleet];
}

/// One change that would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// In words.
    pub text: String,
    /// Agents in all.
    pub agents: Option<u64>,
    /// Source addresses of each of them.
    pub sources: Option<u64>,
    /// Files that each of them may open for connections.
    pub files: Option<u64>,
    /// Connections of the plan.
    pub connections: Option<u64>,
}

/// Something doubtful that does not stop a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// Which rule.
    pub code: WarningCode,
    /// With the numbers.
    pub text: String,
}

/// The rules by which plans are doubted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// Agents without a share.
    IdleAgents,
    /// More requests per second than a worker makes.
    RateAboveWorkers,
    /// Closed connections keep local ports, and nobody knows how many.
    PortsInTimeWait,
    /// Fewer requests than the percentile of a threshold needs.
    TooFewSamples,
    /// A stop rule looks back farther than its phases last, or at what is known at the end.
    RuleNeverJudged,
    /// Opening takes longer than the ramp.
    SlowConnectRate,
}

impl WarningCode {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::IdleAgents,
        Self::RateAboveWorkers,
        Self::PortsInTimeWait,
        Self::TooFewSamples,
        Self::RuleNeverJudged,
        Self::SlowConnectRate,
    ];
}

/// All phases together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRow {
    /// Exact; null where a phase has no count.
    pub requests: Option<u64>,
    /// The most that may be open at one instant, idle ones included.
    pub connections: u64,
    /// Kept open and idle.
    pub held: u64,
    /// When the last phase ends, grace not included; null where only a count ends one.
    pub duration_ns: Option<u64>,
    /// The highest sum of the open phases' rates.
    pub peak_rate_per_s: Option<f64>,
    /// What all agents send at that rate.
    pub peak_bytes_out_per_s: Option<f64>,
    /// What they receive at that rate, if the size of a response is given.
    pub peak_bytes_in_per_s: Option<f64>,
    /// Bytes of all requests.
    pub bytes_out: Option<u64>,
    /// Bytes of all responses, if their size is given.
    pub bytes_in: Option<u64>,
}

/// A request of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRow {
    /// Its row in the report.
    pub name: String,
    /// The HTTP method.
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// On the wire, head and body.
    pub bytes: u64,
}

/// A phase of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    /// Its name.
    pub name: String,
    /// Whether it counts in the report's figures.
    pub measure: bool,
    /// After the start of the run.
    pub starts_ns: u64,
    /// For how long requests start; null where only a count ends it.
    pub duration_ns: Option<u64>,
    /// Exact; null where only a duration is planned.
    pub requests: Option<u64>,
    /// The most that may be open at one instant.
    pub connections: u64,
    /// Of the open model.
    pub open: Option<OpenRow>,
    /// Of the closed model.
    pub closed: Option<ClosedRow>,
    /// Bytes of its requests.
    pub bytes_out: Option<u64>,
}

/// What is particular to the open model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRow {
    /// `uniform` or `poisson`.
    pub arrivals: String,
    /// Rate at the beginning.
    pub from_per_s: f64,
    /// The highest rate.
    pub peak_per_s: f64,
    /// Rate at the end.
    pub to_per_s: f64,
    /// When the first request is due after the start of the phase; null where it is left to chance, or there is none.
    pub first_due_ns: Option<u64>,
    /// When the last one is.
    pub last_due_ns: Option<u64>,
    /// No more than this are in flight at one instant.
    pub max_in_flight: u64,
    /// `queue` or `drop`.
    pub on_overflow: String,
    /// So many may be in flight if every response takes as long as `timeout` allows: rate × timeout.
    pub in_flight_at_timeout: u64,
    /// From this response time on all that may be in flight are, at the peak rate, and requests wait or are dropped; null:
    /// that cannot happen before `timeout`.
    pub full_from_ns: Option<u64>,
}

/// What is particular to the closed model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedRow {
    /// How many requests a connection makes, one after the other; null where only a duration is planned.
    pub requests_per_connection: Option<u64>,
    /// The mean pause between a response and the next request.
    pub think_time_ns: u64,
    /// The phase cannot take less time than this, however fast the target is: opening, and pauses.
    pub at_least_ns: u64,
    /// How long it takes to open the connections at the plan's `connect_rate`; null without one.
    pub opening_ns: Option<u64>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRow {
    /// Its name.
    pub name: String,
    /// Worker threads: its weight.
    pub workers: u32,
    /// Files it may open for connections.
    pub files: u64,
    /// Local ports per pair of a source and a target address.
    pub ports: u64,
    /// Source addresses.
    pub sources: u32,
    /// Memory in bytes that it may use; null: unknown.
    pub memory_bytes: Option<u64>,
    /// What it can carry: the smallest of files, ports × sources, and what fits into its memory.
    pub max_connections: u64,
    /// What it would do; null when the plan cannot be split.
    pub share: Option<Share>,
}

impl AgentRow {
    pub(super) fn new(machine: &Machine, share: Option<Share>) -> Self {
        let capacity = machine.capacity;
        Self {
            name: machine.name.to_string(),
            workers: capacity.workers,
            files: capacity.files,
            ports: capacity.ports,
            sources: capacity.sources,
            memory_bytes: capacity.memory,
            max_connections: capacity.max_connections(),
            share,
        }
    }
}

/// What an agent would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The most that may be open at one instant: as many local ports and files.
    pub connections: u64,
    /// Kept open and idle.
    pub held: u64,
    /// Exact; null where a phase has no count.
    pub requests: Option<u64>,
    /// Local ports in use at one instant, those of ended connections that are not free yet included; null: that depends on
    /// the target.
    pub ports_needed: Option<u64>,
    /// Memory for its connections.
    pub memory_bytes: u64,
    /// The highest sum of its shares of the open phases' rates.
    pub peak_rate_per_s: Option<f64>,
    /// What it sends at that rate.
    pub peak_bytes_out_per_s: Option<f64>,
    /// Bytes of all its requests.
    pub bytes_out: Option<u64>,
    /// Connections it opens per second at most; null: as fast as it can.
    pub connect_rate_per_s: Option<f64>,
    /// One row per phase of the plan.
    pub phases: Vec<PhaseShare>,
}

/// An agent's share of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseShare {
    /// The phase.
    pub phase: String,
    /// Connections of the closed model, requests in flight of the open one, at most.
    pub connections: u64,
    /// Exact; null where only a duration is planned.
    pub requests: Option<u64>,
    /// Its part of the highest rate; null in the closed model.
    pub peak_rate_per_s: Option<f64>,
    /// As for the phase, with this agent's own limit and rate.
    pub full_from_ns: Option<u64>,
}

/// What it takes to close connections early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reuse {
    /// A connection is closed after so many requests.
    pub requests_per_connection: u64,
    /// At most so many are opened, where the plan has a count of requests.
    pub opened: Option<u64>,
    /// At most so many are opened per second; null: as fast as the target answers.
    pub peak_per_s: Option<f64>,
    /// For so long the local port of one cannot be used again.
    pub port_hold_ns: u64,
}

/// A condition that ends the run before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopRow {
    /// What must hold.
    pub threshold: String,
    /// Over how long a time it is looked at.
    pub after_ns: u64,
    /// Whether the run is aborted when it does not hold; else it drains.
    pub abort: bool,
}

impl From<&StopRule> for StopRow {
    fn from(rule: &StopRule) -> Self {
        let StopRule { threshold, after, abort } = rule;
        Self { threshold: threshold.to_string(), after_ns: nanos(*after), abort: *abort }
    }
}
