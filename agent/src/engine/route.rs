//! From which local address to which of the target's: in turn.

use std::net::{IpAddr, SocketAddr};

/// The pairs of source and target address, one after the other.
#[derive(Debug)]
pub(super) struct Route {
    pairs: Vec<(SocketAddr, Option<IpAddr>)>,
    sources: Vec<IpAddr>,
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
        Self { next: first % pairs.len().max(1), pairs, sources: sources.to_vec() }
    }

    /// The pair for the next attempt.
    pub(super) fn next(&mut self) -> (SocketAddr, Option<IpAddr>) {
        let pair = self.pairs[self.next];
        self.next = (self.next + 1) % self.pairs.len();
        pair
    }

    /// A pair for the next attempt when the target's addresses are these now: in turn too, of the families that were used from
    /// the start. `None` when none is of them.
    ///
    /// A resolver that turns its answers around itself would undo that; so their order does not count.
    pub(super) fn next_of(&mut self, now: &[SocketAddr]) -> Option<(SocketAddr, Option<IpAddr>)> {
        let used = |address: &SocketAddr| {
            self.pairs.iter().any(|(known, _)| known.is_ipv4() == address.is_ipv4())
        };
        let mut now: Vec<SocketAddr> = now.iter().copied().filter(used).collect();
        now.sort_unstable();
        now.dedup();
        let (turn, place) = (self.next.checked_div(now.len())?, self.next % now.len());
        self.next = self.next.wrapping_add(1);
        let address = now[place];
        let of_family = self.sources.iter().filter(|it| it.is_ipv4() == address.is_ipv4());
        let of_family: Vec<IpAddr> = of_family.copied().collect();
        let source = (!of_family.is_empty()).then(|| of_family[turn % of_family.len()]);
        Some((address, source))
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
    #[test]
    fn a_new_answer_is_used_in_turn_whatever_its_order_and_only_in_known_families() {
        let known: Vec<SocketAddr> = vec!["127.0.0.1:80".parse().unwrap()];
        let sources: Vec<IpAddr> =
            ["127.0.0.8", "127.0.0.9"].map(|text| text.parse().unwrap()).into();
        let mut route = Route::new(&known, &sources, 0);
        let [a, b, v6] =
            ["127.0.0.2:80", "127.0.0.3:80", "[::1]:80"].map(|text| text.parse().unwrap());
        let pairs: Vec<_> =
            (0..4).map(|turn| route.next_of(&[[a, b, v6], [b, a, v6]][turn % 2])).collect();
        let pair = |address, source: usize| Some((address, Some(sources[source])));
        assert_eq!(pairs, [pair(a, 0), pair(b, 0), pair(a, 1), pair(b, 1)]);
        assert_eq!(route.next_of(&[v6]), None);
        assert_eq!(route.next_of(&[]), None);
    }
}
