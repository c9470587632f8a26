//! Dialling a coordinator, with TLS where there are credentials for it.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use inrush_common::join::Fingerprint;
use rustls::{AlertDescription, CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{
    codegen::Service,
    transport::{Channel, Endpoint},
};

use super::{Keyring, tls};

/// The way to a coordinator: where it is, and who we are to it.
#[derive(Debug, Clone)]
pub struct Way {
    address: String,
    tls: Tls,
}

#[derive(Debug, Clone)]
enum Tls {
    None,
    /// Trusts a CA by its fingerprint, and shows nothing.
    Pinned(Fingerprint),
    Joined(Arc<Keyring>),
}

/// Why there is no connection, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// Nobody there, or somebody else; it may be otherwise in a while.
    #[error("{0}")]
    Failed(String),
    /// The credentials are of no use, now and later.
    #[error("{0}")]
    Useless(String),
}

impl Way {
    /// Without TLS, to `HOST:PORT`.
    pub fn plain(address: impl Into<String>) -> Self {
        Self { address: address.into(), tls: Tls::None }
    }

    /// With TLS, as somebody who has no certificate yet: to join.
    pub fn pinned(address: impl Into<String>, ca: Fingerprint) -> Self {
        Self { address: address.into(), tls: Tls::Pinned(ca) }
    }

    /// With TLS, as the owner of a certificate.
    pub fn secured(address: impl Into<String>, keyring: Arc<Keyring>) -> Self {
        Self { address: address.into(), tls: Tls::Joined(keyring) }
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The credentials, if there are any.
    pub fn keyring(&self) -> Option<&Arc<Keyring>> {
        match &self.tls {
            Tls::Joined(keyring) => Some(keyring),
            Tls::None | Tls::Pinned(_) => None,
        }
    }

    /// Connects, over an endpoint that `tune` has set up.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn connect(
        &self,
        tune: impl FnOnce(Endpoint) -> Endpoint,
    ) -> Result<Channel, DialError> {
        let config = match &self.tls {
            Tls::None => None,
            Tls::Pinned(ca) => {
                Some(tls::pinned(*ca).map_err(|error| DialError::Failed(error.to_string()))?)
            }
            Tls::Joined(keyring) => Some(tls::joined(&keyring.current()).map_err(|error| {
                let file = keyring.file().display();
                DialError::Useless(format!(
                    "the credentials in {file} cannot be used ({error}): remove it, and join again with a new token"
                ))
            })?),
        };
        let scheme = if config.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.address));
        let endpoint = tune(endpoint.map_err(|error| DialError::Failed(error.to_string()))?);
        let connected = match config {
            None => endpoint.connect().await,
            Some(config) => {
                endpoint.connect_with_connector(Dialler { config: Arc::new(config) }).await
            }
        };
        connected
            .map_err(|error| in_words(&error).unwrap_or_else(|| DialError::Failed(root(&error))))
    }
}

/// What a coordinator that speaks TLS says to who does not.
pub const SPEAKS_TLS: &str = "this coordinator speaks TLS: join it with a token from `inrush certs token` (agents: --join TOKEN, \
                              users: inrush certs join TOKEN)";

/// What TLS has to say of a failure, if it was TLS that failed, or that there was none.
pub fn in_words(error: &(dyn Error + 'static)) -> Option<DialError> {
    use rustls::Error as Tls;
    let failed = |words: &str| Some(DialError::Failed(words.to_owned()));
    let useless = |words: &str| Some(DialError::Useless(words.to_owned()));
    // HTTP/2 hands the last words of the other side on in the text of its error.
    if root(error).contains(SPEAKS_TLS) {
        return useless(SPEAKS_TLS);
    }
    let found = match tls_error(error) {
        Some(found) => found,
        None => &Tls::AlertReceived(alert(&root(error))?),
    };
    match found {
        Tls::InvalidCertificate(
            CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::Expired
            | CertificateError::ExpiredContext { .. },
        ) => failed(
            "the coordinator's certificate is not valid at this machine's time: compare the clocks of both machines",
        ),
        Tls::InvalidCertificate(_) | Tls::NoCertificatesPresented => failed(
            "who answers does not belong to the CA that was joined: the address leads to somebody else, or the \
             coordinator's certificates were made anew and this machine has to join again with a new token",
        ),
        Tls::InvalidMessage(_) => failed(
            "who answers does not speak TLS, and this machine has joined a coordinator that does: is `inrush serve` \
             running with the --data-dir that holds its certificates?",
        ),
        Tls::AlertReceived(AlertDescription::CertificateExpired) => useless(
            "this machine's certificate has expired: join again with a new token from `inrush certs token`",
        ),
        Tls::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::DecryptError
            | AlertDescription::CertificateUnknown,
        ) => useless(
            "the coordinator does not know the CA of this machine's certificate: join again with a new token from \
             `inrush certs token`",
        ),
        other => Some(DialError::Failed(format!("TLS failed: {other}"))),
    }
}

/// The alert that an error speaks of: what HTTP/2 passes on is no more than its text.
fn alert(text: &str) -> Option<AlertDescription> {
    use AlertDescription as Alert;
    let known = [
        Alert::CertificateExpired,
        Alert::UnknownCA,
        Alert::BadCertificate,
        Alert::DecryptError,
        Alert::CertificateUnknown,
    ];
    known.into_iter().find(|alert| text == rustls::Error::AlertReceived(*alert).to_string())
}

/// The TLS error inside of an error: an `io::Error` does not show what it wraps as its source.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = wrapped.and_then(|error| tls_error(error));
        if let Some(found) = error.downcast_ref().or(inner) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The innermost cause: the outer ones are only "transport error".
fn root(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// TCP and TLS, for tonic.
#[derive(Debug, Clone)]
struct Dialler {
    config: Arc<ClientConfig>,
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Box::pin(async move {
            let address = uri.authority().map(ToString::to_string).unwrap_or_default();
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(connector.connect(tls::server_name(), stream).await?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_told_apart_as_errors_and_as_their_text() {
        let expired = rustls::Error::AlertReceived(AlertDescription::CertificateExpired);
        let text = io::Error::new(io::ErrorKind::InvalidData, expired.to_string());
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, expired);
        for error in [text, wrapped] {
            let words = in_words(&error).unwrap();
            assert!(
                matches!(&words, DialError::Useless(words) if words.contains("has expired")),
                "{words}"
            );
        }
        let farewell = io::Error::other(format!("connection error received: (b\"{SPEAKS_TLS}\")"));
        assert_eq!(in_words(&farewell), Some(DialError::Useless(SPEAKS_TLS.to_owned())));
        assert_eq!(in_words(&io::Error::other("connection refused")), None);
    }
}
