//! The bundled target over real sockets.

use std::{net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

use super::*;

const LONG: Duration = Duration::from_secs(20);

struct Running {
    addr: SocketAddr,
    shutdown: CancellationToken,
    served: JoinHandle<io::Result<()>>,
}

fn start() -> Running {
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let addr = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(listener, shutdown.clone()));
    Running { addr, shutdown, served }
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    async fn stats(&self, method: &str) -> Stats {
        let response = one(self.connect().await, &get(method, "/__stats")).await;
        serde_json::from_str(body_of(&response)).unwrap()
    }

    /// Asks for the counters until they are as wanted.
    async fn stats_until(&self, wanted: impl Fn(&Stats) -> bool) -> Stats {
        let asking = async {
            loop {
                let stats = self.stats("GET").await;
                if wanted(&stats) {
                    return stats;
                }
            }
        };
        timeout(LONG, asking).await.expect("the counters come to what is wanted")
    }
}

fn get(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n")
}

/// Sends one request and reads to the end of the connection.
async fn one(mut stream: TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    timeout(LONG, stream.read_to_string(&mut response)).await.unwrap().unwrap();
    response
}

fn body_of(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a whole head").1
}

fn has_line(response: &str, line: &str) -> bool {
    response.to_ascii_lowercase().lines().any(|is| is == line)
}

/// Reads one response with a `content-length` off a connection that stays open.
async fn read_one(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let n = timeout(LONG, stream.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert!(n > 0, "the connection ended");
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.unwrap().parse::<usize>().unwrap() {
                return text;
            }
        }
    }
}

#[tokio::test]
async fn the_root_says_hello_in_thirteen_bytes_of_plain_text() {
    let target = start();
    let response = one(target.connect().await, &get("GET", "/?a=b")).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(has_line(&response, "content-type: text/plain"), "{response}");
    assert!(has_line(&response, "content-length: 13"), "{response}");
    assert_eq!(body_of(&response), "Hello, world!");
    let response = one(target.connect().await, &get("HEAD", "/")).await;
    assert!(has_line(&response, "content-length: 13"), "{response}");
    assert_eq!(body_of(&response), "");
}

#[tokio::test]
async fn bytes_sends_exactly_as_many_as_asked() {
    let target = start();
    for n in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
        let response = one(target.connect().await, &get("GET", &format!("/bytes/{n}"))).await;
        assert!(has_line(&response, &format!("content-length: {n}")), "{n}");
        assert_eq!(body_of(&response).len(), n);
    }
}

#[tokio::test]
async fn delay_answers_after_the_delay_and_not_before() {
    let target = start();
    let started = crate::clock::now();
    let response = one(target.connect().await, &get("GET", "/delay/40")).await;
    assert_eq!(body_of(&response), "Hello, world!");
    assert!(started.elapsed() >= Duration::from_millis(40), "{:?}", started.elapsed());
}

#[tokio::test]
async fn status_answers_with_that_status() {
    let target = start();
    for code in [200, 204, 205, 301, 304, 404, 500, 503, 599] {
        let response = one(target.connect().await, &get("GET", &format!("/status/{code}"))).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {code} ")), "{response}");
        assert_eq!(body_of(&response).is_empty(), matches!(code, 204 | 205 | 304), "{response}");
    }
}

#[tokio::test]
async fn echo_gives_back_the_body_and_its_type_on_a_connection_that_stays_open() {
    let target = start();
    let mut stream = target.connect().await;
    let plain = "POST /echo HTTP/1.1\r\nHost: example.test\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r\nxyz";
    let chunked = "PUT /echo HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n";
    stream.write_all(plain.as_bytes()).await.unwrap();
    let response = read_one(&mut stream).await;
    assert!(has_line(&response, "content-type: a/b"), "{response}");
    assert_eq!(body_of(&response), "xyz");
    stream.write_all(chunked.as_bytes()).await.unwrap();
    let response = read_one(&mut stream).await;
    assert!(has_line(&response, "content-type: application/octet-stream"), "{response}");
    assert_eq!(body_of(&response), "de");
}

#[tokio::test]
async fn a_body_too_long_to_echo_is_refused_with_the_limit() {
    let target = start();
    let request = "POST /echo HTTP/1.1\r\nHost: example.test\r\nContent-Length: 8388609\r\n\r\n";
    let response = one(target.connect().await, request).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert_eq!(body_of(&response), "/echo gives back at most 8388608 bytes (8 MiB)\n");
}

