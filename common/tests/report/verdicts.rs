//! The verdict: every rule applied, and none where nothing is wrong.

use std::time::Duration;

use inrush_common::{
    outcome::{ErrorClass, Outcome},
    report::{Loss, ReasonCode, Report, RunOutcome, VerdictStatus, rules},
    stats::{Completion, RequestStats, Sample},
};

use crate::fixtures::{self, Run, SECOND, Script};

use ReasonCode as Code;
use VerdictStatus::{Degraded, Invalid};

fn found(report: &Report) -> Vec<(ReasonCode, VerdictStatus)> {
    report.verdict.reasons.iter().map(|reason| (reason.code, reason.status)).collect()
}

fn normal(change: impl FnOnce(&mut Run)) -> Report {
    let mut run = fixtures::normal();
    change(&mut run);
    run.report()
}

fn error(class: ErrorClass) -> Sample {
    Sample {
        outcome: Outcome::Error(class),
        response_time: 5_000_000,
        service_time: None,
        schedule_lag: None,
        ttfb: None,
        bytes_out: 0,
        bytes_in: 0,
    }
}

#[test]
fn a_run_in_which_nothing_is_wrong_is_valid() {
    let report = fixtures::normal().report();
    assert_eq!(found(&report), []);
    assert_eq!(report.verdict.status, VerdictStatus::Valid);
}

#[test]
fn an_agent_held_back_by_a_quota_for_more_than_a_hundredth_of_the_time_is_told() {
    let throttled =
        |of_a_second: u64| normal(|run| run.snapshots[1].gauges.throttled_ns = of_a_second);
    // 4.5 s in all.
    assert_eq!(found(&throttled(45_000_000)), []);
    let report = throttled(46_000_000);
    assert_eq!(found(&report), [(Code::AgentThrottled, Degraded)]);
    let reason = &report.verdict.reasons[0];
    assert_eq!(reason.agent.as_deref(), Some("lab1"));
    assert_eq!(
        reason.text,
        "a CPU quota kept its control group from running for 46.0 ms in 4.50 s: times may be its own"
    );
    assert!((report.agents[0].throttled_s - 0.046).abs() < 1e-9);
}

#[test]
fn accounts_that_do_not_add_up_are_told_with_the_agent_and_the_numbers() {
    let report = normal(|run| run.snapshots[2].stats.phases[0].requests[0].started += 1);
    assert_eq!(report.verdict.status, Invalid);
    let first = &report.verdict.reasons[0];
    assert_eq!((first.code, first.status), (Code::LedgerFailed, Invalid));
    let texts: Vec<_> = report
        .verdict
        .reasons
        .iter()
        .filter(|reason| reason.agent.as_deref() == Some("lab1"))
        .map(|reason| reason.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "planned is 10,000, but started + not_started is 10,001",
            "started is 10,001, but completed + in_flight_at_end is 10,000",
        ]
    );
}

#[test]
fn shares_that_do_not_sum_to_the_plan_fail_the_ledger() {
    let report = normal(|run| run.facts.agents[0].planned = vec![Some(10_001)]);
    assert!(found(&report).iter().all(|(code, _)| *code == Code::LedgerFailed));
    assert_eq!(report.verdict.status, Invalid);
}

#[test]
fn numbers_of_an_agent_without_a_share_fail_the_ledger() {
    let report = normal(|run| {
        run.facts.agents.pop();
    });
    let texts: Vec<_> = report.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert!(texts.contains(&"it handed in numbers and had no share"), "{texts:?}");
}

#[test]
fn a_gauge_that_contradicts_the_counters_fails_the_ledger() {
    let report = normal(|run| run.snapshots.last_mut().unwrap().gauges.in_flight = 3);
    assert_eq!(found(&report)[0], (Code::LedgerFailed, Invalid));
}

fn texts(report: &Report) -> Vec<&str> {
    report.verdict.reasons.iter().map(|reason| reason.text.as_str()).collect()
}

