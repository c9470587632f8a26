//! The verdict over phases and open loads: overload, missed rates, warm-ups, and the generator's own lateness.

use std::time::Duration;

use inrush_common::{
    outcome::NotStarted,
    plan::{ArrivalProcess, Load, OpenLoad, Overflow, Phase},
    report::{Loss, ReasonCode, Report, RunOutcome, VerdictStatus},
    schedule::Random,
    stats::Completion,
};

use crate::{
    fixtures::{self, Run, SECOND, closed, phase, request, run_of},
    loads::{self, Agent, Work, open},
};

use ReasonCode as Code;

fn codes(report: &Report) -> Vec<ReasonCode> {
    report.verdict.reasons.iter().map(|reason| reason.code).collect()
}

fn text(report: &Report) -> &str {
    &report.verdict.reasons[0].text
}

#[test]
fn the_fixed_loads_have_the_verdicts_that_they_should() {
    for (name, run, expected) in loads::all() {
        let report = run.report();
        assert_eq!(codes(&report), expected, "{name}: {:?}", report.verdict);
        let degraded = report
            .verdict
            .reasons
            .iter()
            .all(|reason| reason.status == VerdictStatus::Degraded && reason.agent.is_none());
        assert!(degraded, "{name}");
    }
}

#[test]
fn an_overload_is_told_with_its_numbers_and_the_remedy() {
    assert_eq!(
        text(&loads::overload_drop().report()),
        "2,480 of 5,000 planned requests (49.60 %) were dropped, with max_in_flight = 20: the target is slower than the \
         rate, or max_in_flight too low for it; lower the rate, or raise max_in_flight"
    );
    assert_eq!(
        text(&loads::overload_queue().report()),
        "requests waited for others to end: p99(schedule_lag) is 2.50 s of a p99(response_time) of 2.55 s; 980 of 4,000 \
         planned requests (24.50 %) still waited at its end, with max_in_flight = 20: the target is slower than the rate, \
         or max_in_flight too low for it; lower the rate, or raise max_in_flight"
    );
}

