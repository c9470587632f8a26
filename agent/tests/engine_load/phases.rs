//! Several phases: each begins at its own instant, has its own accounts, and leaves its connections to the next.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use inrush_agent::{
    clock,
    engine::{Engine, StopMode},
};
use inrush_common::{
    outcome::NotStarted,
    plan::{Load, Workload},
    stats::Completion,
};
use inrush_testkit::{LONG, Received, Script, Step, Target};

use crate::support::{
    Running, against, closed_load, job, nanos, open_load, phase, phased, run, started,
};

const HALF: Duration = Duration::from_millis(500);

fn closed(connections: u64, requests: Option<u64>, duration: Option<Duration>) -> Load {
    Load::Closed(closed_load(connections, requests, duration))
}

/// Never answers the first requests. Keeps when requests came.
#[derive(Clone, Default)]
struct SilentAtFirst {
    silent: u64,
    came: Arc<Mutex<Vec<Instant>>>,
}

impl Script for SilentAtFirst {
    fn on_request(&self, request: &Received) -> Vec<Step> {
        self.came.lock().unwrap().push(clock::now());
        if request.number < self.silent { vec![Step::Hold] } else { vec![Step::hello()] }
    }
}

#[test]
fn a_warm_up_that_gets_no_answer_does_not_hold_up_the_phase_after_it() {
    let script = SilentAtFirst { silent: 3, ..SilentAtFirst::default() };
    let target = Target::start(script.clone());
    let mut workload = phased(vec![
        phase("warm-up", Duration::ZERO, closed(3, None, Some(HALF))),
        phase("main", HALF, closed(2, Some(100), None)),
    ]);
    workload.phases[0].measure = false;
    workload.grace = Duration::from_millis(200);
    let job = job(workload, target.addr(), 1);
    let engine = Engine::spawn(job).unwrap();
    let start = clock::now();
    engine.start(start);
    let outcome = Running::of(engine, None, 5).finish();
    assert_eq!(outcome.completion(), &Completion::Finished);
    let (warm_up, main) = (outcome.phase(0), outcome.phase(1));
    assert_eq!((warm_up.started, warm_up.completed()), (3, 0));
    assert_eq!((main.started, main.succeeded, main.failed), (100, 100, 0));
    assert_eq!(outcome.in_flight(), 3, "what the warm-up left is in flight for ever");
    let fourth = script.came.lock().unwrap()[3] - start;
    assert!(fourth >= HALF && fourth < HALF + Duration::from_millis(150), "{fourth:?}");
    let until = outcome.stats.phases[0].until_ns;
    assert_eq!(until, nanos(HALF + Duration::from_millis(200)), "it was given up then");
}

#[test]
fn the_next_phase_finds_the_connections_of_the_last_one_warm() {
    let target = Target::hello();
    let outcome = against(
        &target,
        phased(vec![
            phase("warm-up", Duration::ZERO, closed(4, None, Some(HALF))),
            phase("main", HALF, Load::Open(open_load(100, HALF, 4))),
            phase("after", 2 * HALF, closed(4, Some(40), None)),
        ]),
    );
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!(outcome.phase(1).succeeded, 50);
    assert_eq!(outcome.phase(2).succeeded, 40);
    assert_eq!(outcome.total.failed, 0);
    // One that was busy at the change may have been replaced.
    let opened = outcome.stats.connections.opened;
    assert!((4..=8).contains(&opened), "{opened}");
    assert_eq!(outcome.stats.phases[0].gaps.count(), 0);
    assert!(outcome.stats.phases[1].gaps.count() > 40);
    let ends: Vec<u64> = outcome.stats.phases.iter().map(|phase| phase.until_ns).collect();
    assert!(ends[0] >= nanos(HALF) && ends[1] >= nanos(2 * HALF) && ends[2] > ends[1], "{ends:?}");
}

#[test]
fn connections_that_no_later_phase_needs_are_closed() {
    let target = Target::gated();
    let workload = phased(vec![
        phase("many", Duration::ZERO, closed(20, Some(20), None)),
        phase("few", HALF, closed(2, Some(2), None)),
    ]);
    let running = started(job(workload, target.addr(), 1));
    target.wait_until(LONG, |counts| counts.in_flight == 20).unwrap();
    target.release(20);
    target.wait_until(LONG, |counts| counts.requests == 20 && counts.open == 2).unwrap();
    target.release_all();
    let outcome = running.finish();
    outcome.assert_all_succeeded(22);
    assert_eq!(outcome.stats.connections.opened, 20);
}

#[test]
fn phases_that_are_on_together_each_have_their_own_share_of_everything() {
    let target = Target::hello();
    let workload = phased(vec![
        phase("steady", Duration::ZERO, Load::Open(open_load(200, 2 * HALF, 10))),
        phase("burst", HALF / 2, Load::Open(open_load(400, HALF, 10))),
        phase("lanes", HALF, closed(3, Some(300), None)),
    ]);
    for workers in [1, 2] {
        let outcome = run(job(workload.clone(), target.addr(), workers));
        outcome.assert_all_succeeded(200 + 200 + 300);
        let started: Vec<u64> = (0..3).map(|index| outcome.phase(index).started).collect();
        assert_eq!(started, [200, 200, 300]);
    }
}

