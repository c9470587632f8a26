//! What the tests run against: the bundled target in a process of its own, plans, coordinators, agents.

use std::{fs, net::SocketAddr, path::Path, process::Stdio, sync::LazyLock, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use hdrhistogram::{Histogram, serialization::Deserializer};
use jsonschema::Validator;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{interval, timeout},
};

use crate::process::{Running, SOON, command, inrush, spawn, start};

pub(crate) fn folder() -> TempDir {
    TempDir::new().unwrap()
}

/// The bundled target.
pub(crate) struct Target {
    _process: Running,
    pub(crate) address: SocketAddr,
}

impl Target {
    pub(crate) async fn start() -> Self {
        let args = ["target", "--listen", "127.0.0.1:0", "--exit-with-parent"];
        // Its end follows ours, also when a test is killed.
        let process = spawn(command(&args, Path::new("/")).stdin(Stdio::piped()));
        let line = process.prints("http://").await;
        let address = line.trim_start_matches("http://").parse().unwrap();
        Self { _process: process, address }
    }

    /// The requests that it has counted.
    pub(crate) async fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = "GET /__stats HTTP/1.1\r\nHost: target\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()["requests"].as_u64().unwrap()
    }

    /// Waits until it has counted so many.
    pub(crate) async fn has_counted(&self, requests: u64) {
        let mut looks = interval(Duration::from_millis(20));
        let counted = async {
            while self.requests().await < requests {
                looks.tick().await;
            }
        };
        timeout(SOON, counted).await.unwrap_or_else(|_| panic!("never {requests} requests"));
    }
}

/// Writes `plan.toml`: `connections` and `requests` at `url`, and more of TOML.
pub(crate) fn plan(folder: &Path, url: &str, connections: u64, requests: u64, agents: &str) {
    let text = format!(
        "url = \"{url}\"\n[load.closed]\nconnections = {connections}\nrequests = {requests}\n[agents]\n{agents}\n"
    );
    fs::write(folder.join("plan.toml"), text).unwrap();
}

/// The JSON report that was written to `report.json`, which keeps to the published schema.
#[track_caller]
pub(crate) fn json_report(folder: &Path) -> Value {
    static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../docs/report.schema.json");
        jsonschema::draft202012::new(&serde_json::from_str(schema).unwrap()).unwrap()
    });
    let report = serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    let breaches: Vec<String> =
        SCHEMA.iter_errors(&report).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(breaches.is_empty(), "{breaches:#?}");
    report
}

/// How often each value stands in a distribution's histogram, read with none of our own code.
pub(crate) fn histogram(distribution: &Value) -> Histogram<u64> {
    let bytes = BASE64.decode(distribution["histogram"].as_str().unwrap()).unwrap();
    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
}

/// Asserts that the accounts add up, in total and for each agent.
#[track_caller]
pub(crate) fn assert_balanced(report: &Value) {
    let agents = report["agents"].as_array().unwrap().iter();
    for row in agents.chain([report]) {
        let ledger = &row["ledger"];
        let number = |key: &str| ledger[key].as_u64().unwrap_or_else(|| panic!("{key}: {ledger}"));
        assert_eq!(number("planned"), number("started") + number("not_started"), "{ledger}");
        assert_eq!(number("started"), number("completed") + number("in_flight_at_end"), "{ledger}");
        assert_eq!(number("completed"), number("succeeded") + number("failed"), "{ledger}");
        assert_eq!(row["response_time"]["all"]["count"], ledger["completed"], "{ledger}");
    }
}

/// The sum over the agents' rows.
pub(crate) fn sum_of_agents(report: &Value, key: &str) -> u64 {
    report["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["ledger"][key].as_u64().unwrap())
        .sum()
}

/// A coordinator.
pub(crate) struct Coordinator {
    pub(crate) process: Running,
    pub(crate) address: String,
}

impl Coordinator {
    /// On a free port, storing in `data` in this folder.
    pub(crate) async fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[]).await
    }

    pub(crate) async fn start_with(folder: &Path, more: &[&str]) -> Self {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"], more].concat();
        let process = start(&args, folder);
        let line = process.says("listening on").await;
        let address = line.rsplit_once(' ').unwrap().1.to_owned();
        Self { process, address }
    }

    /// Starts an agent and waits until it is listed.
    pub(crate) async fn agent(&self, folder: &Path, name: &str, more: &[&str]) -> Running {
        let args =
            [&["agent", "--coordinator", &self.address, "--name", name, "--workers", "1"], more]
                .concat();
        let agent = start(&args, folder);
        let mut looks = interval(Duration::from_millis(50));
        let listed = async {
            loop {
                looks.tick().await;
                let list = ["agents", "--coordinator", &self.address];
                let listed = inrush(&list, folder).await.with_code(0).out;
                if listed.lines().any(|line| line.split(' ').next() == Some(name)) {
                    return;
                }
            }
        };
        timeout(SOON, listed).await.unwrap_or_else(|_| panic!("{name} is not listed"));
        agent
    }
}
