//! What can be written, one statement each.

use std::{collections::BTreeMap, time::SystemTime};

use bytes::Bytes;
use inrush_common::{
    id::{AgentName, Epoch, RunId},
    report::{ClockOffset, Loss, RunOutcome},
    stats::SnapshotKey,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{StoreError, seal::Seal, to_stored};
use crate::run::RunState;

/// A run as it was submitted.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run: RunId,
    /// The plan's name.
    pub plan: String,
    /// What the plan's source is called in messages.
    pub source_name: String,
    /// The plan as written.
    pub source: String,
    /// The files it names.
    pub files: BTreeMap<String, Bytes>,
    /// This coordinator's version.
    pub version: String,
    /// When it was submitted.
    pub submitted_at: SystemTime,
}

/// An agent with a share of a run.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// Its name.
    pub name: AgentName,
    /// The process that has the share. Another one hands in nothing for it.
    pub epoch: Epoch,
    /// Its version.
    pub version: String,
    /// Its machine.
    pub hostname: String,
    /// Its worker threads.
    pub workers: u32,
    /// Its share of the most connections that may be open at one instant.
    pub connections: u64,
    /// How many of them must have been made when all has gone well.
    pub requested: u64,
    /// Its share of the requests of each phase, in the plan's order; `None` in a phase without a count.
    pub planned: Vec<Option<u64>>,
}

/// Something to be written.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "fields are named for what they are")]
pub enum Change {
    /// Nothing: done when all before it is.
    Nothing,
    /// A new run, queued. A duplicate if there is one with that id: then that one stays as it is.
    Run(Box<NewRun>),
    /// The run's agents got their shares.
    Agents { run: RunId, agents: Vec<NewAgent> },
    /// The run moved to another state.
    State { run: RunId, state: RunState, outcome: RunOutcome, detail: Option<String> },
    /// The start of the load was agreed.
    Started { run: RunId, at: SystemTime },
    /// An agent did not get ready.
    NotReady { run: RunId, agent: AgentName, detail: String },
    /// An agent is lost.
    Lost { run: RunId, agent: AgentName, loss: Loss },
    /// An agent's clock was compared.
    Clock { run: RunId, agent: AgentName, clock: ClockOffset },
    /// An agent started, so long after the agreed instant.
    StartedAfter { run: RunId, agent: AgentName, after_ns: i64 },
    /// A snapshot came in. Written once, however often it comes.
    Snapshot { run: RunId, key: SnapshotKey, payload: Bytes },
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is on disk.
    New,
    /// It was there before.
    Duplicate,
    /// A snapshot of somebody who has no share of that run: not kept.
    NotAssigned,
}

pub(super) fn apply(rows: &Connection, change: &Change) -> Result<Written, StoreError> {
    match change {
        Change::Nothing => {}
        Change::Run(new) => return add_run(rows, new),
        Change::Agents { run, agents } => add_agents(rows, run, agents)?,
        Change::State { run, state, outcome, detail } => {
            let sql = "UPDATE runs SET state = ?2, outcome = ?3, detail = ?4 WHERE run = ?1";
            let values = params![run.as_str(), state.name(), outcome.name(), detail];
            rows.execute(sql, values)?;
        }
        Change::Started { run, at } => {
            let sql = "UPDATE runs SET started_at = ?2 WHERE run = ?1";
            rows.execute(sql, params![run.as_str(), to_stored(*at)])?;
        }
        Change::NotReady { run, agent, detail } => {
            let sql = "UPDATE run_agents SET not_ready = ?3 WHERE run = ?1 AND agent = ?2";
            rows.execute(sql, params![run.as_str(), agent.as_str(), detail])?;
        }
        Change::Lost { run, agent, loss } => {
            let sql = "UPDATE run_agents SET lost_at_ns = ?3, lost_evidence = ?4 \
                       WHERE run = ?1 AND agent = ?2";
            let at = loss.at_ns.cast_signed();
            let values = params![run.as_str(), agent.as_str(), at, loss.evidence];
            rows.execute(sql, values)?;
        }
        Change::Clock { run, agent, clock } => {
            let sql = "UPDATE run_agents SET clock_offset_ns = ?3, clock_bound_ns = ?4 \
                       WHERE run = ?1 AND agent = ?2";
            let bound = clock.bound_ns.cast_signed();
            let values = params![run.as_str(), agent.as_str(), clock.offset_ns, bound];
            rows.execute(sql, values)?;
        }
        Change::StartedAfter { run, agent, after_ns } => {
            let sql = "UPDATE run_agents SET started_after_ns = ?3 WHERE run = ?1 AND agent = ?2";
            rows.execute(sql, params![run.as_str(), agent.as_str(), after_ns])?;
        }
        Change::Snapshot { run, key, payload } => return add_snapshot(rows, run, key, payload),
    }
    Ok(Written::New)
}

fn add_run(rows: &Connection, new: &NewRun) -> Result<Written, StoreError> {
    let seal = Seal::beside(rows)?;
    let sql = "INSERT INTO runs \
               (run, plan, source_name, source, version, submitted_at, state, outcome) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (run) DO NOTHING";
    let inserted = rows.execute(
        sql,
        params![
            new.run.as_str(),
            new.plan,
            new.source_name,
            seal.seal_text(&new.run, "the plan", &new.source)?,
            new.version,
            to_stored(new.submitted_at),
            RunState::Queued.name(),
            RunOutcome::Running.name(),
        ],
    )?;
    if inserted == 0 {
        return Ok(Written::Duplicate);
    }
    let mut insert =
        rows.prepare("INSERT INTO run_files (run, name, content) VALUES (?1, ?2, ?3)")?;
    for (name, content) in &new.files {
        insert.execute(params![new.run.as_str(), name, seal.seal(&new.run, name, content)?])?;
    }
    Ok(Written::New)
}

fn add_agents(rows: &Connection, run: &RunId, agents: &[NewAgent]) -> Result<(), StoreError> {
    let mut insert = rows.prepare(
        "INSERT INTO run_agents \
         (run, agent, epoch, version, hostname, workers, connections, requested, planned) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for agent in agents {
        insert.execute(params![
            run.as_str(),
            agent.name.as_str(),
            agent.epoch.0.cast_signed(),
            agent.version,
            agent.hostname,
            agent.workers,
            agent.connections.cast_signed(),
            agent.requested.cast_signed(),
            serde_json::to_string(&agent.planned).expect("numbers have a JSON form"),
        ])?;
    }
    Ok(())
}

fn add_snapshot(
    rows: &Connection,
    run: &RunId,
    key: &SnapshotKey,
    payload: &[u8],
) -> Result<Written, StoreError> {
    let (run, agent, epoch) = (run.as_str(), key.agent.as_str(), key.epoch.0.cast_signed());
    let assigned: Option<i64> = rows
        .prepare("SELECT 1 FROM run_agents WHERE run = ?1 AND agent = ?2 AND epoch = ?3")?
        .query_row(params![run, agent, epoch], |row| row.get(0))
        .optional()?;
    if assigned.is_none() {
        return Ok(Written::NotAssigned);
    }
    let inserted = rows
        .prepare(
            "INSERT OR IGNORE INTO snapshots (run, agent, epoch, seq, payload) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![run, agent, epoch, key.seq.0.cast_signed(), payload])?;
    Ok(if inserted == 0 { Written::Duplicate } else { Written::New })
}