#[test]
fn a_missing_snapshot_fails_the_ledger_also_of_a_plan_that_balances_without_it() {
    let by_duration = |missing: &[u64], change: fn(&mut Run)| {
        let mut run = fixtures::run(&["lab1"], 10, None, Some(Duration::from_secs(6)));
        let mut script = Script::new(0);
        for second in 0..6 {
            script.interval(&mut run, SECOND, 500, if second == 5 { 10 } else { 0 });
        }
        run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
        run.snapshots.retain(|snapshot| !missing.contains(&snapshot.key.seq.0));
        change(&mut run);
        run.report()
    };
    assert_eq!(found(&by_duration(&[], |_| ())), []);
    for (missing, text) in [
        (&[3][..], "snapshot #3 is missing"),
        (&[1], "snapshot #1 is missing"),
        (&[2, 4, 5], "3 snapshots are missing, #2 first"),
    ] {
        let report = by_duration(missing, |_| ());
        assert_eq!(found(&report), [(Code::LedgerFailed, Invalid)]);
        assert_eq!(texts(&report), [text]);
        assert_eq!(report.verdict.reasons[0].agent.as_deref(), Some("lab1"));
    }

    let lost: fn(&mut Run) = |run| {
        run.snapshots.last_mut().unwrap().completion = None;
        run.facts.agents[0].lost = Some(Loss { at_ns: 6 * SECOND, evidence: "cut off".to_owned() });
    };
    assert_eq!(found(&by_duration(&[], lost)), [(Code::AgentLost, Invalid)]);
    assert!(texts(&by_duration(&[4], lost)).contains(&"snapshot #4 is missing"));

    let running: fn(&mut Run) = |run| {
        run.snapshots.pop();
        run.facts.outcome = RunOutcome::Running;
    };
    assert_eq!(found(&by_duration(&[4], running)), []);
}

#[test]
fn a_worker_that_failed_is_told_as_such_and_its_share_is_accounted_for() {
    let report = normal(|run| {
        let last = run.snapshots.last_mut().unwrap();
        last.completion = Some(Completion::Internal("worker 1 panicked".to_owned()));
        // What the worker had under way and what it had still to do, nobody reported.
        let stats = &mut last.stats.phases[0].requests[0];
        *stats = RequestStats { started: 7, ..RequestStats::default() };
    });
    assert_eq!(found(&report), [(Code::AgentFailed, Invalid)]);
    let ledger = &report.agents[1].ledger;
    assert_eq!((ledger.started, ledger.in_flight_at_end), (8_807, 7));
    assert_eq!(ledger.not_started_by_reason.get("aborted"), Some(&1_193));
    assert_eq!(ledger.planned, Some(ledger.started + ledger.not_started.unwrap()));
}

#[test]
fn many_findings_are_counted_and_not_all_listed() {
    let report = normal(|run| {
        for snapshot in &mut run.snapshots {
            snapshot.stats.phases[0].requests[0].started += 1;
            snapshot.stats.phases[0].requests[0].statuses.clear();
            snapshot.stats.phases[0].requests[0].failed_times.response_time.clear();
        }
    });
    let ledger = found(&report).iter().filter(|(code, _)| *code == Code::LedgerFailed).count();
    assert_eq!(ledger, 9);
    let more = |text: &str| text.starts_with("and ") && text.ends_with(" more such findings");
    assert!(report.verdict.reasons.iter().any(|reason| more(&reason.text)));
}

#[test]
fn a_lost_agent_makes_the_run_invalid_and_is_named_with_its_time() {
    let report = fixtures::lost_agent().report();
    let reason = &report.verdict.reasons[0];
    assert_eq!((reason.code, reason.status), (Code::AgentLost, Invalid));
    assert_eq!(reason.agent.as_deref(), Some("lab-with-a-rather-long-name-3"));
    assert_eq!(
        reason.text,
        "lost, last heard of 2.40 s after the start: its process ended (signal 9)"
    );
}

