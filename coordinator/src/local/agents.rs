//! The local agents of one run.

use std::{collections::BTreeSet, ffi::OsString, net::SocketAddr, process::Stdio, time::Duration};

use inrush_common::id::AgentName;
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Fleet, LocalError, Process, ProcessSpec};
use crate::client::{Client, ClientError};

/// For all agents to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// Between two looks at who has connected.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The end of an agent that nobody asked to end.
#[derive(Debug)]
pub struct Death {
    /// Who.
    pub agent: AgentName,
    /// How, in words.
    pub evidence: String,
    /// What it said last; empty, or on lines of its own.
    pub last_words: String,
}

/// The local agents of one run. Dropping it kills them; [`LocalAgents::stop`] is kinder.
#[derive(Debug)]
pub struct LocalAgents {
    names: Vec<AgentName>,
    /// One place per agent, and an agent dies once: never full.
    deaths: mpsc::Receiver<Death>,
    stop: CancellationToken,
    supervisors: JoinSet<()>,
}

impl LocalAgents {
    /// Starts the agents of `fleet`, for the coordinator at `coordinator`. With `verbosity` above 0 their logs go on to
    /// our stderr.
    ///
    /// # Errors
    /// When one cannot be started; those that were are killed.
    pub fn start(
        fleet: &Fleet,
        coordinator: SocketAddr,
        verbosity: u8,
    ) -> Result<Self, LocalError> {
        let (died, deaths) = mpsc::channel(fleet.sources.len().max(1));
        let stop = CancellationToken::new();
        let mut supervisors = JoinSet::new();
        let mut names = Vec::with_capacity(fleet.sources.len());
        for (sources, number) in fleet.sources.iter().zip(1_u32..) {
            let name: AgentName = format!("local-{number}").parse().expect("letters and digits");
            let mut args: Vec<OsString> = vec!["agent".into()];
            // An agent says by itself what takes one -v here.
            args.extend((1..verbosity).map(|_| "-v".into()));
            let options = [
                ("--coordinator", coordinator.to_string()),
                ("--name", name.to_string()),
                ("--workers", fleet.workers.to_string()),
            ];
            let sources = sources.iter().map(|source| ("--source-ip", source.to_string()));
            for (option, value) in options.into_iter().chain(sources) {
                args.extend([option.into(), value.into()]);
            }
            args.push("--exit-with-parent".into());
            let process = Process::start(ProcessSpec {
                name: name.to_string(),
                args,
                stdout: Stdio::null(),
                pass_stderr: verbosity > 0,
            })?;
            supervisors.spawn(supervise(process, name.clone(), stop.clone(), died.clone()));
            names.push(name);
        }
        Ok(Self { names, deaths, stop, supervisors })
    }

    /// Waits until the coordinator lists all of them.
    ///
    /// # Errors
    /// When one ends instead, or does not come within 20 s.
    pub async fn connected(&mut self, client: &mut Client) -> Result<(), AwaitError> {
        let mut missing: BTreeSet<String> = self.names.iter().map(AgentName::to_string).collect();
        let deaths = &mut self.deaths;
        let looking = async {
            let mut looks = interval(LOOK_EVERY);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !missing.is_empty() {
                tokio::select! {
                    _ = looks.tick() => {}
                    Some(death) = deaths.recv() => return Err(died_early(death).into()),
                }
                for agent in client.agents().await? {
                    missing.remove(&agent.name);
                }
            }
            Ok(())
        };
        let looked = timeout(CONNECT_WITHIN, looking).await;
        looked.unwrap_or_else(|_| {
            let names = missing.into_iter().collect::<Vec<_>>().join(", ");
            Err(LocalError::Missing { names, within_s: CONNECT_WITHIN.as_secs() }.into())
        })
    }

    /// The next death; waits for ever if there is none. May be dropped and called again.
    pub async fn next_death(&mut self) -> Death {
        match self.deaths.recv().await {
            Some(death) => death,
            None => std::future::pending().await,
        }
    }

    /// Ends them all. Afterwards there are no such processes.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.supervisors.join_next().await {
            if let Err(error) = ended
                && JoinError::is_panic(&error)
            {
                tracing::error!("the supervisor of a local agent failed: {error}");
            }
        }
    }
}

/// Why the agents are not there.
#[derive(Debug, thiserror::Error)]
pub enum AwaitError {
    /// Their fault.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The coordinator's.
    #[error(transparent)]
    Client(#[from] ClientError),
}

fn died_early(death: Death) -> LocalError {
    let Death { agent, evidence, last_words } = death;
    LocalError::Ended { name: agent.to_string(), evidence, last_words }
}

async fn supervise(
    mut process: Process,
    agent: AgentName,
    stop: CancellationToken,
    died: mpsc::Sender<Death>,
) {
    let evidence = tokio::select! {
        // What ends after it was asked to has not died.
        biased;
        () = stop.cancelled() => {
            process.stop().await;
            return;
        }
        evidence = process.ended() => evidence,
    };
    let last_words = process.last_words().await;
    if died.send(Death { agent, evidence, last_words }).await.is_err() {
        tracing::debug!("a local agent ended after the run that it was for");
    }
}
