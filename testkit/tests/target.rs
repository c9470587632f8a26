//! The target does what its script says and counts what happened.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use inrush_testkit::{
    Counts, Deaf, LONG, Options, Received, Refusing, Response, Script, Step, Target,
};

const GET: &[u8] = b"GET /x?y=1 HTTP/1.1\r\nHost: example.test\r\n\r\n";
const GET_LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n";

fn connect(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.addr()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Sends `bytes` and reads to the end of the stream.
fn exchange(target: &Target, bytes: &[u8]) -> String {
    let mut stream = connect(target);
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn read_exactly(stream: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn hello_answers_thirteen_bytes_and_counts_everything() {
    let target = Target::hello();
    let answer = exchange(&target, &[GET, GET, GET_LAST].concat());
    let one =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";
    assert_eq!(answer, one.repeat(3));
    let counts = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    let expected = Counts {
        connections: 1,
        open: 0,
        peak_open: 1,
        requests: 3,
        in_flight: 0,
        peak_in_flight: 1,
        responses: 3,
        malformed: 0,
        bytes_in: (2 * GET.len() + GET_LAST.len()) as u64,
        bytes_out: 3 * one.len() as u64,
        listening: true,
    };
    assert_eq!(counts, expected);
}

#[test]
fn requests_are_kept_as_they_came() {
    let target = Target::with(Options { keep: 2, ..Options::default() }, |_: &Received| {
        vec![Step::status(204)]
    });
    let post = b"POST /a HTTP/1.1\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc";
    let chunked = b"PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n";
    exchange(&target, &[post, chunked.as_slice(), GET_LAST].concat());
    let requests = target.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].method(), requests[0].path()), ("POST", "/a"));
    assert_eq!(requests[0].header("x-a"), Some("b"));
    assert_eq!(requests[0].head, &post[..post.len() - 3]);
    assert_eq!(requests[0].body, b"abc");
    assert_eq!((requests[1].index, requests[1].number), (1, 1));
    assert_eq!(requests[1].body, b"de");
    assert_eq!(target.counts().requests, 3);
}

#[test]
fn a_response_ends_by_length_by_chunks_or_by_closing() {
    let body = Response::new(200).body("abcde");
    let target = Target::always(body.clone().chunked(2));
    let answer = exchange(&target, GET_LAST);
    assert!(answer.ends_with("\r\n\r\n2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n"), "{answer}");
    let target = Target::always(body.clone().until_close());
    let answer = exchange(&target, GET);
    assert!(answer.ends_with("Connection: close\r\n\r\nabcde"), "{answer}");
    let target = Target::always(body);
    let answer = exchange(&target, b"HEAD / HTTP/1.0\r\n\r\n");
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
}

#[test]
fn a_connection_is_closed_after_so_many_responses() {
    let target = Target::closing_after(2);
    let answer = exchange(&target, &[GET, GET, GET].concat());
    assert_eq!(answer.matches("Hello, world!").count(), 2);
    assert_eq!(target.counts().requests, 2);
}

#[test]
fn a_reset_is_seen_as_a_reset() {
    let target = Target::start(|_: &Received| vec![Step::write("HTTP/1.1 2"), Step::Reset]);
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(target.counts().responses, 0);
}

#[test]
fn a_dripped_answer_arrives_whole() {
    let bytes = Response::hello().bytes().to_vec();
    let expected = String::from_utf8(bytes.clone()).unwrap();
    let target = Target::start(move |_: &Received| vec![Step::drip(&bytes, Duration::ZERO)]);
    assert_eq!(exchange(&target, GET_LAST), expected);
}

#[test]
fn a_silent_target_notices_when_the_client_goes_away() {
    let target = Target::silent();
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    target.wait_until(LONG, |counts| counts.in_flight == 1 && counts.open == 1).unwrap();
    drop(stream);
    let counts = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((counts.in_flight, counts.responses, counts.bytes_out), (0, 0, 0));
}

#[test]
fn paused_requests_are_in_flight_until_they_are_released() {
    let target = Target::gated();
    let mut streams: Vec<_> = (0..10).map(|_| connect(&target)).collect();
    for stream in &mut streams {
        stream.write_all(GET_LAST).unwrap();
    }
    let counts = target.wait_until(LONG, |counts| counts.requests == 10).unwrap();
    assert_eq!((counts.in_flight, counts.responses), (10, 0));
    target.release(3);
    target.wait_until(LONG, |counts| counts.in_flight == 7).unwrap();
    assert_eq!(target.counts().responses, 3);
    target.release_all();
    let counts = target.wait_until(LONG, |counts| counts.responses == 10).unwrap();
    assert_eq!((counts.peak_in_flight, counts.peak_open), (10, 10));
}