#[test]
fn an_agent_that_failed_by_itself_makes_the_run_invalid() {
    for completion in
        [Completion::Internal("worker 1 panicked".to_owned()), Completion::LeaseExpired]
    {
        let report = normal(|run| run.snapshots.last_mut().unwrap().completion = Some(completion));
        assert_eq!(found(&report), [(Code::AgentFailed, Invalid)]);
    }
    let report = normal(|run| run.snapshots.last_mut().unwrap().completion = None);
    assert_eq!(found(&report), [(Code::AgentFailed, Invalid)]);
    assert_eq!(report.verdict.reasons[0].text, "its last numbers never came");
}

#[test]
fn a_run_that_never_started_measured_nothing_and_names_the_culprit() {
    let report = fixtures::empty().report();
    assert_eq!(found(&report), [(Code::AgentFailed, Invalid), (Code::NothingMeasured, Invalid)]);
    assert_eq!(
        report.verdict.reasons[1].text,
        "the run never started: lab2 did not report ready within 30 s"
    );
}

#[test]
fn a_target_that_was_down_from_the_start_is_the_targets_fault_alone() {
    let mut run = fixtures::empty();
    run.facts.outcome = RunOutcome::TargetUnreachable;
    run.facts.detail = Some("127.0.0.1:80: connection refused".to_owned());
    assert_eq!(found(&run.report()), [(Code::TargetUnreachable, Invalid)]);
}

#[test]
fn a_target_lost_in_mid_run_invalidates_what_was_measured_of_it() {
    let report = fixtures::all_failed().report();
    assert_eq!(found(&report), [(Code::TargetUnreachable, Invalid)]);
}

#[test]
fn an_agent_that_left_in_mid_run_is_as_good_as_lost() {
    let report = normal(|run| {
        let last = run.snapshots.iter_mut().rfind(|snapshot| snapshot.completion.is_some());
        last.unwrap().completion = Some(Completion::Stopped);
    });
    assert_eq!(found(&report), [(Code::AgentLost, Invalid)]);
}

#[test]
fn a_run_cut_short_is_incomplete() {
    let report = fixtures::cancelled().report();
    assert_eq!(found(&report), [(Code::Incomplete, Degraded)]);
    // An abort is not always the fault of an agent that has a reason of its own: it must weigh by itself.
    let aborted = normal(|run| {
        run.facts.outcome = RunOutcome::Aborted;
        run.facts.detail = Some("it went on beyond its duration".to_owned());
    });
    assert_eq!(found(&aborted), [(Code::Incomplete, Invalid)]);
    assert_eq!(
        aborted.verdict.reasons[0].text,
        "the run was aborted: it went on beyond its duration"
    );
}

fn with_faults(count: u64) -> Report {
    normal(|run| {
        let stats = &mut run.snapshots[0].stats.phases[0].requests[0];
        stats.started += count;
        for _ in 0..count {
            stats.record(&error(ErrorClass::LocalPortExhausted));
        }
        run.facts.agents[0].planned = vec![Some(10_000 + count)];
        let inrush_common::plan::Load::Closed(load) = &mut run.facts.plan.workload.phases[0].load
        else {
            panic!("the fixed run is closed")
        };
        load.requests = Some(20_000 + count);
    })
}

#[test]
fn the_generators_own_limits_degrade_and_from_one_percent_on_invalidate() {
    assert_eq!(found(&with_faults(1)), [(Code::LocalLimits, Degraded)]);
    assert_eq!(found(&with_faults(202)), [(Code::LocalLimits, Degraded)]);
    assert_eq!(found(&with_faults(203)), [(Code::LocalLimits, Invalid)]);
    assert!(with_faults(1).verdict.reasons[0].text.contains("(lab1 1)"));
}

fn with_connections(established: u64) -> Report {
    normal(|run| {
        for snapshot in &mut run.snapshots {
            snapshot.stats.connections.established = 0;
        }
        run.snapshots[0].stats.connections.established = established;
    })
}