#[tokio::test]
async fn a_body_nobody_asked_for_leaves_the_connection_usable() {
    let target = start();
    let mut stream = target.connect().await;
    let body = "b".repeat(300_000);
    for _ in 0..3 {
        let head = "POST / HTTP/1.1\r\nHost: example.test\r\nContent-Length: 300000\r\n\r\n";
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        assert_eq!(body_of(&read_one(&mut stream).await), "Hello, world!");
    }
    let stats = target.stats("GET").await;
    assert_eq!((stats.requests, stats.connections, stats.open), (3, 1, 1));
    assert!(stats.bytes_in > 900_000, "{stats:?}");
}

#[tokio::test]
async fn a_wrong_path_is_404_and_a_wrong_number_is_400_and_both_say_what_is_right() {
    let target = start();
    let response = one(target.connect().await, &get("GET", "/nowhere")).await;
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    assert!(body_of(&response).contains("/bytes/N"), "{response}");
    let response = one(target.connect().await, &get("GET", "/delay/60001")).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(body_of(&response).contains("from 0 to 60000"), "{response}");
}

#[tokio::test]
async fn the_counters_agree_with_what_was_sent_and_do_not_count_themselves() {
    let target = start();
    let request = get("GET", "/");
    let mut received = 0;
    for _ in 0..5 {
        received += one(target.connect().await, &request).await.len() as u64;
    }
    let stats = target.stats_until(|stats| stats.open == 0).await;
    let expected = Stats {
        requests: 5,
        connections: 5,
        open: 0,
        bytes_in: 5 * request.len() as u64,
        bytes_out: received,
    };
    assert_eq!(stats, expected);
    assert_eq!(target.stats("POST").await, expected);
    assert_eq!(target.stats("GET").await, Stats::default());
    let response = one(target.connect().await, &get("DELETE", "/__stats")).await;
    assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
    assert!(has_line(&response, "allow: get, head, post"), "{response}");
}

#[tokio::test]
async fn a_connection_that_watches_and_loads_is_counted_once() {
    let target = start();
    let mut stream = target.connect().await;
    for (path, requests, connections) in [("/__stats", 0, 0), ("/", 1, 1), ("/__stats", 1, 1)] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: example.test\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        read_one(&mut stream).await;
        let stats = target.stats("GET").await;
        assert_eq!(
            (stats.requests, stats.connections, stats.open),
            (requests, connections, connections)
        );
    }
    drop(stream);
    target.stats_until(|stats| stats.open == 0).await;
}

#[tokio::test]
async fn a_reset_between_accept_and_first_request_leaves_no_trace() {
    let target = start();
    let watcher = target.connect().await;
    target.stats_until(|stats| stats.open == 1).await;
    target.stats("POST").await;
    let _load = target.connect().await;
    target.stats_until(|stats| stats.connections == 1).await;
    let response = one(watcher, &get("GET", "/__stats")).await;
    let stats: Stats = serde_json::from_str(body_of(&response)).unwrap();
    assert_eq!((stats.connections, stats.open), (1, 1));
}

#[tokio::test]
async fn shutting_down_ends_idle_connections_at_once() {
    let target = start();
    let mut idle = target.connect().await;
    target.stats_until(|stats| stats.open == 1).await;
    target.shutdown.cancel();
    timeout(LONG, target.served).await.unwrap().unwrap().unwrap();
    assert_eq!(timeout(LONG, idle.read(&mut [0])).await.unwrap().unwrap(), 0);
    assert!(TcpStream::connect(target.addr).await.is_err());
}

#[tokio::test]
async fn shutting_down_does_not_wait_for_a_long_answer() {
    let target = start();
    let mut slow = target.connect().await;
    slow.write_all(get("GET", "/delay/60000").as_bytes()).await.unwrap();
    target.stats_until(|stats| stats.requests == 1).await;
    target.shutdown.cancel();
    timeout(LONG, target.served).await.unwrap().unwrap().unwrap();
}

#[test]
fn running_out_of_files_is_no_end_and_a_dead_listener_is() {
    let of = |errno: Errno| severity(&io::Error::from(errno));
    assert_eq!(of(Errno::MFILE), Severity::Exhausted);
    assert_eq!(of(Errno::NFILE), Severity::Exhausted);
    assert_eq!(of(Errno::CONNABORTED), Severity::Peer);
    assert_eq!(of(Errno::NETUNREACH), Severity::Peer);
    assert_eq!(of(Errno::INVAL), Severity::Listener);
}
