//! `inrush agents` and `inrush runs`.

use std::time::{Duration, UNIX_EPOCH};

use inrush_common::units::{Count, Nanos};
use inrush_proto::v1::{AgentInfo, RunInfo, RunState};

use super::{
    args::CoordinatorArgs, connect::connect, console::Console, error::CliError, table::table,
};
use crate::exit::ExitStatus;

/// `inrush agents`
///
/// # Errors
/// When the coordinator cannot be asked.
pub(super) async fn agents(
    args: &CoordinatorArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let mut client = connect(args).await?;
    let agents = client.agents().await?;
    if agents.is_empty() {
        console.say(&format!(
            "no agents; start one with `inrush agent --coordinator {}`",
            client.address()
        ));
    } else {
        console.print(&agents_table(&agents))?;
    }
    Ok(ExitStatus::Passed)
}

/// `inrush runs`
///
/// # Errors
/// When the coordinator cannot be asked.
pub(super) async fn runs(
    args: &CoordinatorArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let mut client = connect(args).await?;
    let runs = client.runs().await?;
    if runs.is_empty() {
        console.say("no runs; submit one with `inrush submit plan.toml`");
    } else {
        console.print(&runs_table(&runs))?;
    }
    Ok(ExitStatus::Passed)
}

fn agents_table(agents: &[AgentInfo]) -> String {
    let headings =
        ["AGENT", "STATE", "WORKERS", "CONNECTIONS", "CLOCK", "VERSION", "HOST", "PEER", "LABELS"];
    let rows: Vec<_> = agents
        .iter()
        .map(|agent| {
            [
                agent.name.clone(),
                agent_state(agent),
                workers(agent),
                format!("up to {}", Count(agent.max_connections)),
                clock(agent),
                agent.version.clone(),
                agent.hostname.clone(),
                agent.peer.clone(),
                labels(agent),
            ]
        })
        .collect();
    table(headings, &rows)
}

fn agent_state(agent: &AgentInfo) -> String {
    let place = if agent.run.is_empty() { "idle".to_owned() } else { format!("in {}", agent.run) };
    if agent.connected {
        place
    } else {
        format!("{place}, not connected, last heard {} ago", Nanos(agent.silent_ns))
    }
}

/// Its threads, and the CPU time that a quota leaves them.
fn workers(agent: &AgentInfo) -> String {
    let quota = agent.cpu_quota_millis.map(|millis| {
        let cores = millis as f64 / 1_000.0;
        format!(" (quota {cores:.2} CPU)")
    });
    format!("{}{}", agent.workers, quota.unwrap_or_default())
}

/// The agent's clock against the coordinator's: what the start instant and the timeline rest on.
fn clock(agent: &AgentInfo) -> String {
    agent
        .offset_ns
        .map_or_else(|| "–".to_owned(), |_| format!("± {}", Nanos(agent.offset_bound_ns)))
}

fn labels(agent: &AgentInfo) -> String {
    let pairs: Vec<String> =
        agent.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(",")
}

fn runs_table(runs: &[RunInfo]) -> String {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            [
                run.run.clone(),
                run_state(run.state()).to_owned(),
                submitted(run.submitted_at_s),
                run.plan.clone(),
                run.detail.clone(),
            ]
        })
        .collect();
    table(["RUN", "STATE", "SUBMITTED", "PLAN", "DETAIL"], &rows)
}

const fn run_state(state: RunState) -> &'static str {
    match state {
        RunState::Unspecified => "unknown",
        RunState::Queued => "queued",
        RunState::Preparing => "preparing",
        RunState::Ready => "ready",
        RunState::Running => "running",
        RunState::Draining => "draining",
        RunState::Finished => "finished",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}

fn submitted(seconds: u64) -> String {
    // What humantime can print ends with the year 9999.
    const LAST: u64 = 253_402_300_799;
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(LAST));
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_listed_with_what_they_can_and_what_they_do() {
        let idle = AgentInfo {
            name: "lab1".to_owned(),
            version: "0.1.0".to_owned(),
            hostname: "rack1".to_owned(),
            peer: "127.0.0.1:5".to_owned(),
            workers: 2,
            max_connections: 19_936,
            labels: [("room".to_owned(), "b".to_owned())].into(),
            connected: true,
            offset_ns: Some(-12_000),
            offset_bound_ns: 41_000,
            ..AgentInfo::default()
        };
        let silent = AgentInfo {
            name: "lab2".to_owned(),
            connected: false,
            run: "r1".to_owned(),
            silent_ns: 3_200_000_000,
            cpu_quota_millis: Some(1_500),
            offset_ns: None,
            labels: [].into(),
            ..idle.clone()
        };
        assert_eq!(
            agents_table(&[idle, silent]),
            "\
AGENT  STATE                                        WORKERS             CONNECTIONS   CLOCK      VERSION  HOST   PEER         LABELS
lab1   idle                                         2                   up to 19,936  ± 41.0 µs  0.1.0    rack1  127.0.0.1:5  room=b
lab2   in r1, not connected, last heard 3.20 s ago  2 (quota 1.50 CPU)  up to 19,936  –          0.1.0    rack1  127.0.0.1:5
"
        );
    }

    #[test]
    fn runs_are_listed_with_their_end() {
        let run = RunInfo {
            run: "r1".to_owned(),
            plan: "checkout".to_owned(),
            state: RunState::Failed.into(),
            submitted_at_s: 1_700_000_000,
            detail: "too few agents".to_owned(),
        };
        assert_eq!(
            runs_table(&[run]),
            "\
RUN  STATE   SUBMITTED             PLAN      DETAIL
r1   failed  2023-11-14T22:13:20Z  checkout  too few agents
"
        );
    }
}
