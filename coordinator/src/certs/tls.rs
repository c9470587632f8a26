//! How the coordinator speaks TLS: its own certificate, and client certificates of its CA, if one is shown.

use std::{sync::Arc, time::SystemTime};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::TLS13,
};

use super::{Authority, CertsError};

impl Authority {
    /// The server's side of TLS. A client without a certificate gets through the handshake, for it may want to join: what
    /// it may do there is decided at its first call. One with a certificate of another CA does not.
    ///
    /// # Errors
    /// When the CA's certificate cannot be used.
    pub fn server_config(&self, now: SystemTime) -> Result<ServerConfig, CertsError> {
        let cannot = |error: &dyn std::fmt::Display| CertsError::Make(error.to_string());
        let (certificate, key) = self.issue_own(now)?;
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate().clone()).map_err(|error| cannot(&error))?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let clients = clients.allow_unauthenticated().build().map_err(|error| cannot(&error))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| cannot(&error))?
            .with_client_cert_verifier(clients)
            // The CA goes along: who joins knows no more of it than its fingerprint.
            .with_single_cert(vec![certificate, self.certificate().clone()], key.into())
            .map_err(|error| cannot(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // Every connection shows its certificate: nothing of an earlier one is taken up.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}
