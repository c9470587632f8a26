//! A phase by itself: its counts and times, and how many requests may be in flight (Little's law).

use std::time::Duration;

use super::{ClosedRow, OpenRow, PhaseRow, Reuse, Sizes};
use crate::{
    churn::Churn,
    plan::{
        ArrivalProcess, ClosedLoad, ConnectionPolicy, Load, OpenLoad, Phase, ThinkTime, Workload,
    },
    schedule::Rate,
    units::nanos,
};

/// A rate is in millionths per second, a time in nanoseconds.
const MICRO_NANOS: u128 = 1_000_000 * 1_000_000_000;

pub(super) fn row(phase: &Phase, workload: &Workload, sizes: Sizes) -> PhaseRow {
    let load = &phase.load;
    PhaseRow {
        name: phase.name.clone(),
        measure: phase.measure,
        starts_ns: nanos(phase.starts_at),
        duration_ns: load.duration().map(nanos),
        requests: load.planned(),
        connections: load.connections(),
        open: match load {
            Load::Open(open) => Some(open_row(open, workload.timeout)),
            Load::Closed(_) => None,
        },
        closed: match load {
            Load::Closed(closed) => Some(closed_row(closed, &workload.connections)),
            Load::Open(_) => None,
        },
        bytes_out: load.planned().map(|requests| requests.saturating_mul(sizes.request)),
    }
}

fn open_row(open: &OpenLoad, timeout: Duration) -> OpenRow {
    let profile = &open.profile;
    let segments = profile.segments();
    let ends = segments.first().zip(segments.last());
    let (from, to) = ends.map_or((Rate::ZERO, Rate::ZERO), |(first, last)| (first.from, last.to));
    let count = open.slots.count();
    let due = |k: Option<u64>| match open.arrivals {
        ArrivalProcess::Uniform => k.and_then(|k| profile.due(k)),
        ArrivalProcess::Poisson => None,
    };
    let peak = profile.peak();
    OpenRow {
        arrivals: open.arrivals.name().to_owned(),
        from_per_s: from.as_f64(),
        peak_per_s: peak.as_f64(),
        to_per_s: to.as_f64(),
        first_due_ns: due((count > 0).then_some(0)),
        last_due_ns: due(count.checked_sub(1)),
        max_in_flight: open.max_in_flight,
        on_overflow: open.on_overflow.name().to_owned(),
        in_flight_at_timeout: in_flight(peak.micro(), timeout, count),
        full_from_ns: full_from(open.max_in_flight, peak.micro(), timeout, count),
    }
}

fn closed_row(closed: &ClosedLoad, policy: &ConnectionPolicy) -> ClosedRow {
    let lanes = closed.lanes.count();
    let each = closed.requests.map(|requests| requests.div_ceil(lanes.max(1)));
    let shortest = match closed.think_time {
        ThinkTime::None | ThinkTime::Exponential(_) => Duration::ZERO,
        ThinkTime::Fixed(pause) | ThinkTime::Uniform(pause, _) => pause,
    };
    let mean = match closed.think_time {
        ThinkTime::None => Duration::ZERO,
        ThinkTime::Fixed(pause) | ThinkTime::Exponential(pause) => pause,
        ThinkTime::Uniform(least, most) => least.saturating_add(most) / 2,
    };
    let pauses = each.map_or(0, |each| each.saturating_sub(1));
    ClosedRow {
        requests_per_connection: each,
        think_time_ns: nanos(mean),
        at_least_ns: pauses.saturating_mul(nanos(shortest)),
        opening_ns: policy.connect_rate.and_then(|rate| time_for(lanes, rate.micro())),
    }
}

/// What closing connections early takes; `None`: the plan keeps them.
pub(super) fn reuse(workload: &Workload, hold: Duration) -> Option<Reuse> {
    let each = workload.connections.requests_per_connection?.max(1);
    let churn = Churn::of(workload)?;
    Some(Reuse {
        requests_per_connection: each,
        opened: churn.total,
        peak_per_s: churn.rate_micro.map(per_second),
        port_hold_ns: nanos(hold),
    })
}

/// Little's law: so many of `count` requests are in flight when each takes `time`.
pub(super) fn in_flight(micro: u64, time: Duration, count: u64) -> u64 {
    let requests = (u128::from(micro) * u128::from(nanos(time))).div_ceil(MICRO_NANOS);
    u64::try_from(requests).unwrap_or(u64::MAX).min(count)
}

/// The response time at which `limit` requests are in flight at this rate; `None` when that is not before `timeout`.
pub(super) fn full_from(limit: u64, micro: u64, timeout: Duration, count: u64) -> Option<u64> {
    if in_flight(micro, timeout, count) <= limit {
        return None;
    }
    time_for(limit, micro)
}

/// How long so many take at this rate; `None` when that is for ever.
fn time_for(count: u64, micro: u64) -> Option<u64> {
    let time = (u128::from(count) * MICRO_NANOS).checked_div(u128::from(micro))?;
    Some(u64::try_from(time).unwrap_or(u64::MAX))
}

/// This share's part of a phase's highest rate, in millionths per second; `None` in the closed model.
pub(super) fn rate_share(load: &Load) -> Option<u64> {
    let Load::Open(open) = load else { return None };
    let (mine, all) = (open.slots.count(), open.slots.total());
    let share = u128::from(open.profile.peak().micro()) * u128::from(mine);
    let share = share.checked_div(u128::from(all)).unwrap_or(0);
    Some(u64::try_from(share).expect("a part of a rate"))
}

/// The highest sum of the rates of open phases that are at work together, in millionths per second; `None` without any.
pub(super) fn peak_rate(workload: &Workload) -> Option<u64> {
    let phases = &workload.phases;
    let together = phases.iter().map(|phase| {
        let on = phases.iter().filter(|other| other.is_on_at(phase.starts_at));
        on.filter_map(|other| rate_share(&other.load))
            .fold(None, |sum: Option<u64>, rate| Some(sum.unwrap_or(0).saturating_add(rate)))
    });
    together.max().flatten()
}

/// Millionths per second as a number per second.
pub(super) fn per_second(micro: u64) -> f64 {
    micro as f64 / 1e6
}
