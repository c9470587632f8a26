//! Responses that a borrowed codec cannot take as most of them are: each is read all the same, from its first byte.

use std::time::Duration;

use inrush_common::outcome::ErrorClass;
use inrush_testkit::{LONG, Received, Response, Step, Target};

use crate::support::{against, with_header, workload};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// More than hyper takes without being told to.
fn many_headers() -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_vec();
    for number in 0..300 {
        head.extend_from_slice(format!("X-{number}: v\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\nok");
    head
}

/// All succeed, over one connection each, and what was sent and received is what the target says.
#[track_caller]
fn exact(target: &Target, connections: u64) {
    let outcome = against(target, workload(60, connections));
    outcome.assert_all_succeeded(60);
    assert_eq!(outcome.stats.connections.opened, connections);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((outcome.total.bytes_in, outcome.total.bytes_out), (seen.bytes_out, seen.bytes_in));
}

#[test]
fn odd_heads_among_plain_ones_are_read_and_neither_repeated_nor_lost() {
    let many = many_headers();
    let folded = b"HTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let interim = [b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", many.as_slice()].concat();
    for odd in [many, folded, interim] {
        let target = Target::start(move |request: &Received| {
            vec![Step::write(if request.number % 7 == 3 { odd.as_slice() } else { HELLO })]
        });
        exact(&target, 3);
    }
}

#[test]
fn a_response_that_comes_byte_by_byte_is_one_response() {
    let target = Target::start(|_: &Received| vec![Step::drip(HELLO, Duration::from_micros(200))]);
    exact(&target, 4);
}

#[test]
fn an_interim_response_and_its_answer_may_come_apart() {
    let target = Target::start(|_: &Received| {
        let pause = Step::Delay(Duration::from_millis(5));
        vec![Step::write(b"HTTP/1.1 102 Processing\r\n\r\n"), pause, Step::write(HELLO)]
    });
    exact(&target, 4);
}

#[test]
fn a_length_that_is_none_fails_at_once_although_its_head_was_taken() {
    for length in ["5, 6", "-1", "99999999999999999999", "18446744073709551615"] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello");
        let target = Target::start(move |_: &Received| vec![Step::write(&answer), Step::Hold]);
        let outcome = against(&target, workload(5, 1));
        let classes = [ErrorClass::HeaderParse, ErrorClass::HeaderTooLarge];
        let failed: u64 = classes.into_iter().map(|class| outcome.errors(class)).sum();
        assert_eq!(
            (failed, outcome.total.succeeded),
            (5, 0),
            "{length}: {:?}",
            outcome.total.examples
        );
        assert!(outcome.took < Duration::from_secs(5), "{length}: {:?}", outcome.took);
    }
}

#[test]
fn a_response_larger_than_any_buffer_leaves_nothing_behind_for_the_next() {
    let target = Target::start(|request: &Received| {
        let body = if request.number.is_multiple_of(2) { 300_000 } else { 5 };
        vec![Step::Respond(Response::new(200).body(vec![b'x'; body]))]
    });
    exact(&target, 3);
}

#[test]
fn a_plan_that_says_keep_alive_keeps_its_connections() {
    let target = Target::hello();
    let outcome = against(&target, with_header(workload(40, 2), "connection", "Keep-Alive"));
    outcome.assert_all_succeeded(40);
    assert_eq!(outcome.stats.connections.opened, 2);
}
