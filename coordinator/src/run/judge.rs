//! Stop rules against a stretch of a run: when each may be judged, and the figures, taken from a report of that stretch by
//! the code that makes every report.

use std::time::{Duration, SystemTime};

use inrush_common::{
    id::{Epoch, RunId, SnapshotSeq},
    plan::{ClosedLoad, Load, Plan, StopRule, ThinkTime},
    report::{AgentFacts, RunFacts, RunOutcome, ThresholdRow, build},
    schedule::{ConnectionProfile, Interleave},
    stats::{Gauges, Interval, Snapshot, SnapshotKey, Stats, Totals},
    threshold::{Counter, Metric},
    units::nanos,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The stop rules of a plan, with what of the run each is about.
#[derive(Debug)]
pub(super) struct Scopes(Vec<Scope>);

#[derive(Debug)]
struct Scope {
    rule: StopRule,
    /// How much it looks back, in seconds.
    length_s: u64,
    /// When the phases it is about are at work by the plan, in nanoseconds of the run; `u64::MAX`: until they are done.
    phases: Vec<(u64, u64)>,
}

impl Scopes {
    pub(super) fn of(plan: &Plan) -> Self {
        let rules = plan.stop_when.iter().filter(|rule| is_known_in_time(rule));
        let scope = |rule: &StopRule| {
            let named = rule.threshold.scope().phase.as_deref();
            let phases = plan.workload.phases.iter().filter(|phase| match named {
                Some(name) => phase.name == name,
                None => phase.measure,
            });
            let phases = phases
                .map(|phase| (nanos(phase.starts_at), phase.ends_at().map_or(u64::MAX, nanos)));
            Scope {
                rule: rule.clone(),
                length_s: nanos(rule.after).div_ceil(SECOND_NS).max(1),
                phases: phases.collect(),
            }
        };
        Self(rules.map(scope).collect())
    }

    /// How much the rules look back at most, in seconds.
    pub(super) fn longest_s(&self) -> u64 {
        self.0.iter().map(|scope| scope.length_s).max().unwrap_or(0)
    }

    /// The rules that may be judged when the seconds from `whole_from` to `end` are known, and how much each looks back:
    /// those whose phases are at work by the plan in all of their window. A pause is no low throughput.
    pub(super) fn due(&self, end: u64, whole_from: u64) -> Vec<(&StopRule, u64)> {
        let due = self.0.iter().filter(|scope| {
            let Some(from) = end.checked_sub(scope.length_s) else { return false };
            from >= whole_from
                && covers(
                    &scope.phases,
                    from.saturating_mul(SECOND_NS),
                    end.saturating_mul(SECOND_NS),
                )
        });
        due.map(|scope| (&scope.rule, scope.length_s)).collect()
    }
}

/// What is in flight at the end is known at the end.
fn is_known_in_time(rule: &StopRule) -> bool {
    rule.threshold.metric() != Metric::Count(Counter::InFlightAtEnd)
}

/// Whether these stretches of time leave no gap between `from` and `to`.
fn covers(stretches: &[(u64, u64)], from: u64, to: u64) -> bool {
    let mut stretches = stretches.to_vec();
    stretches.sort_unstable();
    let mut at = from;
    for (begin, end) in stretches {
        if begin <= at {
            at = at.max(end);
        }
    }
    at >= to
}

/// The rows of `rules` for a run that was at work from second `from` to second `to` and did what `stats` says.
pub(super) fn judge(
    plan: &Plan,
    rules: &[&StopRule],
    mut stats: Stats,
    from: u64,
    to: u64,
) -> Vec<ThresholdRow> {
    let from_ns = from.saturating_mul(SECOND_NS);
    for phase in &mut stats.phases {
        phase.until_ns = phase.until_ns.saturating_sub(from_ns);
    }
    let mut plan = plan.clone();
    plan.thresholds = rules.iter().map(|rule| rule.threshold.clone()).collect();
    let mut planned = Vec::new();
    for (index, phase) in plan.workload.phases.iter_mut().enumerate() {
        phase.starts_at = phase.starts_at.saturating_sub(Duration::from_secs(from));
        // What a window plans is what it has accounted for: nothing of it is still to come.
        let sum = stats.phases.get(index).map(|phase| phase.total()).unwrap_or_default();
        let accounted = sum.started.saturating_add(sum.not_started_total());
        phase.load = Load::Closed(ClosedLoad {
            profile: ConnectionProfile::constant(1, 0).expect("one connection is few"),
            lanes: Interleave::whole(1),
            requests: Some(accounted),
            duration: None,
            think_time: ThinkTime::None,
        });
        planned.push(Some(accounted));
    }
    let run: RunId = "window".parse().expect("letters");
    let agent = AgentFacts {
        name: "fleet".parse().expect("letters"),
        version: String::new(),
        hostname: String::new(),
        workers: 1,
        connections: 1,
        requested: 1,
        planned,
        not_ready: None,
        lost: None,
        clock: None,
        started_after_ns: None,
    };
    let mut totals = Totals::default();
    totals.add(&Snapshot {
        run: run.clone(),
        key: SnapshotKey { agent: agent.name.clone(), epoch: Epoch(0), seq: SnapshotSeq::FIRST },
        interval: Interval { from_ns: 0, to_ns: (to - from).saturating_mul(SECOND_NS) },
        stats,
        gauges: Gauges::default(),
        completion: None,
    });
    let facts = RunFacts {
        run,
        plan,
        plan_sha256: String::new(),
        submitted_at: SystemTime::UNIX_EPOCH,
        started_at: None,
        outcome: RunOutcome::Running,
        detail: None,
        version: String::new(),
        agents: vec![agent],
    };
    build(&facts, &totals).thresholds
}
