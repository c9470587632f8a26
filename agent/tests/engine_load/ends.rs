//! How runs end: by count, by time, by a stop, by a target that is gone.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use inrush_agent::{
    clock,
    engine::{Engine, StopMode, connect_first},
};
use inrush_common::{
    outcome::{ErrorClass, NotStarted},
    stats::Completion,
};
use inrush_testkit::{Deaf, LONG, Received, Refusing, Step, Target};

use socket2::{Domain, Socket, Type};

use crate::support::{Running, against, job, lasting, run, started, with_load, workload};

#[test]
fn a_run_by_time_ends_in_time_and_reports_every_second() {
    let target = Target::hello();
    let outcome = run(job(lasting(Duration::from_millis(2300), 8), target.addr(), 2));
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!((outcome.in_flight(), outcome.total.failed), (0, 0));
    assert!(outcome.total.succeeded > 0);
    assert!(outcome.took >= Duration::from_millis(2300), "{:?}", outcome.took);
    assert!(outcome.took < Duration::from_millis(4000), "{:?}", outcome.took);
    assert_eq!(target.counts().requests, outcome.total.started);
    let ends: Vec<u64> = outcome.intervals.iter().map(|it| it.interval.to_ns).collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert_eq!(&ends[..2], [1_000_000_000, 2_000_000_000]);
    assert_eq!(outcome.intervals[0].open_connections, 8);
}

#[test]
fn a_run_by_time_alone_that_was_stopped_says_so() {
    for (reason, completion) in [
        (NotStarted::Cancelled, Completion::Stopped),
        (NotStarted::LeaseExpired, Completion::LeaseExpired),
    ] {
        let target = Target::gated();
        let running = started(job(lasting(LONG, 4), target.addr(), 2));
        target.wait_until(LONG, |counts| counts.in_flight == 4).unwrap();
        running.engine.stop(StopMode::Drain, reason);
        target.release_all();
        let outcome = running.finish();
        assert_eq!(outcome.completion(), &completion);
        assert_eq!(
            outcome.in_flight(),
            0,
            "it drained: nothing but the stop tells it from a finished one"
        );
    }
}

#[test]
fn a_run_by_time_alone_that_was_stopped_before_its_start_says_so() {
    let target = Target::hello();
    let engine = Engine::spawn(job(lasting(LONG, 4), target.addr(), 2)).unwrap();
    engine.stop(StopMode::Drain, NotStarted::Cancelled);
    let outcome = Running::of(engine, None, 4).finish();
    assert_eq!(outcome.completion(), &Completion::Stopped);
    assert_eq!(outcome.total.started, 0);
}

#[test]
fn a_run_by_time_alone_whose_target_dies_says_so() {
    let target = Target::start(|request: &Received| match request.number {
        0..=99 => vec![Step::hello()],
        _ => vec![Step::Refuse, Step::Close],
    });
    let mut workload = lasting(LONG, 4);
    workload.give_up_after = Duration::from_millis(500);
    let outcome = run(job(workload, target.addr(), 2));
    let completion = outcome.completion();
    assert!(matches!(completion, Completion::TargetUnreachable(_)), "{completion:?}");
    assert_eq!(outcome.total.succeeded, 100);
    assert!(outcome.took < Duration::from_secs(5), "{:?}", outcome.took);
}

#[test]
fn what_a_run_by_count_and_time_did_not_begin_is_put_down_to_the_time() {
    let target = Target::delay(Duration::from_millis(20));
    let short = with_load(workload(1_000_000, 2), |load| {
        load.duration = Some(Duration::from_millis(300));
    });
    let outcome = against(&target, short);
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert!(outcome.not_started(NotStarted::DurationEnded) > 999_000);
    assert_eq!(outcome.in_flight(), 0, "what was in flight had its grace");
    let enough = with_load(workload(10, 2), |load| load.duration = Some(LONG));
    against(&target, enough).assert_all_succeeded(10);
}

