//! The load generators that are compared, and how each says how many requests it made.

use std::{
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{Failed, trying};

/// A load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Inrush,
    Wrk,
    H2load,
    Oha,
}

impl Client {
    pub(crate) const ALL: [Self; 4] = [Self::Inrush, Self::Wrk, Self::H2load, Self::Oha];

    fn program(self) -> PathBuf {
        match self {
            // The one that was built beside this program.
            Self::Inrush => std::env::current_exe()
                .ok()
                .and_then(|path| Some(path.parent()?.join("inrush")))
                .unwrap_or_else(|| PathBuf::from("inrush")),
            Self::Wrk => PathBuf::from("wrk"),
            Self::H2load => PathBuf::from("h2load"),
            Self::Oha => {
                std::env::var_os("OHA").map_or_else(|| PathBuf::from("oha"), PathBuf::from)
            }
        }
    }

    /// Those that are installed; of the others it says what is missing.
    pub(crate) fn installed() -> (Vec<Self>, Vec<String>) {
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for client in Self::ALL {
            let mut asked = Command::new(client.program());
            asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            match asked.status() {
                Ok(_) => there.push(client),
                Err(_) => missing.push(match client {
                    Self::Inrush => "inrush: cargo build --release".to_owned(),
                    Self::Oha => "oha: cargo install oha, or its path in OHA".to_owned(),
                    Self::Wrk | Self::H2load => format!("{client}: apt-get install {client}"),
                }),
            }
        }
        (there, missing)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inrush => "inrush",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Oha => "oha",
        })
    }
}

/// What one run of a client is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) target: SocketAddr,
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
    /// Worker threads, and as many cores from core 0 on.
    pub(crate) workers: u32,
}

impl Load {
    /// The command that makes this load; `folder` is for what it reads and writes.
    ///
    /// # Errors
    /// When the plan cannot be written.
    pub(crate) fn command(&self, client: Client, folder: &Path) -> Result<Command, Failed> {
        let Self { target, connections, seconds, workers } = *self;
        let url = format!("http://{target}/");
        let mut command = Command::new("taskset");
        command.args(["-c", &cores(workers)]).arg(client.program());
        match client {
            Client::Inrush => {
                let plan = folder.join("bench.toml");
                let text = format!(
                    "url = \"{url}\"\n[load.closed]\nconnections = {connections}\nduration = \"{seconds}s\"\n"
                );
                fs::write(&plan, text).map_err(trying("the plan"))?;
                command.arg("run").arg(plan).args(["--local-agents", "1", "--workers"]);
                command.arg(workers.to_string()).arg("--quiet").arg("--json").arg(report(folder));
            }
            Client::Wrk => {
                command.arg(format!("-t{workers}")).arg(format!("-c{connections}"));
                command.arg(format!("-d{seconds}s")).arg(url);
            }
            Client::H2load => {
                command.arg("--h1").arg(format!("-t{workers}")).arg(format!("-c{connections}"));
                command.arg(format!("--duration={seconds}")).arg(url);
            }
            Client::Oha => {
                command.args(["--no-tui", "--output-format", "json", "-z", &format!("{seconds}s")]);
                command.args(["-c", &connections.to_string(), &url]);
            }
        }
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// How many requests a run made, by what it wrote. Its exit status is not asked: on a busy machine inrush says that
    /// its times are not to be believed, but counts all the same.
    ///
    /// # Errors
    /// When that is not what the client writes.
    pub(crate) fn requests(
        &self,
        client: Client,
        wrote: &[u8],
        folder: &Path,
    ) -> Result<u64, Failed> {
        let text = String::from_utf8_lossy(wrote);
        let found = match client {
            Client::Inrush => fs::read(report(folder)).ok().and_then(|bytes| {
                let report: Value = serde_json::from_slice(&bytes).ok()?;
                report.pointer("/ledger/succeeded")?.as_u64()
            }),
            Client::Wrk => before(&text, " requests in "),
            Client::H2load => before(&text, " succeeded,"),
            Client::Oha => serde_json::from_str::<Value>(&text)
                .ok()
                .and_then(|summary| summary.get("statusCodeDistribution")?.get("200")?.as_u64()),
        };
        found.filter(|requests| *requests > 0).ok_or_else(|| {
            Failed::new(format!("{client} does not say how many requests it made: {text}"))
        })
    }
}

fn report(folder: &Path) -> PathBuf {
    folder.join("report.json")
}

fn cores(workers: u32) -> String {
    if workers == 1 { "0".to_owned() } else { format!("0-{}", workers - 1) }
}

/// The number that stands before `mark`.
fn before(text: &str, mark: &str) -> Option<u64> {
    text.split_once(mark)?.0.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_says_how_many_requests_it_made() {
        let folder = tempfile::tempdir().unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], 8080));
        let load = Load { target, connections: 64, seconds: 2, workers: 1 };
        let count = |client, text: &str| load.requests(client, text.as_bytes(), folder.path());
        let wrk = "Running 2s test\n  144230 requests in 2.10s, 22.01MB read\n";
        assert_eq!(count(Client::Wrk, wrk).unwrap(), 144_230);
        let h2load = "requests: 9 total, 9 started, 9 done, 8 succeeded, 1 failed, 0 errored\n";
        assert_eq!(count(Client::H2load, h2load).unwrap(), 8);
        let oha = r#"{"summary":{"total":2.0},"statusCodeDistribution":{"200":77}}"#;
        assert_eq!(count(Client::Oha, oha).unwrap(), 77);
        fs::write(report(folder.path()), r#"{"ledger":{"succeeded":5}}"#).unwrap();
        assert_eq!(count(Client::Inrush, "").unwrap(), 5);
        assert!(count(Client::Wrk, "unable to connect").is_err());
    }
}
