//! The accounts, and whether they balance.

use std::collections::BTreeMap;

use super::Ledger;
use crate::{
    outcome::NotStarted,
    stats::{RequestStats, Times},
    units::Count,
};

/// What a ledger calls planned requests that may still start, while the run goes on.
pub(super) const PENDING: &str = "pending";

/// What is known of the end of somebody's part, beside the numbers handed in.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ending {
    /// Why what was neither started nor accounted for was not started. `None`: there must be nothing of it.
    pub(super) rest: Option<&'static str>,
    /// Requests given up in flight, by their own account. `None`: what was started and not completed.
    pub(super) in_flight: Option<u64>,
}

impl Ledger {
    pub(super) fn new(planned: Option<u64>, stats: &RequestStats, ending: Ending) -> Self {
        let completed = stats.completed();
        let mut reasons: BTreeMap<String, u64> = NotStarted::ALL
            .into_iter()
            .map(|reason| (reason.name().to_owned(), stats.not_started[reason as usize]))
            .filter(|(_, count)| *count > 0)
            .collect();
        let accounted = stats.started.saturating_add(stats.not_started_total());
        let rest = planned.unwrap_or(0).saturating_sub(accounted);
        if let Some(reason) = ending.rest.filter(|_| rest > 0) {
            let ours: &mut u64 = reasons.entry(reason.to_owned()).or_default();
            *ours = ours.saturating_add(rest);
        }
        Self {
            planned,
            started: stats.started,
            completed,
            succeeded: stats.succeeded,
            failed: stats.failed,
            not_started: planned.map(|_| sum_of(reasons.values())),
            not_started_by_reason: reasons,
            in_flight_at_end: ending
                .in_flight
                .unwrap_or_else(|| stats.started.saturating_sub(completed)),
        }
    }

    /// The accounts of nothing, to add others to.
    pub(super) fn nothing() -> Self {
        Self { planned: Some(0), not_started: Some(0), ..Self::default() }
    }

    /// Adds another's accounts.
    pub(super) fn add(&mut self, other: &Self) {
        self.planned = sum(self.planned, other.planned);
        self.started = self.started.saturating_add(other.started);
        self.completed = self.completed.saturating_add(other.completed);
        self.succeeded = self.succeeded.saturating_add(other.succeeded);
        self.failed = self.failed.saturating_add(other.failed);
        self.not_started = sum(self.not_started, other.not_started);
        for (reason, count) in &other.not_started_by_reason {
            let ours = self.not_started_by_reason.entry(reason.clone()).or_default();
            *ours = ours.saturating_add(*count);
        }
        self.in_flight_at_end = self.in_flight_at_end.saturating_add(other.in_flight_at_end);
    }
}

fn sum(ours: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    Some(ours?.saturating_add(theirs?))
}

/// A sum that an agent's lies cannot make overflow.
pub(super) fn sum_of<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().copied().fold(0, u64::saturating_add)
}

/// What does not add up, in words.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<(Option<String>, String)>);

impl Findings {
    /// Each with the agent concerned, if it is one.
    pub(super) fn into_inner(self) -> Vec<(Option<String>, String)> {
        self.0
    }

    pub(super) fn add(&mut self, agent: Option<&str>, text: String) {
        self.0.push((agent.map(str::to_owned), text));
    }

    /// `what` counted in two ways must be the same.
    pub(super) fn same(
        &mut self,
        agent: Option<&str>,
        (left, left_count): (&str, u64),
        (right, right_count): (&str, u64),
    ) {
        if left_count != right_count {
            let text =
                format!("{left} is {}, but {right} is {}", Count(left_count), Count(right_count));
            self.add(agent, text);
        }
    }

    /// In a phase without a count, nothing can be left over of it.
    pub(super) fn unplanned(&mut self, agent: Option<&str>, phase: &str, ledger: &Ledger) {
        let unplanned = sum_of(ledger.not_started_by_reason.values());
        if ledger.planned.is_none() && unplanned > 0 {
            let unplanned = Count(unplanned);
            let text = format!(
                "{unplanned} requests were not started of phase {phase:?}, which has no count"
            );
            self.add(agent, text);
        }
    }

    /// The balances of one ledger, and of the numbers it was made from.
    pub(super) fn balance(&mut self, agent: Option<&str>, ledger: &Ledger, stats: &RequestStats) {
        if let (Some(planned), Some(not_started)) = (ledger.planned, ledger.not_started) {
            let sum = ledger.started.saturating_add(not_started);
            self.same(agent, ("planned", planned), ("started + not_started", sum));
        }
        let sum = ledger.completed.saturating_add(ledger.in_flight_at_end);
        self.same(agent, ("started", ledger.started), ("completed + in_flight_at_end", sum));
        let sum = ledger.succeeded.saturating_add(ledger.failed);
        self.same(agent, ("completed", ledger.completed), ("succeeded + failed", sum));

        let errors = sum_of(&stats.errors);
        let responses = sum_of(stats.statuses.values().map(|count| &count.succeeded));
        let refused = sum_of(stats.statuses.values().map(|count| &count.failed));
        self.same(agent, ("succeeded", ledger.succeeded), ("successes by status", responses));
        let sum = refused.saturating_add(errors);
        self.same(agent, ("failed", ledger.failed), ("failures by status and error class", sum));
        self.times(agent, ("succeeded", ledger.succeeded), &stats.succeeded_times);
        self.times(agent, ("failed", ledger.failed), &stats.failed_times);
    }