#[test]
fn a_client_that_leaves_a_pause_is_counted_out() {
    let target = Target::gated();
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    target.wait_until(LONG, |counts| counts.in_flight == 1).unwrap();
    drop(stream);
    target.wait_until(LONG, |counts| counts.open == 0 && counts.in_flight == 0).unwrap();
}

#[test]
fn waiting_ends_at_its_deadline_and_tells_the_counters() {
    let target = Target::hello();
    let error = target.wait_until(Duration::from_millis(20), |it| it.requests == 1).unwrap_err();
    assert_eq!(error.last.requests, 0);
    assert!(error.to_string().contains("within 20ms"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_async_wait_is_in_real_time_and_sees_what_comes_later() {
    let target = Target::hello();
    let early = target.until(Duration::from_millis(20), |it| it.requests == 1).await;
    assert_eq!(early.unwrap_err().last.requests, 0);
    let seen = target.until(LONG, |counts| counts.requests == 1);
    connect(&target).write_all(GET).unwrap();
    assert_eq!(seen.await.unwrap().connections, 1);
}

#[test]
fn a_target_that_refuses_goes_on_with_open_connections() {
    let target = Target::hello();
    let mut stream = connect(&target);
    target.wait_until(LONG, |counts| counts.open == 1).unwrap();
    target.refuse();
    target.wait_until(LONG, |counts| !counts.listening).unwrap();
    let error = TcpStream::connect(target.addr()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    stream.write_all(GET).unwrap();
    assert!(read_exactly(&mut stream, 15).starts_with(b"HTTP/1.1 200 OK"));
}

#[test]
fn a_target_listens_again_where_it_did_before() {
    let target = Target::hello();
    target.refuse();
    target.wait_until(LONG, |counts| !counts.listening).unwrap();
    target.listen_again();
    target.wait_until(LONG, |counts| counts.listening).unwrap();
    assert!(exchange(&target, GET_LAST).ends_with("Hello, world!"));
}

#[test]
fn last_bytes_come_with_the_end_of_the_stream() {
    let target = Target::start(|_: &Received| vec![Step::last(b"bye")]);
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    assert_eq!(read_exactly(&mut stream, 3), b"bye");
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the end has come already");
    assert_eq!(target.counts().open, 1, "it reads on");
}

#[test]
fn a_flood_ends_when_the_client_closes() {
    let target = Target::start(|_: &Received| vec![Step::flood(b"more ")]);
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    assert!(read_exactly(&mut stream, 1000).starts_with(b"more more "));
    drop(stream);
    target.wait_until(LONG, |counts| counts.open == 0).unwrap();
}

#[test]
fn a_script_sees_the_connection_and_the_head_before_the_body() {
    struct Early;
    impl Script for Early {
        fn on_request(&self, _: &Received) -> Vec<Step> {
            vec![Step::write("body "), Step::Close]
        }
        fn on_connect(&self, connection: u64) -> Vec<Step> {
            vec![Step::write(format!("connection {connection} "))]
        }
        fn on_head(&self, _: &Received) -> Vec<Step> {
            vec![Step::write("head ")]
        }
    }
    let target = Target::start(Early);
    let mut stream = connect(&target);
    stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n").unwrap();
    assert_eq!(read_exactly(&mut stream, 18), b"connection 0 head ");
    assert_eq!(target.counts().requests, 0);
    stream.write_all(b"x").unwrap();
    assert_eq!(read_exactly(&mut stream, 5), b"body ");
}

#[test]
fn what_is_not_http_ends_the_connection_and_is_counted() {
    let target = Target::hello();
    assert_eq!(exchange(&target, b"hello there\r\n\r\n"), "");
    let counts = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((counts.malformed, counts.requests), (1, 0));
}

#[test]
fn a_dropped_target_closes_its_port_and_its_connections() {
    let target = Target::silent();
    let addr = target.addr();
    let mut stream = connect(&target);
    stream.write_all(GET).unwrap();
    target.wait_until(LONG, |counts| counts.requests == 1).unwrap();
    drop(target);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    assert_eq!(TcpStream::connect(addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_refusing_address_refuses_and_a_deaf_one_does_not_answer() {
    let refusing = Refusing::start();
    let error = TcpStream::connect(refusing.addr()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let deaf = Deaf::start();
    let within = Duration::from_millis(200);
    let error = TcpStream::connect_timeout(&deaf.addr(), within).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn many_pipelined_requests_on_many_connections_are_all_counted() {
    let target = Target::hello();
    let (connections, each) = (20, 500);
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut stream = connect(&target);
                let answer = Response::hello().bytes().len();
                for _ in 0..each / 10 {
                    stream.write_all(&GET.repeat(10)).unwrap();
                    read_exactly(&mut stream, 10 * answer);
                }
            });
        }
    });
    let counts = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!(counts.requests, connections * each);
    assert_eq!(counts.responses, connections * each);
    assert_eq!(counts.connections, connections);
    assert_eq!(target.requests().len(), 1_000);
}
