//! The one thread that writes.

use std::{panic, thread};

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{Change, StoreError, Written, change::apply, ended_states, lock::Lock, outcome_name};
use crate::run::RunState;
use inrush_common::report::RunOutcome;

/// Most changes in one transaction: a flush to disk costs the same for one as for all of them.
const MAX_BATCH: usize = 1_024;

/// A change, and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) reply: Option<oneshot::Sender<Result<Written, StoreError>>>,
}

/// The running writer. It ends when the last [`Store`](super::Store) is dropped.
#[derive(Debug)]
pub struct Writer(thread::JoinHandle<()>);

impl Writer {
    pub(super) fn start(connection: Connection, lock: Lock, jobs: mpsc::Receiver<Job>) -> Self {
        let thread = thread::Builder::new().name("store".to_owned());
        let thread = thread.spawn(move || write_all(connection, &lock, jobs));
        Self(thread.expect("the system can start one more thread"))
    }

    /// Waits for its end, on a thread that may block.
    ///
    /// # Panics
    /// When the writer did.
    pub fn join(self) {
        if let Err(payload) = self.0.join() {
            panic::resume_unwind(payload);
        }
    }
}

fn write_all(mut connection: Connection, _lock: &Lock, mut jobs: mpsc::Receiver<Job>) {
    let mut batch = Vec::new();
    while jobs.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
        let results = commit(&mut connection, &batch);
        for (job, result) in batch.drain(..).zip(results) {
            match (job.reply, result) {
                // Whoever asked may have gone away meanwhile.
                (Some(reply), result) => drop(reply.send(result)),
                (None, Ok(_)) => {}
                (None, Err(error)) => {
                    tracing::error!(%error, change = ?job.change, "a change could not be stored");
                }
            }
        }
    }
}

/// Applies a batch as one transaction. A change that fails alone fails alone; a commit that fails, fails for all.
fn commit(connection: &mut Connection, batch: &[Job]) -> Vec<Result<Written, StoreError>> {
    let mut attempt = || -> Result<_, StoreError> {
        let transaction = connection.transaction()?;
        let results: Vec<_> = batch.iter().map(|job| apply(&transaction, &job.change)).collect();
        transaction.commit()?;
        Ok(results)
    };
    attempt().unwrap_or_else(|error| batch.iter().map(|_| Err(error.clone())).collect())
}

/// Ends the runs that an earlier process left under way.
pub(super) fn end_orphans(connection: &Connection) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE runs SET detail = CASE state WHEN ?1 THEN ?2 ELSE ?3 END, state = ?4, outcome = ?5 \
         WHERE state NOT IN ({})",
        ended_states()
    );
    let ended = connection.execute(
        &sql,
        params![
            RunState::Queued.name(),
            "the coordinator stopped before this run started",
            "the coordinator stopped during this run",
            RunState::Failed.name(),
            outcome_name(RunOutcome::Failed),
        ],
    )?;
    if ended > 0 {
        tracing::warn!(runs = ended, "the last coordinator left runs under way: marked as failed");
    }
    Ok(())
}
