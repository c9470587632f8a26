//! One agent's row, and how its part ended.

use std::collections::BTreeMap;

use super::{
    AddressRow, AgentFacts, AgentRow, AgentState, Bytes, Connections, Ledger, Loss, Rates,
    RunFacts, RunOutcome, SplitByOutcome,
    ledger::{Ending, Findings, PENDING},
};
use crate::{
    id::Epoch,
    outcome::NotStarted,
    stats::{
        AddressCount, AddressCounts, AgentTotals, Completion, PhaseStats, RequestStats, Stats,
        Totals,
    },
    units::Count,
};

/// An interval shorter than this says nothing about the CPU.
const CPU_INTERVAL_NS: u64 = 500_000_000;

/// How an agent's part of a run ended, by the best evidence there is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// It said so itself, in its last snapshot. Perhaps late: it may have been given up for lost.
    Completed(&'a Completion, Option<&'a Loss>),
    /// It was lost and its last snapshot never came.
    Lost(&'a Loss),
    /// It never reported ready.
    NotReady(&'a str),
    /// The run was over before it made any load.
    NeverStarted,
    /// It is still at it.
    Running,
    /// It should have handed in its last snapshot and did not.
    Silent,
}

impl<'a> Part<'a> {
    fn new(run: &RunFacts, agent: &'a AgentFacts, totals: &'a AgentTotals) -> Self {
        if let Some(completion) = totals.completion() {
            return Self::Completed(completion, agent.lost.as_ref());
        }
        if let Some(loss) = &agent.lost {
            return Self::Lost(loss);
        }
        if let Some(words) = &agent.not_ready {
            return Self::NotReady(words);
        }
        match run.outcome {
            RunOutcome::Running => Self::Running,
            RunOutcome::Finished => Self::Silent,
            _ if totals.intervals.is_empty() => Self::NeverStarted,
            _ => Self::Silent,
        }
    }

    fn state(self) -> AgentState {
        match self {
            Self::Completed(_, Some(_)) | Self::Lost(_) => AgentState::Lost,
            Self::Completed(Completion::Finished, None) => AgentState::Done,
            Self::Completed(Completion::Stopped, None) | Self::NeverStarted => AgentState::Stopped,
            Self::Completed(Completion::TargetUnreachable(_), None) => {
                AgentState::TargetUnreachable
            }
            Self::Completed(Completion::LeaseExpired, None) => AgentState::LeaseExpired,
            Self::Completed(Completion::Internal(_), None) | Self::Silent => AgentState::Failed,
            Self::NotReady(_) => AgentState::NotReady,
            Self::Running => AgentState::Running,
        }
    }

    fn detail(self) -> Option<String> {
        match self {
            Self::Completed(_, Some(loss)) | Self::Lost(loss) => Some(loss.evidence.clone()),
            Self::Completed(
                Completion::TargetUnreachable(words) | Completion::Internal(words),
                None,
            ) => Some(words.clone()),
            Self::Completed(Completion::LeaseExpired, None) => {
                Some("it heard nothing from the coordinator for its lease and stopped".to_owned())
            }
            Self::NotReady(words) => Some(words.to_owned()),
            Self::Silent => Some("its last numbers never came".to_owned()),
            _ => None,
        }
    }

    fn ending(self, run: RunOutcome, totals: &AgentTotals) -> Ending {
        let in_flight = totals.last_interval().map(|interval| interval.gauges.in_flight);
        let rest = match self {
            // A worker that failed took its accounts along: what it left behind is all that is known.
            Self::Completed(Completion::Internal(_), _) => NotStarted::Aborted.name(),
            Self::Completed(..) => return Ending { rest: None, in_flight },
            Self::Lost(_) => NotStarted::AgentLost.name(),
            Self::Running => PENDING,
            Self::NotReady(_) | Self::NeverStarted | Self::Silent => never_started(run),
        };
        Ending { rest: Some(rest), in_flight: None }
    }
}

/// Why requests of a share that nobody accounted for were not started, by how the run ended.
pub(super) const fn never_started(run: RunOutcome) -> &'static str {
    match run {
        RunOutcome::Running => PENDING,
        RunOutcome::Cancelled => NotStarted::Cancelled.name(),
        RunOutcome::StoppedByThreshold => NotStarted::ThresholdBroken.name(),
        RunOutcome::TargetUnreachable => NotStarted::TargetUnreachable.name(),
        RunOutcome::Finished | RunOutcome::Aborted | RunOutcome::Forbidden | RunOutcome::Failed => {
            NotStarted::Aborted.name()
        }
    }
}

