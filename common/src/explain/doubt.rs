//! What would run, and is probably not meant or will make the numbers doubtful.

use super::{Explanation, Question, TimeWait, Warning, WarningCode, phase};
use crate::{
    assign::Assignment,
    plan::{Load, Workload},
    schedule::ConnectionShape,
    units::{Count, Nanos},
};

/// More requests per second than this a worker thread hardly makes: a core takes about 15 µs for a small request.
pub(super) const RATE_OF_A_WORKER: f64 = 60_000.0;

pub(super) fn warnings(
    question: &Question<'_>,
    shares: Option<&[Assignment]>,
    explanation: &Explanation,
) -> Vec<Warning> {
    let shares = shares.unwrap_or_default();
    let mut warnings = Vec::new();
    warnings.extend(idle(shares));
    warnings.extend(fast(explanation));
    warnings.extend(time_wait(question.time_wait, shares, question));
    warnings.extend(question.plan.workload.phases.iter().zip(&explanation.phases).filter_map(
        |(phase, row)| {
            let Load::Closed(closed) = &phase.load else { return None };
            let opening = row.closed.as_ref()?.opening_ns?;
            let ramp = match closed.profile.shape() {
                ConnectionShape::Constant { ramp_up_ns, .. } => *ramp_up_ns,
                ConnectionShape::Steps(_) => closed.profile.duration_ns(),
            };
            (opening > ramp && ramp > 0).then(|| Warning {
                code: WarningCode::SlowConnectRate,
                text: format!(
                    "phase {}: at the plan's connect_rate its connections take {} to open, and it opens them over {}",
                    phase.name,
                    Nanos(opening),
                    Nanos(ramp)
                ),
            })
        },
    ));
    warnings
}

fn idle(shares: &[Assignment]) -> Option<Warning> {
    let idle = shares.iter().filter(|share| share.workload.peak_connections() == 0).count();
    (idle > 0).then(|| Warning {
        code: WarningCode::IdleAgents,
        text: format!(
            "{} of the {} agents would have nothing to do: there are more agents than connections",
            Count(idle as u64),
            Count(shares.len() as u64)
        ),
    })
}

fn fast(explanation: &Explanation) -> Option<Warning> {
    let rates = explanation.agents.iter().filter_map(|agent| {
        let rate = agent.share.as_ref()?.peak_rate_per_s?;
        Some((agent, rate / f64::from(agent.workers.max(1))))
    });
    let (agent, each) = rates.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (each > RATE_OF_A_WORKER).then(|| Warning {
        code: WarningCode::RateAboveWorkers,
        text: format!(
            "{} would have to start {} requests per second on each of its workers ({}): a core makes about {}; use more \
             agents or workers",
            agent.name,
            Count(each.round() as u64),
            agent.workers,
            Count(RATE_OF_A_WORKER as u64)
        ),
    })
}

/// With connections that are closed early, local ports are what runs out.
fn time_wait(
    time_wait: TimeWait,
    shares: &[Assignment],
    question: &Question<'_>,
) -> Option<Warning> {
    let each = question.plan.workload.connections.requests_per_connection?.max(1);
    let lasts = time_wait.lasts.as_secs_f64();
    if time_wait.reused || lasts <= 0.0 {
        return None;
    }
    let agents = shares.iter().filter_map(|share| {
        let machine = question.agents.iter().find(|machine| machine.name == share.agent)?;
        let capacity = machine.capacity;
        let ports = capacity.ports.saturating_mul(u64::from(capacity.sources.max(1)));
        let opened = opened(&share.workload, each);
        let sustained = ports as f64 / lasts;
        let rate = phase::peak_rate(&share.workload).map(|it| phase::per_second(it) / each as f64);
        let fits = opened.is_some_and(|opened| opened <= ports)
            || rate.is_some_and(|rate| rate <= sustained);
        (!fits).then_some((machine, ports, sustained, rate))
    });
    let (machine, ports, sustained, rate) =
        agents.min_by(|(_, _, a, _), (_, _, b, _)| a.total_cmp(b))?;
    let would = match rate {
        Some(rate) => format!("{} would open up to {} a second", machine.name, rounded(rate)),
        None => format!("{} opens them as fast as the target answers", machine.name),
    };
    Some(Warning {
        code: WarningCode::PortsInTimeWait,
        text: format!(
            "connections are closed after {} request{}, and a closed connection keeps its local port for {} (TIME_WAIT) \
             on the side that closes first: {} ports allow {} new connections a second, {would}; use more source \
             addresses or agents, set net.ipv4.tcp_tw_reuse=1, or have the target close",
            Count(each),
            if each == 1 { "" } else { "s" },
            Nanos::from(time_wait.lasts),
            Count(ports),
            rounded(sustained),
        ),
    })
}

fn opened(share: &Workload, each: u64) -> Option<u64> {
    share.planned_requests().map(|requests| requests.div_ceil(each))
}

fn rounded(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { Count(rate.round() as u64).to_string() }
}
