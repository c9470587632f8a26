//! What would run, and is probably not meant or will make the numbers doubtful.

use std::time::Duration;

use super::{Explanation, Question, Warning, WarningCode};
use crate::{
    assign::Assignment,
    churn::{Churn, Waiting, sustained},
    plan::{Load, Phase, Plan, StopRule},
    schedule::ConnectionShape,
    stats::Histogram,
    threshold::{Counter, Metric, Statistic, Threshold, Time},
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
    warnings.extend(time_wait(shares, question));
    warnings.extend(question.plan.thresholds.iter().filter_map(|it| samples(it, question.plan)));
    warnings.extend(question.plan.stop_when.iter().filter_map(|it| never(it, question.plan)));
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

/// Connections that are closed early, as fast as the target answers: local ports may run out, and nobody can say before.
fn time_wait(shares: &[Assignment], question: &Question<'_>) -> Option<Warning> {
    let agents = shares.iter().filter_map(|share| {
        let churn = Churn::of(&share.workload)?;
        let capacity = question.agents.iter().find(|it| it.name == share.agent)?.capacity;
        let ports = capacity.ports.saturating_mul(u64::from(capacity.sources.max(1)));
        let free = ports.saturating_sub(share.workload.peak_connections());
        (churn.waiting(question.port_hold) == Waiting::Unknown)
            .then(|| (sustained(free, question.port_hold), &share.agent))
    });
    let (least, agent) = agents.min()?;
    Some(Warning {
        code: WarningCode::PortsInTimeWait,
        text: format!(
            "connections are not kept, and a local port is in use for {} after one was closed (TIME_WAIT): with more than \
             {} new connections per second {agent} runs out of ports; use more source addresses (--source-ip), or set \
             `connect_rate`",
            Nanos::from(question.port_hold),
            Count(least),
        ),
    })
}

/// The phases that a threshold is about.
fn phases_of<'a>(threshold: &'a Threshold, plan: &'a Plan) -> impl Iterator<Item = &'a Phase> {
    let named = threshold.scope().phase.as_deref();
    plan.workload.phases.iter().filter(move |phase| match named {
        Some(name) => phase.name == name,
        None => phase.measure,
    })
}

fn samples(threshold: &Threshold, plan: &Plan) -> Option<Warning> {
    let Metric::Time { statistic: Statistic::Percentile(percentile), time, .. } =
        threshold.metric()
    else {
        return None;
    };
    if matches!(time, Time::Connect | Time::Tls | Time::WorkerLag) {
        return None;
    }
    let mut planned = phases_of(threshold, plan).map(|phase| phase.load.planned());
    let planned = planned.try_fold(0_u64, |sum, planned| Some(sum.saturating_add(planned?)))?;
    let needed = Histogram::needed(percentile.share());
    (planned < needed).then(|| Warning {
        code: WarningCode::TooFewSamples,
        text: format!(
            "the threshold `{threshold}` needs {} samples, and the plan has {} requests for it: it cannot pass",
            Count(needed),
            Count(planned)
        ),
    })
}

fn never(rule: &StopRule, plan: &Plan) -> Option<Warning> {
    let why = if rule.threshold.metric() == Metric::Count(Counter::InFlightAtEnd) {
        "is about what is known at the end only".to_owned()
    } else {
        let spans = phases_of(&rule.threshold, plan);
        let spans = spans.map(|it| (it.starts_at, it.ends_at().unwrap_or(Duration::MAX)));
        let longest = longest_span(spans.collect());
        if longest >= rule.after {
            return None;
        }
        format!(
            "looks back {}, and its phases are at work for {} without a break",
            Nanos::from(rule.after),
            Nanos::from(longest)
        )
    };
    Some(Warning {
        code: WarningCode::RuleNeverJudged,
        text: format!("the stop rule `{}` {why}: it never stops the run", rule.threshold),
    })
}

/// The longest time without a gap.
fn longest_span(mut spans: Vec<(Duration, Duration)>) -> Duration {
    spans.sort_unstable();
    let (mut longest, mut begin, mut end) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for (from, until) in spans {
        if from > end {
            begin = from;
        }
        end = end.max(until);
        longest = longest.max(end.saturating_sub(begin));
    }
    longest
}
