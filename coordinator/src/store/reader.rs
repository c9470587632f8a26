//! What is read, and the report that is derived from it.

use std::{collections::BTreeMap, time::SystemTime};

use bytes::Bytes;
use inrush_common::{
    id::{AgentName, Epoch, RunId},
    report::{self, AgentFacts, ClockOffset, Loss, Report, RunFacts, RunOutcome},
    stats::Totals,
    wire::decode_snapshot,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sha2::{Digest as _, Sha256};

use super::{
    StoreError, from_stored, outcome_from_name,
    seal::{Seal, is_sealed},
};
use crate::run::{RunState, compile};

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Its id.
    pub run: RunId,
    /// The plan's name.
    pub plan: String,
    /// Where it stands.
    pub state: RunState,
    /// When it was submitted.
    pub submitted_at: SystemTime,
    /// Why it ended, where there is something to say.
    pub detail: Option<String>,
}

const RUN_COLUMNS: &str = "SELECT run, plan, state, submitted_at, detail FROM runs";

fn run_row(row: &Row<'_>) -> Result<RunRow, StoreError> {
    let run: String = row.get("run")?;
    let state: String = row.get("state")?;
    let state = RunState::from_name(&state)
        .ok_or_else(|| StoreError::corrupt(format!("run {run}"), format!("state {state:?}")))?;
    Ok(RunRow {
        run: name("a run", &run)?,
        plan: row.get("plan")?,
        state,
        submitted_at: from_stored(row.get("submitted_at")?),
        detail: row.get("detail")?,
    })
}

pub(super) fn runs(rows: &Connection, limit: u32) -> Result<Vec<RunRow>, StoreError> {
    let sql = format!("{RUN_COLUMNS} ORDER BY submitted_at DESC, rowid DESC LIMIT ?1");
    rows.prepare(&sql)?.query_and_then([limit], run_row)?.collect()
}

pub(super) fn run(rows: &Connection, run: &RunId) -> Result<Option<RunRow>, StoreError> {
    let sql = format!("{RUN_COLUMNS} WHERE run = ?1");
    rows.prepare(&sql)?.query_and_then([run.as_str()], run_row)?.next().transpose()
}

pub(super) fn is_assigned(
    rows: &Connection,
    run: &RunId,
    agent: &AgentName,
    epoch: Epoch,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM run_agents WHERE run = ?1 AND agent = ?2 AND epoch = ?3";
    let values = params![run.as_str(), agent.as_str(), epoch.0.cast_signed()];
    Ok(rows.prepare(sql)?.exists(values)?)
}

/// The report of a run: its rows, added up.
pub(super) fn report(rows: &Connection, run: &RunId) -> Result<Option<Report>, StoreError> {
    // One transaction, so that facts and snapshots are of one moment.
    let rows = rows.unchecked_transaction()?;
    let Some(facts) = facts(&rows, run)? else { return Ok(None) };
    let totals = totals(&rows, run)?;
    Ok(Some(report::build(&facts, &totals)))
}

struct StoredRun {
    source_name: String,
    source: String,
    version: String,
    submitted_at: SystemTime,
    started_at: Option<SystemTime>,
    outcome: String,
    detail: Option<String>,
}

