//! Who has connected and has not yet shown what it is there for.
//!
//! A connection waits in the lobby until its first call that is allowed. The lobby is small, and a newcomer is never
//! turned away for it: the connection that waits longest has to go. So thousands of idle connections hold nothing, and
//! who speaks at once gets through between them.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections of one address that may wait in the lobby.
const OF_ONE_ADDRESS: usize = 256;

/// Connections that may wait there in all.
const IN_ALL: usize = 1_024;

/// Connections that have shown what they are there for. Twice the most agents.
pub(super) const SEATS: usize = 4_096;

/// The lobby, and the seats behind it.
#[derive(Debug, Clone)]
pub(super) struct Lobby {
    waiting: Arc<Mutex<Waiting>>,
    seats: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    total: usize,
    by_address: HashMap<IpAddr, VecDeque<(u64, CancellationToken)>>,
}

/// One connection's visit; over when it is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    lobby: Lobby,
    address: IpAddr,
    id: u64,
    /// Cancelled when it has to make room.
    pub(super) crowded_out: CancellationToken,
    /// Cancelled when it has a seat.
    pub(super) seated: CancellationToken,
    seat: Mutex<Option<OwnedSemaphorePermit>>,
    /// Whether it has left the lobby.
    left: AtomicBool,
}

impl Lobby {
    pub(super) fn new() -> Self {
        Self { waiting: Arc::default(), seats: Arc::new(Semaphore::new(SEATS)) }
    }

    /// A connection comes in.
    pub(super) fn enter(&self, address: IpAddr) -> Visit {
        let address = address.to_canonical();
        let crowded_out = CancellationToken::new();
        let id = self.waiting().add(address, crowded_out.clone());
        Visit {
            lobby: self.clone(),
            address,
            id,
            crowded_out,
            seated: CancellationToken::new(),
            seat: Mutex::new(None),
            left: AtomicBool::new(false),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add(&mut self, address: IpAddr, crowded_out: CancellationToken) -> u64 {
        self.next += 1;
        self.total += 1;
        let line = self.by_address.entry(address).or_default();
        line.push_back((self.next, crowded_out));
        if line.len() > OF_ONE_ADDRESS {
            self.evict(address);
        } else if self.total > IN_ALL {
            let longest = self.by_address.iter().max_by_key(|(_, line)| line.len());
            if let Some(address) = longest.map(|(address, _)| *address) {
                self.evict(address);
            }
        }
        self.next
    }

    fn evict(&mut self, address: IpAddr) {
        let line = self.by_address.get_mut(&address);
        if let Some((id, crowded_out)) = line.and_then(|line| line.front().cloned()) {
            crowded_out.cancel();
            self.remove(address, id);
        }
    }

    fn remove(&mut self, address: IpAddr, id: u64) {
        let Some(line) = self.by_address.get_mut(&address) else { return };
        let before = line.len();
        line.retain(|(waiting, _)| *waiting != id);
        self.total -= before - line.len();
        if line.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Visit {
    /// It has shown what it is there for. `false`: there is no seat.
    pub(super) fn seat(&self) -> bool {
        let mut seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        if seat.is_none() {
            let Ok(permit) = Arc::clone(&self.lobby.seats).try_acquire_owned() else {
                return false;
            };
            *seat = Some(permit);
            self.leave();
            self.seated.cancel();
        }
        true
    }

    fn leave(&self) {
        if !self.left.swap(true, Ordering::Relaxed) {
            self.lobby.waiting().remove(self.address, self.id);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn a_full_lobby_lets_the_longest_waiting_of_the_same_address_go() {
        let lobby = Lobby::new();
        let other = lobby.enter(address(2));
        let visits: Vec<_> = (0..OF_ONE_ADDRESS).map(|_| lobby.enter(address(1))).collect();
        assert!(visits.iter().all(|visit| !visit.crowded_out.is_cancelled()));
        let newest = lobby.enter(address(1));
        assert!(visits[0].crowded_out.is_cancelled());
        assert!(!visits[1].crowded_out.is_cancelled() && !newest.crowded_out.is_cancelled());
        assert!(!other.crowded_out.is_cancelled());
    }

    #[test]
    fn many_addresses_together_are_bounded_too_and_the_greediest_pays() {
        let lobby = Lobby::new();
        let modest = lobby.enter(address(100));
        let greedy: Vec<_> = (0..OF_ONE_ADDRESS).map(|_| lobby.enter(address(1))).collect();
        let others: Vec<_> = (0..IN_ALL - OF_ONE_ADDRESS)
            .map(|at| lobby.enter(address(2 + (at % 90) as u8)))
            .collect();
        assert!(greedy[0].crowded_out.is_cancelled());
        assert!(!modest.crowded_out.is_cancelled());
        assert!(others.iter().all(|visit| !visit.crowded_out.is_cancelled()));
        assert_eq!(lobby.waiting().total, IN_ALL);
    }

    #[test]
    fn who_has_a_seat_or_has_gone_is_not_waiting() {
        let lobby = Lobby::new();
        let seated = lobby.enter(address(1));
        assert!(seated.seat() && seated.seat());
        assert!(seated.seated.is_cancelled());
        drop(lobby.enter(address(1)));
        {
            let waiting = lobby.waiting();
            assert_eq!((waiting.total, waiting.by_address.len()), (0, 0));
        }
        let _more: Vec<_> = (0..=OF_ONE_ADDRESS).map(|_| lobby.enter(address(1))).collect();
        assert!(!seated.crowded_out.is_cancelled());
    }

    #[test]
    fn seats_are_bounded_and_given_back() {
        let lobby = Lobby::new();
        let mut seated: Vec<_> = (0..SEATS).map(|_| lobby.enter(address(1))).collect();
        assert!(seated.iter().all(Visit::seat));
        let late = lobby.enter(address(1));
        assert!(!late.seat());
        seated.pop();
        assert!(late.seat());
    }
}
