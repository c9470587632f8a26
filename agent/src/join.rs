//! How an agent gets its way to the coordinator: with credentials it has, with a join token, or without TLS.

use std::{
    fs,
    io::{self, BufRead as _},
    path::Path,
    sync::Arc,
};

use inrush_common::{
    id::AgentName,
    join::{JoinToken, NoToken, Role},
};

use crate::credentials::{JoinError, Keyring, Vault, VaultError, Way, enrol, fingerprint};

/// Longest text in which a token is looked for.
const LONGEST: u64 = 4_096;

/// Why there is no way to the coordinator.
#[derive(Debug, thiserror::Error)]
pub enum NoWay {
    /// The token cannot be read.
    #[error("cannot read the join token from {from}: {error}")]
    Unreadable {
        /// A file, or stdin.
        from: String,
        /// Why.
        error: io::Error,
    },
    /// It is none.
    #[error("{from}: {error}")]
    Token {
        /// Where it was read.
        from: String,
        /// What is expected.
        error: NoToken,
    },
    /// The credentials belong to another name.
    #[error(
        "{file} is {held}'s, not {wanted}'s: start with --name {held}, or join with a token for {wanted}"
    )]
    Name {
        /// The file.
        file: String,
        /// Whose it is.
        held: AgentName,
        /// Who was to start.
        wanted: AgentName,
    },
    /// Joining failed.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The credentials cannot be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Reads a token: itself, from a file, or from stdin (`-`). In an argument every user of the machine can see it while
/// the process runs.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn read_token(given: &str) -> Result<JoinToken, NoWay> {
    if JoinToken::is_meant_by(given) {
        let from = "the join token".to_owned();
        return given.parse().map_err(|error| NoWay::Token { from, error });
    }
    let from = if given == "-" { "stdin".to_owned() } else { given.to_owned() };
    let read = if given == "-" { first_line(io::stdin().lock()) } else { first_line_of(given) };
    let text = read.map_err(|error| NoWay::Unreadable { from: from.clone(), error })?;
    text.parse().map_err(|error| NoWay::Token { from, error })
}

fn first_line_of(file: &str) -> io::Result<String> {
    first_line(io::BufReader::new(fs::File::open(Path::new(file))?))
}

fn first_line(from: impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(from, LONGEST).read_line(&mut line)?;
    Ok(line)
}

/// An agent's way to the coordinator at `address`, and the name it has there.
///
/// A token is used once: where it was used before, its credentials are taken, so that a service may be started with the
/// same token for ever. `host` is the name when none is given.
///
/// # Errors
/// When joining fails, or credentials cannot be used.
pub async fn agent_way(
    address: &str,
    token: Option<&JoinToken>,
    vault: &Vault,
    name: Option<&AgentName>,
    host: &AgentName,
) -> Result<(Way, AgentName), NoWay> {
    let held = vault.agent(address, name, host);
    let keyring = match token {
        None => held?.map(|(credentials, file)| Keyring::new(credentials, file)),
        Some(token) if token.role != Role::Agent => {
            let remedy = "use it with `inrush certs join`, or get one from `inrush certs token --role agent`";
            return Err(JoinError::Role { is: token.role, remedy }.into());
        }
        Some(token) => {
            let used = Some(fingerprint(&token.secret.0));
            match held.ok().flatten().filter(|(credentials, _)| credentials.token == used) {
                Some((credentials, file)) => Some(Keyring::new(credentials, file)),
                None => Some(joined(address, token, vault, name, host).await?),
            }
        }
    };
    let Some(keyring) = keyring else {
        let name = name.unwrap_or(host).clone();
        return Ok((Way::plain(address), name));
    };
    let held = keyring.current().name.clone();
    if let Some(wanted) = name.filter(|wanted| **wanted != held) {
        let (file, wanted) = (keyring.file().display().to_string(), wanted.clone());
        return Err(NoWay::Name { file, held, wanted });
    }
    Ok((Way::secured(address, Arc::new(keyring)), held))
}

async fn joined(
    address: &str,
    token: &JoinToken,
    vault: &Vault,
    name: Option<&AgentName>,
    host: &AgentName,
) -> Result<Keyring, JoinError> {
    let keyring = enrol::join(address, token, name, host, vault).await?;
    let held = keyring.current();
    tracing::info!(
        "joined the coordinator at {address} as {}; the certificate is in {}",
        held.name,
        keyring.file().display()
    );
    Ok(keyring)
}
