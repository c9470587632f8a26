//! The generator judges itself: what makes the numbers doubtful, and how much.

mod phases;
mod rules;

use super::{
    Reason, ReasonCode, Report, RunOutcome, Verdict, VerdictStatus,
    agents::{Agent, Part},
    arrivals::Stretch,
    ledger::{Findings, sum_of},
    phases::Account,
};
use crate::{
    outcome::ErrorClass,
    plan::Load,
    stats::{Completion, Histogram, RequestStats, Times},
    units::{Count, Nanos},
};

use rules::{
    CONNECTIONS_INVALID, CPU_DEGRADED, CPU_SEEN_NS, FINDINGS_SHOWN, LAG_PART, LOCAL_LIMITS_INVALID,
    START_SKEW_NS, THROTTLED, WORKER_LAG_NS, WORKER_LAG_SMALL_NS, WORKER_LAG_TICKS,
};
pub use rules::{Rule, rules};

use ReasonCode as Code;
use VerdictStatus::{Degraded, Invalid};

pub(super) fn of(mut reasons: Vec<Reason>) -> Verdict {
    reasons.sort_by(|a, b| {
        b.status.cmp(&a.status).then(a.code.cmp(&b.code)).then_with(|| a.agent.cmp(&b.agent))
    });
    let status = reasons.first().map_or(VerdictStatus::Valid, |worst| worst.status);
    Verdict { status, reasons }
}

/// What a report is judged by beside itself.
pub(super) struct Evidence<'a> {
    pub(super) agents: &'a [Agent<'a>],
    pub(super) phases: &'a [Account<'a>],
    /// Of every phase: starts beside the planned ones.
    pub(super) stretches: &'a [Vec<Stretch>],
}

/// Judges a report by itself, by what is known of agents and phases, and by what was found in the accounts.
pub(super) fn judge(report: &Report, evidence: &Evidence<'_>, findings: Findings) -> Verdict {
    let mut reasons = Reasons::default();
    reasons.ledger(findings);
    for agent in evidence.agents {
        reasons.agent(report, evidence, agent);
    }
    reasons.run(report);
    reasons.local_limits(report, evidence.agents);
    reasons.phases(report, evidence);
    of(reasons.0)
}

/// p99(schedule_lag) and p99(response_time) of an agent's measured open phases. There, a late worker makes requests late
/// one by one; in the closed model it only makes the connections wait that it has, which are few among all requests.
fn open_times(evidence: &Evidence<'_>, agent: &Agent<'_>) -> Option<(u64, u64)> {
    let phases = evidence.phases.iter().zip(&agent.phases);
    let open =
        phases.filter(|(phase, _)| phase.plan.measure && matches!(phase.plan.load, Load::Open(_)));
    let mut sum = RequestStats::default();
    open.for_each(|(_, account)| sum.add(&account.sum));
    let times = [&sum.succeeded_times, &sum.failed_times];
    let lag = both(times, |times| &times.schedule_lag).quantile(0.99)?;
    let response_time = both(times, |times| &times.response_time).quantile(0.99)?;
    Some((lag, response_time))
}

/// Of all completed requests, whatever their outcome.
fn both(times: [&Times; 2], of: fn(&Times) -> &Histogram) -> Histogram {
    let [succeeded, failed] = times.map(of);
    let mut both = succeeded.clone();
    both.add(failed);
    both
}

#[derive(Default)]
struct Reasons(Vec<Reason>);

impl Reasons {
    fn add(&mut self, code: Code, status: VerdictStatus, agent: Option<&str>, text: String) {
        self.0.push(Reason { code, status, agent: agent.map(str::to_owned), text });
    }

    fn ledger(&mut self, findings: Findings) {
        let findings = findings.into_inner();
        let hidden = findings.len().saturating_sub(FINDINGS_SHOWN);
        for (agent, text) in findings.into_iter().take(FINDINGS_SHOWN) {
            self.add(Code::LedgerFailed, Invalid, agent.as_deref(), text);
        }
        if hidden > 0 {
            self.add(Code::LedgerFailed, Invalid, None, format!("and {hidden} more such findings"));
        }
    }

