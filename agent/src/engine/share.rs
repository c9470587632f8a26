//! An agent's share of the work, split over its workers.

use inrush_common::{
    assign::by_weight,
    plan::{Load, Phase, Workload},
    schedule,
};

/// One worker's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    worker: usize,
    /// One entry per phase.
    parts: Vec<Part>,
    held: u64,
}

/// One worker's part of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Which worker it is of those that have something to do in the phase; `None`: it has not.
    worker: Option<schedule::Worker>,
    connections: u64,
    requests: Option<u64>,
}

impl Share {
    /// Splits `workload` over at most `workers` workers: connections evenly, and requests by connections. There is no worker
    /// that never has a connection, but always at least one worker.
    pub(super) fn split(workload: &Workload, workers: usize) -> Vec<Self> {
        let most = workload.phases.iter().map(|phase| phase.load.connections());
        let most = most.max().unwrap_or(0).max(workload.connections.hold);
        let workers = workers.min(usize::try_from(most).unwrap_or(usize::MAX)).max(1);
        let mut shares: Vec<Self> =
            (0..workers).map(|worker| Self { worker, parts: Vec::new(), held: 0 }).collect();
        for phase in &workload.phases {
            for (share, part) in shares.iter_mut().zip(Part::split(phase, workers)) {
                share.parts.push(part);
            }
        }
        // A worker without load ends at once, and would hold nothing for those that work.
        let mut weights: Vec<u64> = shares.iter().map(|share| u64::from(share.works())).collect();
        if weights.iter().all(|weight| *weight == 0) {
            weights.fill(1);
        }
        let held = by_weight(workload.connections.hold, &weights);
        for (share, held) in shares.iter_mut().zip(held) {
            share.held = held;
        }
        shares
    }

    fn works(&self) -> bool {
        self.parts.iter().any(|part| part.connections > 0 && part.requests != Some(0))
    }

    /// The worker's number.
    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    /// Its part of a phase.
    pub(super) fn part(&self, phase: usize) -> Part {
        self.parts[phase]
    }

    /// How many connections it holds beside those that work.
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}

impl Part {
    fn split(phase: &Phase, workers: usize) -> Vec<Self> {
        let connections = by_weight(phase.load.connections(), &vec![1; workers]);
        // The larger parts come first: those without anything are the last.
        let of = connections.iter().take_while(|connections| **connections > 0).count();
        let number = |number| u32::try_from(number).expect("fewer workers than that");
        let requests: Vec<Option<u64>> = match &phase.load {
            Load::Closed(closed) => match closed.requests {
                Some(total) => by_weight(total, &connections).into_iter().map(Some).collect(),
                None => vec![None; workers],
            },
            Load::Open(open) => {
                let worker = |place| schedule::Worker { number: number(place), of: number(of) };
                (0..workers).map(|place| Some(open.slots.worker_count(worker(place)))).collect()
            }
        };
        let parts = connections.into_iter().zip(requests).enumerate();
        parts
            .map(|(place, (connections, requests))| {
                let worker = schedule::Worker { number: number(place), of: number(of) };
                Self { worker: (place < of).then_some(worker), connections, requests }
            })
            .collect()
    }

    /// Which of the workers that have something to do in the phase; `None`: it has nothing to do.
    pub(super) fn worker(&self) -> Option<schedule::Worker> {
        self.worker
    }

    /// How many connections it has at most: lanes, or requests in flight.
    pub(super) fn connections(&self) -> u64 {
        self.connections
    }

    /// Its lanes, by their number among all of the agent: every so many-th, so that a ramp is even over the workers.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u64> + use<> {
        let (first, step) =
            self.worker.map_or((0, 1), |it| (u64::from(it.number), u64::from(it.of)));
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

    use inrush_common::{
        plan::{ArrivalProcess, ClosedLoad, ConnectionPolicy, OpenLoad, Overflow, ThinkTime},
        schedule::{ConnectionProfile, Interleave, Rate, RateProfile},
    };
    use proptest::prelude::*;

    use super::*;

    fn workload(loads: Vec<Load>, hold: u64) -> Workload {
        let second = Duration::from_secs(1);
        let phase =
            |load| Phase { name: "it".to_owned(), measure: true, starts_at: Duration::ZERO, load };
        Workload {
            requests: Vec::new(),
            phases: loads.into_iter().map(phase).collect(),
            timeout: second,
            connect_timeout: second,
            grace: second,
            give_up_after: second,
            connections: ConnectionPolicy { hold, ..ConnectionPolicy::default() },
            seed: 0,
        }
    }

    fn closed(connections: u64, requests: Option<u64>) -> Load {
        Load::Closed(ClosedLoad {
            profile: ConnectionProfile::constant(connections, 0).unwrap(),
            lanes: Interleave::whole(requests.map_or(connections, |n| n.min(connections))),
            requests,
            duration: Some(Duration::from_secs(1)),
            think_time: ThinkTime::None,
        })
    }

    fn open(requests: u64, max_in_flight: u64) -> Load {
        Load::Open(OpenLoad {
            profile: RateProfile::for_requests(Rate::from_micro(1_000_000_000).unwrap(), requests)
                .unwrap(),
            slots: Interleave::whole(requests),
            arrivals: ArrivalProcess::Uniform,
            max_in_flight,
            on_overflow: Overflow::Queue,
        })
    }

    proptest! {
        #[test]
        fn the_shares_are_the_whole_and_no_connection_is_without_a_request(
            connections in 0_u64..200, requests in proptest::option::of(0_u64..500), workers in 1_usize..9,
            (arrivals, in_flight, hold) in (0_u64..500, 1_u64..200, 0_u64..20),
        ) {
            let workload =
                workload(vec![closed(connections, requests), open(arrivals, in_flight)], hold);
            let shares = Share::split(&workload, workers);
            prop_assert!((1..=workers).contains(&shares.len()));
            let parts = |phase| shares.iter().map(move |share: &Share| share.part(phase));
            let mut indices: Vec<u64> = parts(0).flat_map(|part| part.lanes()).collect();
            indices.sort_unstable();
            let opened = requests.map_or(connections, |n| n.min(connections));
            prop_assert_eq!(indices, (0..opened).collect::<Vec<_>>());
            for part in parts(0) {
                prop_assert!(part.requests().is_none_or(|n| n >= part.connections()));
            }
            if let Some(requests) = requests.filter(|_| connections > 0) {
                prop_assert_eq!(parts(0).filter_map(|part| part.requests()).sum::<u64>(), requests);
            }
            prop_assert_eq!(parts(1).filter_map(|part| part.requests()).sum::<u64>(), arrivals);
            prop_assert_eq!(parts(1).map(|part| part.connections()).sum::<u64>(), in_flight);
            for part in parts(1) {
                prop_assert_eq!(part.worker().is_some(), part.connections() > 0);
                prop_assert!(part.connections() > 0 || part.requests() == Some(0));
            }
            prop_assert_eq!(shares.iter().map(Share::held).sum::<u64>(), hold);
            let anybody = shares.iter().any(Share::works);
            prop_assert!(shares.iter().all(|share| share.works() || share.held() == 0 || !anybody));
        }
    }
}
