//! From a workload to the addresses of its target.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Uri;
use inrush_common::{outcome::ErrorClass, plan::Workload, units::Nanos};
use tokio::net::lookup_host;

/// Where to connect to: a name or an address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Place {
    /// Where a URL points; the port defaults to HTTP's.
    ///
    /// # Errors
    /// When it has no host.
    pub fn of(url: &Uri) -> Result<Self, ResolveError> {
        let host = url.host().ok_or_else(|| ResolveError::NoHost(url.clone()))?;
        Ok(Self { host: bare(host).to_owned(), port: url.port_u16().unwrap_or(80) })
    }

    /// Of a `host:port`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(text: &str) -> Result<Self, ResolveError> {
        let parts = text.rsplit_once(':').filter(|(host, _)| !bare(host).is_empty());
        let place = parts.and_then(|(host, port)| {
            Some(Self { host: bare(host).to_owned(), port: port.parse().ok()? })
        });
        place.ok_or_else(|| ResolveError::NoPlace(text.to_owned()))
    }

    /// All places that a workload's connections go to: the plan's `connect_to`, or else where its URL points.
    ///
    /// # Errors
    /// When one is none, or there is no request.
    pub fn all_of(workload: &Workload) -> Result<Vec<Self>, ResolveError> {
        let connect_to = &workload.connections.connect_to;
        if connect_to.is_empty() {
            let urls = workload.requests.iter().map(|request| &request.url);
            return urls.take(1).map(Self::of).collect();
        }
        connect_to.iter().map(|text| Self::parse(text)).collect()
    }

    /// The address, where it is one already and no name.
    pub fn literal(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Why a target has no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The URL names no host.
    #[error("{0} names no host")]
    NoHost(Uri),
    /// No `host:port`.
    #[error("{0:?} is no place to connect to: expected HOST:PORT")]
    NoPlace(String),
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

/// All addresses of a place, in the resolver's order, each once. Literal addresses need no resolver.
///
/// # Errors
/// When there is none within the deadline.
pub async fn resolve(place: &Place, within: Duration) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Some(literal) = place.literal() {
        return Ok(vec![literal]);
    }
    let found = tokio::time::timeout(within, lookup_host((place.host.as_str(), place.port))).await;
    let host = place.host.clone();
    let found = match found {
        Err(_) => return Err(ResolveError::Deadline { host, within }),
        Ok(Err(source)) => return Err(ResolveError::Failed { host, source }),
        Ok(Ok(found)) => found,
    };
    let mut addresses = Vec::new();
    add_new(&mut addresses, found);
    if addresses.is_empty() { Err(ResolveError::Empty { host }) } else { Ok(addresses) }
}

/// Adds those that are not there yet.
pub fn add_new(addresses: &mut Vec<SocketAddr>, found: impl IntoIterator<Item = SocketAddr>) {
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
}

/// Those of a target's `addresses` that some of `sources` can reach; all of them when no source is given.
///
/// # Errors
/// When that leaves none.
pub fn reachable_from(
    places: &[Place],
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
        let host = places.first().map(|place| place.host.clone()).unwrap_or_default();
        return Err(ResolveError::Family { host, targets: family(first), sources: family(!first) });
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn place(url: &str) -> Place {
        Place::of(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_place_is_a_host_with_a_port() {
        for (text, host, port) in [
            ("lab.example.test:81", "lab.example.test", 81),
            ("127.0.0.1:8080", "127.0.0.1", 8080),
            ("[::1]:80", "::1", 80),
        ] {
            let place = Place::parse(text).unwrap();
            assert_eq!((place.host.as_str(), place.port), (host, port));
            assert_eq!(place.to_string(), text);
        }
        for bad in ["", "lab", ":80", "[]:80", "lab:http", "lab:70000"] {
            let error = Place::parse(bad).unwrap_err().to_string();
            assert!(error.contains("expected HOST:PORT"), "{bad:?}: {error}");
        }
    }

    #[tokio::test]
    async fn literal_addresses_of_both_families_are_taken_as_they_are() {
        let v4 = resolve(&place("http://127.0.0.1:8080/"), SOON).await.unwrap();
        assert_eq!(v4, ["127.0.0.1:8080".parse().unwrap()]);
        let v6 = resolve(&place("http://[::1]/"), SOON).await.unwrap();
        assert_eq!(v6, ["[::1]:80".parse().unwrap()]);
    }

    #[tokio::test]
    async fn all_places_together_give_each_address_once() {
        let places =
            ["127.0.0.2:1", "127.0.0.1:1", "127.0.0.2:1"].map(|text| Place::parse(text).unwrap());
        let mut found = Vec::new();
        for place in &places {
            add_new(&mut found, resolve(place, SOON).await.unwrap());
        }
        assert_eq!(found, ["127.0.0.2:1", "127.0.0.1:1"].map(|text| text.parse().unwrap()));
    }

    #[tokio::test]
    async fn localhost_resolves_to_loopback() {
        let found = resolve(&place("http://localhost:81/"), SOON).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|a| a.ip().is_loopback() && a.port() == 81));
    }

    #[tokio::test]
    async fn a_name_that_cannot_exist_is_dns_failed_and_named() {
        // A label above 63 bytes fails in the resolver's library, without a question to any server.
        let place = Place { host: format!("{}.test", "x".repeat(70)), port: 80 };
        let error = resolve(&place, SOON).await.unwrap_err().to_string();
        assert!(error.starts_with("dns_failed: xxx"), "{error}");
    }

    #[test]
    fn sources_of_one_family_leave_the_targets_addresses_of_that_family() {
        let places = [place("http://example.test/")];
        let both: Vec<SocketAddr> =
            vec!["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        let v4: IpAddr = "127.0.0.9".parse().unwrap();
        assert_eq!(reachable_from(&places, both.clone(), &[]).unwrap(), both);
        assert_eq!(reachable_from(&places, both.clone(), &[v4]).unwrap(), both[..1]);
        let error = reachable_from(&places, both[1..].to_vec(), &[v4]).unwrap_err().to_string();
        assert!(error.contains("only IPv6") && error.contains("is IPv4"), "{error}");
    }
}
