//! From stored facts and totals to the report: a pure function.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{
    Bytes, Connections, Distribution, ErrorRow, Ledger, PlanInfo, Rates, Report, RequestRow,
    RunFacts, RunInfo, SCHEMA, Skew, SplitByOutcome, StatusRow,
    agents::Agent,
    arrivals::{self, Timeline},
    ledger::{Ending, Findings},
    phases,
    series::series,
    verdict::{self, Evidence},
};
use crate::{
    outcome::ErrorClass,
    plan::Request,
    stats::{AgentTotals, Histogram, RequestStats, Stats, Times, Totals},
    threshold::evaluate,
};

/// The report of a run, finished or under way.
pub fn build(facts: &RunFacts, totals: &Totals) -> Report {
    let workload = &facts.plan.workload;
    let nothing = AgentTotals::default();
    let agents = Agent::all(facts, totals, &nothing);
    let fleet = totals.fleet();
    let phases = phases::accounts(facts, &agents, &fleet);
    let measured = phases::measured_requests(&phases, workload.requests.len());
    let mut sum = RequestStats::default();
    measured.iter().for_each(|request| sum.add(request));
    let duration_s = phases::duration_s(&phases);
    let ledger = phases::ledger(phases::measured(&phases));
    let total_ledger = phases::ledger(phases.iter());
    let mut findings = balance(facts, totals, &agents, &phases, &fleet);
    findings.balance(None, &ledger, &sum);

    let series = series(totals, &phases);
    let seconds =
        |of: fn(&super::SeriesRow) -> u64| series.iter().map(of).fold(0, u64::saturating_add);
    for (what, total, by_second) in [
        ("started", total_ledger.started, seconds(|row| row.started)),
        ("succeeded", total_ledger.succeeded, seconds(|row| row.succeeded)),
        ("failed", total_ledger.failed, seconds(|row| row.failed)),
    ] {
        findings.same(None, (what, total), ("its sum over the seconds", by_second));
    }

    let several = phases.len() > 1 && workload.requests.len() > 1;
    let timeline = Timeline::new(facts, totals, &agents);
    let stretches = phases::stretches(&phases, &timeline);
    let rows = phases.iter().zip(&stretches).map(|(phase, stretches)| {
        phase.row(&workload.requests, several, arrivals::of(phase, stretches))
    });
    let connections = workload.peak_connections();
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        run: run_info(facts),
        plan: plan_info(facts),
        verdict: verdict::of(Vec::new()),
        model: phases::model_of(&phases),
        duration_s,
        start_skew: start_skew(&agents),
        rates: Rates::new(&ledger, duration_s).aiming_at(phases::target(phases::measured(&phases))),
        bytes: Bytes::from(&sum),
        connections: Connections::new(workload.requested_connections(), &fleet),
        response_time: split(&sum, |times| &times.response_time),
        service_time: split(&sum, |times| &times.service_time),
        schedule_lag: split(&sum, |times| &times.schedule_lag),
        ttfb: split(&sum, |times| &times.ttfb),
        connect: (&fleet.connections.connect).into(),
        // No handshake is made: requests are plain HTTP.
        tls: Distribution::from(&Histogram::default()),
        worker_lag: (&fleet.worker_lag).into(),
        status: status_rows(&sum),
        errors: error_rows(&sum),
        requests: request_rows(&workload.requests, &measured, &ledger, duration_s),
        phases: rows.collect(),
        agents: agents.iter().map(|agent| agent.row(connections, duration_s)).collect(),
        ledger,
        total_ledger,
        series,
        thresholds: Vec::new(),
    };
    report.verdict = verdict::judge(
        &report,
        &Evidence { agents: &agents, phases: &phases, stretches: &stretches },
        findings,
    );
    report.thresholds =
        facts.plan.thresholds.iter().map(|threshold| evaluate(threshold, &report)).collect();
    report
}

/// A distribution of times, by how the requests ended.
pub(super) fn split(sum: &RequestStats, time: fn(&Times) -> &Histogram) -> SplitByOutcome {
    SplitByOutcome::new(time(&sum.succeeded_times), time(&sum.failed_times))
}

