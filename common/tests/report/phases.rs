//! Phases and open loads: what must hold between the numbers of one report, and what the series and the arrivals say.

use std::time::Duration;

use inrush_common::{
    outcome::NotStarted,
    plan::{ArrivalProcess, Load, OpenLoad, Phase},
    report::{Ledger, Model, Report, RequestRow, RunOutcome},
    stats::{Completion, Interval},
};

use crate::{
    fixtures::{self, Run, SECOND, closed, phase, request, run_of},
    loads::{self, Agent, Work, due, open},
};

fn reports() -> Vec<(&'static str, Report)> {
    fixtures::all().into_iter().map(|(name, run)| (name, run.report())).collect()
}

/// What can be added up of ledgers.
fn sums<'a>(ledgers: impl IntoIterator<Item = &'a Ledger>) -> [u64; 5] {
    let mut sums = [0; 5];
    for ledger in ledgers {
        let counts = [
            ledger.started,
            ledger.completed,
            ledger.succeeded,
            ledger.failed,
            ledger.in_flight_at_end,
        ];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    sums
}

#[test]
fn measured_phases_sum_to_the_run_and_all_of_them_to_what_the_target_saw() {
    for (name, report) in reports() {
        let measured = report.phases.iter().filter(|row| row.measured);
        assert_eq!(sums(measured.clone().map(|row| &row.ledger)), sums([&report.ledger]), "{name}");
        let all = sums(report.phases.iter().map(|row| &row.ledger));
        assert_eq!(all, sums([&report.total_ledger]), "{name}");
        let agents = sums(report.agents.iter().map(|row| &row.ledger));
        assert_eq!(agents, sums([&report.ledger]), "{name}");
        let requests = sums(report.requests.iter().map(|row| &row.ledger));
        assert_eq!(requests, sums([&report.ledger]), "{name}");
        let planned: Option<u64> = measured.clone().map(|row| row.ledger.planned).sum();
        assert_eq!(planned, report.ledger.planned, "{name}");
        assert_eq!(measured.map(|row| row.bytes.received).sum::<u64>(), report.bytes.received);
        let started: u64 = report.series.iter().map(|row| row.started).sum();
        assert_eq!(started, report.total_ledger.started, "{name}");
    }
}

#[test]
fn the_rates_of_a_phase_times_its_duration_are_its_counts() {
    let check = |name: &str, rows: &[RequestRow], duration_s: f64| {
        for row in rows {
            let back = row.rates.throughput * duration_s;
            assert!((back - row.ledger.succeeded as f64).abs() < 1e-6, "{name}");
        }
    };
    for (name, report) in reports() {
        for row in &report.phases {
            for (rate, count) in [
                (row.rates.started, row.ledger.started),
                (row.rates.completed, row.ledger.completed),
                (row.rates.throughput, row.ledger.succeeded),
            ] {
                assert!((rate * row.duration_s - count as f64).abs() < 1e-6, "{name} {}", row.name);
            }
            let times = &row.response_time;
            assert_eq!(times.all.count, row.ledger.completed, "{name}");
            assert_eq!(times.failed.count, row.ledger.failed, "{name}");
            check(name, &row.requests, row.duration_s);
            if !row.requests.is_empty() {
                let requests = sums(row.requests.iter().map(|row| &row.ledger));
                assert_eq!(requests, sums([&row.ledger]), "{name}");
            }
        }
        check(name, &report.requests, report.duration_s);
    }
}

#[test]
fn a_warm_up_is_in_its_own_row_and_in_no_figure_of_the_measured_phase() {
    let report = loads::warm_up().report();
    let [warm_up, peak] = &report.phases[..] else { panic!("two phases") };
    assert_eq!(
        (warm_up.measured, warm_up.ledger.completed, warm_up.ledger.failed),
        (false, 1_200, 52)
    );
    // Its last answers came in the third second, when the other phase was at work.
    assert_eq!((warm_up.planned_duration_s, warm_up.duration_s), (Some(2.0), 3.0));
    assert_eq!((peak.starts_at_s, peak.duration_s, report.duration_s), (2.0, 1.5, 1.5));
    assert_eq!(report.ledger, peak.ledger);
    assert_eq!((report.ledger.completed, report.ledger.failed), (6_000, 0));
    assert_eq!((report.total_ledger.completed, report.total_ledger.planned), (7_200, None));
    assert_eq!(report.response_time, peak.response_time);
    assert_eq!(report.schedule_lag, peak.schedule_lag);
    assert_eq!((report.status.len(), report.bytes.received), (1, peak.bytes.received));
    let slowest = report.response_time.all.max_ns.unwrap();
    assert!(slowest < warm_up.response_time.all.min_ns.unwrap(), "{slowest}");
    assert!(report.agents.iter().all(|row| row.ledger.failed == 0));
    assert!(report.requests.iter().all(|row| row.response_time.failed.count == 0));
}

#[test]
fn phases_that_share_time_share_it_once_in_the_duration() {
    let report = loads::mixed().report();
    assert_eq!((report.model, report.rates.target), (Model::Mixed, None));
    // 0 to 3 s and 2 to 7 s.
    assert_eq!(report.duration_s, 7.0);
    let durations: Vec<f64> = report.phases.iter().map(|row| row.duration_s).collect();
    assert_eq!(durations, [3.0, 5.0]);
}

#[test]
fn the_target_of_phases_side_by_side_is_the_sum_of_their_rates() {
    let both = |second_at| {
        let load = || Load::Open(open(1_000, 1_000, 4, 100));
        let phases = vec![phase("a", true, 0, load()), phase("b", true, second_at, load())];
        let mut run = run_of(&["lab1"], vec![request("hello")], phases);
        let mut agent = Agent::new(0);
        for second in 0..second_at + 4 {
            let works = [(0, 0), (1, second_at)].into_iter();
            let works = works.filter(|(_, from)| (*from..from + 4).contains(&second));
            let works: Vec<Work> = works.map(|(phase, _)| Work::well(phase, 1_000)).collect();
            agent.interval(&mut run, SECOND, &works);
        }
        run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
        let report = run.report();
        (report.rates.target, report.rates.started, report.duration_s)
    };
    assert_eq!(both(0), (Some(2_000.0), 2_000.0, 4.0));
    assert_eq!(both(4), (Some(1_000.0), 1_000.0, 8.0));
    // With a pause between them, which is nobody's time.
    assert_eq!(both(10), (Some(1_000.0), 1_000.0, 8.0));
}

#[test]
fn every_row_of_the_series_says_what_was_planned_in_it_and_which_phases_were_at_work() {
    let ramp = loads::mixed().report();
    let rows: Vec<(Vec<&str>, Option<u64>)> = ramp
        .series
        .iter()
        .map(|row| (row.phases.iter().map(String::as_str).collect(), row.planned))
        .collect();
    assert_eq!(
        rows,
        [
            (vec!["steady"], None),
            (vec!["steady"], None),
            (vec!["steady", "ramp"], None),
            (vec!["ramp"], Some(440)),
            (vec!["ramp"], Some(600)),
            (vec!["ramp"], Some(760)),
            (vec!["ramp"], Some(920)),
        ]
    );
    for run in
        [loads::open_valid(), loads::overload_drop(), loads::overload_queue(), loads::poisson()]
    {
        let report = run.report();
        let planned: Option<u64> = report.series.iter().map(|row| row.planned).sum();
        assert_eq!(planned, report.ledger.planned);
    }
}

/// A closed phase that ended leaves requests in flight, but begins none: what is planned then is the open phase's.
#[test]
fn the_last_answers_of_a_closed_phase_leave_the_plan_of_the_next_one_known() {
    let phases = vec![
        phase("first", true, 0, closed(10, None, Some(Duration::from_secs(1)))),
        phase("next", true, 1, Load::Open(open(100, 100, 2, 50))),
    ];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    agent.interval(&mut run, SECOND, &[Work { completed: 40, ..Work::well(0, 50) }]);
    let rest = Work { started: 0, completed: 10, ..Work::well(0, 0) };
    agent.interval(&mut run, SECOND, &[rest, Work::well(1, 100)]);
    agent.interval(&mut run, SECOND, &[Work::well(1, 100)]);
    let report = run.report();
    let rows: Vec<_> = report.series.iter().map(|row| (row.phases.len(), row.planned)).collect();
    assert_eq!(rows, [(1, None), (2, Some(100)), (1, Some(100))]);
}

/// The one phase's `rate_error` when so many requests begin second by second.
fn rate_error(load: &OpenLoad, seconds: &[u64], change: impl FnOnce(&mut Run)) -> Option<f64> {
    let phases = vec![phase(Phase::ONLY, true, 0, Load::Open(load.clone()))];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    for count in seconds {
        agent.interval(&mut run, SECOND, &[Work::well(0, *count)]);
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    change(&mut run);
    run.report().phases[0].arrivals.as_ref().unwrap().rate_error
}

#[test]
fn the_error_of_the_rate_is_that_of_the_worst_second_but_the_first_and_the_last() {
    let load = open(1_000, 1_000, 5, 100);
    let error = |seconds: [u64; 5]| rate_error(&load, &seconds, |_| ());
    assert_eq!(error([1_000; 5]), Some(0.0));
    assert_eq!(error([900, 1_000, 1_000, 1_000, 1_100]), Some(0.0));
    assert_eq!(error([1_000, 1_001, 999, 1_000, 1_000]), Some(0.0));
    assert_eq!(error([1_000, 980, 1_020, 1_000, 1_000]), Some(0.02));
    assert_eq!(error([1_000, 1_000, 1_000, 950, 1_050]), Some(0.05));
    let ramp = open(100, 1_000, 5, 100);
    let planned: Vec<u64> = (0..5).map(|second| due(&ramp, second)).collect();
    assert_eq!(rate_error(&ramp, &planned, |_| ()), Some(0.0));
}

#[test]
fn below_three_seconds_there_is_no_error_of_the_rate() {
    assert_eq!(rate_error(&open(1_000, 1_000, 2, 100), &[900, 1_100], |_| ()), None);
    assert_eq!(rate_error(&open(1_000, 1_000, 3, 100), &[900, 1_000, 1_100], |_| ()), Some(0.0));
}

#[test]
fn seconds_that_came_together_are_compared_together() {
    let load = open(1_000, 1_000, 6, 100);
    let join = |run: &mut Run| {
        // The third snapshot holds the third and the fourth second.
        let fourth = run.snapshots.remove(3);
        let third = &mut run.snapshots[2];
        third.stats.add_interval(&fourth.stats);
        third.interval = Interval { from_ns: 2 * SECOND, to_ns: 4 * SECOND };
        for (number, snapshot) in run.snapshots.iter_mut().enumerate() {
            snapshot.key.seq = inrush_common::id::SnapshotSeq(number as u64 + 1);
        }
    };
    assert_eq!(rate_error(&load, &[1_000; 6], join), Some(0.0));
    let seconds = [1_000, 1_000, 1_000, 900, 1_000, 1_100];
    assert_eq!(rate_error(&load, &seconds, join), Some(0.05));
}

#[test]
fn of_a_run_that_was_cut_short_only_what_came_before_is_compared() {
    let load = open(1_000, 1_000, 60, 100);
    let cancel = |run: &mut Run| {
        run.facts.outcome = RunOutcome::Cancelled;
        let last = run.snapshots.last_mut().unwrap();
        last.completion = Some(Completion::Stopped);
        last.stats.phases[0].requests[0].not_started[NotStarted::Cancelled as usize] = 56_400;
    };
    let seconds = [1_000, 1_000, 1_000, 600, 0];
    assert_eq!(rate_error(&load, &seconds, cancel), Some(0.0));
    let report = loads::open_valid();
    let mut under_way = report.clone();
    // One agent's last three seconds are not there yet.
    under_way.facts.outcome = RunOutcome::Running;
    under_way.snapshots.truncate(9);
    let report = under_way.report();
    assert_eq!(report.phases[0].arrivals.as_ref().unwrap().rate_error, Some(0.0));
    assert_eq!(report.verdict.reasons, []);
}

#[test]
fn the_gaps_tell_even_arrivals_from_random_ones() {
    let uniform = loads::open_valid().report().phases[0].arrivals.clone().unwrap();
    assert_eq!((uniform.process.as_str(), uniform.ks), ("uniform", None));
    assert_eq!((uniform.gaps.count, uniform.planned, uniform.started), (12_000, 12_000, 12_000));
    let (mean, p99) = (uniform.gaps.mean.unwrap(), uniform.gaps.p99.unwrap());
    assert!((mean - 1.0).abs() < 0.001 && p99 < 1.02, "{mean} {p99}");

    let poisson = loads::poisson().report().phases[0].arrivals.clone().unwrap();
    assert_eq!(poisson.process, "poisson");
    assert_eq!((poisson.rate.from, poisson.rate.to, poisson.rate.peak), (100.0, 300.0, 300.0));
    let ks = poisson.ks.unwrap();
    assert!(ks.passed && ks.statistic < ks.critical && ks.samples == poisson.started, "{ks:?}");
    assert!((poisson.gaps.p50.unwrap() - std::f64::consts::LN_2).abs() < 0.05);

    // Even arrivals in the name of Poisson.
    let mut run = loads::open_valid();
    let Load::Open(load) = &mut run.facts.plan.workload.phases[0].load else { panic!("open") };
    load.arrivals = ArrivalProcess::Poisson;
    let found = run.report().phases[0].arrivals.as_ref().unwrap().ks.unwrap();
    assert!(!found.passed && found.statistic > 0.5, "{found:?}");
}
