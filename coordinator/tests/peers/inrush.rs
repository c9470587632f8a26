//! Runs the built `inrush` and reads its report.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::servers::free_port;

/// No run here takes nearly so long.
const RUN: Duration = Duration::from_secs(240);
/// Three agents are with their coordinator long before.
const JOIN: Duration = Duration::from_secs(30);

/// What the tests vary of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) agents: u32,
}

impl Plan {
    fn write(self, directory: &Path, target: SocketAddr) {
        let Self { connections, requests, agents } = self;
        let text = format!(
            "name = \"peers\"\nurl = \"http://{target}/\"\n\n\
             [agents]\nmin = {agents}\n\n\
             [load.closed]\nconnections = {connections}\nrequests = {requests}\n"
        );
        std::fs::write(directory.join("plan.toml"), text).unwrap();
    }
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) report: Value,
    pub(crate) stderr: String,
}

/// `inrush run`.
pub(crate) async fn run(plan: Plan, target: SocketAddr) -> Ran {
    let directory = TempDir::new().unwrap();
    plan.write(directory.path(), target);
    let run = ["run", "plan.toml", "--json", "report.json"];
    ran(directory.path(), output(directory.path(), &run).await)
}

/// `inrush serve`, an `inrush agent` on 127.0.0.2, 127.0.0.3 … for each agent, and `inrush submit`.
pub(crate) async fn serve_and_submit(plan: Plan, target: SocketAddr) -> Ran {
    let directory = TempDir::new().unwrap();
    plan.write(directory.path(), target);
    let coordinator = format!("127.0.0.1:{}", free_port());
    let serve = ["serve", "--listen", coordinator.as_str(), "--data-dir", "data"];
    let _coordinator = background(directory.path(), &serve);
    let mut agents = Vec::new();
    for n in 1..=plan.agents {
        let (name, source) = (format!("lab{n}"), format!("127.0.0.{}", n + 1));
        let agent =
            ["agent", "--coordinator", &coordinator, "--name", &name, "--source-ip", &source];
        agents.push(background(directory.path(), &agent));
    }
    let list = ["agents", "--coordinator", &coordinator];
    let joined = async {
        loop {
            let listed = String::from_utf8(output(directory.path(), &list).await.stdout).unwrap();
            if (1..=plan.agents).all(|n| listed.contains(&format!("lab{n}"))) {
                return;
            }
        }
    };
    timeout(JOIN, joined).await.expect("the agents join their coordinator in time");
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator, "--json", "report.json"];
    ran(directory.path(), output(directory.path(), &submit).await)
}

pub(crate) fn ran(directory: &Path, output: Output) -> Ran {
    let stderr = String::from_utf8(output.stderr).unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let report = std::fs::read_to_string(directory.join("report.json"))
        .unwrap_or_else(|error| panic!("no report ({error}), {}:\n{stderr}", output.status));
    assert!(stdout.contains("LEDGER"), "the text report is on stdout:\n{stdout}");
    Ran { exit: output.status.code(), report: serde_json::from_str(&report).unwrap(), stderr }
}

/// The binary that `INRUSH_BIN` names, or the one built along with this test.
pub(crate) fn command(directory: &Path, arguments: &[&str]) -> Command {
    wrapped(&[], directory, arguments)
}

/// The same, started by another program: the binary and its arguments follow that program's own.
pub(crate) fn wrapped(wrapper: &[String], directory: &Path, arguments: &[&str]) -> Command {
    let built = env!("CARGO_BIN_EXE_inrush").into();
    let binary = std::env::var_os("INRUSH_BIN").unwrap_or(built);
    let mut command = match wrapper {
        [] => Command::new(binary),
        [program, own @ ..] => {
            let mut command = Command::new(program);
            command.args(own).arg(binary);
            command
        }
    };
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs to the end, within [`RUN`].
pub(crate) async fn output(directory: &Path, arguments: &[&str]) -> Output {
    timeout(RUN, command(directory, arguments).output())
        .await
        .unwrap_or_else(|_| panic!("inrush {arguments:?} has not ended within {RUN:?}"))
        .unwrap()
}

/// Runs until it is dropped; what it says goes to the test's own output.
pub(crate) fn background(directory: &Path, arguments: &[&str]) -> Child {
    command(directory, arguments).stdout(Stdio::null()).spawn().unwrap()
}
