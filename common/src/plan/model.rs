//! The compiled plan. Fields are valid by construction; nothing here is optional that has a default.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::threshold::Threshold;

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
    /// How much, how fast, how long: of the whole plan, or of one agent's share of it.
    pub load: Load,
    /// From the start of sending to the last byte of the response.
    pub timeout: Duration,
    /// For one attempt to connect.
    pub connect_timeout: Duration,
    /// How long requests in flight may go on after the end or a stop.
    pub grace: Duration,
    /// An agent none of whose connection attempts worked for so long stops and says so.
    pub give_up_after: Duration,
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
    /// A fixed number of connections, each sends its next request after the last response.
    Closed(ClosedLoad),
}

/// The closed model. At least one of `requests` and `duration` is there; where both are, what comes first ends the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedLoad {
    /// Connections kept busy at the same time. 0 only in a share that has nothing to do.
    pub connections: u64,
    /// Requests in all.
    pub requests: Option<u64>,
    /// Time after which no request starts.
    pub duration: Option<Duration>,
    /// The connections are opened evenly over this time.
    pub ramp_up: Duration,
    /// Where this share's connections stand in the ramp (0 in a plan).
    pub ordinal: u32,
    /// Into how many shares the load was split (1 in a plan).
    pub shares: u32,
}

impl ClosedLoad {
    /// When connection `index` (of this share) is to be opened, from the start of the run.
    ///
    /// The opening times of all shares together lie evenly over `ramp_up`.
    pub fn opens_at(&self, index: u64) -> Duration {
        let place = u128::from(index) * u128::from(self.shares) + u128::from(self.ordinal);
        let places = (u128::from(self.connections) * u128::from(self.shares)).max(1);
        let nanos = self.ramp_up.as_nanos() * place / places;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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

    #[test]
    fn the_ramps_of_all_shares_make_one_even_ramp() {
        let shares = 3;
        let mut times: Vec<_> = (0..shares)
            .flat_map(|ordinal| {
                let share = ClosedLoad {
                    connections: 5,
                    requests: None,
                    duration: Some(Duration::from_secs(9)),
                    ramp_up: Duration::from_secs(15),
                    ordinal,
                    shares,
                };
                (0..5).map(move |index| share.opens_at(index))
            })
            .collect();
        times.sort();
        let even: Vec<_> = (0..15).map(Duration::from_secs).collect();
        assert_eq!(times, even);
    }
}