/// All that is known of one agent's part.
pub(super) struct Agent<'a> {
    pub(super) facts: &'a AgentFacts,
    pub(super) totals: &'a AgentTotals,
    pub(super) part: Part<'a>,
    /// Its accounts, phase by phase.
    pub(super) phases: Vec<Account>,
    /// Those of the measured phases together.
    pub(super) measured: Account,
    /// Those of all phases together. In flight at its end is what it said itself.
    pub(super) all: Account,
    /// Start of its load after the earliest agent's.
    pub(super) started_after_ns: Option<u64>,
}

/// Sums over requests, and the ledger made of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    pub(super) sum: RequestStats,
    pub(super) ledger: Ledger,
}

impl Account {
    fn of<'a>(accounts: impl Iterator<Item = &'a Self>) -> Self {
        let mut total = Self { ledger: Ledger::nothing(), ..Self::default() };
        for account in accounts {
            total.sum.add(&account.sum);
            total.ledger.add(&account.ledger);
        }
        total
    }
}

impl<'a> Agent<'a> {
    /// `nothing` stands in for the totals of an agent that handed nothing in.
    pub(super) fn all(
        run: &'a RunFacts,
        totals: &'a Totals,
        nothing: &'a AgentTotals,
    ) -> Vec<Self> {
        let first = run.agents.iter().filter_map(|agent| agent.started_after_ns).min();
        let agents = run.agents.iter().map(|facts| {
            let totals = totals.agents().get(&facts.name).unwrap_or(nothing);
            let after = |start: i64, first: i64| start.abs_diff(first);
            let started_after_ns =
                facts.started_after_ns.zip(first).map(|(start, first)| after(start, first));
            Self::new(run, facts, totals, started_after_ns)
        });
        let mut agents: Vec<Self> = agents.collect();
        agents.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        agents
    }

    fn new(
        run: &RunFacts,
        facts: &'a AgentFacts,
        totals: &'a AgentTotals,
        started_after_ns: Option<u64>,
    ) -> Self {
        let part = Part::new(run, facts, totals);
        let ending = part.ending(run.outcome, totals);
        let plan = &run.plan.workload.phases;
        let none = PhaseStats::default();
        let phases: Vec<Account> = plan
            .iter()
            .enumerate()
            .map(|(index, _)| {
                let sum = totals.stats.phases.get(index).unwrap_or(&none).total();
                let planned = facts.planned.get(index).copied().flatten();
                let ledger = Ledger::new(planned, &sum, Ending { in_flight: None, ..ending });
                Account { sum, ledger }
            })
            .collect();
        let measured = plan.iter().zip(&phases).filter(|(phase, _)| phase.measure);
        let measured = Account::of(measured.map(|(_, account)| account));
        let mut all = Account::of(phases.iter());
        if let Some(in_flight) = ending.in_flight {
            all.ledger.in_flight_at_end = in_flight;
        }
        Self { facts, totals, part, phases, measured, all, started_after_ns }
    }

    /// Tells which snapshots never came although later ones did, or the last one did. Without them, the sums are wrong
    /// and balance all the same.
    pub(super) fn missing(&self, findings: &mut Findings) {
        // While the run goes on, they may still be on their way.
        if matches!(self.part, Part::Running) {
            return;
        }
        // Per process: the last number, how many there are, and the first gap.
        let mut processes: BTreeMap<Epoch, (u64, u64, Option<u64>)> = BTreeMap::new();
        for (epoch, seq) in self.totals.intervals.keys() {
            let (last, count, gap) = processes.entry(*epoch).or_default();
            let expected = last.saturating_add(1);
            if seq.0 > expected {
                gap.get_or_insert(expected);
            }
            (*last, *count) = (seq.0, *count + 1);
        }
        for (last, count, gap) in processes.into_values() {
            let Some(first) = gap else { continue };
            let text = match last - count {
                1 => format!("snapshot #{first} is missing"),
                missing => format!("{} snapshots are missing, #{first} first", Count(missing)),
            };
            findings.add(Some(self.facts.name.as_str()), text);
        }
    }

    /// CPU used over what there was, over all its intervals.
    pub(super) fn cpu_mean(&self) -> Option<f64> {
        let sum = |of: fn(&crate::stats::Gauges) -> u64| -> u128 {
            self.totals.intervals.values().map(|interval| u128::from(of(&interval.gauges))).sum()
        };
        let capacity = sum(|gauges| gauges.cpu_capacity_ns);
        (capacity > 0).then(|| sum(|gauges| gauges.cpu_ns) as f64 / capacity as f64)
    }

