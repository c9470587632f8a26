//! Connections by the target's address: few rows, whatever a name resolves to.

use std::{collections::BTreeMap, net::SocketAddr};

/// So many addresses have rows of their own; the rest share one. A name with more of them is rare, and nobody reads so
/// many rows.
pub const MAX_ADDRESSES: usize = 64;

/// What became of the attempts to connect to one address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressCount {
    /// Connections made.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
}

impl AddressCount {
    fn add(&mut self, other: Self) {
        self.opened = self.opened.saturating_add(other.opened);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// Counts by address. The [`MAX_ADDRESSES`] smallest addresses have rows of their own: which these are depends on the
/// addresses alone, so adding up gives the same in any order. An address that once had to share has as many smaller ones
/// beside it in every sum, and never comes to a row with a part of its counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressCounts {
    rows: BTreeMap<SocketAddr, AddressCount>,
    other: AddressCount,
}

impl AddressCounts {
    /// A connection to `address` was made.
    pub fn opened(&mut self, address: SocketAddr) {
        self.count(address, AddressCount { opened: 1, failed: 0 });
    }

    /// An attempt to connect to `address` failed.
    pub fn failed(&mut self, address: SocketAddr) {
        self.count(address, AddressCount { opened: 0, failed: 1 });
    }

    /// Adds to one address's row.
    pub fn count(&mut self, address: SocketAddr, more: AddressCount) {
        self.rows.entry(address).or_default().add(more);
        if self.rows.len() > MAX_ADDRESSES
            && let Some((_, last)) = self.rows.pop_last()
        {
            self.other.add(last);
        }
    }

    /// Adds to the row of those that have none.
    pub fn count_other(&mut self, more: AddressCount) {
        self.other.add(more);
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        for (address, count) in &other.rows {
            self.count(*address, *count);
        }
        self.other.add(other.other);
    }

    /// The rows, in the order of the addresses.
    pub fn rows(&self) -> impl Iterator<Item = (SocketAddr, AddressCount)> {
        self.rows.iter().map(|(address, count)| (*address, *count))
    }

    /// The sum over all addresses that have no row of their own.
    pub const fn other(&self) -> AddressCount {
        self.other
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_the_limit_share_a_row_whatever_order_they_come_in() {
        let address = |number: u16| SocketAddr::from(([127, 0, 0, 1], number));
        let (mut up, mut down) = (AddressCounts::default(), AddressCounts::default());
        for number in 1..=200 {
            up.opened(address(number));
            down.opened(address(201 - number));
        }
        down.failed(address(200));
        up.failed(address(200));
        assert_eq!(up, down);
        assert_eq!(up.rows().count(), MAX_ADDRESSES);
        assert_eq!(up.rows().last().unwrap().0, address(64));
        assert_eq!(up.other(), AddressCount { opened: 136, failed: 1 });
    }
}
