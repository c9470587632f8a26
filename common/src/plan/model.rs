//! The compiled plan. Fields are valid by construction; nothing here is optional that has a default.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::{
    schedule::{ConnectionProfile, Interleave, Rate, RateProfile},
    threshold::Threshold,
};

/// A whole test.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Shown in lists and reports; the file's stem where the plan gives none.
    pub name: String,
    /// What the agents do.
    pub workload: Workload,
    /// Which agents, and what happens when one is lost.
    pub agents: AgentsPolicy,
    /// What the test must reach, in the plan's order.
    pub thresholds: Vec<Threshold>,
    /// What ends the run before its time, in the plan's order.
    pub stop_when: Vec<StopRule>,
}

/// Ends the run when a threshold was broken for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRule {
    /// What must hold.
    pub threshold: Threshold,
    /// It must be broken in all of a window of this length, up to now.
    pub after: Duration,
    /// Whether the run is aborted then; else it drains: no request starts any more, those under way may finish.
    pub abort: bool,
}

/// What is sent, and how: the part of the plan that agents execute.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Never empty. Statistics are kept per entry.
    pub requests: Vec<Request>,
    /// Never empty. How much, how fast, how long: of the whole plan, or of one agent's share of it. Statistics are kept
    /// per entry.
    pub phases: Vec<Phase>,
    /// From the start of sending to the last byte of the response.
    pub timeout: Duration,
    /// For one attempt to connect.
    pub connect_timeout: Duration,
    /// How long requests in flight may go on after the end of their phase or a stop.
    pub grace: Duration,
    /// An agent none of whose connection attempts worked for so long stops and says so.
    pub give_up_after: Duration,
    /// How connections are made and kept.
    pub connections: ConnectionPolicy,
    /// What everything random is drawn from: the same seed, the same load.
    pub seed: u64,
}

impl Workload {
    /// The most connections that may be open at one instant: those of all phases that are at work together, and the held.
    pub fn peak_connections(&self) -> u64 {
        self.peak_of(Load::connections)
    }

    /// The same without those of the open model, which opens no more than it needs: so many must have been made when all
    /// has gone well.
    pub fn requested_connections(&self) -> u64 {
        self.peak_of(|load| match load {
            Load::Closed(closed) => closed.lanes.count(),
            Load::Open(_) => 0,
        })
    }

    fn peak_of(&self, of: impl Fn(&Load) -> u64) -> u64 {
        // The number changes only where a phase begins or ends, and grows only where one begins.
        let working = self.phases.iter().map(|phase| {
            let together = self.phases.iter().filter(|other| other.is_on_at(phase.starts_at));
            together.map(|other| of(&other.load)).fold(0, u64::saturating_add)
        });
        working.max().unwrap_or(0).saturating_add(self.connections.hold)
    }

    /// Requests in all phases; `None` when a phase has no count.
    pub fn planned_requests(&self) -> Option<u64> {
        self.phases
            .iter()
            .map(|phase| phase.load.planned())
            .try_fold(0_u64, |sum, planned| Some(sum.saturating_add(planned?)))
    }

    /// When the last phase ends, without its grace; `None` when it has no duration.
    pub fn ends_at(&self) -> Option<Duration> {
        let mut ends = self.phases.iter().map(Phase::ends_at);
        ends.try_fold(Duration::ZERO, |latest, end| Some(latest.max(end?)))
    }
}

/// How connections are made and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionPolicy {
    /// After so many requests a connection is closed and another one opened; `None`: it is kept. 1 is the plan's
    /// `keep_alive = false`.
    pub requests_per_connection: Option<u64>,
    /// So many connections are opened per second at most; `None`: as fast as the target takes them.
    pub connect_rate: Option<Rate>,
    /// When the target's name is looked up.
    pub resolve: Resolve,
    /// Where to connect to instead of the URL's host and port, each as `host:port`; empty: where the URL says.
    pub connect_to: Vec<String>,
    /// Connections that are kept open and idle beside those that work.
    pub hold: u64,
}

impl Default for ConnectionPolicy {
    fn default() -> Self {
        Self {
            requests_per_connection: None,
            connect_rate: None,
            resolve: Resolve::Once,
            connect_to: Vec::new(),
            hold: 0,
        }
    }
}

/// When the target's name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// While the run is prepared; all addresses found are used in turn.
    Once,
    /// Again for every connection.
    PerConnection,
}

impl Resolve {
    /// The word used in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::PerConnection => "per-connection",
        }
    }
}

/// A stretch of a run with one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Unique in the plan; a plan without phases has one, called `main`.
    pub name: String,
    /// Whether its requests are in the report's distributions and rates.
    pub measure: bool,
    /// Since the start of the run, on each agent's own clock.
    pub starts_at: Duration,
    /// How much, how fast, how long.
    pub load: Load,
}

impl Phase {
    /// The name of the one phase of a plan without phases.
    pub const ONLY: &'static str = "main";

