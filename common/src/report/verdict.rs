//! The generator judges itself: what makes the numbers doubtful, and how much.

use super::{
    Reason, ReasonCode, Report, RunOutcome, Verdict, VerdictStatus,
    agents::{Agent, Part},
    ledger::{Findings, sum_of},
};
use crate::{
    outcome::ErrorClass,
    stats::Completion,
    units::{Count, Nanos},
};

use ReasonCode as Code;
use VerdictStatus::{Degraded, Invalid};

/// Share of started requests that may fail by limits of the agents' machines before the numbers are invalid.
const LOCAL_LIMITS_INVALID: f64 = 0.01;
/// Share of the connections that must have been made.
const CONNECTIONS_INVALID: f64 = 0.95;
/// Mean CPU use of an agent's workers from which on its measurements are doubtful.
const CPU_DEGRADED: f64 = 0.85;
/// A shorter look at the CPU says nothing.
const CPU_SEEN_NS: u64 = 1_000_000_000;
/// Lateness of an agent's workers: its 99th percentile degrades, its median may invalidate.
const WORKER_LAG_NS: u64 = 10_000_000;
/// With fewer ticks the 99th percentile is one single tick.
const WORKER_LAG_TICKS: u64 = 100;
/// Latest start after the earliest.
const START_SKEW_NS: u64 = 50_000_000;
/// More findings about the accounts than this are counted and not listed.
const FINDINGS_SHOWN: usize = 8;

/// One rule of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it finds.
    pub code: ReasonCode,
    /// What that makes of the verdict.
    pub status: VerdictStatus,
    /// When it applies.
    pub when: String,
}

/// All rules, as they are documented. The numbers are those that are applied.
pub fn rules() -> Vec<Rule> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let rule = |code, status, when: &str| Rule { code, status, when: when.to_owned() };
    vec![
        rule(
            Code::LedgerFailed,
            Invalid,
            "a balance of the accounts fails, or a snapshot is missing",
        ),
        rule(Code::AgentLost, Invalid, "an agent was lost, or left in mid-run"),
        rule(
            Code::AgentFailed,
            Invalid,
            "a worker of an agent failed, its lease expired, it did not get ready, or its last numbers never came",
        ),
        rule(Code::NothingMeasured, Invalid, "the run is over and no request completed"),
        rule(
            Code::TargetUnreachable,
            Invalid,
            "the target could not be reached at the start, or an agent gave up on it in mid-run",
        ),
        rule(Code::Incomplete, Invalid, "the run was aborted"),
        rule(Code::Incomplete, Degraded, "the run was cancelled"),
        rule(
            Code::LocalLimits,
            Invalid,
            &format!(
                "{} or more of the started requests failed for want of local ports or files",
                percent(LOCAL_LIMITS_INVALID)
            ),
        ),
        rule(Code::LocalLimits, Degraded, "any request failed for want of local ports or files"),
        rule(
            Code::UnmadeConnections,
            Invalid,
            &format!(
                "the run finished with fewer than {} of the requested connections ever made",
                percent(CONNECTIONS_INVALID)
            ),
        ),
        rule(
            Code::UnmadeConnections,
            Degraded,
            "the run finished without having made every requested connection",
        ),
        rule(
            Code::AgentCpu,
            Degraded,
            &format!(
                "an agent used {} or more of its workers' CPU, in the mean over at least {}",
                percent(CPU_DEGRADED),
                Nanos(CPU_SEEN_NS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Invalid,
            &format!(
                "p50(worker_lag) of an agent is above {} and above half of its median response time",
                Nanos(WORKER_LAG_NS)
            ),
        ),
        rule(
            Code::WorkerLag,
            Degraded,
            &format!(
                "p99(worker_lag) of an agent is above {}, over at least {} ticks",
                Nanos(WORKER_LAG_NS),
                Count(WORKER_LAG_TICKS)
            ),
        ),
        rule(
            Code::StartSkew,
            Degraded,
            &format!("the agents started more than {} apart", Nanos(START_SKEW_NS)),
        ),
        rule(
            Code::HistogramOverflow,
            Degraded,
            "a time is above one hour, the top of the histograms",
        ),
    ]
}

pub(super) fn of(mut reasons: Vec<Reason>) -> Verdict {
    reasons.sort_by(|a, b| {
        b.status.cmp(&a.status).then(a.code.cmp(&b.code)).then_with(|| a.agent.cmp(&b.agent))
    });
    let status = reasons.first().map_or(VerdictStatus::Valid, |worst| worst.status);
    Verdict { status, reasons }
}

/// Judges a report by itself, by what is known of the agents, and by what was found in the accounts.
pub(super) fn judge(report: &Report, agents: &[Agent<'_>], findings: Findings) -> Verdict {
    let mut reasons = Reasons::default();
    reasons.ledger(findings);
    for agent in agents {
        reasons.agent(report, agent);
    }
    reasons.run(report);
    reasons.local_limits(report, agents);
    of(reasons.0)
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

    fn agent(&mut self, report: &Report, agent: &Agent<'_>) {
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
        self.worker_lag(agent);
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

    fn worker_lag(&mut self, agent: &Agent<'_>) {
        let lag = &agent.totals.stats.worker_lag;
        let seen = lag.count() >= WORKER_LAG_TICKS;
        let (Some(p50), Some(p99)) = (lag.quantile(0.5), lag.quantile(0.99)) else { return };
        if !seen || p99 <= WORKER_LAG_NS {
            return;
        }
        let sum = &agent.all.sum;
        let mut response_time = sum.succeeded_times.response_time.clone();
        response_time.add(&sum.failed_times.response_time);
        let median = response_time.quantile(0.5);
        let (status, text) = match median {
            // Like with like: a closed load that uses its machine up has some late ticks, and that is no fault of the
            // median. When the ticks are late as a rule, what was measured is the generator.
            Some(median) if p50 > WORKER_LAG_NS && p50 > median / 2 => (
                Invalid,
                format!(
                    "its workers ran late as a rule: p50(worker_lag) is {}, more than half of its median response \
                     time of {}",
                    Nanos(p50),
                    Nanos(median)
                ),
            ),
            _ => (Degraded, format!("its workers ran late: p99(worker_lag) is {}", Nanos(p99))),
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
            RunOutcome::Aborted => {
                self.add(Code::Incomplete, Invalid, None, detail("the run was aborted"));
            }
            RunOutcome::Running | RunOutcome::Finished | RunOutcome::Failed => {}
        }
        let ended =
            !matches!(report.run.outcome, RunOutcome::Running | RunOutcome::TargetUnreachable);
        if ended && report.ledger.completed == 0 {
            let text = match report.run.outcome {
                RunOutcome::Failed => detail("the run never started"),
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
