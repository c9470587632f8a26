//! The built `inrush-agent`: exit codes, signals, and the parent's end.

#![allow(clippy::unwrap_used, reason = "a test")]

mod session_support;

use std::process::Stdio;

use inrush_testkit::{LONG, Target};
use rustix::process::{Pid, Signal, kill_process};
use session_support::{Coordinator, soon, sum, workload};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, Command},
};
use tonic::Status;

struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_inrush-agent"))
            .args(args)
            .env_remove("INRUSH_COORDINATOR")
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Reads the log up to the line that has `words`.
    async fn says(&mut self, words: &str) {
        soon(words, async {
            let mut seen = Vec::new();
            while let Some(line) = self.log.next_line().await.unwrap() {
                if line.contains(words) {
                    return;
                }
                seen.push(line);
            }
            panic!("the agent ended without saying {words:?}:\n{}", seen.join("\n"));
        })
        .await;
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The exit code, and the rest of the log.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        let mut rest = self.log.into_inner();
        soon("the end of the log", rest.read_to_string(&mut log)).await.unwrap();
        let status = soon("the agent's end", self.child.wait()).await.unwrap();
        (status.code(), log)
    }
}

/// Nobody listens there while the listener is held without a server.
fn nobody() -> (std::net::TcpListener, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    (listener, addr)
}

#[tokio::test]
async fn an_address_of_another_machine_is_a_usage_error() {
    let (code, log) = Process::start(&["--source-ip", "203.0.113.9"]).end().await;
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("203.0.113.9 is not an address of this machine"), "{log}");
}

#[tokio::test]
async fn a_refused_agent_prints_the_coordinators_words_and_exits_with_7() {
    let words =
        "the name lab1 is held by another agent at 127.0.0.9 since 12 s: choose another --name";
    let coordinator = Coordinator::refusing(Status::already_exists(words)).await;
    let addr = coordinator.addr.to_string();
    let (code, log) = Process::start(&["--coordinator", &addr, "--name", "lab1"]).end().await;
    assert_eq!(code, Some(7), "{log}");
    assert!(log.contains(words), "{log}");
}

#[tokio::test]
async fn an_agent_without_a_coordinator_says_so_and_leaves_when_told() {
    for signal in [Signal::TERM, Signal::INT] {
        let (held, addr) = nobody();
        drop(held);
        let mut agent = Process::start(&["--coordinator", &addr]);
        agent.says(&format!("no coordinator at {addr}: ")).await;
        agent.signal(signal);
        let (code, log) = agent.end().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

#[tokio::test]
async fn an_agent_ends_with_its_parent_in_the_middle_of_a_run() {
    let target = Target::gated();
    let mut coordinator = Coordinator::start().await;
    let addr = coordinator.addr.to_string();
    let mut agent =
        Process::start(&["--coordinator", &addr, "--exit-with-parent", "--workers", "1"]);
    let mut conn = coordinator.welcome().await;
    conn.assign("r1", &workload(&target.url("/"), 2, 10)).await;
    conn.ready("r1").await;
    conn.start_now("r1").await;
    target.until(LONG, |counts| counts.requests == 2).await.unwrap();
    // The terminal's Ctrl-C goes to the parent and its agents alike; the parent decides.
    agent.signal(Signal::INT);
    conn.assign("r2", &workload(&target.url("/"), 1, 1)).await;
    drop(agent.child.stdin.take());
    let (code, log) = agent.end().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("leaving"), "{log}");
    target.until(LONG, |counts| counts.open == 0).await.unwrap();
}

#[tokio::test]
async fn an_agent_whose_stderr_is_gone_works_on() {
    let target = Target::hello();
    let mut coordinator = Coordinator::start().await;
    let addr = coordinator.addr.to_string();
    let Process { mut child, log } = Process::start(&["--coordinator", &addr]);
    drop(log);
    let mut conn = coordinator.welcome().await;
    conn.assign("r1", &workload(&target.url("/"), 2, 10)).await;
    conn.ready("r1").await;
    conn.start_now("r1").await;
    assert_eq!(sum(&conn.results().await).succeeded, 10);
    child.start_kill().unwrap();
    soon("the agent's end", child.wait()).await.unwrap();
}
