//! The phases of a run: their accounts over the whole fleet, and when they were at work.

use super::{
    Arrivals, Bytes, Ledger, Model, PhaseRow, Rates, RunFacts,
    agents::{Agent, never_started},
    arrivals::{Stretch, Timeline},
    build::{error_rows, request_rows, split, status_rows},
    ledger::{Ending, Findings},
};
use crate::{
    plan::{self, Load, Phase},
    stats::{PhaseStats, RequestStats, Stats},
    units::{Count, nanos},
};

/// One phase of the plan, over all agents.
pub(super) struct Account<'a> {
    pub(super) plan: &'a Phase,
    pub(super) stats: PhaseStats,
    /// The sum over its requests.
    pub(super) sum: RequestStats,
    pub(super) ledger: Ledger,
}

/// The accounts of every phase of the plan, in its order.
pub(super) fn accounts<'a>(
    facts: &'a RunFacts,
    agents: &[Agent<'_>],
    fleet: &Stats,
) -> Vec<Account<'a>> {
    let phases = facts.plan.workload.phases.iter().enumerate();
    let account = |(index, phase): (usize, &'a Phase)| {
        let stats = fleet.phases.get(index).cloned().unwrap_or_default();
        let sum = stats.total();
        let planned = phase.load.planned();
        let ledger = if agents.is_empty() {
            // Nobody was given anything.
            let ending = Ending { rest: Some(never_started(facts.outcome)), in_flight: None };
            Ledger::new(planned, &RequestStats::default(), ending)
        } else {
            let mut ledger = Ledger::nothing();
            for agent in agents {
                ledger.add(&agent.phases[index].ledger);
            }
            ledger.planned = planned;
            ledger
        };
        Account { plan: phase, stats, sum, ledger }
    };
    phases.map(account).collect()
}

impl Account<'_> {
    /// From when to when it was at work, in nanoseconds of the run's timeline.
    pub(super) fn window(&self) -> (u64, u64) {
        let from = nanos(self.plan.starts_at);
        (from, self.stats.until_ns.max(from))
    }

    fn duration_s(&self) -> f64 {
        let (from, until) = self.window();
        (until - from) as f64 / 1e9
    }

    /// What the accounts of the phase do not say alike.
    pub(super) fn balance(&self, findings: &mut Findings) {
        findings.balance(None, &self.ledger, &self.sum);
        findings.unplanned(None, &self.plan.name, &self.ledger);
        let (from, until) = self.window();
        if self.sum.completed() > 0 && until == from {
            let completed = Count(self.sum.completed());
            let text =
                format!("phase {:?} completed {completed} requests in no time", self.plan.name);
            findings.add(None, text);
        }
    }

    /// From when to when requests of it may have been begun.
    pub(super) fn begins(&self) -> (u64, u64) {
        let (from, until) = self.window();
        (from, self.plan.ends_at().map_or(until, |end| until.min(nanos(end))))
    }

    pub(super) fn row(
        &self,
        requests: &[plan::Request],
        several: bool,
        arrivals: Option<Arrivals>,
    ) -> PhaseRow {
        let duration_s = self.duration_s();
        let duration = self.plan.load.duration();
        PhaseRow {
            name: self.plan.name.clone(),
            measured: self.plan.measure,
            model: model(&self.plan.load),
            connections: self.plan.load.connections(),
            starts_at_s: self.plan.starts_at.as_secs_f64(),
            planned_duration_s: duration.map(|duration| duration.as_secs_f64()),
            duration_s,
            arrivals,
            ledger: self.ledger.clone(),
            rates: Rates::new(&self.ledger, duration_s).aiming_at(target([self])),
            bytes: Bytes::from(&self.sum),
            response_time: split(&self.sum, |times| &times.response_time),
            service_time: split(&self.sum, |times| &times.service_time),
            schedule_lag: split(&self.sum, |times| &times.schedule_lag),
            ttfb: split(&self.sum, |times| &times.ttfb),
            status: status_rows(&self.sum),
            errors: error_rows(&self.sum),
            requests: if several {
                request_rows(requests, &self.stats.requests, &self.ledger, duration_s)
            } else {
                Vec::new()
            },
        }
    }
}

/// For every phase, what was started beside what was planned; of a closed one nothing.
pub(super) fn stretches(accounts: &[Account<'_>], timeline: &Timeline<'_>) -> Vec<Vec<Stretch>> {
    let stretches = accounts.iter().enumerate().map(|(index, account)| match &account.plan.load {
        Load::Open(open) => timeline.stretches(index, account.plan, open),
        Load::Closed(_) => Vec::new(),
    });
    stretches.collect()
}

fn model(load: &Load) -> Model {
    match load {
        Load::Closed(_) => Model::Closed,
        Load::Open(_) => Model::Open,
    }
}

/// The measured phases of a run.
pub(super) fn measured<'a>(accounts: &'a [Account<'a>]) -> impl Iterator<Item = &'a Account<'a>> {
    accounts.iter().filter(|account| account.plan.measure)
}

/// Which model made the measured load.
pub(super) fn model_of(accounts: &[Account<'_>]) -> Model {
    let mut models = measured(accounts).map(|account| model(&account.plan.load));
    let first = models.next().unwrap_or(Model::Closed);
    if models.all(|model| model == first) { first } else { Model::Mixed }
}

/// For how long the measured phases were at work, in seconds; time that two of them share counts once.
pub(super) fn duration_s(accounts: &[Account<'_>]) -> f64 {
    union_s(measured(accounts).map(Account::window).collect())
}

/// How long stretches of time last together, in seconds; what several share counts once.
fn union_s(mut windows: Vec<(u64, u64)>) -> f64 {
    windows.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, until) in windows {
        sum += until.saturating_sub(from.max(end));
        end = end.max(until);
    }
    sum as f64 / 1e9
}

/// Planned starts over planned time; `None` where one of the phases has no schedule.
pub(super) fn target<'a>(accounts: impl IntoIterator<Item = &'a Account<'a>>) -> Option<f64> {
    let (mut count, mut windows) = (0_u64, Vec::new());
    for account in accounts {
        let Load::Open(open) = &account.plan.load else { return None };
        count = count.saturating_add(open.slots.count());
        let from = nanos(account.plan.starts_at);
        windows.push((from, from.saturating_add(open.profile.duration_ns())));
    }
    let seconds = union_s(windows);
    (seconds > 0.0).then(|| count as f64 / seconds)
}

/// The sum of the measured phases, request by request.
pub(super) fn measured_requests(accounts: &[Account<'_>], requests: usize) -> Vec<RequestStats> {
    let mut sums = vec![RequestStats::default(); requests];
    for account in measured(accounts) {
        for (sum, stats) in sums.iter_mut().zip(&account.stats.requests) {
            sum.add(stats);
        }
    }
    sums
}

/// The accounts of several phases together.
pub(super) fn ledger<'a>(accounts: impl Iterator<Item = &'a Account<'a>>) -> Ledger {
    let mut ledger = Ledger::nothing();
    for account in accounts {
        ledger.add(&account.ledger);
    }
    ledger
}
