//! What is trusted, and what is shown, on a TLS connection to a coordinator. TLS 1.3 only.

use std::sync::Arc;

use inrush_common::join::Fingerprint;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};

use super::{Credentials, fingerprint};

/// The name in every coordinator's certificate. Addresses play no part: trust comes from the one CA, whose only
/// certificate for servers is the coordinator's own.
pub const SERVER_NAME: &str = "coordinator.inrush.invalid";

/// gRPC is HTTP/2.
const ALPN: &[u8] = b"h2";

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Trusts the credentials' CA, and shows their certificate.
pub(super) fn joined(credentials: &Credentials) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(credentials.ca.clone())?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![credentials.certificate.clone()],
            credentials.key.clone_key().into(),
        )?;
    Ok(finish(config))
}

/// Trusts the CA with this fingerprint, which the coordinator shows with its own certificate, and shows nothing.
pub(super) fn pinned(ca: Fingerprint) -> Result<ClientConfig, Error> {
    let verifier = Arc::new(Pinned { ca, provider: provider() });
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(finish(config))
}

fn finish(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session would show the certificate of an earlier one.
    config.resumption = Resumption::disabled();
    config
}

pub(super) fn server_name() -> ServerName<'static> {
    ServerName::try_from(SERVER_NAME).expect("a DNS name")
}

#[derive(Debug)]
struct Pinned {
    ca: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let ca = intermediates.iter().find(|shown| fingerprint(shown) == self.ca);
        let ca = ca.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned())?;
        let provider = Arc::clone(&self.provider);
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
