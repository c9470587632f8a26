//! How often a request asks for memory. Alone in its process: the allocator counts for all threads.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test itself does")]

use std::{
    alloc::System,
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    thread,
};

use inrush_agent::{
    clock,
    engine::{Engine, Job},
};
use inrush_common::plan;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// hyper's: the read buffer and its owner, the channel of the response and that of the body. Of ours there are none.
/// What is above 4 is what grows now and then.
const MOST: f64 = 4.1;

const CONNECTIONS: u64 = 4;
const FEW: u64 = 1_000;
const MANY: u64 = 6_000;

/// Answers every request on every connection, and allocates only per connection.
fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream));
        }
    });
    addr
}

fn answer(mut stream: TcpStream) {
    // A request of this test is smaller than the buffer, and is one write.
    let mut request = [0; 1024];
    while stream.read(&mut request).is_ok_and(|length| length > 0) {
        let answer = b"HTTP/1.1 200 OK\r\nServer: it\r\nContent-Type: text/plain\r\n\
            Content-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world!";
        stream.write_all(answer).unwrap();
    }
}

/// Allocations of a whole run.
fn allocations(target: SocketAddr, requests: u64) -> u64 {
    let source = format!(
        "url = \"http://{target}/\"\n[load.closed]\nconnections = {CONNECTIONS}\nrequests = {requests}\n"
    );
    let plan = plan::load("it", &source, &BTreeMap::new()).unwrap().plan;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let region = Region::new(ALLOCATOR);
    let mut engine = Engine::spawn(Job {
        bounds: inrush_agent::bounds::Bounds::default(),
        workload: plan.workload,
        addresses: vec![target],
        sources: Vec::new(),
        workers: NonZeroUsize::MIN,
        first_connection: None,
    })
    .unwrap();
    engine.start(clock::now());
    let mut succeeded = 0;
    while let Some(interval) = runtime.block_on(engine.next()) {
        succeeded += interval.stats.total().succeeded;
    }
    assert_eq!(succeeded, requests);
    let counted = region.change();
    (counted.allocations + counted.reallocations) as u64
}

#[test]
fn a_request_asks_for_memory_a_few_times_and_no_more() {
    let target = target();
    // What is needed once is needed before.
    allocations(target, FEW);
    let (few, many) = (allocations(target, FEW), allocations(target, MANY));
    let per_request = many.saturating_sub(few) as f64 / (MANY - FEW) as f64;
    assert!(per_request > 0.0 && per_request <= MOST, "{per_request} allocations per request");
}
