//! The certificates that are in use on live connections, and the news that one was revoked.
//!
//! Revoking is done by another process, on the register. It is looked at twice a second.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use inrush_agent::credentials::fingerprint;
use inrush_common::{
    id::AgentName,
    join::{Fingerprint, Role},
};
use rustls::pki_types::CertificateDer;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Admission, Authority, CertsError, Grant, Register, Signed, State};
use crate::clock;

/// How often revocations are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A certificate in use.
#[derive(Debug)]
pub struct Standing {
    /// What it allows.
    pub role: Role,
    /// Whose it is.
    pub name: AgentName,
    /// How long it is still good, as of the handshake.
    pub good_for: Duration,
    /// When it should be renewed: once a third of its life is left.
    pub renew_in: Duration,
    /// Cancelled when it is revoked.
    pub revoked: CancellationToken,
}

/// The CA and its register, as a running coordinator uses them.
#[derive(Debug, Clone)]
pub struct Standings {
    authority: Arc<Authority>,
    register: Arc<Mutex<Register>>,
    /// The news for the holders of each certificate in use.
    live: Arc<Mutex<HashMap<Fingerprint, CancellationToken>>>,
}

impl Standings {
    /// Of the CA in this data directory.
    ///
    /// # Errors
    /// When its register cannot be used.
    pub fn open(authority: Authority, data_dir: &Path) -> Result<Self, CertsError> {
        let register = Arc::new(Mutex::new(Register::open(data_dir)?));
        Ok(Self { authority: Arc::new(authority), register, live: Arc::default() })
    }

    /// The CA.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What a certificate that a client has shown is worth; in words, when it is worth nothing.
    ///
    /// # Errors
    /// When the register fails.
    pub async fn of(
        &self,
        certificate: &CertificateDer<'_>,
    ) -> Result<Result<Standing, String>, CertsError> {
        let shown = fingerprint(certificate);
        // Before the look: what is revoked after it reaches this token.
        let revoked = self.live().entry(shown).or_default().clone();
        let entry = self.ask(move |register| register.find(shown)).await?;
        let again = "join again with a new token from `inrush certs token`";
        let Some(entry) = entry else {
            return Ok(Err(format!(
                "this certificate is not in the coordinator's register: {again}"
            )));
        };
        let (now, name, role) = (clock::wall(), entry.name.clone(), entry.role);
        Ok(match entry.state(now) {
            State::Valid => {
                let end =
                    std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(entry.expires_at_s);
                let good_for = end.duration_since(now).unwrap_or_default();
                let life =
                    Duration::from_secs(entry.expires_at_s.saturating_sub(entry.issued_at_s));
                let renew_in = good_for.saturating_sub(life / 3);
                Ok(Standing { role, name, good_for, renew_in, revoked })
            }
            State::Expired => Err(format!("the certificate of {name} has expired: {again}")),
            State::Revoked => Err(revoked_words(&name)),
        })
    }

    /// Lets somebody in who has a token.
    ///
    /// # Errors
    /// When the token lets nobody in.
    pub async fn admit(
        &self,
        secret: inrush_common::join::Secret,
        role: Role,
        name: Option<AgentName>,
        otherwise: AgentName,
        public_key: Vec<u8>,
    ) -> Result<(AgentName, Signed), CertsError> {
        let authority = Arc::clone(&self.authority);
        self.ask(move |register| {
            let admission = Admission { secret: &secret, role, name, otherwise };
            let now = clock::wall();
            register.admit(&admission, now, |name| authority.issue(role, name, &public_key, now))
        })
        .await
    }

    /// Makes another certificate for somebody who has one.
    ///
    /// # Errors
    /// When the key is none, or the register fails.
    pub async fn renew(
        &self,
        role: Role,
        name: AgentName,
        public_key: Vec<u8>,
    ) -> Result<Signed, CertsError> {
        let authority = Arc::clone(&self.authority);
        self.ask(move |register| {
            let now = clock::wall();
            let signed = authority.issue(role, &name, &public_key, now)?;
            register.note_renewed(role, &name, &signed, now)?;
            Ok(signed)
        })
        .await
    }

    /// Makes a token.
    ///
    /// # Errors
    /// When the register fails.
    pub async fn invite(&self, grant: Grant) -> Result<inrush_common::join::Secret, CertsError> {
        self.ask(move |register| register.invite(&grant, clock::wall())).await
    }

    /// Tells the holders of certificates that are revoked, until `stop`.
    pub async fn watch(self, stop: CancellationToken) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = looks.tick() => {}
            }
            if self.live().is_empty() {
                continue;
            }
            match self.ask(|register| register.revoked()).await {
                Ok(revoked) => {
                    let mut live = self.live();
                    for token in revoked.iter().filter_map(|shown| live.remove(shown)) {
                        token.cancel();
                    }
                }
                Err(error) => tracing::error!("revoked certificates cannot be looked for: {error}"),
            }
        }
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashMap<Fingerprint, CancellationToken>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Register) -> Result<T, CertsError> + Send + 'static,
    ) -> Result<T, CertsError> {
        let register = Arc::clone(&self.register);
        let asked = move || question(&mut register.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = tokio::task::spawn_blocking(asked).await;
        answer.map_err(|error| CertsError::Make(error.to_string()))?
    }
}

/// What the owner of a revoked certificate hears.
pub(crate) fn revoked_words(name: &AgentName) -> String {
    format!(
        "the certificate of {name} was revoked: ask the operator of this coordinator for a new token"
    )
}