    fn times(&mut self, agent: Option<&str>, counted: (&str, u64), times: &Times) {
        let measured = times.response_time.count();
        let (name, count) = counted;
        self.same(agent, counted, ("the number of their response times", measured));
        for (time, histogram) in [
            ("service_time", &times.service_time),
            ("schedule_lag", &times.schedule_lag),
            ("ttfb", &times.ttfb),
        ] {
            if histogram.count() > count {
                let text = format!(
                    "there are {} samples of {time} of {} {name}",
                    Count(histogram.count()),
                    Count(count)
                );
                self.add(agent, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        outcome::{ErrorClass, Outcome},
        stats::Sample,
    };

    fn stats() -> RequestStats {
        let mut stats = RequestStats { started: 4, ..RequestStats::default() };
        let outcomes = [
            Outcome::Response { status: 200, success: true },
            Outcome::Response { status: 503, success: false },
            Outcome::Error(ErrorClass::Reset),
        ];
        for outcome in outcomes {
            stats.record(&Sample {
                outcome,
                response_time: 5_000_000,
                service_time: Some(5_000_000),
                schedule_lag: Some(0),
                ttfb: None,
                bytes_out: 10,
                bytes_in: 10,
            });
        }
        stats.not_started[NotStarted::Cancelled as usize] = 5;
        stats
    }

    fn findings(change: impl FnOnce(&mut RequestStats), ending: Ending) -> Vec<String> {
        let mut stats = stats();
        change(&mut stats);
        let ledger = Ledger::new(Some(9), &stats, ending);
        let mut findings = Findings::default();
        findings.balance(None, &ledger, &stats);
        findings.into_inner().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn accounts_that_add_up_have_no_findings() {
        assert_eq!(findings(|_| (), Ending { rest: None, in_flight: Some(1) }), [""; 0]);
        assert_eq!(findings(|_| (), Ending::default()), [""; 0]);
    }

    #[test]
    fn every_balance_that_breaks_is_told_with_its_numbers() {
        type Change = fn(&mut RequestStats);
        let table: [(Change, &str); 8] = [
            (|stats| stats.started = 5, "planned is 9, but started + not_started is 10"),
            (|stats| stats.started = 2, "started is 2, but completed + in_flight_at_end is 3"),
            (
                |stats| stats.not_started = [0; NotStarted::ALL.len()],
                "planned is 9, but started + not_started is 4",
            ),
            (
                |stats| stats.succeeded = 2,
                "succeeded is 2, but successes by status is 1; succeeded is 2, but the number of their response times is 1",
            ),
            (
                |stats| stats.errors = [0; ErrorClass::ALL.len()],
                "failed is 2, but failures by status and error class is 1",
            ),
            (
                |stats| stats.failed_times = Times::default(),
                "failed is 2, but the number of their response times is 0",
            ),
            (
                |stats| (0..3).for_each(|_| stats.failed_times.ttfb.record(1)),
                "there are 3 samples of ttfb of 2 failed",
            ),
            (|stats| stats.statuses.clear(), "succeeded is 1, but successes by status is 0"),
        ];
        for (change, expected) in table {
            let found = findings(change, Ending::default()).join("; ");
            assert!(found.contains(expected), "{found:?} without {expected:?}");
        }
        let own = findings(|_| (), Ending { rest: None, in_flight: Some(0) });
        assert_eq!(own, ["started is 4, but completed + in_flight_at_end is 3"]);
    }

    #[test]
    fn the_rest_of_a_lost_share_has_its_reason() {
        let ending = Ending { rest: Some("agent_lost"), in_flight: None };
        let ledger = Ledger::new(Some(100), &stats(), ending);
        let reasons: Vec<_> = ledger.not_started_by_reason.into_iter().collect();
        assert_eq!(reasons, [("agent_lost".to_owned(), 91), ("cancelled".to_owned(), 5)]);
        assert_eq!((ledger.not_started, ledger.in_flight_at_end), (Some(96), 1));
    }

    #[test]
    fn a_plan_without_a_count_plans_nothing() {
        let mut stats = stats();
        stats.not_started = [0; NotStarted::ALL.len()];
        let ledger = Ledger::new(None, &stats, Ending { rest: Some(PENDING), in_flight: None });
        assert_eq!((ledger.planned, ledger.not_started), (None, None));
        assert!(ledger.not_started_by_reason.is_empty());
        let mut sum = ledger.clone();
        sum.add(&ledger);
        assert_eq!((sum.planned, sum.started), (None, 8));
    }
}