fn balance(
    facts: &RunFacts,
    totals: &Totals,
    agents: &[Agent<'_>],
    phases: &[phases::Account<'_>],
    fleet: &Stats,
) -> Findings {
    let mut findings = Findings::default();
    for agent in agents {
        let name = Some(agent.facts.name.as_str());
        findings.balance(name, &agent.all.ledger, &agent.all.sum);
        for (phase, account) in phases.iter().zip(&agent.phases) {
            findings.unplanned(name, &phase.plan.name, &account.ledger);
        }
        agent.missing(&mut findings);
    }
    for name in totals.agents().keys() {
        if agents.iter().all(|agent| agent.facts.name != *name) {
            findings.add(Some(name.as_str()), "it handed in numbers and had no share".to_owned());
        }
    }
    for phase in phases {
        phase.balance(&mut findings);
    }
    let sum = fleet.total();
    let rows = phases::ledger(phases.iter());
    for (what, rows, all) in [
        ("started", rows.started, sum.started),
        ("succeeded", rows.succeeded, sum.succeeded),
        ("failed", rows.failed, sum.failed),
    ] {
        findings.same(None, (what, all), ("its sum over the agents and phases", rows));
    }
    let workload = &facts.plan.workload;
    let requests = fleet.phases.iter().map(|phase| phase.requests.len()).max().unwrap_or(0);
    for (what, got, planned) in [
        ("phases", fleet.phases.len(), workload.phases.len()),
        ("requests", requests, workload.requests.len()),
    ] {
        if got > planned {
            findings
                .add(None, format!("there are numbers of {got} {what}, the plan has {planned}"));
        }
    }
    findings
}

/// One row per request of the plan, of one phase or of several together.
pub(super) fn request_rows(
    requests: &[Request],
    stats: &[RequestStats],
    total: &Ledger,
    duration_s: f64,
) -> Vec<RequestRow> {
    let nothing = RequestStats::default();
    let rows = requests.iter().enumerate().map(|(index, request)| {
        let stats = stats.get(index).unwrap_or(&nothing);
        let mut ledger = Ledger::new(None, stats, Ending::default());
        if requests.len() == 1 {
            ledger.planned = total.planned;
            ledger.not_started = total.not_started;
            ledger.not_started_by_reason.clone_from(&total.not_started_by_reason);
        } else {
            // The requests of a plan share one count: how much of it each would have had is not known.
            ledger.not_started_by_reason.clear();
        }
        RequestRow {
            name: request.name.clone(),
            rates: Rates::new(&ledger, duration_s),
            bytes: Bytes::from(stats),
            response_time: split(stats, |times| &times.response_time),
            service_time: split(stats, |times| &times.service_time),
            status: status_rows(stats),
            errors: error_rows(stats),
            ledger,
        }
    });
    rows.collect()
}

pub(super) fn status_rows(stats: &RequestStats) -> Vec<StatusRow> {
    let rows = stats.statuses.iter().map(|(code, count)| StatusRow {
        code: *code,
        count: count.succeeded.saturating_add(count.failed),
        failed: count.failed,
    });
    rows.collect()
}

pub(super) fn error_rows(stats: &RequestStats) -> Vec<ErrorRow> {
    let counted = ErrorClass::ALL.into_iter().filter(|class| stats.errors[*class as usize] > 0);
    let rows = counted.map(|class| ErrorRow {
        class: class.name().to_owned(),
        count: stats.errors[class as usize],
        example: stats.examples.get(&class).map(|example| example.text.clone()),
    });
    rows.collect()
}

/// Known when at least two agents said when they started, and their clocks were compared.
fn start_skew(agents: &[Agent<'_>]) -> Option<Skew> {
    let starts: Vec<(u64, u64)> = agents
        .iter()
        .filter_map(|agent| Some((agent.started_after_ns?, agent.facts.clock?.bound_ns)))
        .collect();
    if starts.len() < 2 {
        return None;
    }
    let latest = starts.iter().max()?;
    let earliest = starts.iter().min()?;
    Some(Skew { skew_ns: latest.0 - earliest.0, bound_ns: latest.1.saturating_add(earliest.1) })
}

fn run_info(facts: &RunFacts) -> RunInfo {
    RunInfo {
        id: facts.run.to_string(),
        submitted_at: rfc3339(facts.submitted_at),
        started_at: facts.started_at.map(rfc3339),
        outcome: facts.outcome,
        detail: facts.detail.clone(),
        version: facts.version.clone(),
    }
}

/// A clock that is set before 1970 or after 9999 is wrong anyhow, and must not cost the report.
fn rfc3339(time: SystemTime) -> String {
    let last = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_millis(time.clamp(UNIX_EPOCH, last)).to_string()
}

fn plan_info(facts: &RunFacts) -> PlanInfo {
    let (plan, workload) = (&facts.plan, &facts.plan.workload);
    PlanInfo {
        name: plan.name.clone(),
        sha256: facts.plan_sha256.clone(),
        url: workload.requests.first().map(|request| request.url.to_string()).unwrap_or_default(),
        connections: workload.peak_connections(),
        requests: workload.planned_requests(),
        duration_s: workload.ends_at().map(|end| end.as_secs_f64()),
        on_loss: plan.agents.on_loss.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_costs_no_report() {
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(9)), "1970-01-01T00:00:00.000Z");
        let late = UNIX_EPOCH + Duration::from_secs(999_999_999_999);
        assert_eq!(rfc3339(late), "9999-12-31T23:59:59.000Z");
    }
}