    /// For how long its intervals together say something about the CPU.
    pub(super) fn cpu_seen_ns(&self) -> u64 {
        let lengths = self.totals.intervals.values().map(|interval| {
            let interval = interval.interval;
            interval.to_ns - interval.from_ns
        });
        lengths.fold(0, u64::saturating_add)
    }

    /// For how long a quota kept its control group from running, over all its intervals.
    pub(super) fn throttled_ns(&self) -> u64 {
        let intervals = self.totals.intervals.values();
        intervals.map(|interval| interval.gauges.throttled_ns).fold(0, u64::saturating_add)
    }

    fn cpu_peak(&self) -> Option<f64> {
        let intervals = self.totals.intervals.values().filter(|interval| {
            let length = interval.interval.to_ns - interval.interval.from_ns;
            length >= CPU_INTERVAL_NS && interval.gauges.cpu_capacity_ns > 0
        });
        intervals
            .map(|interval| interval.gauges.cpu_ns as f64 / interval.gauges.cpu_capacity_ns as f64)
            .max_by(f64::total_cmp)
    }

    pub(super) fn row(&self, plan_connections: u64, duration_s: f64) -> AgentRow {
        let (facts, stats) = (self.facts, &self.totals.stats);
        let resident =
            self.totals.intervals.values().map(|interval| interval.gauges.resident_bytes).max();
        AgentRow {
            name: facts.name.to_string(),
            version: facts.version.clone(),
            hostname: facts.hostname.clone(),
            workers: facts.workers,
            share: if plan_connections == 0 {
                0.0
            } else {
                facts.connections as f64 / plan_connections as f64
            },
            state: self.part.state(),
            detail: self.part.detail(),
            lost_at_s: facts.lost.as_ref().map(|loss| loss.at_ns as f64 / 1e9),
            ledger: self.measured.ledger.clone(),
            rates: Rates::new(&self.measured.ledger, duration_s),
            bytes: Bytes::from(&self.measured.sum),
            connections: Connections::new(facts.requested, stats),
            response_time: SplitByOutcome::new(
                &self.measured.sum.succeeded_times.response_time,
                &self.measured.sum.failed_times.response_time,
            ),
            schedule_lag: (&both(&self.measured.sum)).into(),
            worker_lag: (&stats.worker_lag).into(),
            cpu_mean: self.cpu_mean(),
            cpu_peak: self.cpu_peak(),
            throttled_s: self.throttled_ns() as f64 / 1e9,
            resident_peak_bytes: resident,
            clock_offset_ns: facts.clock.map(|clock| clock.offset_ns),
            clock_bound_ns: facts.clock.map(|clock| clock.bound_ns),
            started_after_ns: self.started_after_ns,
        }
    }
}

fn both(sum: &RequestStats) -> crate::stats::Histogram {
    let mut lag = sum.succeeded_times.schedule_lag.clone();
    lag.add(&sum.failed_times.schedule_lag);
    lag
}

impl Rates {
    pub(super) fn new(ledger: &Ledger, duration_s: f64) -> Self {
        let rate = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
        Self {
            target: None,
            started: rate(ledger.started),
            completed: rate(ledger.completed),
            throughput: rate(ledger.succeeded),
        }
    }
}

impl Rates {
    pub(super) const fn aiming_at(self, target: Option<f64>) -> Self {
        Self { target, ..self }
    }
}

impl From<&RequestStats> for Bytes {
    fn from(stats: &RequestStats) -> Self {
        Self { out: stats.bytes_out, received: stats.bytes_in }
    }
}

impl Connections {
    /// `requested`: how many the plan wants to have been made.
    pub(super) fn new(requested: u64, stats: &Stats) -> Self {
        let made = &stats.connections;
        Self {
            requested,
            established: made.established,
            opened: made.opened,
            failed: made.failed,
            peak: made.peak,
            addresses: AddressRow::all(&made.addresses),
        }
    }
}

impl AddressRow {
    fn all(counts: &AddressCounts) -> Vec<Self> {
        let row = |address, AddressCount { opened, failed }| Self { address, opened, failed };
        let rows = counts.rows().map(|(address, count)| row(address.to_string(), count));
        let other = Some(counts.other()).filter(|other| *other != AddressCount::default());
        rows.chain(other.map(|count| row("other".to_owned(), count))).collect()
    }
}
