//! The one thread that writes.

use std::{panic, thread};

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{Change, StoreError, Written, change::apply, ended_states, lock::Lock};
use crate::run::RunState;
use inrush_common::report::RunOutcome;

/// Most changes in one transaction: a flush to disk costs the same for one as for all of them.
const MAX_BATCH: usize = 1_024;

/// What the writer is given.
#[derive(Debug)]
pub(super) enum Job {
    /// A change, and who waits for it.
    Write(Change, Option<oneshot::Sender<Result<Written, StoreError>>>),
    /// The end: what was given before is still written, what comes after is refused.
    Close,
}

/// The running writer.
#[derive(Debug)]
pub struct Writer {
    thread: thread::JoinHandle<()>,
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        lock: Lock,
        jobs: mpsc::Sender<Job>,
        inbox: mpsc::Receiver<Job>,
    ) -> Self {
        let thread = thread::Builder::new().name("store".to_owned());
        let thread = thread.spawn(move || write_all(connection, lock, inbox));
        Self { thread: thread.expect("the system can start one more thread"), jobs }
    }

    /// Ends it, on a thread that may block. The store is closed then, whoever still has a handle.
    ///
    /// # Panics
    /// When the writer did.
    pub fn close(self) {
        if self.jobs.blocking_send(Job::Close).is_err() {
            tracing::debug!("the store's writer has ended before");
        }
        if let Err(payload) = self.thread.join() {
            panic::resume_unwind(payload);
        }
    }
}

fn write_all(mut connection: Connection, lock: Lock, mut inbox: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    let mut open = true;
    while open && inbox.blocking_recv_many(&mut jobs, MAX_BATCH) > 0 {
        let (mut changes, mut replies) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                Job::Write(change, reply) if open => {
                    changes.push(change);
                    replies.push(reply);
                }
                // Dropping its reply tells whoever waits.
                Job::Write(..) => {}
                Job::Close => open = false,
            }
        }
        let results = commit(&mut connection, &changes);
        for ((reply, result), change) in replies.into_iter().zip(results).zip(&changes) {
            match (reply, result) {
                // Whoever asked may have gone away meanwhile.
                (Some(reply), result) => drop(reply.send(result)),
                (None, Ok(_)) => {}
                (None, Err(error)) => {
                    tracing::error!(%error, ?change, "a change could not be stored");
                }
            }
        }
    }
    drop(connection);
    // Last: then another coordinator may open the database.
    drop(lock);
}

/// Applies a batch as one transaction. A change that fails alone fails alone; a commit that fails, fails for all.
fn commit(connection: &mut Connection, batch: &[Change]) -> Vec<Result<Written, StoreError>> {
    let mut attempt = || -> Result<_, StoreError> {
        let transaction = connection.transaction()?;
        let results: Vec<_> = batch.iter().map(|change| apply(&transaction, change)).collect();
        transaction.commit()?;
        Ok(results)
    };
    attempt().unwrap_or_else(|error| batch.iter().map(|_| Err(error.clone())).collect())
}

/// What becomes of a run when its coordinator stops before its end.
pub const fn orphaned(started: bool) -> (RunOutcome, &'static str) {
    if started {
        (RunOutcome::Aborted, "the coordinator stopped during this run")
    } else {
        (RunOutcome::Failed, "the coordinator stopped before this run started")
    }
}

/// Ends the runs that an earlier process left under way.
pub(super) fn end_orphans(connection: &Connection) -> Result<(), StoreError> {
    let mut ended = 0;
    for (started, condition) in [(true, "IS NOT NULL"), (false, "IS NULL")] {
        let (outcome, detail) = orphaned(started);
        let sql = format!(
            "UPDATE runs SET state = ?1, outcome = ?2, detail = ?3 \
             WHERE started_at {condition} AND state NOT IN ({})",
            ended_states()
        );
        let values = params![RunState::Failed.name(), outcome.name(), detail];
        ended += connection.execute(&sql, values)?;
    }
    if ended > 0 {
        tracing::warn!(runs = ended, "the last coordinator left runs under way: marked as failed");
    }
    Ok(())
}
