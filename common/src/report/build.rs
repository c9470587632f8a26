//! From stored facts and totals to the report: a pure function.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{
    Bytes, Connections, Distribution, ErrorRow, Ledger, Model, PhaseRow, PlanInfo, Rates, Report,
    RequestRow, RunFacts, RunInfo, SCHEMA, Skew, SplitByOutcome, StatusRow,
    agents::{Agent, never_started},
    ledger::{Ending, Findings},
    series::series,
    verdict,
};
use crate::{
    outcome::ErrorClass,
    plan::{ClosedLoad, Load},
    stats::{AgentTotals, Histogram, IntervalTotals, RequestStats, Stats, Times, Totals},
    threshold::evaluate,
};

/// The name of the one phase of a plan without phases.
pub(crate) const ONLY_PHASE: &str = "main";

/// The report of a run, finished or under way.
pub fn build(facts: &RunFacts, totals: &Totals) -> Report {
    let Load::Closed(load) = &facts.plan.workload.load;
    let nothing = AgentTotals::default();
    let agents = Agent::all(facts, totals, &nothing);
    let fleet = totals.fleet();
    let sum = fleet.total();
    let duration_s = duration_s(totals);
    let ledger = total_ledger(facts, load, &agents);
    let mut findings = balance(totals, &agents, &ledger, &sum);

    let requests = request_rows(facts, &fleet, &ledger, duration_s, &mut findings);
    let series = series(totals);
    let seconds =
        |of: fn(&super::SeriesRow) -> u64| series.iter().map(of).fold(0, u64::saturating_add);
    for (what, total, by_second) in [
        ("started", ledger.started, seconds(|row| row.started)),
        ("succeeded", ledger.succeeded, seconds(|row| row.succeeded)),
        ("failed", ledger.failed, seconds(|row| row.failed)),
    ] {
        findings.same(None, (what, total), ("its sum over the seconds", by_second));
    }

    let split = |time: fn(&Times) -> &Histogram| {
        SplitByOutcome::new(time(&sum.succeeded_times), time(&sum.failed_times))
    };
    let response_time = split(|times| &times.response_time);
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        run: run_info(facts),
        plan: plan_info(facts, load),
        verdict: verdict::of(Vec::new()),
        model: Model::Closed,
        duration_s,
        start_skew: start_skew(&agents),
        rates: Rates::new(&ledger, duration_s),
        bytes: Bytes::from(&sum),
        connections: Connections::new(load.connections, load.requests, &fleet),
        service_time: split(|times| &times.service_time),
        schedule_lag: split(|times| &times.schedule_lag),
        ttfb: split(|times| &times.ttfb),
        connect: (&fleet.connections.connect).into(),
        // No handshake is made: requests are plain HTTP.
        tls: Distribution::from(&Histogram::default()),
        worker_lag: (&fleet.worker_lag).into(),
        status: status_rows(&sum),
        errors: error_rows(&sum),
        requests,
        phases: vec![PhaseRow {
            name: ONLY_PHASE.to_owned(),
            measured: true,
            duration_s,
            ledger: ledger.clone(),
            rates: Rates::new(&ledger, duration_s),
            response_time: response_time.clone(),
        }],
        agents: agents.iter().map(|agent| agent.row(load.connections, duration_s)).collect(),
        response_time,
        ledger,
        series,
        thresholds: Vec::new(),
    };
    report.verdict = verdict::judge(&report, &agents, findings);
    report.thresholds =
        facts.plan.thresholds.iter().map(|threshold| evaluate(threshold, &report)).collect();
    report
}

/// To the end of the last interval with load in it.
fn duration_s(totals: &Totals) -> f64 {
    let intervals = totals.agents().values().flat_map(|agent| agent.intervals.values());
    let active: Vec<&IntervalTotals> = intervals.filter(|interval| interval.is_active()).collect();
    let end = active.iter().map(|interval| interval.interval.to_ns.max(1)).max();
    end.map_or(0.0, |end| end as f64 / 1e9)
}

