//! Times that are the network's: parts that come late, and parts that must leave together.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread::JoinHandle,
    time::Duration,
};

use http::Method;
use inrush_common::plan::Workload;
use inrush_testkit::{LONG, Received, Step, Target};
use socket2::SockRef;

use crate::support::{against, job, run, workload};

/// What a delayed acknowledgement costs.
const DELAY: Duration = Duration::from_millis(40);

#[test]
fn a_body_that_comes_after_its_head_is_shown_in_the_service_time_and_not_in_the_ttfb() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let target = Target::start(move |_: &Received| {
        vec![Step::write(head), Step::Delay(DELAY), Step::write(b"hello")]
    });
    let outcome = against(&target, workload(10, 1));
    outcome.assert_all_succeeded(10);
    let times = &outcome.total.succeeded_times;
    let delay = u64::try_from(DELAY.as_nanos()).unwrap();
    // The best of ten: a busy machine may make any one of them late, in either time.
    let (ttfb, service_time) = (times.ttfb.min().unwrap(), times.service_time.min().unwrap());
    assert!(ttfb < delay / 2, "{:?}", times.ttfb);
    // A timer of milliseconds and a histogram of three digits: a little less than 40 ms is 40 ms.
    assert!((delay - delay / 40..delay * 2).contains(&service_time), "{:?}", times.service_time);
}

fn posts(requests: u64, body: &'static [u8]) -> Workload {
    let mut workload = workload(requests, 1);
    workload.requests[0].method = Method::POST;
    workload.requests[0].body = bytes::Bytes::from_static(body);
    workload
}

/// What the first read of each request brought, on one connection of a server that acknowledges as
/// late as it may.
fn first_reads(requests: u64, body: &'static [u8]) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        (0..requests).map(|_| first_read(&mut stream, body)).collect()
    });
    (addr, server)
}

fn first_read(stream: &mut TcpStream, body: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 4096];
    SockRef::from(&*stream).set_tcp_quickack(false).unwrap();
    // It spins: a thread that had to be woken would find two segments where there was one at first.
    stream.set_nonblocking(true).unwrap();
    let n = loop {
        match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            read => break read.unwrap(),
        }
    };
    stream.set_nonblocking(false).unwrap();
    let first = buffer[..n].to_vec();
    let mut all = first.clone();
    while !all.ends_with(body) {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "the request ends: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    first
}

#[test]
fn a_small_post_leaves_in_one_piece_and_waits_for_no_acknowledgement() {
    const BODY: &[u8] = br#"{"name":"value"}"#;
    const REQUESTS: u64 = 20;
    let (addr, server) = first_reads(REQUESTS, BODY);
    let outcome = run(job(posts(REQUESTS, BODY), addr, 1));
    outcome.assert_all_succeeded(REQUESTS);
    let reads = server.join().unwrap();
    assert_eq!(reads.len(), 20);
    for read in reads {
        let text = String::from_utf8(read).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("the first read ends the head");
        assert!(head.starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{head}");
        assert_eq!(body.as_bytes(), BODY, "head and body come in one read");
    }
    // Half of them delayed would be too much already.
    assert!(outcome.took < DELAY * 10, "{:?}", outcome.took);
    let median = outcome.total.succeeded_times.service_time.quantile(0.5);
    assert!(median < Some(20_000_000), "{median:?}");
}
