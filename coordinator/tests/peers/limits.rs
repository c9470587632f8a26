//! Agents that have less than a whole machine: they say so, and what they measure is not believed beyond it.
//!
//! Control groups and network namespaces need root. Without it, a test says that it could not look, and passes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command as Blocking,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Child, time::timeout};

use crate::{
    inrush::{background, command, output, ran, wrapped},
    machine,
    servers::{Nginx, free_port},
};

/// An agent is with its coordinator long before.
const JOIN: Duration = Duration::from_secs(30);

/// A control group of its own with a tenth of a CPU, so that nobody else keeps it from using that up; `None` where there is no right to make one.
struct TenthCpu(PathBuf);

impl TenthCpu {
    fn make() -> Option<Self> {
        let name = format!("inrush-test-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu").join(&name);
        if fs::create_dir(&v1).is_ok() {
            let group = Self(v1);
            let period = fs::write(group.0.join("cpu.cfs_period_us"), "100000");
            let quota = fs::write(group.0.join("cpu.cfs_quota_us"), "10000");
            return period.and(quota).is_ok().then_some(group);
        }
        let v2 = Path::new("/sys/fs/cgroup").join(&name);
        fs::create_dir(&v2).ok()?;
        let group = Self(v2);
        fs::write(group.0.join("cpu.max"), "10000 100000").is_ok().then_some(group)
    }

    /// What a shell does to get in and then become the program.
    fn enter(&self) -> [String; 3] {
        let procs = self.0.join("cgroup.procs");
        let script = format!("echo $$ > {} && exec \"$0\" \"$@\"", procs.display());
        ["sh".to_owned(), "-c".to_owned(), script]
    }
}