fn total_ledger(facts: &RunFacts, load: &ClosedLoad, agents: &[Agent<'_>]) -> Ledger {
    let Some((first, rest)) = agents.split_first() else {
        // Nobody was given anything.
        let rest = Some(never_started(facts.outcome));
        return Ledger::new(
            load.requests,
            &RequestStats::default(),
            Ending { rest, in_flight: None },
        );
    };
    let mut ledger = first.ledger.clone();
    for agent in rest {
        ledger.add(&agent.ledger);
    }
    ledger.planned = load.requests;
    ledger
}

fn balance(totals: &Totals, agents: &[Agent<'_>], total: &Ledger, sum: &RequestStats) -> Findings {
    let mut findings = Findings::default();
    for agent in agents {
        findings.balance(Some(agent.facts.name.as_str()), &agent.ledger, &agent.sum);
        agent.missing(&mut findings);
    }
    for name in totals.agents().keys() {
        if agents.iter().all(|agent| agent.facts.name != *name) {
            findings.add(Some(name.as_str()), "it handed in numbers and had no share".to_owned());
        }
    }
    findings.balance(None, total, sum);
    for (what, rows, all) in [
        ("started", total.started, sum.started),
        ("succeeded", total.succeeded, sum.succeeded),
        ("failed", total.failed, sum.failed),
    ] {
        findings.same(None, (what, all), ("its sum over the agents", rows));
    }
    findings
}

fn request_rows(
    facts: &RunFacts,
    fleet: &Stats,
    total: &Ledger,
    duration_s: f64,
    findings: &mut Findings,
) -> Vec<RequestRow> {
    let requests = &facts.plan.workload.requests;
    if fleet.requests.len() > requests.len() {
        let (got, planned) = (fleet.requests.len(), requests.len());
        findings.add(None, format!("there are numbers of {got} requests, the plan has {planned}"));
    }
    let nothing = RequestStats::default();
    let rows = requests.iter().enumerate().map(|(index, request)| {
        let stats = fleet.requests.get(index).unwrap_or(&nothing);
        let mut ledger = Ledger::new(None, stats, Ending::default());
        if requests.len() == 1 {
            ledger.planned = total.planned;
            ledger.not_started = total.not_started;
            ledger.not_started_by_reason.clone_from(&total.not_started_by_reason);
        } else {
            // The requests of a plan share one count: how much of it each would have had is not known.
            ledger.not_started_by_reason.clear();
        }
        let times = |of: fn(&Times) -> &Histogram| {
            SplitByOutcome::new(of(&stats.succeeded_times), of(&stats.failed_times))
        };
        RequestRow {
            name: request.name.clone(),
            rates: Rates::new(&ledger, duration_s),
            bytes: Bytes::from(stats),
            response_time: times(|times| &times.response_time),
            service_time: times(|times| &times.service_time),
            status: status_rows(stats),
            errors: error_rows(stats),
            ledger,
        }
    });
    rows.collect()
}

fn status_rows(stats: &RequestStats) -> Vec<StatusRow> {
    let rows = stats.statuses.iter().map(|(code, count)| StatusRow {
        code: *code,
        count: count.succeeded.saturating_add(count.failed),
        failed: count.failed,
    });
    rows.collect()
}

fn error_rows(stats: &RequestStats) -> Vec<ErrorRow> {
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

fn plan_info(facts: &RunFacts, load: &ClosedLoad) -> PlanInfo {
    let plan = &facts.plan;
    PlanInfo {
        name: plan.name.clone(),
        sha256: facts.plan_sha256.clone(),
        url: plan
            .workload
            .requests
            .first()
            .map(|request| request.url.to_string())
            .unwrap_or_default(),
        connections: load.connections,
        requests: load.requests,
        duration_s: load.duration.map(|duration| duration.as_secs_f64()),
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