fn facts(rows: &Connection, run: &RunId) -> Result<Option<RunFacts>, StoreError> {
    let sql = "SELECT source_name, source, version, submitted_at, started_at, outcome, detail \
               FROM runs WHERE run = ?1";
    let stored = rows
        .prepare(sql)?
        .query_row([run.as_str()], |row| {
            Ok(StoredRun {
                source_name: row.get(0)?,
                source: row.get(1)?,
                version: row.get(2)?,
                submitted_at: from_stored(row.get(3)?),
                started_at: row.get::<_, Option<i64>>(4)?.map(from_stored),
                outcome: row.get(5)?,
                detail: row.get(6)?,
            })
        })
        .optional()?;
    let Some(mut stored) = stored else { return Ok(None) };
    let mut files = files(rows, run)?;
    if is_sealed(&stored.source) {
        let seal = Seal::beside(rows)?;
        stored.source = seal.open_text(run, "the plan", &stored.source)?;
        for (name, content) in &mut files {
            *content = seal.open(run, name, content)?.into();
        }
    }
    let plan = compile(&stored.source_name, &stored.source, &files)
        .map_err(|problems| StoreError::corrupt(format!("the plan of run {run}"), problems))?;
    let outcome: RunOutcome = outcome_from_name(&stored.outcome).ok_or_else(|| {
        StoreError::corrupt(format!("run {run}"), format!("outcome {:?}", stored.outcome))
    })?;
    Ok(Some(RunFacts {
        run: run.clone(),
        plan,
        plan_sha256: format!("{:x}", Sha256::digest(&stored.source)),
        submitted_at: stored.submitted_at,
        started_at: stored.started_at,
        outcome,
        detail: stored.detail,
        version: stored.version,
        agents: agents(rows, run)?,
    }))
}

fn files(rows: &Connection, run: &RunId) -> Result<BTreeMap<String, Bytes>, StoreError> {
    let mut select = rows.prepare("SELECT name, content FROM run_files WHERE run = ?1")?;
    let files = select.query_map([run.as_str()], |row| {
        Ok((row.get(0)?, Bytes::from(row.get::<_, Vec<u8>>(1)?)))
    })?;
    Ok(files.collect::<Result<_, _>>()?)
}

fn agents(rows: &Connection, run: &RunId) -> Result<Vec<AgentFacts>, StoreError> {
    let mut select = rows.prepare("SELECT * FROM run_agents WHERE run = ?1 ORDER BY agent")?;
    let agents = select.query_and_then([run.as_str()], |row| {
        let at: Option<i64> = row.get("lost_at_ns")?;
        let evidence: Option<String> = row.get("lost_evidence")?;
        let offset: Option<i64> = row.get("clock_offset_ns")?;
        let bound: Option<i64> = row.get("clock_bound_ns")?;
        let planned: String = row.get("planned")?;
        Ok(AgentFacts {
            name: name("an agent", &row.get::<_, String>("agent")?)?,
            version: row.get("version")?,
            hostname: row.get("hostname")?,
            workers: row.get("workers")?,
            connections: row.get::<_, i64>("connections")?.cast_unsigned(),
            requested: row.get::<_, i64>("requested")?.cast_unsigned(),
            planned: serde_json::from_str(&planned)
                .map_err(|error| StoreError::corrupt("an agent's planned requests", error))?,
            not_ready: row.get("not_ready")?,
            lost: at
                .zip(evidence)
                .map(|(at, evidence)| Loss { at_ns: at.cast_unsigned(), evidence }),
            clock: offset.zip(bound).map(|(offset_ns, bound)| ClockOffset {
                offset_ns,
                bound_ns: bound.cast_unsigned(),
            }),
            started_after_ns: row.get("started_after_ns")?,
        })
    })?;
    agents.collect()
}

fn totals(rows: &Connection, run: &RunId) -> Result<Totals, StoreError> {
    let mut totals = Totals::default();
    let sql = "SELECT agent, seq, payload FROM snapshots WHERE run = ?1 \
               ORDER BY agent, epoch, seq";
    let mut select = rows.prepare(sql)?;
    let mut snapshots = select.query([run.as_str()])?;
    while let Some(row) = snapshots.next()? {
        let payload: Vec<u8> = row.get(2)?;
        let snapshot = decode_snapshot(&payload).map_err(|error| {
            let place: (String, i64) = (row.get(0).unwrap_or_default(), row.get(1).unwrap_or(0));
            StoreError::corrupt(format!("snapshot #{} of {} in {run}", place.1, place.0), error)
        })?;
        totals.add(&snapshot);
    }
    Ok(totals)
}

fn name<N: std::str::FromStr<Err = inrush_common::id::InvalidName>>(
    what: &str,
    text: &str,
) -> Result<N, StoreError> {
    text.parse().map_err(|error| StoreError::corrupt(what, error))
}
