//! What an agent would do, and all of them together.

use std::time::Duration;

use super::{PhaseShare, RunRow, Share, Sizes, phase};
use crate::{
    capacity::CONNECTION_BYTES,
    churn::{Churn, Waiting},
    plan::{Load, Plan, Workload},
    units::nanos,
};

/// All agents together.
pub(super) fn run(workload: &Workload, sizes: Sizes) -> RunRow {
    let requests = workload.planned_requests();
    let rate = phase::peak_rate(workload).map(phase::per_second);
    let bytes = |each: u64| requests.map(|requests| requests.saturating_mul(each));
    RunRow {
        requests,
        connections: workload.peak_connections(),
        held: workload.connections.hold,
        duration_ns: workload.ends_at().map(nanos),
        peak_rate_per_s: rate,
        peak_bytes_out_per_s: rate.map(|rate| rate * sizes.request as f64),
        peak_bytes_in_per_s: rate.zip(sizes.response).map(|(rate, bytes)| rate * bytes as f64),
        bytes_out: bytes(sizes.request),
        bytes_in: sizes.response.and_then(bytes),
    }
}

/// An agent with this share of the plan.
pub(super) fn of(plan: &Plan, share: &Workload, sizes: Sizes) -> Share {
    let whole = run(share, sizes);
    let limited = plan.workload.connections.connect_rate.and(share.connections.connect_rate);
    Share {
        connections: whole.connections,
        held: whole.held,
        requests: whole.requests,
        memory_bytes: whole.connections.saturating_mul(CONNECTION_BYTES),
        ports_needed: ports_needed(share, sizes.port_hold),
        peak_rate_per_s: whole.peak_rate_per_s,
        peak_bytes_out_per_s: whole.peak_bytes_out_per_s,
        bytes_out: whole.bytes_out,
        connect_rate_per_s: limited.map(|rate| rate.as_f64()),
        phases: share
            .phases
            .iter()
            .map(|it| phase_share(it.name.clone(), &it.load, share))
            .collect(),
    }
}

/// Local ports in use at one instant, as the agent counts them when it gets ready; `None`: that depends on the target.
fn ports_needed(share: &Workload, hold: Duration) -> Option<u64> {
    let open = share.peak_connections();
    let Some(churn) = Churn::of(share) else { return Some(open) };
    let Waiting::AtMost(waiting) = churn.waiting(hold) else { return None };
    let needed = waiting.saturating_add(open);
    Some(churn.total.map_or(needed, |total| needed.min(total.max(open))))
}

fn phase_share(phase: String, load: &Load, share: &Workload) -> PhaseShare {
    let rate = phase::rate_share(load);
    let full_from_ns = match load {
        Load::Open(open) => rate.and_then(|rate| {
            phase::full_from(open.max_in_flight, rate, share.timeout, open.slots.count())
        }),
        Load::Closed(_) => None,
    };
    PhaseShare {
        phase,
        connections: load.connections(),
        requests: load.planned(),
        peak_rate_per_s: rate.map(phase::per_second),
        full_from_ns,
    }
}