    fn agent(&mut self, report: &Report, evidence: &Evidence<'_>, agent: &Agent<'_>) {
        let name = Some(agent.facts.name.as_str());
        let target_down = report.run.outcome == RunOutcome::TargetUnreachable;
        if let Some(loss) = &agent.facts.lost {
            let later = match agent.part {
                Part::Completed(..) => "; it handed in the rest of its numbers later",
                _ => "",
            };
            let text = format!(
                "lost, last heard of {} after the start: {}{later}",
                Nanos(loss.at_ns),
                loss.evidence
            );
            self.add(Code::AgentLost, Invalid, name, text);
        }
        match agent.part {
            Part::Completed(Completion::Internal(words), _) => {
                self.add(Code::AgentFailed, Invalid, name, format!("a worker failed: {words}"));
            }
            Part::Completed(Completion::Stopped, _)
                if report.run.outcome == RunOutcome::Finished =>
            {
                let text = "it was told to leave in mid-run and did not do all of its share";
                self.add(Code::AgentLost, Invalid, name, text.to_owned());
            }
            Part::Completed(Completion::LeaseExpired, _) => {
                let text = "it heard nothing from the coordinator for its lease and stopped";
                self.add(Code::AgentFailed, Invalid, name, text.to_owned());
            }
            Part::Completed(Completion::TargetUnreachable(words), _) => {
                let text = format!("it could no longer reach the target and gave up: {words}");
                self.add(Code::TargetUnreachable, Invalid, name, text);
            }
            Part::Silent => {
                let text = "its last numbers never came";
                self.add(Code::AgentFailed, Invalid, name, text.to_owned());
            }
            Part::NotReady(words) if !target_down => {
                self.add(
                    Code::AgentFailed,
                    Invalid,
                    name,
                    format!("it did not get ready: {words}"),
                );
            }
            _ => {}
        }
        self.cpu(agent);
        self.throttled(agent);
        self.worker_lag(evidence, agent);
    }

    fn cpu(&mut self, agent: &Agent<'_>) {
        let Some(mean) = agent.cpu_mean() else { return };
        if mean >= CPU_DEGRADED && agent.cpu_seen_ns() >= CPU_SEEN_NS {
            let text = format!(
                "its {} worker(s) used {:.0} % of their CPU: times may be its own",
                agent.facts.workers,
                mean * 100.0
            );
            self.add(Code::AgentCpu, Degraded, Some(agent.facts.name.as_str()), text);
        }
    }

    fn throttled(&mut self, agent: &Agent<'_>) {
        let (throttled, seen) = (agent.throttled_ns(), agent.cpu_seen_ns());
        if seen >= CPU_SEEN_NS && throttled as f64 > seen as f64 * THROTTLED {
            let text = format!(
                "a CPU quota kept its control group from running for {} in {}: times may be its own",
                Nanos(throttled),
                Nanos(seen)
            );
            self.add(Code::AgentThrottled, Degraded, Some(agent.facts.name.as_str()), text);
        }
    }

    fn worker_lag(&mut self, evidence: &Evidence<'_>, agent: &Agent<'_>) {
        let lag = &agent.totals.stats.worker_lag;
        let seen = lag.count() >= WORKER_LAG_TICKS;
        let (Some(p50), Some(p99)) = (lag.quantile(0.5), lag.quantile(0.99)) else { return };
        if !seen || p99 <= WORKER_LAG_SMALL_NS {
            return;
        }
        let sum = &agent.measured.sum;
        let times = [&sum.succeeded_times, &sum.failed_times];
        let median = both(times, |times| &times.response_time).quantile(0.5);
        let (status, text) = match (median, open_times(evidence, agent)) {
            // Like with like: a closed load that uses its machine up has some late ticks, and that is no fault of the
            // median. When the ticks are late as a rule, what was measured is the generator.
            (Some(median), _) if p50 > WORKER_LAG_NS && p50 > median / 2 => (
                Invalid,
                format!(
                    "its workers ran late as a rule: p50(worker_lag) is {}, more than half of its median response \
                     time of {}",
                    Nanos(p50),
                    Nanos(median)
                ),
            ),
            _ if p99 > WORKER_LAG_NS => {
                (Degraded, format!("its workers ran late: p99(worker_lag) is {}", Nanos(p99)))
            }
            (Some(median), _) if p50 > WORKER_LAG_SMALL_NS && p50 > median / LAG_PART => (
                Degraded,
                format!(
                    "its workers ran late as a rule: p50(worker_lag) is {}, more than a quarter of its median response \
                     time of {}",
                    Nanos(p50),
                    Nanos(median)
                ),
            ),
            (_, Some((late, high)))
                if late.min(p99) > (high / LAG_PART).max(WORKER_LAG_SMALL_NS) =>
            {
                (
                    Degraded,
                    format!(
                        "its workers ran late: of a p99(response_time) of {} in the open model, p99(worker_lag) is {} and \
                     p99(schedule_lag) {}",
                        Nanos(high),
                        Nanos(p99),
                        Nanos(late)
                    ),
                )
            }
            _ => return,
        };
        self.add(Code::WorkerLag, status, Some(agent.facts.name.as_str()), text);
    }