impl Drop for TenthCpu {
    fn drop(&mut self) {
        // The kernel lets go of the last process a moment after its end.
        for _ in 0..1_000 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// A coordinator with one agent that is started by `wrapper`.
struct Lab {
    directory: TempDir,
    coordinator: String,
    _children: [Child; 2],
}

impl Lab {
    async fn start(wrapper: &[String]) -> Self {
        let directory = TempDir::new().unwrap();
        let coordinator = format!("127.0.0.1:{}", free_port());
        let serve = ["serve", "--listen", coordinator.as_str(), "--data-dir", "data"];
        let serve = background(directory.path(), &serve);
        let agent = ["agent", "--coordinator", &coordinator, "--name", "small"];
        let agent = wrapped(wrapper, directory.path(), &agent).spawn().unwrap();
        let lab = Self { directory, coordinator, _children: [serve, agent] };
        let joined = async { while !lab.agents().await.contains("small") {} };
        timeout(JOIN, joined).await.expect("the agent joins its coordinator in time");
        lab
    }

    async fn agents(&self) -> String {
        let list = ["agents", "--coordinator", &self.coordinator];
        String::from_utf8(output(self.directory.path(), &list).await.stdout).unwrap()
    }

    /// The report of a plan.
    async fn run(&self, plan: &str) -> Value {
        fs::write(self.directory.path().join("plan.toml"), plan).unwrap();
        let submit =
            ["submit", "plan.toml", "--coordinator", &self.coordinator, "--json", "report.json"];
        ran(self.directory.path(), output(self.directory.path(), &submit).await).report
    }
}

fn codes(report: &Value) -> Vec<&str> {
    let reasons = report["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_agent_with_a_tenth_of_a_cpu_is_believed_below_it_and_not_beyond() {
    let _machine = machine().await;
    let Some(tenth) = TenthCpu::make() else {
        eprintln!("no right to make a control group with a CPU quota: not tested");
        return;
    };
    let nginx = Nginx::start().await;
    let lab = Lab::start(&tenth.enter()).await;
    let listed = lab.agents().await;
    assert!(listed.contains("1 (quota 0.10 CPU)"), "one worker, and the quota:\n{listed}");

    let url = format!("url = \"http://{}/\"\n", nginx.addr);
    let closed = "[load.closed]\nconnections = 64\nduration = \"4s\"\n";
    let beyond = lab.run(&format!("{url}{closed}")).await;
    let agent = &beyond["agents"][0];
    assert_ne!(beyond["verdict"]["status"], "valid", "{}", beyond["verdict"]);
    assert!(codes(&beyond).contains(&"agent_throttled"), "{}", beyond["verdict"]);
    assert!(agent["throttled_s"].as_f64().unwrap() > 0.2, "{agent}");
    // Of the tenth that it may use, not of the core.
    assert!(agent["cpu_mean"].as_f64().unwrap() > 0.6, "{agent}");

    let open = "[load.open]\nrate = 100\nduration = \"3s\"\n";
    let below = lab.run(&format!("{url}{open}")).await;
    let found = codes(&below);
    // What else runs on this machine may make it late, but not its quota.
    assert!(found.iter().all(|code| *code == "worker_lag"), "{}", below["verdict"]);
    assert!(below["agents"][0]["cpu_mean"].as_f64().unwrap() < 0.6, "{}", below["agents"][0]);
    drop(lab);
}

#[tokio::test]
async fn an_agent_that_shares_its_core_with_busy_neighbours_is_not_believed() {
    let _machine = machine().await;
    let nginx = Nginx::start().await;
    let pinned = ["taskset".to_owned(), "-c".to_owned(), "0".to_owned()];
    let _neighbours: Vec<Child> = (0..3)
        .map(|_| {
            let mut busy = tokio::process::Command::new("taskset");
            busy.args(["-c", "0", "sh", "-c", "while :; do :; done"]).kill_on_drop(true);
            busy.spawn().expect("taskset is part of util-linux")
        })
        .collect();
    let lab = Lab::start(&pinned).await;
    let listed = lab.agents().await;
    let row = listed.lines().find(|line| line.starts_with("small")).unwrap();
    assert!(row.contains("idle   1 "), "one core, one worker:\n{listed}");
    let plan = "[load.closed]\nconnections = 64\nduration = \"4s\"\n";
    let report = lab.run(&format!("url = \"http://{}/\"\n{plan}", nginx.addr)).await;
    assert_ne!(report["verdict"]["status"], "valid", "{}", report["agents"]);
    assert!(codes(&report).contains(&"worker_lag"), "{}", report["verdict"]);
}

/// A network of its own in which an address has 100 local ports and closed connections keep them, with the bundled target at
/// 127.0.0.1:8080.
fn in_a_network_of_100_ports(directory: &Path, script: &str) -> Option<tokio::process::Command> {
    let allowed = Blocking::new("unshare").args(["--net", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("no right to make a network namespace: not tested");
        return None;
    }
    let script = format!(
        "ip link set lo up && cd /proc/sys/net/ipv4 && echo 40000 40099 > ip_local_port_range &&
         echo 0 > tcp_tw_reuse && cd \"$1\" || exit
         \"$0\" target --listen 127.0.0.1:8080 > /dev/null & target=$!
         trap 'kill $target' EXIT
         until ss -ltn | grep -q :8080; do :; done
         {script}"
    );
    let mut wrapper: Vec<String> = ["unshare", "--net", "bash", "-c"].map(str::to_owned).into();
    wrapper.push(script);
    let directory_name = directory.display().to_string();
    Some(wrapped(&wrapper, directory, &[&directory_name]))
}

#[tokio::test]
async fn each_source_address_brings_all_local_ports() {
    let _machine = machine().await;
    let directory = TempDir::new().unwrap();
    let plan = "url = \"http://127.0.0.1:8080/\"\n\
                [load.closed]\nconnections = 390\nrequests = 3900\n";
    fs::write(directory.path().join("plan.toml"), plan).unwrap();
    // Four sources, which a local run takes from the loopback network by itself.
    let run = "\"$0\" run plan.toml --json report.json";
    let Some(mut command) = in_a_network_of_100_ports(directory.path(), run) else { return };
    let output = timeout(Duration::from_secs(120), command.output()).await.unwrap().unwrap();
    let report = ran(directory.path(), output).report;
    let connections = &report["connections"];
    // Not 400: where a socket is bound, whatever its address, the kernel gives that port to no connection.
    assert_eq!(connections["established"], 390, "{connections}");
    assert_eq!(connections["failed"], 0, "{}", report["errors"]);
}

#[tokio::test]
async fn connections_that_are_not_kept_are_refused_before_the_ports_run_out() {
    let _machine = machine().await;
    let directory = TempDir::new().unwrap();
    let plan = "url = \"http://127.0.0.1:8080/\"\nkeep_alive = false\n\
                [load.closed]\nconnections = 8\nrequests = 400\n";
    fs::write(directory.path().join("plan.toml"), plan).unwrap();
    let script = "
        \"$0\" serve --listen 127.0.0.1:7070 --data-dir data & serve=$!
        for sources in 127.0.0.21 127.0.0.21,127.0.0.22,127.0.0.23,127.0.0.24,127.0.0.25; do
            \"$0\" agent --name lab --source-ip $sources & lab=$!
            until \"$0\" agents 2> /dev/null | grep -q 'lab .*idle'; do :; done
            \"$0\" submit plan.toml
            kill $lab; wait $lab
        done
        kill $serve";
    let Some(mut command) = in_a_network_of_100_ports(directory.path(), script) else { return };
    let output = timeout(Duration::from_secs(120), command.output()).await.unwrap().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("not ready: the load opens 400 new connections"), "{said}");
    assert!(said.contains("100 ports × 1 pairs"), "{said}");
    assert!(said.contains("use 4 pairs (--source-ip)"), "{said}");
    assert!(said.contains("8 connections: ") && said.contains("none failed"), "{said}");
}

#[tokio::test]
async fn two_hundred_thousand_connections_of_one_request_each_run_out_of_nothing() {
    let _machine = machine().await;
    let nginx = Nginx::start().await;
    let directory = TempDir::new().unwrap();
    let plan = format!(
        "url = \"http://{}/\"\nkeep_alive = false\n\
         [load.closed]\nconnections = 64\nrequests = 200_000\n",
        nginx.addr
    );
    fs::write(directory.path().join("plan.toml"), plan).unwrap();
    let mut run = command(directory.path(), &["run", "plan.toml", "--json", "report.json"]);
    let output = timeout(Duration::from_secs(240), run.output()).await.unwrap().unwrap();
    let report = ran(directory.path(), output).report;
    assert_eq!(report["ledger"]["succeeded"], 200_000, "{}", report["errors"]);
    assert_eq!(report["connections"]["opened"], 200_000);
    assert_eq!(nginx.requests().await, 200_000);
}