#[test]
fn a_request_that_ends_in_the_next_phase_belongs_to_the_one_that_began_it() {
    let target = Target::delay(HALF);
    let outcome = against(
        &target,
        phased(vec![
            phase("first", Duration::ZERO, closed(2, None, Some(HALF / 2))),
            phase("second", HALF / 2, closed(3, Some(3), None)),
        ]),
    );
    assert_eq!(outcome.completion(), &Completion::Finished);
    let (first, second) = (outcome.phase(0), outcome.phase(1));
    assert_eq!((first.started, first.succeeded), (2, 2));
    assert_eq!((second.started, second.succeeded), (3, 3));
    assert!(outcome.stats.phases[0].until_ns >= nanos(HALF));
    // The first phase's requests did not take the second one's connections.
    assert_eq!(target.counts().peak_in_flight, 5);
}

fn three_phases() -> Workload {
    phased(vec![
        phase("first", Duration::ZERO, closed(2, Some(2), Some(HALF))),
        phase("second", HALF, Load::Open(open_load(100, LONG, 4))),
        phase("third", HALF + LONG, closed(4, Some(1_000), None)),
    ])
}

#[test]
fn a_stop_accounts_for_the_phases_that_have_not_begun() {
    for (mode, grace) in [(StopMode::Drain, LONG), (StopMode::Abort, LONG)] {
        let target = Target::gated();
        let mut workload = three_phases();
        workload.grace = grace;
        let running = started(job(workload, target.addr(), 2));
        target.release(2);
        target.wait_until(LONG, |counts| counts.requests > 4).unwrap();
        running.engine.stop(mode, NotStarted::Cancelled);
        if mode == StopMode::Drain {
            target.release_all();
        }
        let outcome = running.finish();
        assert_eq!(outcome.completion(), &Completion::Stopped);
        assert_eq!(outcome.phase(0).succeeded, 2);
        let cancelled =
            |phase: usize| outcome.phase(phase).not_started[NotStarted::Cancelled as usize];
        assert_eq!(cancelled(1) + outcome.phase(1).started, 2_000);
        assert_eq!(cancelled(2), 1_000);
        assert_eq!(outcome.stats.phases[2].until_ns, 0, "it never was");
        assert_eq!(outcome.in_flight() > 0, mode == StopMode::Abort);
    }
}

#[test]
fn a_stop_before_the_start_accounts_for_every_phase() {
    let target = Target::hello();
    let job = job(three_phases(), target.addr(), 2);
    let planned = job.workload.planned_requests();
    let engine = Engine::spawn(job).unwrap();
    engine.stop(StopMode::Drain, NotStarted::LeaseExpired);
    let outcome = Running::of(engine, planned, 10).finish();
    let reason = NotStarted::LeaseExpired as usize;
    let left: Vec<u64> = (0..3).map(|phase| outcome.phase(phase).not_started[reason]).collect();
    assert_eq!(left, [2, 2_000, 1_000]);
    assert_eq!(target.counts().connections, 0);
}

#[test]
fn a_target_that_is_gone_before_the_last_phase_ends_the_run() {
    let target = Target::start(|request: &Received| match request.number {
        0..=9 => vec![Step::hello()],
        _ => vec![Step::Refuse, Step::Close],
    });
    let mut workload = phased(vec![
        phase("first", Duration::ZERO, closed(1, Some(11), None)),
        phase("second", HALF, closed(2, Some(1_000), None)),
    ]);
    workload.give_up_after = Duration::from_millis(300);
    let outcome = against(&target, workload);
    assert!(matches!(outcome.completion(), Completion::TargetUnreachable(_)));
    assert_eq!(outcome.phase(0).started, 11);
    let gone = outcome.phase(1).not_started[NotStarted::TargetUnreachable as usize];
    assert!(gone > 900 && gone < 1_000, "{gone}");
}

#[test]
fn many_short_phases_each_start_their_own_requests() {
    let target = Target::hello();
    let short = Duration::from_millis(20);
    let phases: Vec<_> = (0..40)
        .map(|place| {
            let load = match place % 2 {
                0 => Load::Open(open_load(150, short, 5)),
                _ => closed(2, Some(4), Some(short)),
            };
            phase(&format!("phase-{place}"), short * place, load)
        })
        .collect();
    let outcome = run(job(phased(phases), target.addr(), 2));
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!(outcome.total.failed, 0);
    for place in 0..40 {
        let total = outcome.phase(place);
        let planned = if place % 2 == 0 { 3 } else { 4 };
        assert_eq!(total.started + total.not_started_total(), planned, "{place}");
    }
    // On a busy machine a lane may be late for its 20 ms; the open phases' requests are started late, not left out.
    assert_eq!((0..40).step_by(2).map(|place| outcome.phase(place).started).sum::<u64>(), 60);
}
