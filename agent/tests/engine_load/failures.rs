//! What goes wrong, and the class it gets.

use std::{io::Write as _, net::TcpListener, thread, time::Duration};

use inrush_common::outcome::ErrorClass;
use inrush_testkit::{LONG, Received, Script, Step, Target};

use crate::support::{against, job, run, workload};

/// Runs two requests over one connection at a time and wants them all in one class.
#[track_caller]
fn assert_class(target: &Target, class: ErrorClass) {
    let mut workload = workload(2, 1);
    workload.timeout = Duration::from_millis(300);
    let outcome = against(target, workload);
    assert_eq!(outcome.errors(class), 2, "{:?}", outcome.total.examples);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert!(seen.requests <= 2, "nothing is sent twice");
    let example = &outcome.total.examples[&class].text;
    assert!(example.starts_with(&target.addr().to_string()), "{example}");
    assert!(example.ends_with(&format!("({class})")), "{example}");
}

#[track_caller]
fn raw(bytes: &'static [u8], class: ErrorClass) {
    assert_class(&Target::raw(bytes), class);
}

fn then(bytes: &'static [u8], last: Step) -> Target {
    Target::start(move |_: &Received| vec![Step::write(bytes), last.clone()])
}

#[test]
fn no_answer_is_a_response_timeout_and_half_an_answer_a_body_timeout() {
    assert_class(&Target::silent(), ErrorClass::ResponseTimeout);
    assert_class(&then(b"HTTP/1.1 200 OK\r\nContent-Le", Step::Hold), ErrorClass::ResponseTimeout);
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    assert_class(&then(half, Step::Hold), ErrorClass::BodyTimeout);
}

#[test]
fn a_timeout_is_kept_to_a_fraction_of_its_length() {
    let target = Target::silent();
    let mut workload = workload(3, 3);
    workload.timeout = Duration::from_millis(640);
    let outcome = against(&target, workload);
    assert_eq!(outcome.errors(ErrorClass::ResponseTimeout), 3);
    let times = &outcome.total.failed_times.service_time;
    assert!(times.min() >= Some(639_000_000), "{times:?}");
    // 10 ms for the sweep, the rest for a busy machine.
    assert!(times.max() < Some(900_000_000), "{times:?}");
}

#[test]
fn a_reset_is_told_apart_by_when_it_comes() {
    let reset = Target::start(|_: &Received| vec![Step::Reset]);
    assert_class(&reset, ErrorClass::Reset);
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    assert_class(&then(half, Step::Reset), ErrorClass::Reset);
    assert_class(&then(b"HTTP/1.1 200", Step::Reset), ErrorClass::Reset);
}

#[test]
fn a_close_is_told_apart_by_when_it_comes() {
    let close = Target::start(|_: &Received| vec![Step::Close]);
    assert_class(&close, ErrorClass::ClosedBeforeResponse);
    raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", ErrorClass::BodyTruncated);
    raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        ErrorClass::BodyTruncated,
    );
    raw(b"HTTP/1.1 200 OK\r\nContent", ErrorClass::HeaderParse);
}

#[test]
fn a_connection_closed_when_it_is_used_again_is_a_class_of_its_own() {
    for last in [Step::Close, Step::Reset] {
        // Answers once, reads a second request, and is gone.
        let target = Target::start(move |request: &Received| match request.index {
            0 => vec![Step::hello()],
            _ => vec![last.clone()],
        });
        let outcome = against(&target, workload(10, 1));
        assert_eq!(outcome.total.succeeded, 5, "{:?}", outcome.total.examples);
        assert_eq!(outcome.errors(ErrorClass::ClosedOnReuse), 5);
        assert_eq!(target.counts().requests, 10);
        assert_eq!(outcome.stats.connections.opened, 5);
    }
}

struct ClosesAtOnce;

impl Script for ClosesAtOnce {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }

    fn on_connect(&self, _connection: u64) -> Vec<Step> {
        vec![Step::Close]
    }
}

#[test]
fn a_target_that_closes_every_connection_at_once_ends_the_plan_and_not_the_patience() {
    let outcome = against(&Target::start(ClosesAtOnce), workload(50, 2));
    // It may close before, while or after the request is written.
    let classes = [ErrorClass::ClosedBeforeResponse, ErrorClass::Reset, ErrorClass::SendFailed];
    let failed: u64 = classes.into_iter().map(|class| outcome.errors(class)).sum();
    assert_eq!(failed, 50, "{:?}", outcome.total.examples);
}

#[test]
fn what_is_no_http_is_a_header_parse_error() {
    raw(b"SSH-2.0-OpenSSH_9.2p1\r\n", ErrorClass::HeaderParse);
    raw(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46, 0, 0, 0, 0, 0], ErrorClass::HeaderParse);
    raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ErrorClass::HeaderParse);
    raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        ErrorClass::HeaderParse,
    );
    raw(b"HTTP/1.1 2x0 OK\r\n\r\n", ErrorClass::HeaderParse);
}

#[test]
fn a_bad_chunk_is_a_decode_error() {
    raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
        ErrorClass::BodyDecode,
    );
}

#[test]
fn a_head_of_half_a_mebibyte_is_too_large() {
    let mut head = b"HTTP/1.1 200 OK\r\nX-Long: ".to_vec();
    head.resize(head.len() + (512 << 10), b'a');
    head.extend_from_slice(b"\r\nContent-Length: 0\r\n\r\n");
    let target = Target::start(move |_: &Received| vec![Step::write(&head), Step::Hold]);
    assert_class(&target, ErrorClass::HeaderTooLarge);
}

#[test]
fn a_status_that_the_plan_does_not_expect_is_a_failed_response_and_no_error() {
    let target = Target::status(503);
    let outcome = against(&target, workload(5, 1));
    assert_eq!((outcome.total.succeeded, outcome.total.failed), (0, 5));
    assert_eq!(outcome.total.statuses[&503].failed, 5);
    assert_eq!(outcome.total.errors.iter().sum::<u64>(), 0);
    let mut workload = workload(5, 1);
    workload.requests[0].expect.status = vec![503];
    let outcome = against(&target, workload);
    outcome.assert_all_succeeded(5);
}

#[test]
fn interim_responses_without_end_hold_up_neither_the_time_limit_nor_the_others() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let heads = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(400);
            thread::spawn(move || while stream.write_all(&heads).is_ok() {});
        }
    });
    let mut workload = workload(6, 3);
    workload.timeout = Duration::from_millis(300);
    let outcome = run(job(workload, address, 1));
    assert_eq!(outcome.total.errors[ErrorClass::ResponseTimeout as usize], 6);
    let slowest = outcome.total.failed_times.response_time.max().unwrap();
    assert!(slowest < 3_000_000_000, "the time limit of 300 ms was kept after {slowest} ns");
}
