//! What strangers do at the door while a test runs, and what comes of it.

use std::{fs, net::SocketAddr, time::Duration};

use inrush_agent::capacity::raise_file_limit;
use inrush_coordinator::server::{self, Config};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    desk::within,
    process::{inrush, start},
    support::{Target, assert_balanced, folder, json_report, plan},
    way::{agent, secured},
};

/// Memory that a process has in RAM.
fn resident_bytes(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

fn open_files(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// What is answered before the end of the connection.
async fn say(address: &str, words: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is cut is an answer too.
    drop(stream.write_all(words).await);
    drop(within("the end of a connection", stream.read_to_end(&mut answer)).await);
    answer
}

#[tokio::test]
async fn idle_connections_and_garbage_hold_nothing_and_disturb_no_run() {
    const PATIENCE: Duration = Duration::from_secs(5);
    raise_file_limit();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let idle =
        usize::try_from(limit.unwrap_or(u64::MAX)).unwrap().saturating_sub(1_000).min(10_000);
    assert!(idle >= 2_000, "the file limit is too low for this test");

    let (folder, target) = (folder(), Target::start().await);
    let coordinator = secured(folder.path()).await;
    let _lab1 = agent(folder.path(), &coordinator, "lab1", &[]).await;
    plan(folder.path(), &format!("http://{}/delay/50", target.address), 10, 2_000, "");
    let at = ["--coordinator", coordinator.address.as_str()];
    let submit = [&["submit", "plan.toml", "--json", "report.json"], &at[..]].concat();
    let submitted = start(&submit, folder.path());
    target.has_counted(50).await;
    let pid = coordinator.process.pid();
    let before = resident_bytes(pid);

    let address: SocketAddr = coordinator.address.parse().unwrap();
    let mut held = Vec::with_capacity(idle);
    let mut most_files = 0;
    for number in 0..idle {
        // From many addresses, so that no limit of one of them is all that helps.
        let socket = TcpSocket::new_v4().unwrap();
        let from = [127, 0, 1, u8::try_from(number % 16).unwrap() + 1];
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        match timeout(PATIENCE, socket.connect(address)).await {
            Ok(Ok(stream)) => held.push(stream),
            Ok(Err(error)) => panic!("{number}: {error}"),
            Err(_) => panic!("{number}: the listener does not accept any more"),
        }
        if number % 500 == 0 {
            most_files = most_files.max(open_files(pid));
        }
    }
    most_files = most_files.max(open_files(pid));
    assert!(most_files < 2_000, "{most_files} files for {idle} idle connections");
    // Between them everybody who has a certificate gets through.
    inrush(&[&["runs"], &at[..]].concat(), folder.path()).await.with_code(0);

    let http = say(&coordinator.address, b"GET / HTTP/1.1\r\nHost: it\r\n\r\n").await;
    let http = String::from_utf8(http).unwrap();
    assert!(http.starts_with("HTTP/1.1 400 ") && http.contains("speaks TLS"), "{http}");
    for garbage in [&[0_u8; 64][..], &[0xff; 4_096], &[0x16; 70_000], &[0x16, 3, 1, 0xff, 0xff]] {
        // The last one waits for more than comes: it is cut by the deadline.
        let answer = say(&coordinator.address, garbage).await;
        assert!(answer.len() < 1_000, "{} bytes", answer.len());
    }
    // The deadline has cut those idle ones, too, that were not pushed out before.
    within("the end of an idle connection", async {
        let mut nothing = [0];
        drop(held.last_mut().unwrap().read(&mut nothing).await);
    })
    .await;
    let grown = resident_bytes(pid).saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes for strangers");

    submitted.ended().await.with_code(0);
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_eq!(report["verdict"]["status"], "valid", "{}", report["verdict"]);
    assert_eq!(target.requests().await, 2_000);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A gRPC call, as it begins.
fn call(path: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "coordinator"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        // A literal that is not indexed (RFC 7541, 6.2.2).
        headers.push(0);
        for text in [name, value] {
            headers.push(u8::try_from(text.len()).unwrap());
            headers.extend(text.as_bytes());
        }
    }
    let opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    [&opening[..], &frame(4, 0, 0, &[]), &frame(1, 4, 1, &headers)].concat()
}

#[tokio::test]
async fn a_message_that_says_it_is_a_gibibyte_is_refused_before_there_is_room_for_it() {
    let dir = folder();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let shutdown = CancellationToken::new();
    let config = Config::new(dir.path());
    let coordinator = server::start(listener, config, shutdown.clone()).await.unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    for path in
        ["/inrush.v1.Fleet/Session", "/inrush.v1.Control/Submit", "/inrush.v1.Enrollment/Join"]
    {
        let before = resident_bytes(own);
        let mut stream = TcpStream::connect(coordinator.local_addr()).await.unwrap();
        stream.write_all(&call(path)).await.unwrap();
        let claim = [&[0][..], &(1_u32 << 30).to_be_bytes(), &[b'x'; 1_024]].concat();
        stream.write_all(&frame(0, 0, 1, &claim)).await.unwrap();
        within("the end of the call", async {
            loop {
                let mut head = [0; 9];
                stream.read_exact(&mut head).await.unwrap();
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut payload = vec![0; length as usize];
                stream.read_exact(&mut payload).await.unwrap();
                let (kind, flags, of) = (head[3], head[4], head[8]);
                // Headers that end the stream, or a reset of it.
                if of == 1 && (kind == 3 || kind == 1 && flags & 1 == 1) {
                    return;
                }
            }
        })
        .await;
        let grown = resident_bytes(own).saturating_sub(before);
        assert!(grown < 64 << 20, "{path}: {grown} bytes");
    }
    shutdown.cancel();
    within("stopping", coordinator.join()).await.unwrap();
}
