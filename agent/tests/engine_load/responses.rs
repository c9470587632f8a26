//! Responses of every shape that are nevertheless whole.

use http::Method;
use inrush_testkit::{LONG, Received, Response, Script, Step, Target};

use crate::support::{Outcome, against, job, run, workload};

#[track_caller]
fn all_on_one_connection(target: &Target) {
    let outcome = against(target, workload(20, 1));
    outcome.assert_all_succeeded(20);
    assert_eq!(outcome.stats.connections.opened, 1);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((outcome.total.bytes_in, outcome.total.bytes_out), (seen.bytes_out, seen.bytes_in));
}

#[track_caller]
fn raw_on_one_connection(bytes: &[u8]) {
    let bytes = bytes.to_vec();
    all_on_one_connection(&Target::start(move |_: &Received| vec![Step::write(&bytes)]));
}

#[test]
fn a_chunked_response_is_read_to_its_end_with_extensions_and_trailers() {
    all_on_one_connection(&Target::always(Response::hello().chunked(4)));
    all_on_one_connection(&Target::always(
        Response::hello().body(vec![b'x'; 300_000]).chunked(999),
    ));
    raw_on_one_connection(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
    );
}

#[test]
fn responses_without_a_body_leave_the_connection_as_it_was() {
    for status in [204, 304] {
        let target = Target::status(status);
        let outcome = against(&target, workload(20, 1));
        outcome.assert_all_succeeded(20);
        assert_eq!(outcome.stats.connections.opened, 1);
    }
    let mut head = workload(20, 1);
    head.requests[0].method = Method::HEAD;
    let outcome = against(&Target::hello(), head);
    outcome.assert_all_succeeded(20);
    assert_eq!(outcome.stats.connections.opened, 1);
}

#[test]
fn interim_responses_are_passed_over() {
    raw_on_one_connection(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
}

#[test]
fn odd_headers_are_headers() {
    raw_on_one_connection(b"HTTP/1.1 200 OK\r\ncontent-LENGTH:2\r\nX-Fold: a\r\n b\r\n\r\nok");
    let mut many = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_vec();
    for number in 0..300 {
        many.extend_from_slice(format!("X-{number}: v\r\n").as_bytes());
    }
    many.extend_from_slice(b"\r\nok");
    raw_on_one_connection(&many);
    let long =
        [b"HTTP/1.1 200 OK\r\nX: ", [b'a'; 64 << 10].as_slice(), b"\r\nContent-Length: 0\r\n\r\n"];
    raw_on_one_connection(&long.concat());
}

#[test]
fn a_body_that_ends_with_the_connection_is_whole() {
    let target = Target::always(Response::hello().until_close());
    let outcome = run(job(workload(40, 4), target.addr(), 2));
    outcome.assert_all_succeeded(40);
    assert_eq!(outcome.stats.connections.opened, 40);
}

#[test]
fn a_large_body_is_read_and_forgotten() {
    let target = Target::always(Response::hello().body(vec![b'x'; 20 << 20]));
    let outcome = against(&target, workload(3, 1));
    outcome.assert_all_succeeded(3);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!(outcome.total.bytes_in, seen.bytes_out);
    assert!(
        outcome.total.succeeded_times.ttfb.max() < outcome.total.succeeded_times.service_time.max()
    );
}

#[test]
fn bytes_after_a_response_end_the_connection_and_are_no_answer_to_the_next_request() {
    let target = Target::start(|_: &Received| {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
        vec![Step::write(answer)]
    });
    let outcome = against(&target, workload(10, 1));
    outcome.assert_all_succeeded(10);
    assert_eq!(outcome.stats.connections.opened, 10);
}

/// Answers as soon as it has the head of a request.
struct Early {
    /// It never takes the body, so that the request cannot be written to its end.
    takes_no_body: bool,
}

impl Script for Early {
    fn on_head(&self, _request: &Received) -> Vec<Step> {
        let answer = Step::write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        if self.takes_no_body { vec![answer, Step::Freeze] } else { vec![answer] }
    }

    fn on_request(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }
}

#[track_caller]
fn posts_answered_early(takes_no_body: bool, body: usize) -> Outcome {
    let target = Target::start(Early { takes_no_body });
    let mut workload = workload(3, 1);
    workload.requests[0].method = Method::POST;
    workload.requests[0].body = vec![b'x'; body].into();
    workload.requests[0].expect.status = vec![413];
    let outcome = against(&target, workload);
    outcome.assert_all_succeeded(3);
    outcome
}

#[test]
fn an_early_response_to_a_large_body_counts_and_the_connection_is_not_used_again() {
    let outcome = posts_answered_early(true, 64 << 20);
    assert_eq!(outcome.stats.connections.opened, 3);
}

#[test]
fn an_early_response_counts_whether_or_not_the_body_was_written_by_then() {
    for body in [1 << 10, 1 << 20, 16 << 20] {
        let opened = posts_answered_early(false, body).stats.connections.opened;
        assert!((1..=3).contains(&opened), "{opened} connections for a body of {body} bytes");
    }
}