#[test]
fn what_outlasts_the_grace_stays_in_flight() {
    let target = Target::silent();
    let mut workload = lasting(Duration::from_millis(200), 3);
    workload.grace = Duration::from_millis(200);
    let outcome = against(&target, workload);
    assert_eq!((outcome.total.started, outcome.in_flight()), (3, 3));
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert!(outcome.took < Duration::from_secs(2), "{:?}", outcome.took);
}

#[test]
fn a_drain_waits_for_what_is_in_flight_and_begins_nothing_more() {
    let target = Target::gated();
    let running = started(job(workload(100, 4), target.addr(), 2));
    target.wait_until(LONG, |counts| counts.in_flight == 4).unwrap();
    running.engine.stop(StopMode::Drain, NotStarted::Cancelled);
    // Let go only what a worker that obeys has in flight: one more would show.
    target.release(4);
    let outcome = running.finish();
    assert_eq!(outcome.completion(), &Completion::Stopped);
    assert_eq!(outcome.in_flight() + outcome.total.succeeded, outcome.total.started);
    assert_eq!(outcome.not_started(NotStarted::Cancelled), 100 - outcome.total.started);
    assert!((4..=8).contains(&outcome.total.started), "{}", outcome.total.started);
}

#[test]
fn an_abort_drops_what_is_in_flight_also_after_a_drain() {
    for drain_first in [false, true] {
        let target = Target::silent();
        let running = started(job(workload(100, 4), target.addr(), 2));
        target.wait_until(LONG, |counts| counts.in_flight == 4).unwrap();
        if drain_first {
            running.engine.stop(StopMode::Drain, NotStarted::Cancelled);
        }
        running.engine.stop(StopMode::Abort, NotStarted::Aborted);
        let outcome = running.finish();
        assert_eq!((outcome.total.started, outcome.in_flight()), (4, 4));
        assert_eq!(outcome.completion(), &Completion::Stopped);
        let reason = if drain_first { NotStarted::Cancelled } else { NotStarted::Aborted };
        assert_eq!(outcome.not_started(reason), 96);
        assert!(outcome.took < Duration::from_secs(3), "{:?}", outcome.took);
        target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    }
}

#[test]
fn a_stop_before_the_start_leaves_everything_not_started() {
    let target = Target::hello();
    for mode in [StopMode::Drain, StopMode::Abort] {
        for start in [false, true] {
            let engine = Engine::spawn(job(workload(100, 4), target.addr(), 2)).unwrap();
            if start {
                engine.start(clock::now() + Duration::from_secs(3600));
            }
            engine.stop(mode, NotStarted::LeaseExpired);
            let outcome = Running::of(engine, Some(100), 4).finish();
            assert_eq!(outcome.not_started(NotStarted::LeaseExpired), 100);
            assert_eq!(outcome.completion(), &Completion::LeaseExpired);
        }
    }
    assert_eq!(target.counts().connections, 0);
}

#[test]
fn the_start_is_when_a_worker_really_began_and_not_when_it_was_to() {
    let target = Target::hello();
    let engine = Engine::spawn(job(workload(4, 4), target.addr(), 2)).unwrap();
    let began = engine.began();
    assert_eq!(*began.borrow(), None);
    let before = clock::now();
    engine.start(before.checked_sub(Duration::from_secs(1)).unwrap());
    Running::of(engine, Some(4), 4).finish().assert_all_succeeded(4);
    let at = began.borrow().expect("it has begun");
    assert!((before..=clock::now()).contains(&at));

    let stopped = Engine::spawn(job(workload(4, 4), target.addr(), 2)).unwrap();
    stopped.start(clock::now() + LONG);
    stopped.stop(StopMode::Drain, NotStarted::Cancelled);
    let began = stopped.began();
    Running::of(stopped, Some(4), 4).finish();
    assert_eq!(*began.borrow(), None, "it never began");
}

#[test]
fn dropping_the_engine_ends_its_threads_and_connections() {
    let target = Target::silent();
    let running = started(job(workload(100, 4), target.addr(), 2));
    target.wait_until(LONG, |counts| counts.in_flight == 4).unwrap();
    drop(running);
    target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    // Also one that was never started.
    drop(Engine::spawn(job(workload(1, 1), target.addr(), 1)).unwrap());
}

