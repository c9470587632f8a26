//! From a workload's URL to the addresses of its target.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Uri;
use inrush_common::{outcome::ErrorClass, units::Nanos};
use tokio::net::lookup_host;

/// Why a target has no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The URL names no host.
    #[error("{0} names no host")]
    NoHost(Uri),
    /// The resolver says no.
    #[error("{class}: {host} does not resolve: {source}", class = ErrorClass::DnsFailed)]
    Failed {
        /// What was looked up.
        host: String,
        /// The resolver's words.
        source: io::Error,
    },
    /// The resolver knows the name and gives no address.
    #[error("{class}: {host} resolves to no address", class = ErrorClass::DnsFailed)]
    Empty {
        /// What was looked up.
        host: String,
    },
    /// The resolver is silent.
    #[error("{class}: {host} did not resolve within {}", Nanos::from(*.within), class = ErrorClass::DnsFailed)]
    Deadline {
        /// What was looked up.
        host: String,
        /// How long it had.
        within: Duration,
    },
    /// There are addresses, but the given sources reach none of them.
    #[error(
        "{host} has only {targets} addresses, and every --source-ip is {sources}: add a --source-ip of the target's \
         family, or give none"
    )]
    Family {
        /// What was looked up.
        host: String,
        /// The target's family.
        targets: &'static str,
        /// The sources' family.
        sources: &'static str,
    },
}

/// Host and port of a URL; the port defaults to HTTP's.
///
/// # Errors
/// When there is no host.
pub fn host_and_port(url: &Uri) -> Result<(&str, u16), ResolveError> {
    let host = url.host().ok_or_else(|| ResolveError::NoHost(url.clone()))?;
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    Ok((literal.unwrap_or(host), url.port_u16().unwrap_or(80)))
}

/// All addresses of `url`'s host, in the resolver's order, each once. Literal addresses need no resolver.
///
/// # Errors
/// When there is none within the deadline.
pub async fn resolve(url: &Uri, within: Duration) -> Result<Vec<SocketAddr>, ResolveError> {
    let (host, port) = host_and_port(url)?;
    if let Ok(literal) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(literal, port)]);
    }
    let found = tokio::time::timeout(within, lookup_host((host, port))).await;
    let host = host.to_owned();
    let found = match found {
        Err(_) => return Err(ResolveError::Deadline { host, within }),
        Ok(Err(source)) => return Err(ResolveError::Failed { host, source }),
        Ok(Ok(found)) => found,
    };
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(ResolveError::Empty { host }) } else { Ok(addresses) }
}

/// Those of `addresses` that some of `sources` can reach; all of them when no source is given.
///
/// # Errors
/// When that leaves none.
pub fn reachable_from(
    url: &Uri,
    mut addresses: Vec<SocketAddr>,
    sources: &[IpAddr],
) -> Result<Vec<SocketAddr>, ResolveError> {
    if sources.is_empty() {
        return Ok(addresses);
    }
    let family = |v4: bool| if v4 { "IPv4" } else { "IPv6" };
    let first = addresses.first().is_none_or(SocketAddr::is_ipv4);
    addresses.retain(|address| sources.iter().any(|s| s.is_ipv4() == address.is_ipv4()));
    if addresses.is_empty() {
        let host = url.host().unwrap_or_default().to_owned();
        return Err(ResolveError::Family { host, targets: family(first), sources: family(!first) });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn literal_addresses_of_both_families_are_taken_as_they_are() {
        let v4 = resolve(&uri("http://127.0.0.1:8080/"), SOON).await.unwrap();
        assert_eq!(v4, ["127.0.0.1:8080".parse().unwrap()]);
        let v6 = resolve(&uri("http://[::1]/"), SOON).await.unwrap();
        assert_eq!(v6, ["[::1]:80".parse().unwrap()]);
    }

    #[tokio::test]
    async fn localhost_resolves_to_loopback() {
        let found = resolve(&uri("http://localhost:81/"), SOON).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|a| a.ip().is_loopback() && a.port() == 81));
    }

    #[tokio::test]
    async fn a_name_that_cannot_exist_is_dns_failed_and_named() {
        // A label above 63 bytes fails in the resolver's library, without a question to any server.
        let url = uri(&format!("http://{}.test/", "x".repeat(70)));
        let error = resolve(&url, SOON).await.unwrap_err().to_string();
        assert!(error.starts_with("dns_failed: xxx"), "{error}");
    }

    #[test]
    fn sources_of_one_family_leave_the_targets_addresses_of_that_family() {
        let url = uri("http://example.test/");
        let both: Vec<SocketAddr> =
            vec!["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        let v4: IpAddr = "127.0.0.9".parse().unwrap();
        assert_eq!(reachable_from(&url, both.clone(), &[]).unwrap(), both);
        assert_eq!(reachable_from(&url, both.clone(), &[v4]).unwrap(), both[..1]);
        let error = reachable_from(&url, both[1..].to_vec(), &[v4]).unwrap_err().to_string();
        assert!(error.contains("only IPv6") && error.contains("is IPv4"), "{error}");
    }
}
