//! An agent's share of the work, split over its workers.

use inrush_common::{assign::by_weight, plan::ClosedLoad};

/// One worker's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    worker: usize,
    workers: usize,
    connections: u64,
    requests: Option<u64>,
}

impl Share {
    /// Splits `load` over at most `workers` workers: connections evenly, requests by connections. There are no more
    /// connections than requests, no worker without a connection, and always at least one worker.
    pub(super) fn split(load: &ClosedLoad, workers: usize) -> Vec<Self> {
        let connections = load.lanes.count();
        let workers = workers.min(usize::try_from(connections).unwrap_or(usize::MAX)).max(1);
        let connections = by_weight(connections, &vec![1; workers]);
        let requests = load.requests.map(|total| by_weight(total, &connections));
        connections
            .iter()
            .enumerate()
            .map(|(worker, connections)| Self {
                worker,
                workers,
                connections: *connections,
                requests: requests.as_ref().map(|requests| requests[worker]),
            })
            .collect()
    }

    /// The worker's number.
    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    /// Its connections, by their number among all of the agent: every so many-th, so that a ramp is even over the workers.
    pub(super) fn connections(&self) -> impl Iterator<Item = u64> {
        let (first, step) = (self.worker as u64, self.workers as u64);
        (0..self.connections).map(move |place| first + place * step)
    }

    /// Its requests. `None`: as many as the time allows.
    pub(super) fn requests(&self) -> Option<u64> {
        self.requests
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_shares_are_the_whole_and_no_connection_is_without_a_request(
            connections in 0_u64..200, requests in proptest::option::of(0_u64..500), workers in 1_usize..9,
        ) {
            let load = ClosedLoad {
                connections,
                requests,
                duration: Some(Duration::from_secs(1)),
                ramp_up: Duration::ZERO,
                ordinal: 0,
                shares: 1,
            };
            let shares = Share::split(&load, workers);
            prop_assert!((1..=workers).contains(&shares.len()));
            let mut indices: Vec<u64> = shares.iter().flat_map(Share::connections).collect();
            indices.sort_unstable();
            let opened = requests.map_or(connections, |n| n.min(connections));
            prop_assert_eq!(indices, (0..opened).collect::<Vec<_>>());
            for share in &shares {
                prop_assert!(share.requests().is_none_or(|n| n >= share.connections));
                prop_assert!(share.connections > 0 || shares.len() == 1);
            }
            if let Some(requests) = requests.filter(|_| connections > 0) {
                prop_assert_eq!(shares.iter().filter_map(Share::requests).sum::<u64>(), requests);
            }
        }
    }
}