#[test]
fn connections_that_were_never_made_degrade_and_below_95_percent_invalidate() {
    assert_eq!(found(&with_connections(100)), []);
    assert_eq!(found(&with_connections(99)), [(Code::UnmadeConnections, Degraded)]);
    assert_eq!(found(&with_connections(95)), [(Code::UnmadeConnections, Degraded)]);
    assert_eq!(found(&with_connections(94)), [(Code::UnmadeConnections, Invalid)]);
}

#[test]
fn a_busy_agent_degrades_when_it_was_watched_for_a_second() {
    let busy = |share: u64| {
        normal(|run| {
            for snapshot in &mut run.snapshots {
                snapshot.gauges.cpu_ns = snapshot.gauges.cpu_capacity_ns * share / 100;
            }
        })
    };
    assert_eq!(found(&busy(84)), []);
    assert_eq!(found(&busy(85)), [(Code::AgentCpu, Degraded), (Code::AgentCpu, Degraded)]);

    let mut short = fixtures::run(&["lab1"], 1, Some(10), None);
    let snapshot = Script::new(0).interval(&mut short, SECOND / 2, 10, 1);
    snapshot.gauges.cpu_ns = snapshot.gauges.cpu_capacity_ns;
    snapshot.completion = Some(Completion::Finished);
    assert_eq!(found(&short.report()), []);
}

fn with_lag(nanos: u64, ticks: u64) -> Report {
    normal(|run| {
        let lab2 =
            run.snapshots.iter_mut().filter(|snapshot| snapshot.key.agent.as_str() == "lab2");
        for (index, snapshot) in lab2.enumerate() {
            snapshot.stats.worker_lag.clear();
            if index == 0 {
                (0..ticks).for_each(|_| snapshot.stats.worker_lag.record(nanos));
            }
        }
    })
}

#[test]
fn late_workers_degrade_and_invalidate_when_they_are_late_as_a_rule() {
    let median = fixtures::normal().report().response_time.all.p50_ns.unwrap();
    assert!(median / 2 < 10_000_000, "the fixed run must let both cases apply: {median}");
    assert_eq!(found(&with_lag(9_900_000, 200)), [(Code::WorkerLag, Degraded)]);
    assert_eq!(found(&with_lag(median / 4 - 100_000, 200)), []);
    assert_eq!(found(&with_lag(10_200_000, 200)), [(Code::WorkerLag, Invalid)]);
    assert_eq!(found(&with_lag(10_200_000, 99)), []);
    // A few late ticks among many: the median of what was measured is sound.
    let mostly_on_time = normal(|run| {
        let lag = &mut run.snapshots[0].stats.worker_lag;
        lag.clear();
        (0..970).for_each(|_| lag.record(100_000));
        (0..30).for_each(|_| lag.record(median * 3));
    });
    assert_eq!(found(&mostly_on_time), [(Code::WorkerLag, Degraded)]);
}

#[test]
fn agents_that_start_far_apart_degrade() {
    let report = normal(|run| run.facts.agents[1].started_after_ns = Some(49_900_000));
    assert_eq!(found(&report), []);
    let report = normal(|run| run.facts.agents[1].started_after_ns = Some(50_000_000));
    assert_eq!(found(&report), [(Code::StartSkew, Degraded)]);
}

#[test]
fn times_above_the_top_of_the_histograms_degrade() {
    let report = normal(|run| {
        let stats = &mut run.snapshots[0].stats.phases[0].requests[0];
        stats.succeeded_times.response_time.clear();
        (0..stats.succeeded).for_each(|_| stats.succeeded_times.response_time.record(u64::MAX));
    });
    assert_eq!(found(&report), [(Code::HistogramOverflow, Degraded)]);
}

#[test]
fn the_worst_reason_stands_first_and_decides() {
    let report = fixtures::lost_agent().report();
    assert_eq!(found(&report), [(Code::AgentLost, Invalid), (Code::LocalLimits, Degraded)]);
    assert_eq!(report.verdict.status, Invalid);
}

#[test]
fn every_code_has_a_rule() {
    for code in ReasonCode::ALL {
        assert!(rules().iter().any(|rule| rule.code == *code), "{code}");
    }
}
