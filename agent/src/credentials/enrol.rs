//! Joining a coordinator with a token, and having the certificate renewed.

use std::{path::PathBuf, sync::Arc, time::Duration};

use inrush_common::{
    id::AgentName,
    join::{JoinToken, Role},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{self, enrollment_client::EnrollmentClient},
};
use tokio::time::timeout;
use tonic::{Status, transport::Endpoint};

use super::{
    Credentials, DialError, InvalidKey, KeyPair, Keyring, Vault, VaultError, Way, fingerprint,
    in_words,
};
use crate::clock;

/// For a connection, and again for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Why nothing was joined or renewed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// A token for something else.
    #[error("this token makes {}: {remedy}", match .is { Role::Agent => "an agent", Role::User => "a user" })]
    Role {
        /// What it is for.
        is: Role,
        /// Where it belongs.
        remedy: &'static str,
    },
    /// No connection.
    #[error("cannot join the coordinator at {address}: {error}")]
    Dial {
        /// Where.
        address: String,
        /// Why.
        error: DialError,
    },
    /// It says no.
    #[error("the coordinator at {address} says: {words}")]
    Refused {
        /// Where.
        address: String,
        /// Its words.
        words: String,
    },
    /// It answers something else.
    #[error(
        "the coordinator at {address} answered with {what}: run the same version of Inrush on both sides"
    )]
    Answer {
        /// Where.
        address: String,
        /// What.
        what: &'static str,
    },
    /// No key.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// Nowhere to keep it.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Joins the coordinator at `address` and keeps the credentials in `vault`. `name` is asked for; without one the token's
/// is taken, or `otherwise` if it has none.
///
/// # Errors
/// When the coordinator cannot be had, is not the token's, or refuses; or when the credentials cannot be kept.
pub async fn join(
    address: &str,
    token: &JoinToken,
    name: Option<&AgentName>,
    otherwise: &AgentName,
    vault: &Vault,
) -> Result<Keyring, JoinError> {
    let dial = |error| JoinError::Dial { address: address.to_owned(), error };
    let late = || DialError::Failed(format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
    let way = Way::pinned(address, token.ca);
    let channel = timeout(ANSWER_WITHIN, way.connect(tune)).await;
    let channel = channel.unwrap_or_else(|_| Err(late())).map_err(dial)?;
    let key = KeyPair::generate()?;
    let request = v1::JoinRequest {
        protocol: PROTOCOL_VERSION,
        secret: token.secret.0.to_vec().into(),
        role: v1::Role::from(token.role).into(),
        name: name.map(AgentName::to_string).unwrap_or_default(),
        otherwise: otherwise.to_string(),
        public_key: key.public.clone().into(),
    };
    let answer = timeout(ANSWER_WITHIN, EnrollmentClient::new(channel).join(request)).await;
    let answer = answer.map_err(|_| dial(late()))?.map_err(|status| refused(address, &status))?;
    let mut credentials = credentials(address, token.role, answer.into_inner(), key)?;
    if fingerprint(&credentials.ca) != token.ca {
        return Err(JoinError::Answer { address: address.to_owned(), what: "another CA" });
    }
    credentials.token = Some(fingerprint(&token.secret.0));
    let file = vault.file(address, token.role, &credentials.name);
    keep(credentials, file)
}

fn keep(credentials: Credentials, file: PathBuf) -> Result<Keyring, JoinError> {
    super::vault::write(&file, &credentials)?;
    Ok(Keyring::new(credentials, file))
}

/// Gets another certificate, with a new key, in the place of the present one.
///
/// # Errors
/// As for [`join`].
pub async fn renew(way: &Way, keyring: &Arc<Keyring>) -> Result<(), JoinError> {
    let address = way.address();
    let dial = |error| JoinError::Dial { address: address.to_owned(), error };
    let late = || DialError::Failed(format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
    let channel = timeout(ANSWER_WITHIN, way.connect(tune)).await;
    let channel = channel.unwrap_or_else(|_| Err(late())).map_err(dial)?;
    let key = KeyPair::generate()?;
    let request = v1::RenewRequest { public_key: key.public.clone().into() };
    let answer = timeout(ANSWER_WITHIN, EnrollmentClient::new(channel).renew(request)).await;
    let answer = answer.map_err(|_| dial(late()))?.map_err(|status| refused(address, &status))?;
    let old = keyring.current();
    let new = credentials(address, old.role, answer.into_inner(), key)?;
    if new.ca != old.ca {
        return Err(JoinError::Answer { address: address.to_owned(), what: "another CA" });
    }
    Ok(keyring.replace(Credentials { token: old.token, ..new })?)
}

fn tune(endpoint: Endpoint) -> Endpoint {
    endpoint.connect_timeout(ANSWER_WITHIN).tcp_nodelay(true)
}

fn refused(address: &str, status: &Status) -> JoinError {
    let address = address.to_owned();
    match in_words(status) {
        Some(error) => JoinError::Dial { address, error },
        None => JoinError::Refused { address, words: status.message().to_owned() },
    }
}

fn credentials(
    address: &str,
    role: Role,
    answer: v1::Certificate,
    key: KeyPair,
) -> Result<Credentials, JoinError> {
    let wrong = |what| JoinError::Answer { address: address.to_owned(), what };
    let v1::Certificate { certificate, ca, name, valid_for_s } = answer;
    if certificate.is_empty() || ca.is_empty() {
        return Err(wrong("no certificate"));
    }
    Ok(Credentials {
        role,
        name: name.parse().map_err(|_| wrong("a name that is none"))?,
        ca: ca.to_vec().into(),
        certificate: certificate.to_vec().into(),
        key: key.private,
        token: None,
        renew_at_s: clock::wall_s().saturating_add(valid_for_s / 3 * 2),
    })
}