/// One agent, one phase, the same in each of so many seconds.
fn steady(load: &OpenLoad, seconds: u64, work: Work, change: impl FnOnce(&mut Run)) -> Report {
    let phases = vec![phase(Phase::ONLY, true, 0, Load::Open(load.clone()))];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    for _ in 0..seconds {
        agent.interval(&mut run, SECOND, &[work]);
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    change(&mut run);
    run.report()
}

#[test]
fn a_single_dropped_request_is_told() {
    let load = OpenLoad { on_overflow: Overflow::Drop, ..open(1_000, 1_000, 4, 500) };
    let report = steady(&load, 4, Work::well(0, 1_000), |run| {
        let stats = &mut run.snapshots[3].stats.phases[0].requests[0];
        stats.started -= 1;
        stats.succeeded -= 1;
        stats.not_started[NotStarted::Dropped as usize] = 1;
    });
    assert!(codes(&report).contains(&Code::Overload), "{:?}", report.verdict);
}

#[test]
fn requests_that_waited_for_a_connection_to_be_made_did_not_wait_for_others() {
    // A new connection each, 30 ms away: all of it is in the lag.
    let connecting = Work { lag_ns: 30_000_000, service_ns: 30_000_000, ..Work::well(0, 1_000) };
    let full = |most: u64| {
        move |run: &mut Run| {
            run.snapshots.iter_mut().for_each(|snapshot| snapshot.stats.connections.peak = most);
        }
    };
    let load = open(1_000, 1_000, 4, 500);
    assert_eq!(codes(&steady(&load, 4, connecting, full(60))), []);
    assert_eq!(codes(&steady(&load, 4, connecting, full(499))), []);
    assert_eq!(codes(&steady(&load, 4, connecting, full(500))), [Code::Overload]);
    // A lag that is small, or a small part, is no wait to speak of.
    let small = Work { lag_ns: 9_900_000, service_ns: 4_000_000, ..connecting };
    assert_eq!(codes(&steady(&load, 4, small, full(500))), []);
    let part = Work { lag_ns: 20_000_000, service_ns: 300_000_000, ..connecting };
    assert_eq!(codes(&steady(&load, 4, part, full(500))), []);
}

#[test]
fn a_late_generator_is_not_called_an_overload() {
    let load = open(1_000, 1_000, 4, 500);
    let late = Work { lag_ns: 30_000_000, service_ns: 5_000_000, ..Work::well(0, 1_000) };
    let report = steady(&load, 4, late, |run| {
        for snapshot in &mut run.snapshots {
            snapshot.stats.connections.peak = 500;
            snapshot.stats.worker_lag.clear();
            (0..100).for_each(|_| snapshot.stats.worker_lag.record(20_000_000));
        }
    });
    assert_eq!(codes(&report), [Code::WorkerLag]);
}

/// What the verdict says when so many requests begin second by second at 1,000/s.
fn begun(arrivals: ArrivalProcess, seconds: &[u64], change: impl FnOnce(&mut Run)) -> Report {
    let load = OpenLoad { arrivals, ..open(1_000, 1_000, seconds.len() as u64, 500) };
    let phases = vec![phase(Phase::ONLY, true, 0, Load::Open(load))];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let planned = seconds.len() as u64 * 1_000;
    let mut agent = Agent::new(0);
    let mut left = planned;
    for count in seconds {
        let count = (*count).min(left);
        left -= count;
        agent.interval(&mut run, SECOND, &[Work::well(0, count)]);
    }
    let rest = Work::well(0, left);
    agent.interval(&mut run, SECOND, &[rest]).completion = Some(Completion::Finished);
    change(&mut run);
    run.report()
}

#[test]
fn a_rate_that_is_missed_second_after_second_is_told() {
    use ArrivalProcess::{Poisson, Uniform};
    let missed = |arrivals, seconds: &[u64]| codes(&begun(arrivals, seconds, |_| ()));
    assert_eq!(missed(Uniform, &[1_000; 10]), []);
    // 1 % is allowed, and one second in which the machine stood still.
    assert_eq!(missed(Uniform, &[990; 10]), []);
    let mut hiccup = [1_000; 10];
    (hiccup[4], hiccup[5]) = (900, 1_100);
    assert_eq!(missed(Uniform, &hiccup), []);
    assert_eq!(missed(Uniform, &[989; 10]), [Code::RateMissed]);
    (hiccup[7], hiccup[8]) = (900, 1_100);
    assert_eq!(missed(Uniform, &hiccup), [Code::RateMissed]);
    // By chance 1,000 become 850 less than once in a million seconds.
    assert_eq!(missed(Poisson, &[850; 10]), []);
    assert_eq!(missed(Poisson, &[830; 10]), [Code::RateMissed]);
    let report = begun(Uniform, &[980, 980, 980, 970, 980, 980], |_| ());
    assert_eq!(
        text(&report),
        "the agents started fewer requests than planned in 4 of 4 seconds, in the worst 970 of 1,000: they could not keep \
         up with the rate; give them more CPU, or add agents"
    );
}

#[test]
fn chance_makes_no_poisson_process_miss_its_rate() {
    let mut random = Random::stream(3, &[]);
    for _ in 0..5 {
        // Arrivals at 10/s, by their gaps.
        let mut seconds = [0_u64; 200];
        let mut at = 0.0;
        loop {
            at += random.exponential() / 10.0;
            let Some(count) = seconds.get_mut(at as usize) else { break };
            *count += 1;
        }
        let load = OpenLoad { arrivals: ArrivalProcess::Poisson, ..open(10, 10, 200, 500) };
        let phases = vec![phase(Phase::ONLY, true, 0, Load::Open(load))];
        let mut run = run_of(&["lab1"], vec![request("hello")], phases);
        run.facts.agents[0].planned = vec![Some(seconds.iter().sum())];
        let mut agent = Agent::new(0);
        for count in seconds {
            agent.interval(&mut run, SECOND, &[Work { service_ns: 1_000, ..Work::well(0, count) }]);
        }
        assert!(!codes(&run.report()).contains(&Code::RateMissed));
    }
}

#[test]
fn a_lost_agent_explains_a_missed_rate() {
    let report = begun(ArrivalProcess::Uniform, &[500; 10], |run| {
        run.snapshots.truncate(9);
        run.facts.agents[0].lost =
            Some(Loss { at_ns: 9 * SECOND, evidence: "its process ended".to_owned() });
    });
    assert_eq!(codes(&report), [Code::AgentLost]);
}

/// A warm-up of 2 s in which this happens each second, then a healthy phase.
fn after_warm_up(work: Work) -> Report {
    let phases = vec![
        phase("warm-up", false, 0, closed(10, None, Some(Duration::from_secs(2)))),
        phase("peak", true, 2, Load::Open(open(1_000, 1_000, 4, 500))),
    ];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    for second in 0..6 {
        let work = if second < 2 { work } else { Work::well(1, 1_000) };
        agent.interval(&mut run, SECOND, &[work]);
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    run.report()
}

#[test]
fn a_warm_up_that_failed_is_named_and_its_numbers_stay_apart() {
    let failed =
        |completed, failed| after_warm_up(Work { completed, failed, ..Work::well(0, completed) });
    assert_eq!(codes(&failed(100, 0)), []);
    assert_eq!(codes(&failed(100, 50)), []);
    let half = failed(100, 51);
    assert_eq!(codes(&half), [Code::WarmUp]);
    assert_eq!(
        text(&half),
        "phase \"warm-up\": 102 of its 200 requests failed; it is not measured"
    );
    let all = failed(100, 100);
    assert_eq!(
        text(&all),
        "phase \"warm-up\": none of its 200 requests succeeded, so it warmed nothing up; it is not measured"
    );
    assert_eq!((all.ledger.completed, all.ledger.failed, all.duration_s), (4_000, 0, 4.0));
    assert_eq!(all.total_ledger.failed, 200);
    let silent = failed(0, 0);
    assert_eq!(codes(&silent), [Code::WarmUp]);
}

#[test]
fn a_warm_up_still_to_answer_is_not_yet_a_failed_one() {
    let mut run = loads::warm_up();
    run.facts.outcome = RunOutcome::Running;
    run.snapshots.retain(|snapshot| snapshot.key.seq.0 == 1);
    for snapshot in &mut run.snapshots {
        for request in &mut snapshot.stats.phases[0].requests {
            let started = request.started;
            *request = inrush_common::stats::RequestStats { started, ..Default::default() };
        }
        snapshot.gauges.in_flight = 300;
    }
    assert_eq!(codes(&run.report()), []);
}

#[test]
fn an_overloaded_warm_up_is_named() {
    let load = OpenLoad { on_overflow: Overflow::Drop, ..open(1_000, 1_000, 2, 500) };
    let phases = vec![
        phase("warm-up", false, 0, Load::Open(load)),
        phase("peak", true, 2, closed(10, Some(2_000), None)),
    ];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    let dropping = Work { not_started: Some((NotStarted::Dropped, 900)), ..Work::well(0, 100) };
    agent.interval(&mut run, SECOND, &[dropping]);
    agent.interval(&mut run, SECOND, &[dropping]);
    agent.interval(&mut run, SECOND, &[Work::well(1, 2_000)]).completion =
        Some(Completion::Finished);
    let report = run.report();
    assert_eq!(codes(&report), [Code::Overload]);
    assert!(text(&report).starts_with("phase \"warm-up\": 1,800 of 2,000 planned requests"));
    assert_eq!(report.ledger.not_started, Some(0));
    let reasons = &report.total_ledger.not_started_by_reason;
    assert_eq!(reasons.get("dropped"), Some(&1_800));
}

/// What the verdict says of 1,000 requests a second with such a schedule lag and service time, where of 1,000 ticks of the
/// workers so many are late by so much.
fn with_late_ticks(
    load: Load,
    late: u64,
    lag_ns: u64,
    schedule_lag_ns: u64,
    service_ns: u64,
) -> Vec<ReasonCode> {
    let phases = vec![phase(Phase::ONLY, true, 0, load)];
    let mut run = run_of(&["lab1"], vec![request("hello")], phases);
    let mut agent = Agent::new(0);
    for _ in 0..4 {
        let work = Work { service_ns, lag_ns: schedule_lag_ns, ..Work::well(0, 1_000) };
        let snapshot = agent.interval(&mut run, SECOND, &[work]);
        snapshot.stats.worker_lag.clear();
        (0..late).for_each(|_| snapshot.stats.worker_lag.record(lag_ns));
        (late..1_000).for_each(|_| snapshot.stats.worker_lag.record(30_000));
    }
    run.snapshots.last_mut().unwrap().completion = Some(Completion::Finished);
    codes(&run.report())
}

#[test]
fn in_the_open_model_lateness_that_makes_a_quarter_of_the_slowest_times_is_told() {
    let with = |late, lag_ns, schedule_lag_ns, service_ns| {
        let load = Load::Open(open(1_000, 1_000, 4, 500));
        with_late_ticks(load, late, lag_ns, schedule_lag_ns, service_ns)
    };
    // p99(response_time) is the schedule lag and a little below one and a half of the service time.
    assert_eq!(with(11, 1_200_000, 1_300_000, 2_000_000), [Code::WorkerLag]);
    assert_eq!(with(9, 1_200_000, 1_300_000, 2_000_000), []);
    assert_eq!(with(11, 1_200_000, 1_300_000, 4_000_000), []);
    // The workers were late when these requests were not: in a phase that is not measured, or between two of them.
    assert_eq!(with(11, 1_200_000, 900_000, 500_000), []);
    // Below a millisecond it says nothing, whatever the target.
    assert_eq!(with(11, 990_000, 1_300_000, 500_000), []);
}

#[test]
fn in_the_closed_model_lateness_is_told_when_it_is_the_rule() {
    let with = |late, lag_ns, service_ns| {
        let load = closed(10, Some(4_000), None);
        with_late_ticks(load, late, lag_ns, 5_000, service_ns)
    };
    // A machine that is shared with the target: one tick in ten waits for its turn, as few requests do.
    assert_eq!(with(100, 4_000_000, 1_000_000), []);
    assert_eq!(with(510, 1_200_000, 3_000_000), [Code::WorkerLag]);
    assert_eq!(with(510, 1_200_000, 5_000_000), []);
    assert_eq!(with(510, 990_000, 1_000_000), []);
}

#[test]
fn a_run_that_a_threshold_stopped_is_incomplete_and_names_it() {
    let mut run = fixtures::cancelled();
    run.facts.outcome = RunOutcome::StoppedByThreshold;
    run.facts.detail = Some("p99(response_time) < 10ms was broken for 10 s".to_owned());
    let report = run.report();
    assert_eq!(codes(&report), [Code::Incomplete]);
    assert_eq!(report.verdict.status, VerdictStatus::Degraded);
    assert_eq!(
        text(&report),
        "the run was stopped by a threshold: p99(response_time) < 10ms was broken for 10 s"
    );
    let mut early = fixtures::empty();
    early.facts.outcome = RunOutcome::StoppedByThreshold;
    let reasons = early.report().ledger.not_started_by_reason;
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("threshold_broken".to_owned(), 20_000)]);
}

#[test]
fn requests_that_end_in_no_time_fail_the_ledger() {
    let mut run = loads::open_valid();
    run.snapshots.iter_mut().for_each(|snapshot| snapshot.stats.phases[0].until_ns = 0);
    let report = run.report();
    assert_eq!(codes(&report), [Code::LedgerFailed]);
    assert_eq!(text(&report), "phase \"main\" completed 12,000 requests in no time");
}
