//! Who this process is to a coordinator that speaks TLS: certificates, how they are had, kept, shown and renewed.
//!
//! The same for an agent and for the command line. A newcomer has a join token, which pins the coordinator's CA; it makes
//! a key, and gets a certificate for it ([`enrol::join`]). The key never leaves the machine. Later it shows the
//! certificate ([`Way::connect`]) and has it renewed in time.

mod dial;
pub mod enrol;
mod key;
mod renewal;
mod tls;
mod vault;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use inrush_common::{
    id::AgentName,
    join::{Fingerprint, Role},
};
use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::clock;

pub use self::{
    dial::{DialError, SPEAKS_TLS, Way, in_words},
    enrol::JoinError,
    key::{InvalidKey, KeyPair, random},
    renewal::Renewal,
    tls::SERVER_NAME,
    vault::{Vault, VaultError, default_state_dir, pem, write_private},
};

/// A certificate with its key, and the CA that made it.
#[derive(Debug)]
pub struct Credentials {
    /// What they allow.
    pub role: Role,
    /// Whose they are.
    pub name: AgentName,
    /// The only CA that is trusted.
    pub ca: CertificateDer<'static>,
    /// Made by it.
    pub certificate: CertificateDer<'static>,
    /// The certificate's.
    pub key: PrivatePkcs8KeyDer<'static>,
    /// The digest of the token they were had with, so that it is not tried again.
    pub token: Option<Fingerprint>,
    /// When to ask for others, in seconds since the Unix epoch by this machine's clock. For who has no better word from
    /// the coordinator.
    pub renew_at_s: u64,
}

impl Credentials {
    /// Whether they should be renewed by now.
    pub fn is_old(&self) -> bool {
        clock::wall_s() >= self.renew_at_s
    }
}

/// Credentials and the file they are kept in. Renewed in place: what dials next uses the new ones.
#[derive(Debug)]
pub struct Keyring {
    current: Mutex<Arc<Credentials>>,
    file: PathBuf,
}

impl Keyring {
    /// Credentials that are kept in `file`.
    pub fn new(credentials: Credentials, file: PathBuf) -> Self {
        Self { current: Mutex::new(Arc::new(credentials)), file }
    }

    /// The newest.
    pub fn current(&self) -> Arc<Credentials> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where they are kept.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Takes others in their place, on disk first.
    ///
    /// # Errors
    /// When they cannot be kept: then the old ones stay.
    pub fn replace(&self, credentials: Credentials) -> Result<(), VaultError> {
        vault::write(&self.file, &credentials)?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(credentials);
        Ok(())
    }
}

/// The fingerprint of a certificate, or of any other bytes.
pub fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let digest = digest(&SHA256, bytes);
    Fingerprint(digest.as_ref().try_into().expect("a SHA-256 has 32 bytes"))
}
