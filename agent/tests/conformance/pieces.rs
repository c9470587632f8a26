//! Responses that come in pieces, because of the server or of the kernel.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use inrush_agent::clock;
use inrush_testkit::{LONG, Options, Received, Step, Target};

use crate::{
    row::{Row, behaviours, does, server_with},
    support::{against, workload},
};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
const BODY: &str = "hello";

/// Sends the head, and the body only once the client has acknowledged that.
fn nagle() -> (Options, impl Fn(&Received) -> Vec<Step> + Send + Sync + 'static) {
    let options = Options { nagle: true, keep: 0, ..Options::default() };
    (options, |_: &Received| vec![Step::write(HEAD), Step::write(BODY)])
}

fn with_nagle() -> Row {
    let (options, script) = nagle();
    server_with(options, script)
}

behaviours! {
    two_pieces "head and body in two pieces":
        does([Step::write(HEAD), Step::Delay(Duration::from_millis(40)), Step::write(BODY)])
            .answers(200).kept();
    two_writes_with_nagle "head and body in two writes, with Nagle's algorithm":
        with_nagle().answers(200).kept();
}

const REQUESTS: u64 = 40;

/// The median of what the requests take that a plain client sends.
fn plainly(addr: SocketAddr) -> Duration {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut times: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let began = clock::now();
            stream.write_all(b"GET /path?q=1 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
            stream.read_exact(&mut vec![0; HEAD.len() + BODY.len()]).unwrap();
            clock::now() - began
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn what_nagles_algorithm_costs_is_in_the_service_time_as_any_client_sees_it_and_not_in_the_ttfb() {
    let (options, script) = nagle();
    let target = Target::with(options, script);
    let outcome = against(&target, workload(REQUESTS, 1));
    outcome.assert_all_succeeded(REQUESTS);
    let times = &outcome.total.succeeded_times;
    let median = |it: Option<u64>| Duration::from_nanos(it.unwrap());
    let (ttfb, measured) =
        (median(times.ttfb.quantile(0.5)), median(times.service_time.quantile(0.5)));
    let plain = plainly(target.addr());
    assert!(ttfb < Duration::from_millis(20), "{ttfb:?}");
    assert!(
        measured.abs_diff(plain) < Duration::from_millis(15),
        "{measured:?}, plainly {plain:?}"
    );
}

/// Everything that may stand in a response before and after its body.
const ODD: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
    HTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\nTransfer-Encoding: chunked\r\n\r\n\
    5;x=y\r\nhello\r\n0\r\nX-T: 1\r\n\r\n";

/// Answers each request with these bytes in two pieces, cut a step further each time.
#[track_caller]
fn cut_anywhere(answer: &str, step: usize) {
    let cuts = answer.len() / step;
    let bytes = answer.as_bytes().to_vec();
    let target = Target::start(move |request: &Received| {
        let at = 1 + usize::try_from(request.number).unwrap() * step;
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        vec![Step::write(first), Step::Delay(Duration::from_millis(1)), Step::write(second)]
    });
    let outcome = against(&target, workload(cuts as u64, 1));
    outcome.assert_all_succeeded(cuts as u64);
    assert_eq!(outcome.stats.connections.opened, 1);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!((outcome.total.bytes_out, outcome.total.bytes_in), (seen.bytes_in, seen.bytes_out));
}

#[test]
fn a_response_may_be_cut_in_two_anywhere() {
    let headers: String = (0..150).map(|at| format!("X-{at}: v\r\n")).collect();
    let many = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok");
    cut_anywhere(ODD, 1);
    cut_anywhere("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 1);
    cut_anywhere(&many, 23);
}
