//! The register of tokens and certificates: SQLite, so that a token is used once whoever asks, also over a restart, and
//! the command line may write beside a running coordinator.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use inrush_agent::credentials::{fingerprint, random};
use inrush_common::{
    id::AgentName,
    join::{Fingerprint, Role, Secret},
};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use super::{CertsError, Refused, Signed, files, io_error};

/// Version of the tables; kept in SQLite's `user_version`.
const VERSION: i64 = 1;

/// Times are seconds since the Unix epoch. Of a token only the digest of its secret is kept.
const TABLES: &str = "
CREATE TABLE tokens (
    digest     BLOB PRIMARY KEY,
    role       TEXT NOT NULL,
    name       TEXT,
    made_by    TEXT NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;
CREATE TABLE certificates (
    fingerprint BLOB PRIMARY KEY,
    role        TEXT NOT NULL,
    name        TEXT NOT NULL,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_at  INTEGER
) STRICT;
CREATE INDEX certificates_by_name ON certificates (name);
CREATE INDEX revoked_certificates ON certificates (fingerprint) WHERE revoked_at IS NOT NULL;
";

/// Who made a token on the coordinator's own machine.
const OPERATOR: &str = "the data directory";

/// What a new token is for.
#[derive(Debug, Clone)]
pub struct Grant {
    /// What its holder becomes.
    pub role: Role,
    /// The only name it is good for.
    pub name: Option<AgentName>,
    /// For how long.
    pub expires_in: Duration,
    /// Who made it; `None`: who has the data directory.
    pub made_by: Option<AgentName>,
}

/// Somebody with a token.
#[derive(Debug, Clone)]
pub struct Admission<'a> {
    /// The token's secret.
    pub secret: &'a Secret,
    /// What it says it is for.
    pub role: Role,
    /// The name asked for.
    pub name: Option<AgentName>,
    /// The name when neither has one.
    pub otherwise: AgentName,
}

/// A certificate's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub fingerprint: Fingerprint,
    /// What it allows.
    pub role: Role,
    /// Whose.
    pub name: AgentName,
    /// When it was made, in seconds since the Unix epoch.
    pub issued_at_s: u64,
    /// Good until then.
    pub expires_at_s: u64,
    /// Whether it was revoked.
    pub is_revoked: bool,
}

/// What a certificate is worth now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It lets its owner in.
    Valid,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl Entry {
    /// What it is worth at `now`.
    pub fn state(&self, now: SystemTime) -> State {
        if self.is_revoked {
            State::Revoked
        } else if self.expires_at_s <= seconds(now).cast_unsigned() {
            State::Expired
        } else {
            State::Valid
        }
    }
}

/// The register of one data directory.
#[derive(Debug)]
pub struct Register {
    connection: Connection,
}

