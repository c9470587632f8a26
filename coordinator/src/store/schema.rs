//! The tables, and how a database is brought to them.

use rusqlite::Connection;

use super::StoreError;

/// Version of the tables below; kept in SQLite's `user_version`.
const VERSION: i64 = 1;

/// Times are nanoseconds since the Unix epoch; unsigned 64-bit numbers are kept as the signed ones of the same bits.
/// `planned` is a JSON array with a number or null for each phase.
const TABLES: &str = "
CREATE TABLE runs (
    run          TEXT PRIMARY KEY,
    plan         TEXT NOT NULL,
    source_name  TEXT NOT NULL,
    source       TEXT NOT NULL,
    version      TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    started_at   INTEGER,
    state        TEXT NOT NULL,
    outcome      TEXT NOT NULL,
    detail       TEXT
) STRICT;
CREATE INDEX runs_by_time ON runs (submitted_at);
CREATE TABLE run_files (
    run     TEXT NOT NULL REFERENCES runs (run),
    name    TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (run, name)
) STRICT;
CREATE TABLE run_agents (
    run              TEXT NOT NULL REFERENCES runs (run),
    agent            TEXT NOT NULL,
    epoch            INTEGER NOT NULL,
    version          TEXT NOT NULL,
    hostname         TEXT NOT NULL,
    workers          INTEGER NOT NULL,
    connections      INTEGER NOT NULL,
    requested        INTEGER NOT NULL,
    planned          TEXT NOT NULL,
    not_ready        TEXT,
    lost_at_ns       INTEGER,
    lost_evidence    TEXT,
    clock_offset_ns  INTEGER,
    clock_bound_ns   INTEGER,
    started_after_ns INTEGER,
    PRIMARY KEY (run, agent)
) STRICT;
CREATE TABLE snapshots (
    run     TEXT NOT NULL,
    agent   TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (run, agent, epoch, seq),
    FOREIGN KEY (run, agent) REFERENCES run_agents (run, agent)
) STRICT;
";

/// Settings of every connection.
pub(super) fn configure(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}

/// Makes the tables in a new database, and refuses one that this version does not understand.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    configure(connection)?;
    // What is acknowledged must outlive a power cut: every commit is flushed to disk.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        VERSION => Ok(()),
        0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            Ok(transaction.commit()?)
        }
        found => Err(StoreError::Newer { found, known: VERSION }),
    }
}
