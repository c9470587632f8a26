//! Addresses to listen on: who may connect, and what to say when they are taken.

use std::{io, net::SocketAddr};

use super::error::CliError;

/// Whether to listen beyond this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exposure {
    /// Loopback only.
    Loopback,
    /// Loopback only, as long as there is no CA.
    LoopbackWithoutCa,
    /// Anywhere: with TLS, and only for the owners of certificates.
    Secured,
    /// Anywhere: the user has said `--insecure`.
    Insecure,
}

impl Exposure {
    /// From the presence of `--insecure`.
    pub(super) const fn from_flag(insecure: bool) -> Self {
        if insecure { Self::Insecure } else { Self::Loopback }
    }
}

/// The address that `text` names, if it may be listened on.
///
/// # Errors
/// When it is none, or lies beyond what the user allowed.
pub(super) async fn resolve(text: &str, exposure: Exposure) -> Result<SocketAddr, CliError> {
    let bad = |why: String| {
        CliError::Usage(format!(
            "--listen {text}: expected ADDRESS:PORT, such as 127.0.0.1:7070 ({why})"
        ))
    };
    let found = tokio::net::lookup_host(text).await.map_err(|error| bad(error.to_string()))?;
    let addresses: Vec<SocketAddr> = found.collect();
    let first = addresses.first().ok_or_else(|| bad("the name has no address".to_owned()))?;
    let beyond = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
    match (beyond, exposure) {
        (Some(beyond), Exposure::Loopback | Exposure::LoopbackWithoutCa) => {
            let for_tls = match exposure {
                Exposure::LoopbackWithoutCa => "make a CA for TLS with `inrush certs init`, ",
                _ => "",
            };
            Err(CliError::Usage(format!(
                "--listen {text}: refusing to listen on {beyond}, which other machines may reach: {for_tls}bind \
                 127.0.0.1, or pass --insecure on a network you trust"
            )))
        }
        _ => Ok(*first),
    }
}

/// Why an address cannot be listened on, in words.
pub(super) fn bind_failed(address: SocketAddr, error: &io::Error) -> CliError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "is taken by another process: stop that one, or choose another address with --listen"
        }
        io::ErrorKind::AddrNotAvailable => {
            "is not an address of this machine: choose another with --listen"
        }
        io::ErrorKind::PermissionDenied => {
            "may not be used by this user: choose a port above 1023 with --listen"
        }
        _ => return CliError::Internal(format!("cannot listen on {address}: {error}")),
    };
    CliError::Internal(format!("cannot listen on {address}: it {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn beyond_loopback_only_on_request() {
        for beyond in ["0.0.0.0:0", "[::]:7070", "192.0.2.1:80"] {
            let error = resolve(beyond, Exposure::Loopback).await.unwrap_err().to_string();
            assert!(error.contains("--insecure") && !error.contains("certs init"), "{error}");
            let error = resolve(beyond, Exposure::LoopbackWithoutCa).await.unwrap_err().to_string();
            assert!(error.contains("--insecure") && error.contains("inrush certs init"), "{error}");
            assert!(resolve(beyond, Exposure::Insecure).await.is_ok());
            assert!(resolve(beyond, Exposure::Secured).await.is_ok());
        }
        for loopback in ["127.0.0.1:7070", "127.0.0.9:0", "[::1]:7070", "[::ffff:127.0.0.1]:0"] {
            assert!(resolve(loopback, Exposure::Loopback).await.is_ok(), "{loopback}");
        }
    }

    #[tokio::test]
    async fn what_is_no_address_is_said_with_one_that_is() {
        for bad in ["7070", "127.0.0.1", "127.0.0.1:seven"] {
            let error = resolve(bad, Exposure::Loopback).await.unwrap_err();
            assert!(error.to_string().contains("such as 127.0.0.1:7070"), "{error}");
        }
    }

    #[test]
    fn a_taken_port_comes_with_the_remedy() {
        let address = "127.0.0.1:7070".parse().unwrap();
        let text = bind_failed(address, &io::ErrorKind::AddrInUse.into()).to_string();
        assert!(text.starts_with("cannot listen on 127.0.0.1:7070: it is taken"), "{text}");
    }
}
