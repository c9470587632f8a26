//! Connections that end or break: before, during and after a response.

use http::Method;
use inrush_common::outcome::ErrorClass::{
    ClosedBeforeResponse, ClosedOnReuse, HeaderParse, Reset, SendFailed,
};
use inrush_testkit::{LONG, Received, Script, Step, Target};

use crate::row::{Row, behaviours, does, says_and_closes, says_and_holds, says_and_resets, server};
use crate::support::{against, workload};

/// Says hello to the first request of each connection; to the second it does this.
fn on_reuse(last: Step) -> Row {
    server(move |request: &Received| match request.index {
        0 => vec![Step::hello()],
        _ => vec![last.clone()],
    })
    .times(6)
}

/// Does this as soon as it has a connection.
struct AtOnce(Step);

impl Script for AtOnce {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }

    fn on_connect(&self, _connection: u64) -> Vec<Step> {
        vec![self.0.clone()]
    }
}

/// Does this when it has a request's head, and not the body.
pub(crate) struct OnHead(pub(crate) Vec<Step>);

impl Script for OnHead {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }

    fn on_head(&self, _request: &Received) -> Vec<Step> {
        self.0.clone()
    }
}

/// Says 100 when it has a request's head, and hello when it has its body.
struct Continues;

impl Script for Continues {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        vec![Step::hello()]
    }

    fn on_head(&self, _request: &Received) -> Vec<Step> {
        vec![Step::write("HTTP/1.1 100 Continue\r\n\r\n")]
    }
}

/// More than fits into the buffers of a connection.
pub(crate) const LARGE: usize = 32 << 20;

behaviours! {
    a_close_without_an_answer "close instead of a response":
        does([Step::Close]).fails(ClosedBeforeResponse);
    a_reset_without_an_answer "reset instead of a response": does([Step::Reset]).fails(Reset);
    a_close_at_once "half-close as soon as connected":
        server(AtOnce(Step::HalfClose)).times(20).fails(ClosedBeforeResponse).unread();
    a_reset_at_once "reset as soon as connected":
        server(AtOnce(Step::Reset)).times(20).fails(Reset).unread();
    a_greeting "speaks before it is asked":
        server(AtOnce(Step::write("220 example.test ESMTP\r\n"))).times(20).fails(HeaderParse).unread();
    a_reset_in_the_head "reset within the head": says_and_resets("HTTP/1.1 200 OK\r\nContent").fails(Reset);
    a_reset_after_the_head "reset after the head":
        says_and_resets("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").fails(Reset);
    a_reset_in_the_body "reset within the body":
        says_and_resets("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").fails(Reset);
    a_reset_in_a_chunk "reset within a chunk":
        says_and_resets("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel").fails(Reset);
    a_reset_instead_of_a_close "reset where the body ends with the connection":
        says_and_resets("HTTP/1.1 200 OK\r\n\r\nhello").fails(Reset);
    a_reset_after_the_answer "reset after a response that said close":
        says_and_resets("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).renewed();
    a_close_on_reuse "close on the second request of a connection":
        on_reuse(Step::Close).fails_on_reuse(ClosedOnReuse);
    a_reset_on_reuse "reset on the second request of a connection":
        on_reuse(Step::Reset).fails_on_reuse(ClosedOnReuse);
    half_an_answer_on_reuse "reset within the second response of a connection":
        server(|request: &Received| match request.index {
            0 => vec![Step::hello()],
            _ => vec![Step::write("HTTP/1.1 200"), Step::Reset],
        })
        .times(6).fails_on_reuse(Reset);
    a_close_with_the_answer "close with the response, unannounced":
        says_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").answers(200).renewed();
    a_half_close_without_an_answer "half-close instead of a response":
        does([Step::HalfClose]).fails(ClosedBeforeResponse);
    a_close_announced "Connection: close, and a close":
        says_and_closes("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).renewed();
    a_close_announced_and_not_made "Connection: close, and the socket stays open":
        says_and_holds("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).renewed();
    a_close_in_a_list "Connection: close among other words":
        says_and_holds("HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nConnection: keep-alive\r\n\
                        Content-Length: 2\r\n\r\nok")
            .answers(200).renewed();

    a_close_while_sending "close while the request is being sent":
        server(OnHead(vec![Step::Close])).posted(LARGE).fails(SendFailed).unread();
    a_reset_while_sending "reset while the request is being sent":
        server(OnHead(vec![Step::Reset])).posted(LARGE).fails(SendFailed).unread();
    a_100_to_an_expectation "100 to the plan's Expect: 100-continue":
        server(Continues).asked_with("expect", "100-continue").posted(16).answers(200).kept();
    an_early_answer "response before the request is sent, which then is read":
        server(OnHead(vec![Step::write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")]))
            .posted(16).answers(413).kept();
    an_early_answer_and_no_reading "response before the request is sent, which is not read":
        server(OnHead(vec![
            Step::write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"),
            Step::Freeze,
        ]))
        .posted(LARGE).answers(413).renewed().frozen();
    an_early_answer_and_a_close "response before the request is sent, and a close":
        server(OnHead(vec![
            Step::write("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
            Step::Close,
        ]))
        .posted(LARGE).answers(413).renewed().unread();
}

#[test]
fn an_early_answer_counts_whether_or_not_the_request_was_sent_by_then() {
    for body in [1 << 10, 1 << 20, 16 << 20] {
        let answer = Step::write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
        let target = Target::start(OnHead(vec![answer]));
        let mut workload = workload(3, 1);
        workload.requests[0].method = Method::POST;
        workload.requests[0].body = vec![b'x'; body].into();
        workload.requests[0].expect.status = vec![413];
        let outcome = against(&target, workload);
        outcome.assert_all_succeeded(3);
        let opened = outcome.stats.connections.opened;
        assert!((1..=3).contains(&opened), "{opened} connections for a body of {body} bytes");
    }
}

#[test]
fn a_reset_between_two_requests_costs_the_second_only_if_it_was_on_its_way() {
    let target = Target::start(|_: &Received| vec![Step::hello(), Step::Reset]);
    let outcome = against(&target, workload(200, 2));
    let raced = outcome.errors(ClosedOnReuse);
    assert_eq!(outcome.total.failed, raced, "{:?}", outcome.total.examples);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!(seen.requests, 200 - raced);
    assert_eq!(seen.connections, seen.requests, "each connection has one answer");
    assert_eq!(outcome.total.bytes_in, seen.bytes_out);
}