    fn run(&mut self, report: &Report) {
        let detail = |text: &str| match &report.run.detail {
            Some(words) => format!("{text}: {words}"),
            None => text.to_owned(),
        };
        match report.run.outcome {
            RunOutcome::TargetUnreachable => {
                let text = detail("the target could not be reached, no load was made");
                self.add(Code::TargetUnreachable, Invalid, None, text);
            }
            RunOutcome::Cancelled => {
                self.add(Code::Incomplete, Degraded, None, detail("the run was cancelled"));
            }
            RunOutcome::StoppedByThreshold => {
                let text = detail("the run was stopped by a threshold");
                self.add(Code::Incomplete, Degraded, None, text);
            }
            RunOutcome::Aborted => {
                self.add(Code::Incomplete, Invalid, None, detail("the run was aborted"));
            }
            RunOutcome::Running
            | RunOutcome::Finished
            | RunOutcome::Forbidden
            | RunOutcome::Failed => {}
        }
        let ended =
            !matches!(report.run.outcome, RunOutcome::Running | RunOutcome::TargetUnreachable);
        if ended && report.ledger.completed == 0 {
            let text = match report.run.outcome {
                RunOutcome::Forbidden | RunOutcome::Failed => detail("the run never started"),
                _ => "no request completed".to_owned(),
            };
            self.add(Code::NothingMeasured, Invalid, None, text);
        }
        self.connections(report);
        if let Some(skew) = report.start_skew.filter(|skew| skew.skew_ns > START_SKEW_NS) {
            let (skew, bound) = (Nanos(skew.skew_ns), Nanos(skew.bound_ns));
            let text = format!("the agents started {skew} apart (±{bound})");
            self.add(Code::StartSkew, Degraded, None, text);
        }
        self.overflow(report);
    }

    fn connections(&mut self, report: &Report) {
        let connections = &report.connections;
        if report.run.outcome != RunOutcome::Finished
            || connections.established >= connections.requested
        {
            return;
        }
        let made = connections.established as f64 / connections.requested as f64;
        let status = if made < CONNECTIONS_INVALID { Invalid } else { Degraded };
        let text = format!(
            "{} of {} requested connections were ever made",
            Count(connections.established),
            Count(connections.requested)
        );
        self.add(Code::UnmadeConnections, status, None, text);
    }

    fn overflow(&mut self, report: &Report) {
        let above: Vec<String> = [
            ("response_time", report.response_time.all.overflow),
            ("service_time", report.service_time.all.overflow),
            ("schedule_lag", report.schedule_lag.all.overflow),
            ("ttfb", report.ttfb.all.overflow),
            ("connect", report.connect.overflow),
            ("worker_lag", report.worker_lag.overflow),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} of {name}", Count(count)))
        .collect();
        if !above.is_empty() {
            let text = format!("samples above one hour: {}", above.join(", "));
            self.add(Code::HistogramOverflow, Degraded, None, text);
        }
    }

    fn local_limits(&mut self, report: &Report, agents: &[Agent<'_>]) {
        let faults = |errors: &[u64]| -> u64 {
            let classes = ErrorClass::ALL.into_iter().filter(|class| class.is_generator_fault());
            classes.map(|class| errors[class as usize]).fold(0, u64::saturating_add)
        };
        let by_agent: Vec<(&str, u64)> = agents
            .iter()
            .map(|agent| (agent.facts.name.as_str(), faults(&agent.all.sum.errors)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let count = sum_of(by_agent.iter().map(|(_, count)| count));
        if count == 0 {
            return;
        }
        let share = count as f64 / report.total_ledger.started.max(1) as f64;
        let status = if share >= LOCAL_LIMITS_INVALID { Invalid } else { Degraded };
        let mut parts: Vec<String> = by_agent
            .iter()
            .take(FINDINGS_SHOWN)
            .map(|(name, count)| format!("{name} {}", Count(*count)))
            .collect();
        if by_agent.len() > FINDINGS_SHOWN {
            parts.push(format!("and {} more agents", by_agent.len() - FINDINGS_SHOWN));
        }
        let text = format!(
            "{} requests failed for want of local ports or files ({}): give the agents more source addresses \
             (--source-ip) or raise their file limits",
            Count(count),
            parts.join(", ")
        );
        self.add(Code::LocalLimits, status, None, text);
    }
}
