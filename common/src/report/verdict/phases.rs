//! What the phases say: loads that could not be kept up with, by the target or by the generator, and warm-ups that failed.

use super::{
    Code, Degraded, Evidence, Reasons, both,
    rules::{CHANCE, MISSED, MISSED_SECONDS, WAIT_NS, WAIT_PART, WARM_UP_FAILED},
};
use crate::{
    outcome::NotStarted,
    plan::{ArrivalProcess, Load, OpenLoad},
    report::{
        Report, RunOutcome,
        agents::{Agent, Part},
        arrivals::Stretch,
        phases::Account,
    },
    units::{Count, Nanos},
};

impl Reasons {
    pub(super) fn phases(&mut self, report: &Report, evidence: &Evidence<'_>) {
        let several = evidence.phases.len() > 1;
        let complete = evidence.agents.iter().all(|agent| {
            agent.facts.lost.is_none() && matches!(agent.part, Part::Running | Part::Completed(..))
        });
        for (account, stretches) in evidence.phases.iter().zip(evidence.stretches) {
            let name =
                if several { format!("phase {:?}: ", account.plan.name) } else { String::new() };
            if let Load::Open(open) = &account.plan.load {
                if let Some(text) = overload(report, evidence, account, open) {
                    self.add(Code::Overload, Degraded, None, format!("{name}{text}"));
                } else if account.plan.measure
                    && complete
                    && let Some(text) = rate_missed(open.arrivals, stretches)
                {
                    self.add(Code::RateMissed, Degraded, None, format!("{name}{text}"));
                }
            }
            if !account.plan.measure
                && let Some(text) = warm_up(report.run.outcome, account)
            {
                self.add(Code::WarmUp, Degraded, None, format!("{name}{text}"));
            }
        }
    }
}

/// Requests that were dropped, or waited for others to end.
fn overload(
    report: &Report,
    evidence: &Evidence<'_>,
    account: &Account<'_>,
    open: &OpenLoad,
) -> Option<String> {
    let not_started = &account.sum.not_started;
    let dropped = not_started[NotStarted::Dropped as usize];
    let queued = not_started[NotStarted::StillQueued as usize];
    let wait = wait(report, evidence, account);
    let mut found = Vec::new();
    if dropped > 0 {
        found.push(format!("{} were dropped", of(dropped, open.slots.count())));
    }
    if let Some((lag, response_time)) = wait {
        found.push(format!(
            "requests waited for others to end: p99(schedule_lag) is {} of a p99(response_time) of {}",
            Nanos(lag),
            Nanos(response_time)
        ));
    }
    if queued > 0 {
        found.push(format!("{} still waited at its end", of(queued, open.slots.count())));
    }
    if found.is_empty() {
        return None;
    }
    Some(format!(
        "{}, with max_in_flight = {}: the target is slower than the rate, or max_in_flight too low for it; lower the rate, \
         or raise max_in_flight",
        found.join("; "),
        Count(open.max_in_flight)
    ))
}

fn of(count: u64, planned: u64) -> String {
    let share = count as f64 * 100.0 / planned.max(1) as f64;
    format!("{} of {} planned requests ({share:.2} %)", Count(count), Count(planned))
}

/// p99(schedule_lag) and p99(response_time), when the first is the wait for other requests to end.
fn wait(report: &Report, evidence: &Evidence<'_>, account: &Account<'_>) -> Option<(u64, u64)> {
    let times = [&account.sum.succeeded_times, &account.sum.failed_times];
    let lag = both(times, |times| &times.schedule_lag).quantile(0.99)?;
    let response_time = both(times, |times| &times.response_time).quantile(0.99)?;
    // A connection may have to be made first, which is in the lag too: only the bound makes requests wait for others.
    let mut agents = evidence.agents.iter();
    let full = agents.any(|agent| is_full(report, evidence, account, agent));
    let mut worker_lag = evidence.agents.iter().map(|agent| &agent.totals.stats.worker_lag);
    let on_time = worker_lag
        .all(|worker_lag| worker_lag.quantile(0.99).is_none_or(|worker_lag| worker_lag < lag / 2));
    let waited = full && on_time && lag > WAIT_NS && lag > response_time / WAIT_PART;
    waited.then_some((lag, response_time))
}

/// Whether the agent was ever seen with its part of the phase's `max_in_flight` in use.
fn is_full(
    report: &Report,
    evidence: &Evidence<'_>,
    account: &Account<'_>,
    agent: &Agent<'_>,
) -> bool {
    let bound = account.plan.load.connections();
    let product = u128::from(bound) * u128::from(agent.facts.connections);
    let part = product.checked_div(u128::from(report.plan.connections)).unwrap_or(0);
    let (from, until) = account.window();
    let within = agent
        .totals
        .intervals
        .values()
        .filter(|interval| from < interval.interval.to_ns && interval.interval.to_ns <= until);
    let seen = within.map(|interval| interval.gauges.in_flight).max().unwrap_or(0);
    // A burst is over before an interval is. Its connections tell of it, where only this phase opens so many.
    let alone = report.plan.connections == bound
        && evidence.phases.iter().filter(|phase| phase.plan.load.connections() >= bound).count()
            == 1;
    let opened = if alone { agent.totals.stats.connections.peak } else { 0 };
    part > 0 && u128::from(seen.max(opened)) >= part
}

/// Fewer starts than planned, second after second.
fn rate_missed(arrivals: ArrivalProcess, stretches: &[Stretch]) -> Option<String> {
    let chance = |planned: u64| match arrivals {
        ArrivalProcess::Uniform => 0.0,
        ArrivalProcess::Poisson => CHANCE * (planned as f64).sqrt(),
    };
    let missing = |stretch: &Stretch| stretch.planned.saturating_sub(stretch.started);
    let missed: Vec<&Stretch> = stretches
        .iter()
        .filter(|stretch| {
            let (missing, planned) = (missing(stretch), stretch.planned);
            // One may have come a few microseconds later, in the next second.
            missing > 1 && missing as f64 > planned as f64 * MISSED + chance(planned)
        })
        .collect();
    let worst = missed.iter().min_by(|a, b| a.share().total_cmp(&b.share()))?;
    if missed.len() as f64 <= (stretches.len() as f64 * MISSED_SECONDS).max(1.0) {
        return None;
    }
    Some(format!(
        "the agents started fewer requests than planned in {} of {} seconds, in the worst {} of {}: they could not keep up \
         with the rate; give them more CPU, or add agents",
        Count(missed.len() as u64),
        Count(stretches.len() as u64),
        Count(worst.started),
        Count(worst.planned)
    ))
}

/// An unmeasured phase that did not do what it was for.
fn warm_up(outcome: RunOutcome, account: &Account<'_>) -> Option<String> {
    let ledger = &account.ledger;
    if ledger.succeeded == 0 {
        let over = outcome == RunOutcome::Finished || ledger.failed > 0;
        let text = format!(
            "none of its {} requests succeeded, so it warmed nothing up; it is not measured",
            Count(ledger.started)
        );
        return over.then_some(text);
    }
    (ledger.failed as f64 > ledger.completed as f64 * WARM_UP_FAILED).then(|| {
        format!(
            "{} of its {} requests failed; it is not measured",
            Count(ledger.failed),
            Count(ledger.completed)
        )
    })
}
