//! From which local address to which of the target's: in turn.

use std::net::{IpAddr, SocketAddr};

/// The pairs of source and target address, one after the other.
#[derive(Debug)]
pub(super) struct Route {
    pairs: Vec<(SocketAddr, Option<IpAddr>)>,
    next: usize,
}

impl Route {
    /// All pairs of one address family. A target without a source of its family is left to the kernel's choice.
    /// `first` is where to begin, so that the workers of an agent begin at different places.
    pub(super) fn new(addresses: &[SocketAddr], sources: &[IpAddr], first: usize) -> Self {
        let fits = |address: &SocketAddr, source: &IpAddr| address.is_ipv4() == source.is_ipv4();
        let mut pairs = Vec::new();
        // Targets change fastest: two connections in a row go to two targets.
        for turn in 0..sources.len().max(1) {
            for (place, address) in addresses.iter().enumerate() {
                let of_family: Vec<_> =
                    sources.iter().filter(|source| fits(address, source)).collect();
                let source =
                    (!of_family.is_empty()).then(|| *of_family[(turn + place) % of_family.len()]);
                pairs.push((*address, source));
            }
        }
        Self { next: first % pairs.len().max(1), pairs }
    }

    /// The pair for the next attempt.
    pub(super) fn next(&mut self) -> (SocketAddr, Option<IpAddr>) {
        let pair = self.pairs[self.next];
        self.next = (self.next + 1) % self.pairs.len();
        pair
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_source_meets_every_target_of_its_family() {
        let targets: Vec<SocketAddr> =
            ["127.0.0.1:80", "127.0.0.2:80", "[::1]:80"].map(|text| text.parse().unwrap()).into();
        let sources: Vec<IpAddr> =
            ["127.0.0.3", "127.0.0.4"].map(|text| text.parse().unwrap()).into();
        let mut route = Route::new(&targets, &sources, 5);
        let pairs: BTreeSet<_> = (0..6).map(|_| route.next()).collect();
        assert_eq!(pairs.len(), 5, "two targets by two sources, and one left to the kernel");
        assert!(pairs.contains(&(targets[2], None)));
        let mut route = Route::new(&targets[..1], &[], 0);
        assert_eq!((route.next(), route.next()), ((targets[0], None), (targets[0], None)));
    }
}
