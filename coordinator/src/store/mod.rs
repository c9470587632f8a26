//! What outlives the process: runs, their agents' facts, and every snapshot, in one SQLite database.
//!
//! One thread writes; what is queued at a time becomes one transaction, and only then is it answered for. Readers open
//! connections of their own. A report is a pure function of the rows, so it can be derived again at any later time.

mod change;
mod lock;
mod reader;
mod schema;
mod seal;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use inrush_common::{
    id::{AgentName, Epoch, RunId},
    report::{Report, RunOutcome},
};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, mpsc, oneshot};

pub use change::{Change, NewAgent, NewRun, Written};
pub use reader::RunRow;
pub use writer::{Writer, orphaned};

use crate::run::RunState;

/// Changes waiting for the writer. When full, whoever has one more waits: nothing is acknowledged, and agents keep
/// what they have.
const QUEUED_CHANGES: usize = 4_096;

/// Reports built at a time; more wait. Each holds a run's histograms in memory.
const REPORTS_AT_A_TIME: usize = 2;

const DATABASE: &str = "inrush.db";

/// What can go wrong with the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be used at all.
    #[error("the data directory {path} cannot be used: {cause}")]
    Directory {
        /// Which.
        path: String,
        /// Why.
        cause: String,
    },
    /// Somebody else has it.
    #[error(
        "the data directory {path} is in use by another coordinator{holder}: stop that one, or choose another \
         directory with --data-dir"
    )]
    InUse {
        /// Which.
        path: String,
        /// " (process 123)", as far as known.
        holder: String,
    },
    /// Written by a later version.
    #[error(
        "the database was written by a newer Inrush (its format is {found}, this version knows {known}): use that \
         version, or another directory with --data-dir"
    )]
    Newer {
        /// The database's format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// SQLite says no.
    #[error("the database in the data directory failed: {0}")]
    Sqlite(Arc<rusqlite::Error>),
    /// A stored row means nothing.
    #[error("the database holds {what} that cannot be read: {cause}")]
    Corrupt {
        /// Which row.
        what: String,
        /// Why.
        cause: String,
    },
    /// The writer is gone.
    #[error("the store is closed")]
    Closed,
    /// The writer is there, and does not get on.
    #[error(
        "the disk of the data directory did not take it within {}: see whether it is full or hangs",
        inrush_common::units::Nanos::from(*.0)
    )]
    Overdue(Duration),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl StoreError {
    fn corrupt(what: impl Into<String>, cause: impl ToString) -> Self {
        Self::Corrupt { what: what.into(), cause: cause.to_string() }
    }
}

/// A cheap handle on the open store.
#[derive(Debug, Clone)]
pub struct Store {
    path: Arc<PathBuf>,
    changes: mpsc::Sender<writer::Job>,
    reports: Arc<Semaphore>,
}

impl Store {
    /// Opens (or makes) the store in `data_dir` and starts its writer.
    /// Runs that were under way when an earlier process ended are ended now.
    ///
    /// # Errors
    /// When the directory cannot be written, is in use, or holds what this version does not understand.
    pub fn open(data_dir: &Path) -> Result<(Self, Writer), StoreError> {
        let lock = lock::take(data_dir)?;
        let path = data_dir.join(DATABASE);
        lock::make_private(&path)?;
        let mut connection = Connection::open(&path)?;
        schema::prepare(&mut connection)?;
        writer::end_orphans(&connection)?;
        let (changes, inbox) = mpsc::channel(QUEUED_CHANGES);
        let writer = Writer::start(connection, lock, changes.clone(), inbox);
        let reports = Arc::new(Semaphore::new(REPORTS_AT_A_TIME));
        Ok((Self { path: Arc::new(path), changes, reports }, writer))
    }

    /// Makes a change and waits until it is on disk.
    ///
    /// # Errors
    /// When it is not.
    pub async fn write(&self, change: Change) -> Result<Written, StoreError> {
        self.begin(change).await?.await.map_err(|_| StoreError::Closed)?
    }

    /// [`write`](Self::write), for those that cannot wait as long as a disk may take. What is overdue may still be
    /// written later.
    ///
    /// # Errors
    /// When it is not on disk within that time.
    pub async fn write_within(
        &self,
        change: Change,
        within: Duration,
    ) -> Result<Written, StoreError> {
        let written = tokio::time::timeout(within, self.write(change)).await;
        written.unwrap_or(Err(StoreError::Overdue(within)))
    }

    /// Hands in a change, to be waited for later.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn begin(
        &self,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<Written, StoreError>>, StoreError> {
        let (reply, written) = oneshot::channel();
        let job = writer::Job::Write(change, Some(reply));
        self.changes.send(job).await.map_err(|_| StoreError::Closed)?;
        Ok(written)
    }

    /// Hands in a change that nobody waits for; the writer logs it when it fails.
    pub async fn note(&self, change: Change) {
        if self.changes.send(writer::Job::Write(change, None)).await.is_err() {
            tracing::error!("a change was lost: the store is closed");
        }
    }

    /// The report of a run, derived from the rows; `None`: there is no such run.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn report(&self, run: &RunId) -> Result<Option<Report>, StoreError> {
        let permit = self.reports.acquire().await.map_err(|_| StoreError::Closed)?;
        let run = run.clone();
        let report = self.read(move |rows| reader::report(rows, &run)).await;
        drop(permit);
        report
    }

    /// The newest runs, newest first.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        self.read(move |rows| reader::runs(rows, limit)).await
    }

    /// One run; `None`: there is no such run.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub async fn run(&self, run: &RunId) -> Result<Option<RunRow>, StoreError> {
        let run = run.clone();
        self.read(move |rows| reader::run(rows, &run)).await
    }

    /// Whether this process of the agent was given a share of the run.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub async fn is_assigned(
        &self,
        run: &RunId,
        agent: &AgentName,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let (run, agent) = (run.clone(), agent.clone());
        self.read(move |rows| reader::is_assigned(rows, &run, &agent, epoch)).await
    }

    /// Reads on a connection of its own, after all that was handed in before is on disk.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(Change::Nothing).await?;
        let path = Arc::clone(&self.path);
        let task = tokio::task::spawn_blocking(move || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path.as_path(), flags)?;
            schema::configure(&connection)?;
            query(&connection)
        });
        task.await.map_err(|error| StoreError::corrupt("rows", error))?
    }
}

/// Nanoseconds since the Unix epoch, as stored; instants before it are it.
fn to_stored(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn from_stored(nanos: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

fn outcome_from_name(name: &str) -> Option<RunOutcome> {
    RunOutcome::ALL.iter().copied().find(|outcome| outcome.name() == name)
}

/// States after which nothing more happens, as a list for SQL.
fn ended_states() -> String {
    let ended = RunState::ALL.iter().filter(|state| state.is_ended());
    ended.map(|state| format!("'{state}'")).collect::<Vec<_>>().join(", ")
}
