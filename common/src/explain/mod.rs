//! What a run of a plan over a fleet would be: shares, sizes and times, worked out and not tried.
//!
//! [`explain`] is pure arithmetic. It divides work with the very same [`split`] that a run uses, so what it says of an
//! agent is what that agent would get. What nobody can know beforehand (how fast the target answers) is not guessed: it
//! stays a figure to be filled in, as in "requests wait from a response time of 2 s on".

mod doubt;
mod model;
mod phase;
mod refuse;
mod share;

pub use model::{
    AgentRow, ClosedRow, Explanation, FleetSource, OpenRow, PhaseRow, PhaseShare, Refusal,
    RefusalCode, Remedy, RequestRow, Reuse, RunRow, SCHEMA, Share, StopRow, Warning, WarningCode,
};

use std::time::Duration;

use crate::{
    assign::{Assignment, Offer, SplitError, split},
    capacity::Capacity,
    id::AgentName,
    plan::Plan,
    units::nanos,
};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The agents that would take part.
    pub agents: &'a [Machine],
    /// Where they come from.
    pub fleet: FleetSource,
    /// Bytes of each request on the wire, head and body, in the plan's order.
    pub request_bytes: &'a [u64],
    /// Bytes of a response on the wire, if the user says how many.
    pub response_bytes: Option<u64>,
    /// For how long the local port of a closed connection cannot be used again.
    pub port_hold: Duration,
}

/// An agent that would take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: AgentName,
    /// What it can carry.
    pub capacity: Capacity,
}

impl Machine {
    /// What it offers to a split.
    pub fn offer(&self) -> Offer {
        Offer {
            agent: self.name.clone(),
            workers: self.capacity.workers,
            max_connections: self.capacity.max_connections(),
        }
    }
}

/// Works out what a run would be.
pub fn explain(question: &Question<'_>) -> Explanation {
    let plan = question.plan;
    let workload = &plan.workload;
    let mut refusals = Vec::new();
    refusals.extend(refuse::too_few_agents(plan.agents.min, question.agents.len()));
    let offers: Vec<Offer> = question.agents.iter().map(Machine::offer).collect();
    let shares = match split(workload, &offers) {
        Ok(shares) => Some(shares),
        // With nobody there, the row above has said so.
        Err(SplitError::NoAgents) => None,
        Err(SplitError::TooManyConnections { wanted, carried, .. }) => {
            refusals.push(refuse::too_many_connections(wanted, carried, question.agents));
            None
        }
    };
    for share in shares.iter().flatten() {
        refusals.extend(refuse::too_fast(share, question));
    }
    let request_bytes = question.request_bytes.iter().copied().max().unwrap_or(0);
    let sizes = Sizes {
        request: request_bytes,
        response: question.response_bytes,
        port_hold: question.port_hold,
    };
    let mut explanation = Explanation {
        schema: SCHEMA.to_owned(),
        plan: plan.name.clone(),
        can_run: refusals.is_empty(),
        refusals,
        warnings: Vec::new(),
        run: share::run(workload, sizes),
        requests: requests(question),
        phases: workload.phases.iter().map(|it| phase::row(it, workload, sizes)).collect(),
        fleet: question.fleet,
        agents: agents(question, shares.as_deref(), sizes),
        reuse: phase::reuse(workload, question.port_hold),
        thresholds: plan.thresholds.iter().map(ToString::to_string).collect(),
        stop_when: plan.stop_when.iter().map(StopRow::from).collect(),
        grace_ns: nanos(workload.grace),
        timeout_ns: nanos(workload.timeout),
        agents_min: plan.agents.min,
        on_loss: plan.agents.on_loss.name().to_owned(),
    };
    explanation.warnings = doubt::warnings(question, shares.as_deref(), &explanation);
    explanation
}

/// What one of each takes.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    request: u64,
    response: Option<u64>,
    port_hold: Duration,
}

fn requests(question: &Question<'_>) -> Vec<RequestRow> {
    let requests = question.plan.workload.requests.iter().zip(question.request_bytes);
    let row = |(request, bytes): (&crate::plan::Request, &u64)| RequestRow {
        name: request.name.clone(),
        method: request.method.to_string(),
        url: request.url.to_string(),
        bytes: *bytes,
    };
    requests.map(row).collect()
}

/// In the order of their names, as the split has them.
fn agents(question: &Question<'_>, shares: Option<&[Assignment]>, sizes: Sizes) -> Vec<AgentRow> {
    let mut machines: Vec<&Machine> = question.agents.iter().collect();
    machines.sort_by(|a, b| a.name.cmp(&b.name));
    let row = |(index, machine): (usize, &&Machine)| {
        let share = shares.map(|shares| share::of(question.plan, &shares[index].workload, sizes));
        AgentRow::new(machine, share)
    };
    machines.iter().enumerate().map(row).collect()
}