#[test]
fn a_target_that_dies_in_mid_run_ends_the_run_and_not_the_plan() {
    let target = Target::start(|request: &Received| match request.number {
        0..=99 => vec![Step::hello()],
        _ => vec![Step::Refuse, Step::Close],
    });
    let mut workload = workload(1_000_000, 4);
    workload.give_up_after = Duration::from_millis(500);
    let outcome = run(job(workload, target.addr(), 2));
    let Completion::TargetUnreachable(text) = outcome.completion() else {
        panic!("{:?}", outcome.completion())
    };
    assert!(text.contains("connection refused (connect_refused)"), "{text}");
    assert_eq!(outcome.total.succeeded, 100);
    assert!(outcome.not_started(NotStarted::TargetUnreachable) > 999_000);
    assert!(outcome.errors(ErrorClass::ConnectRefused) > 0);
    // Sent once, seen once: what was read and closed upon, and nothing a second time.
    let closed = [ErrorClass::ClosedOnReuse, ErrorClass::ClosedBeforeResponse];
    let closed: u64 = closed.into_iter().map(|class| outcome.errors(class)).sum();
    assert_eq!(target.counts().requests, 100 + closed);
    assert_eq!(outcome.sent(), 100 + closed + outcome.errors(ErrorClass::Reset));
    assert!(outcome.took < Duration::from_secs(5), "{:?}", outcome.took);
}

#[test]
fn a_target_that_comes_up_within_the_time_is_not_given_up() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let mut running = started(job(workload(2_000, 2), addr, 1));
    let first = running.next();
    assert!(first.stats.connections.failed > 0);
    assert_eq!(first.open_connections, 0);
    socket.listen(128).unwrap();
    let served = thread::spawn(move || serve(&TcpListener::from(socket)));
    let outcome = running.finish();
    assert_eq!(outcome.completion(), &Completion::Finished);
    assert_eq!(outcome.sent(), outcome.total.succeeded, "{:?}", outcome.total.examples);
    drop(TcpStream::connect(addr).unwrap());
    assert_eq!(served.join().unwrap(), outcome.sent());
}

/// Answers one request per connection, until a connection brings none; the number of answers.
fn serve(listener: &TcpListener) -> u64 {
    for answered in 0.. {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut piece = [0; 1024];
            match stream.read(&mut piece).unwrap() {
                0 => return answered,
                length => head.extend_from_slice(&piece[..length]),
            }
        }
        stream.write_all(b"HTTP/1.0 204 No Content\r\n\r\n").unwrap();
    }
    unreachable!()
}

#[test]
fn before_the_start_it_is_told_which_address_refuses() {
    let nobody = Refusing::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error =
        runtime.block_on(connect_first(&workload(1, 1), &[nobody.addr()], &[])).unwrap_err();
    assert_eq!(error.class, ErrorClass::ConnectRefused);
    let text = format!("{}: connection refused (connect_refused)", nobody.addr());
    assert_eq!(error.to_string(), text);
    let target = Target::hello();
    let second = [nobody.addr(), target.addr()];
    let first = runtime.block_on(connect_first(&workload(1, 1), &second, &[])).unwrap();
    assert_eq!(first.address(), target.addr());
}

#[test]
fn a_target_that_answers_no_connection_attempt_is_given_up_too() {
    let deaf = Deaf::start();
    let mut workload = workload(10, 2);
    workload.connect_timeout = Duration::from_millis(100);
    workload.give_up_after = Duration::from_millis(500);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(connect_first(&workload, &[deaf.addr()], &[])).unwrap_err();
    assert_eq!(error.class, ErrorClass::ConnectTimeout);
    assert_eq!(
        error.to_string(),
        format!("{}: no answer within 100ms (connect_timeout)", deaf.addr())
    );
    let outcome = run(job(workload, deaf.addr(), 1));
    assert!(matches!(outcome.completion(), Completion::TargetUnreachable(_)));
    assert!(outcome.errors(ErrorClass::ConnectTimeout) >= 2);
    assert_eq!(outcome.total.succeeded, 0);
}