impl Register {
    /// Opens it; the folder must be there.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open(data_dir: &Path) -> Result<Self, CertsError> {
        let path = files::register(data_dir);
        // SQLite would make it with the usual mode; what it makes beside it gets the mode of this one.
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path);
        drop(file.map_err(io_error("open", &path))?);
        let mut connection = Connection::open(&path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match found {
            VERSION => {}
            0 => {
                transaction.execute_batch(TABLES)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            _ => {
                let cause = format!("it was written by a newer Inrush (its format is {found})");
                return Err(CertsError::Damaged { path: path.display().to_string(), cause });
            }
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// Makes a token and gives its secret, which is not kept.
    ///
    /// # Errors
    /// When the register fails.
    pub fn invite(&self, grant: &Grant, now: SystemTime) -> Result<Secret, CertsError> {
        let secret = Secret(random().map_err(|error| CertsError::Make(error.to_string()))?);
        let digest = fingerprint(&secret.0);
        self.connection.execute(
            "INSERT INTO tokens (digest, role, name, made_by, made_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
            params![
                digest.0,
                grant.role.name(),
                grant.name.as_ref().map(AgentName::as_str),
                grant.made_by.as_ref().map_or(OPERATOR, AgentName::as_str),
                seconds(now),
                seconds(now + grant.expires_in),
            ],
        )?;
        Ok(secret)
    }

    /// Uses a token up and notes the certificate that `sign` makes for its holder; both or neither.
    ///
    /// # Errors
    /// When the token lets nobody in, or not under this name: then it stays as it was.
    pub fn admit(
        &mut self,
        admission: &Admission<'_>,
        now: SystemTime,
        sign: impl FnOnce(&AgentName) -> Result<Signed, CertsError>,
    ) -> Result<(AgentName, Signed), CertsError> {
        let digest = fingerprint(&admission.secret.0);
        // Nobody else may look at the token between our look and our mark.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let token = transaction
            .query_row(
                "SELECT name, expires_at, used_at IS NOT NULL FROM tokens WHERE digest = ? AND role = ?",
                params![digest.0, admission.role.name()],
                |row| {
                    let name: Option<String> = row.get(0)?;
                    Ok((name, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
                },
            )
            .optional()?;
        let (given, expires_at, used) = token.ok_or(Refused::Unknown)?;
        if used {
            return Err(Refused::Used.into());
        }
        if expires_at <= seconds(now) {
            return Err(Refused::Expired.into());
        }
        let given = given.map(|name| parse_name(&name)).transpose()?;
        let name = match (&given, &admission.name) {
            (Some(token), Some(asked)) if token != asked => {
                let (token, asked) = (token.to_string(), asked.to_string());
                return Err(Refused::Name { token, asked }.into());
            }
            (Some(name), _) | (None, Some(name)) => name.clone(),
            (None, None) => admission.otherwise.clone(),
        };
        // A token for anybody must not make somebody else of its holder.
        let held: bool = transaction.query_row(
            "SELECT EXISTS (SELECT 1 FROM certificates WHERE name = ? AND revoked_at IS NULL AND expires_at > ?)",
            params![name.as_str(), seconds(now)],
            |row| row.get(0),
        )?;
        if held && given.is_none() {
            return Err(Refused::Taken(name.to_string()).into());
        }
        let signed = sign(&name)?;
        transaction.execute(
            "UPDATE tokens SET used_at = ? WHERE digest = ?",
            params![seconds(now), digest.0],
        )?;
        note(&transaction, admission.role, &name, &signed, now)?;
        transaction.commit()?;
        Ok((name, signed))
    }

    /// Notes a certificate that takes the place of another one.
    ///
    /// # Errors
    /// When the register fails.
    pub fn note_renewed(
        &self,
        role: Role,
        name: &AgentName,
        signed: &Signed,
        now: SystemTime,
    ) -> Result<(), CertsError> {
        note(&self.connection, role, name, signed, now)
    }

    /// The row of a certificate.
    ///
    /// # Errors
    /// When the register fails.
    pub fn find(&self, fingerprint: Fingerprint) -> Result<Option<Entry>, CertsError> {
        let row = self
            .connection
            .query_row(
                "SELECT fingerprint, role, name, issued_at, expires_at, revoked_at IS NOT NULL FROM certificates \
                 WHERE fingerprint = ?",
                [fingerprint.0],
                columns,
            )
            .optional()?;
        row.map(entry).transpose()
    }

    /// All certificates, those of one name together, the newest first.
    ///
    /// # Errors
    /// When the register fails.
    pub fn list(&self) -> Result<Vec<Entry>, CertsError> {
        let mut query = self.connection.prepare(
            "SELECT fingerprint, role, name, issued_at, expires_at, revoked_at IS NOT NULL FROM certificates \
             ORDER BY name, role, issued_at DESC, rowid DESC",
        )?;
        let rows = query.query_map([], columns)?.collect::<Result<Vec<_>, _>>()?;
        rows.into_iter().map(entry).collect()
    }

    /// Revokes all certificates of a name, and the unused tokens for it. How many certificates.
    ///
    /// # Errors
    /// When the register fails.
    pub fn revoke(&mut self, name: &AgentName, now: SystemTime) -> Result<usize, CertsError> {
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "UPDATE tokens SET expires_at = 0 WHERE name = ? AND used_at IS NULL",
            [name.as_str()],
        )?;
        let revoked = transaction.execute(
            "UPDATE certificates SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL",
            params![seconds(now), name.as_str()],
        )?;
        transaction.commit()?;
        Ok(revoked)
    }

    /// The certificates that are revoked.
    ///
    /// # Errors
    /// When the register fails.
    pub fn revoked(&self) -> Result<Vec<Fingerprint>, CertsError> {
        let mut query = self
            .connection
            .prepare("SELECT fingerprint FROM certificates WHERE revoked_at IS NOT NULL")?;
        let rows = query.query_map([], |row| row.get(0).map(Fingerprint))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn note(
    connection: &Connection,
    role: Role,
    name: &AgentName,
    signed: &Signed,
    now: SystemTime,
) -> Result<(), CertsError> {
    connection.execute(
        "INSERT INTO certificates (fingerprint, role, name, issued_at, expires_at) VALUES (?, ?, ?, ?, ?)",
        params![
            fingerprint(&signed.certificate).0,
            role.name(),
            name.as_str(),
            seconds(now),
            seconds(signed.expires_at),
        ],
    )?;
    Ok(())
}

type Columns = ([u8; 32], String, String, i64, i64, bool);

fn columns(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
}

fn entry(columns: Columns) -> Result<Entry, CertsError> {
    let (fingerprint, role, name, issued_at, expires_at, is_revoked) = columns;
    Ok(Entry {
        fingerprint: Fingerprint(fingerprint),
        role: role.parse().map_err(damaged)?,
        name: parse_name(&name)?,
        issued_at_s: issued_at.max(0).cast_unsigned(),
        expires_at_s: expires_at.max(0).cast_unsigned(),
        is_revoked,
    })
}

fn parse_name(text: &str) -> Result<AgentName, CertsError> {
    text.parse().map_err(damaged)
}

fn damaged(cause: impl ToString) -> CertsError {
    CertsError::Damaged { path: "certs.db".to_owned(), cause: cause.to_string() }
}

fn seconds(at: SystemTime) -> i64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