    /// When no request of it starts any more; `None` when only a count ends it.
    pub fn ends_at(&self) -> Option<Duration> {
        self.load.duration().map(|duration| self.starts_at.saturating_add(duration))
    }

    /// Whether requests of it may start at this instant.
    pub fn is_on_at(&self, instant: Duration) -> bool {
        self.starts_at <= instant && self.ends_at().is_none_or(|end| instant < end)
    }
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The row it has in the report.
    pub name: String,
    /// The HTTP method.
    pub method: Method,
    /// Absolute; scheme `http`, with a host and a path, without user information or fragment.
    pub url: Uri,
    /// In the plan's order; may repeat a name. Without `Host` and `Content-Length` unless the plan gives them.
    pub headers: Vec<Header>,
    /// Sent as it is; empty: no body.
    pub body: Bytes,
    /// Which answers count as success.
    pub expect: Expect,
}

/// One header line.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The name, in lower case as `http` keeps it.
    pub name: HeaderName,
    /// The value.
    pub value: HeaderValue,
}

/// The rule that says which answers are successes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expect {
    /// Accepted status codes, sorted; empty: every code below 400.
    pub status: Vec<u16>,
}

impl Expect {
    /// Whether an answer with this status code is a success.
    pub fn accepts(&self, status: u16) -> bool {
        if self.status.is_empty() {
            status < 400
        } else {
            self.status.binary_search(&status).is_ok()
        }
    }
}

/// How load is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// Connections that each send their next request after the last response.
    Closed(ClosedLoad),
    /// Requests that start on a schedule, whatever the responses do.
    Open(OpenLoad),
}

impl Load {
    /// The most connections it uses at one instant. 0 only in a share that has nothing to do.
    pub fn connections(&self) -> u64 {
        match self {
            Self::Closed(closed) => closed.lanes.count(),
            Self::Open(open) => open.max_in_flight,
        }
    }

    /// Its number of requests; `None` when only a duration is planned.
    pub fn planned(&self) -> Option<u64> {
        match self {
            Self::Closed(closed) => closed.requests,
            Self::Open(open) => Some(open.slots.count()),
        }
    }

    /// After this time no request of it starts; `None` when only a count is planned.
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Self::Closed(closed) => closed.duration,
            Self::Open(open) => Some(Duration::from_nanos(open.profile.duration_ns())),
        }
    }
}

/// The closed model. At least one of `requests` and `duration` is there; where both are, what comes first ends the phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedLoad {
    /// The connections of the whole plan over the phase's time.
    pub profile: ConnectionProfile,
    /// Which of them are this share's; all of them in a plan, but never more than there are requests.
    pub lanes: Interleave,
    /// Requests in all.
    pub requests: Option<u64>,
    /// Time after which no request starts.
    pub duration: Option<Duration>,
    /// Between a response and the next request of its connection.
    pub think_time: ThinkTime,
}

/// The pause between a response and the next request of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkTime {
    /// No pause.
    #[default]
    None,
    /// Always the same.
    Fixed(Duration),
    /// Anything between the two is equally likely.
    Uniform(Duration, Duration),
    /// Memoryless, with this mean.
    Exponential(Duration),
}

/// The open model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLoad {
    /// The rate of the whole plan over the phase's time.
    pub profile: RateProfile,
    /// Which of its arrivals are this share's; all of them in a plan.
    pub slots: Interleave,
    /// How arrivals lie within the rate.
    pub arrivals: ArrivalProcess,
    /// No more requests than this are in flight at one instant.
    pub max_in_flight: u64,
    /// What happens to a request that is due when so many are in flight.
    pub on_overflow: Overflow,
}

/// How arrivals lie within a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalProcess {
    /// Evenly: the k-th is due when the integral of the rate is k.
    Uniform,
    /// At random, independently of each other.
    Poisson,
}

impl ArrivalProcess {
    /// The word used in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Poisson => "poisson",
        }
    }
}

/// What happens to a request that is due when as many are in flight as the plan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// It waits; the wait is in its `response_time` and its `schedule_lag`.
    Queue,
    /// It is not started, and counted as `dropped`.
    Drop,
}

impl Overflow {
    /// The word used in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Drop => "drop",
        }
    }
}

/// The plan's `[agents]` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentsPolicy {
    /// Fewer idle agents than this and the run is refused; at least 1.
    pub min: u32,
    /// What to do when an agent is lost in mid-run.
    pub on_loss: OnLoss,
}

/// What to do when an agent is lost in mid-run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// Stop the others and report.
    Abort,
    /// Let the others finish their own shares.
    Continue,
}

impl OnLoss {
    /// The word used in the plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Continue => "continue",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_rule_every_status_below_400_is_a_success() {
        let default = Expect::default();
        assert!(default.accepts(200) && default.accepts(399) && !default.accepts(400));
        let only = Expect { status: vec![201, 404] };
        assert!(only.accepts(404) && !only.accepts(200));
    }
}
