//! Accounts, rates, distributions and rows: what must hold between the numbers of one report.

use std::time::Duration;

use inrush_common::{
    id::Epoch,
    outcome::{NotStarted, Outcome},
    report::{AgentState, Distribution, Report, RunOutcome, SplitByOutcome, VerdictStatus, build},
    stats::{Completion, Histogram, Interval, Sample, Stats, Totals},
};
use proptest::{collection::vec, prelude::*};

use crate::fixtures::{self, Run, SECOND, Script};

fn reports() -> Vec<(&'static str, Report)> {
    fixtures::all().into_iter().map(|(name, run)| (name, run.report())).collect()
}

fn reasons(report: &Report) -> Vec<(&str, u64)> {
    let reasons = &report.ledger.not_started_by_reason;
    reasons.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn every_ledger_balances_in_every_fixed_report() {
    for (name, report) in reports() {
        let rows = report.agents.iter().map(|row| &row.ledger);
        let rows = rows.chain(report.requests.iter().map(|row| &row.ledger));
        for ledger in rows
            .chain(report.phases.iter().map(|row| &row.ledger))
            .chain([&report.ledger, &report.total_ledger])
        {
            if let (Some(planned), Some(not_started)) = (ledger.planned, ledger.not_started) {
                assert_eq!(planned, ledger.started + not_started, "{name}");
                assert_eq!(
                    not_started,
                    ledger.not_started_by_reason.values().sum::<u64>(),
                    "{name}"
                );
            }
            assert_eq!(ledger.started, ledger.completed + ledger.in_flight_at_end, "{name}");
            assert_eq!(ledger.completed, ledger.succeeded + ledger.failed, "{name}");
        }
        assert_eq!(report.response_time.all.count, report.ledger.completed, "{name}");
        assert_eq!(report.response_time.failed.count, report.ledger.failed, "{name}");
        assert!(
            report.verdict.reasons.iter().all(|reason| reason.code.name() != "ledger_failed"),
            "{name}"
        );
    }
}

#[test]
fn agents_requests_and_seconds_sum_to_the_total() {
    for (name, report) in reports() {
        let total = &report.ledger;
        let agents = |of: fn(&inrush_common::report::AgentRow) -> u64| {
            report.agents.iter().map(of).sum::<u64>()
        };
        assert_eq!(agents(|row| row.ledger.started), total.started, "{name}");
        assert_eq!(agents(|row| row.ledger.failed), total.failed, "{name}");
        assert_eq!(agents(|row| row.ledger.in_flight_at_end), total.in_flight_at_end, "{name}");
        assert_eq!(agents(|row| row.connections.requested), report.connections.requested, "{name}");
        assert_eq!(agents(|row| row.bytes.received), report.bytes.received, "{name}");
        assert_eq!(agents(|row| row.response_time.all.count), total.completed, "{name}");
        let rates: f64 = report.agents.iter().map(|row| row.rates.completed).sum();
        assert!((rates - report.rates.completed).abs() <= rates * 1e-9, "{name}");
        let requests: u64 = report.requests.iter().map(|row| row.ledger.completed).sum();
        assert_eq!(requests, total.completed, "{name}");
        let seconds: u64 = report.series.iter().map(|row| row.succeeded + row.failed).sum();
        assert_eq!(seconds, report.total_ledger.completed, "{name}");
        let status: u64 = report.status.iter().map(|row| row.count).sum();
        let errors: u64 = report.errors.iter().map(|row| row.count).sum();
        assert_eq!(status + errors, total.completed, "{name}");
    }
}

#[test]
fn rates_times_duration_are_the_counts() {
    for (name, report) in reports() {
        assert!(report.duration_s.is_finite() && report.duration_s >= 0.0, "{name}");
        assert_eq!(report.ledger.completed > 0, report.duration_s > 0.0, "{name}");
        for (rate, count) in [
            (report.rates.started, report.ledger.started),
            (report.rates.completed, report.ledger.completed),
            (report.rates.throughput, report.ledger.succeeded),
        ] {
            let back = rate * report.duration_s;
            assert!((back - count as f64).abs() <= 1e-6, "{name}: {back} {count}");
        }
    }
}

#[test]
fn the_merged_histogram_is_the_sum_of_the_agents_count_for_count() {
    let run = fixtures::normal();
    let mut one = Histogram::default();
    for snapshot in &run.snapshots {
        let total = snapshot.stats.total();
        for times in [total.succeeded_times, total.failed_times] {
            for (nanos, count) in times.response_time.buckets() {
                (0..count).for_each(|_| one.record(nanos));
            }
        }
    }
    assert_eq!(run.report().response_time.all, Distribution::from(&one));
}

#[test]
fn the_order_and_repetition_of_snapshots_change_no_letter_of_the_report() {
    let run = fixtures::lost_agent();
    let mut other = run.clone();
    other.snapshots.reverse();
    other.snapshots.extend(run.snapshots.iter().take(3).cloned());
    let json = |run: &Run| serde_json::to_string(&run.report()).unwrap();
    assert_eq!(json(&other), json(&run));
}

#[test]
fn a_lost_agents_rest_is_accounted_and_its_row_stays() {
    let report = fixtures::lost_agent().report();
    assert_eq!(reasons(&report), [("agent_lost", 985)]);
    let lost = report.agents.iter().find(|row| row.state == AgentState::Lost).unwrap();
    assert_eq!(lost.lost_at_s, Some(2.4));
    assert_eq!(lost.detail.as_deref(), Some("its process ended (signal 9)"));
    assert_eq!((lost.ledger.planned, lost.ledger.started), (Some(2_995), 2_010));
    assert_eq!((lost.ledger.not_started, lost.ledger.in_flight_at_end), (Some(985), 10));
    assert_eq!(report.verdict.status, VerdictStatus::Invalid);
}

#[test]
fn a_lost_agent_that_handed_in_its_last_numbers_is_believed_and_stays_lost() {
    let mut run = fixtures::lost_agent();
    let mut last = run.snapshots.last().unwrap().clone();
    last.key.seq = last.key.seq.next();
    last.interval.from_ns = last.interval.to_ns;
    last.interval.to_ns += SECOND;
    last.stats = Stats::new(1, 1);
    last.stats.phases[0].requests[0].not_started[NotStarted::LeaseExpired as usize] = 985;
    last.completion = Some(Completion::LeaseExpired);
    run.snapshots.push(last);
    let report = run.report();
    assert_eq!(reasons(&report), [("lease_expired", 985)]);
    let lost = report.agents.iter().find(|row| row.lost_at_s == Some(2.4)).unwrap();
    assert_eq!(lost.state, AgentState::Lost);
    assert!(report.verdict.reasons[0].text.ends_with("handed in the rest of its numbers later"));
}

#[test]
fn a_run_that_never_started_accounts_for_all_it_planned() {
    for (outcome, reason) in [
        (RunOutcome::Failed, "aborted"),
        (RunOutcome::Cancelled, "cancelled"),
        (RunOutcome::TargetUnreachable, "target_unreachable"),
    ] {
        let mut run = fixtures::empty();
        run.facts.outcome = outcome;
        assert_eq!(reasons(&run.report()), [(reason, 20_000)]);
        let states: Vec<_> = run.report().agents.iter().map(|row| row.state).collect();
        assert_eq!(states, [AgentState::Stopped, AgentState::NotReady]);
        run.facts.agents.clear();
        let report = run.report();
        assert_eq!(reasons(&report), [(reason, 20_000)]);
        assert_eq!((report.duration_s, report.rates.completed), (0.0, 0.0));
        assert_eq!(report.verdict.status, VerdictStatus::Invalid);
    }
}

#[test]
fn what_may_still_start_is_pending_while_the_run_goes_on() {
    let report = fixtures::running().report();
    assert_eq!(reasons(&report), [("pending", 15_900)]);
    assert_eq!(report.ledger.in_flight_at_end, 100);
    assert_eq!(report.agents[0].state, AgentState::Running);
    assert_eq!(report.verdict.status, VerdictStatus::Valid);
}

#[test]
fn a_plan_by_duration_plans_no_count_and_hung_requests_are_in_flight_for_its_whole_time() {
    let report = fixtures::cancelled().report();
    assert_eq!((report.ledger.planned, report.ledger.not_started), (None, None));
    assert_eq!(report.ledger.in_flight_at_end, 10);
    assert!((report.duration_s - 3.0).abs() < 1e-9);
    assert_eq!(report.series.len(), 3);
    let stalled = &report.series[1];
    assert_eq!(
        (stalled.succeeded, stalled.p50_ns, stalled.in_flight, stalled.agents),
        (0, None, 10, 1)
    );
}

#[test]
fn a_long_run_has_wider_rows_and_not_more_of_them() {
    for (seconds, every, rows, width) in
        [(3_600, 1, 3_600, 1.0), (3_601, 1, 1_801, 2.0), (604_800, 3_600, 2_506, 240.0)]
    {
        let mut run = fixtures::run(&["lab1"], 1, None, Some(Duration::from_secs(seconds)));
        let mut script = Script::new(0);
        let first = script.interval(&mut run, SECOND, 1_500, 1).clone();
        let mut totals = run.totals();
        let mut later = first.clone();
        later.stats = Stats::new(1, 1);
        later.stats.phases[0].requests[0].started = 1;
        later.stats.phases[0].requests[0].record(&Sample {
            outcome: Outcome::Response { status: 200, success: true },
            response_time: 5_000_000,
            service_time: Some(5_000_000),
            schedule_lag: Some(0),
            ttfb: Some(4_000_000),
            bytes_out: 10,
            bytes_in: 10,
        });
        // One request in each of some seconds.
        let mut active = (1..seconds).filter(|second| second % every == 0).peekable();
        while let Some(second) = active.next() {
            later.key.seq = later.key.seq.next();
            later.interval = Interval { from_ns: second * SECOND, to_ns: (second + 1) * SECOND };
            later.completion = active.peek().is_none().then_some(Completion::Finished);
            totals.add(&later);
        }
        let report = build(&run.facts, &totals);
        assert_eq!(report.verdict.status, VerdictStatus::Valid, "{:?}", report.verdict);
        assert_eq!(report.series.len(), rows, "{seconds}");
        let completed = report.series.iter().map(|row| row.succeeded + row.failed);
        assert_eq!(completed.sum::<u64>(), report.ledger.completed);
        let begun = (0..rows as u64).map(|row| totals.started(row, 0));
        assert_eq!(begun.sum::<u64>(), report.total_ledger.started);
        let mut at = 0.0;
        for row in &report.series {
            assert_eq!((row.from_s, row.to_s), (at, at + width));
            at += width;
        }
        let first = &report.series[0];
        assert!(first.p99_ns > first.p50_ns && first.p50_ns.is_some());
        assert_eq!(
            (report.series[1].p50_ns.is_some(), report.series[1].p99_ns),
            (every == 1, None)
        );
    }
}

#[test]
fn one_request_of_two_seconds_took_about_two_seconds() {
    let report = fixtures::one_request().report();
    assert!((report.duration_s - 2.001).abs() < 1e-9);
    let all = &report.response_time.all;
    assert_eq!((all.count, all.p90_ns, all.p99_ns), (1, None, None));
    let p50 = all.p50_ns.unwrap();
    assert!(p50 >= 2_000_000_000 && p50 - 2_000_000_000 < 2_000_000, "{p50}");
    assert_eq!(report.connections.requested, 1);
    assert_eq!(report.start_skew, None);
    assert_eq!(report.verdict.status, VerdictStatus::Valid);
}

#[test]
fn more_connections_than_requests_are_never_asked_for() {
    let mut run = fixtures::run(&["lab1", "lab2", "lab3"], 50, Some(4), None);
    for agent in 0..3 {
        let count = run.facts.agents[agent].planned[0].unwrap();
        let snapshot = Script::new(agent).interval(&mut run, SECOND, count, count);
        snapshot.completion = Some(Completion::Finished);
    }
    let report = run.report();
    assert_eq!(report.connections.requested, 4);
    let requested: Vec<_> = report.agents.iter().map(|row| row.connections.requested).collect();
    assert_eq!(requested.iter().sum::<u64>(), 4);
    assert_eq!(report.verdict.status, VerdictStatus::Valid, "{:?}", report.verdict);
}

#[test]
fn the_skew_is_between_the_first_and_the_last_and_knows_its_bound() {
    let report = fixtures::normal().report();
    let skew = report.start_skew.unwrap();
    assert_eq!((skew.skew_ns, skew.bound_ns), (900_000, 600_000));
    let after: Vec<_> = report.agents.iter().map(|row| row.started_after_ns).collect();
    assert_eq!(after, [Some(0), Some(900_000)]);
}

#[test]
fn agents_stand_in_the_order_of_their_names() {
    let mut run = fixtures::lost_agent();
    let before = run.report();
    assert!(before.agents.is_sorted_by(|a, b| a.name < b.name));
    run.facts.agents.reverse();
    assert_eq!(run.report(), before);
}

#[test]
fn a_restarted_agents_numbers_stand_beside_those_of_its_former_process() {
    let mut run = fixtures::running();
    let mut again = run.snapshots[0].clone();
    again.key.epoch = Epoch(8);
    run.snapshots.push(again);
    let mut totals = Totals::default();
    run.snapshots.iter().for_each(|snapshot| assert!(totals.add(snapshot)));
    assert_eq!(build(&run.facts, &totals).ledger.completed, 6_000);
}

fn in_order(of: &Distribution) -> Result<(), TestCaseError> {
    let values = [of.min_ns, of.p50_ns, of.p90_ns, of.p95_ns, of.p99_ns, of.p99_9_ns, of.p99_99_ns];
    let known: Vec<u64> = values.iter().map_while(|value| *value).collect();
    prop_assert!(known.is_sorted(), "{of:?}");
    prop_assert!(values[known.len()..].iter().all(Option::is_none), "null only upwards: {of:?}");
    if let (Some(max), Some(mean), Some(min)) = (of.max_ns, of.mean_ns, of.min_ns) {
        prop_assert!(known.last().is_some_and(|highest| *highest <= max), "{of:?}");
        prop_assert!((min..=max).contains(&mean), "{of:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn percentiles_rise_and_the_mean_lies_between(
        count in prop::sample::select(vec![0_usize, 1, 2, 9, 10, 99, 100, 199, 200, 999, 1_000, 10_000]),
        spread in 1_u64..4_000_000_000_000,
        seed in vec(any::<u64>(), 1..20),
    ) {
        let mut histogram = Histogram::default();
        for number in 0..count {
            let noise = seed[number % seed.len()].wrapping_mul(number as u64 + 1);
            histogram.record(noise % spread);
        }
        in_order(&Distribution::from(&histogram))?;
    }

    #[test]
    fn equal_samples_give_one_value_throughout(nanos in 0_u64..3_600_000_000_000, count in 1_u64..2_000) {
        let mut histogram = Histogram::default();
        (0..count).for_each(|_| histogram.record(nanos));
        let of = Distribution::from(&histogram);
        in_order(&of)?;
        prop_assert_eq!(of.p50_ns, of.max_ns);
        prop_assert!(of.min_ns.unwrap() <= nanos && nanos <= of.max_ns.unwrap());
    }
}

#[test]
fn the_split_by_outcome_adds_up() {
    for (name, report) in reports() {
        let check = |split: &SplitByOutcome| {
            assert_eq!(split.all.count, split.succeeded.count + split.failed.count, "{name}");
        };
        check(&report.response_time);
        check(&report.service_time);
        check(&report.schedule_lag);
        check(&report.ttfb);
    }
}
