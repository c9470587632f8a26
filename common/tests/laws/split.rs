//! The union of the shares is the plan.

use std::time::Duration;

use inrush_common::{
    assign::{Assignment, Offer, SplitError, by_weight, split, within_limits},
    plan::{ClosedLoad, Expect, Load, Request, Workload},
};
use proptest::{collection::vec, prelude::*};

const MOST_CONNECTIONS: u64 = 10_000_000;
const MOST_REQUESTS: u64 = 1_000_000_000_000_000;

fn workload(connections: u64, requests: Option<u64>) -> Workload {
    Workload {
        requests: vec![Request {
            name: "all".to_owned(),
            method: http::Method::GET,
            url: http::Uri::from_static("http://example.test/"),
            headers: Vec::new(),
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        }],
        load: Load::Closed(ClosedLoad {
            connections,
            requests,
            duration: requests.is_none().then_some(Duration::from_secs(10)),
            ramp_up: Duration::ZERO,
            ordinal: 0,
            shares: 1,
        }),
        timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(5),
        grace: Duration::from_secs(5),
        give_up_after: Duration::from_secs(10),
    }
}

fn offers(agents: &[(u32, u64)]) -> Vec<Offer> {
    let offer = |(index, (workers, max_connections)): (usize, &(u32, u64))| Offer {
        agent: format!("lab{index:03}").parse().unwrap(),
        workers: *workers,
        max_connections: *max_connections,
    };
    agents.iter().enumerate().map(offer).collect()
}

fn closed(assignment: &Assignment) -> &ClosedLoad {
    let Load::Closed(closed) = &assignment.workload.load;
    closed
}

/// Agents with their limits, and a number of connections that they can carry.
fn fleet() -> impl Strategy<Value = (Vec<(u32, u64)>, u64)> {
    let agent = (0_u32..300, prop_oneof![0_u64..50, 0..=MOST_CONNECTIONS]);
    vec(agent, 1..40).prop_flat_map(|agents| {
        let carried: u64 = agents.iter().map(|(_, limit)| limit).sum();
        let wanted = 0..=carried.min(MOST_CONNECTIONS);
        (Just(agents), wanted)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_sum_to_the_plan_and_respect_the_limits(
        (agents, connections) in fleet(),
        requests in prop_oneof![0_u64..100, 0..=MOST_REQUESTS],
    ) {
        let shares = split(&workload(connections, Some(requests)), &offers(&agents)).unwrap();
        prop_assert_eq!(shares.len(), agents.len());
        let sum: u64 = shares.iter().map(|share| closed(share).connections).sum();
        prop_assert_eq!(sum, connections);
        if connections > 0 {
            let sum: u64 = shares.iter().map(|share| closed(share).requests.unwrap()).sum();
            prop_assert_eq!(sum, requests);
        }
        for (index, (share, (_, limit))) in shares.iter().zip(&agents).enumerate() {
            let closed = closed(share);
            prop_assert!(closed.connections <= *limit);
            prop_assert!(closed.connections > 0 || closed.requests == Some(0), "requests without a connection");
            prop_assert_eq!((closed.ordinal as usize, closed.shares as usize), (index, agents.len()));
        }
    }

    #[test]
    fn connections_that_can_be_used_sum_to_those_of_the_plan((agents, connections) in fleet(), requests in 0_u64..500) {
        prop_assume!(connections > 0);
        let shares = split(&workload(connections, Some(requests)), &offers(&agents)).unwrap();
        let used: u64 = shares.iter().map(|share| closed(share).connections.min(closed(share).requests.unwrap())).sum();
        prop_assert_eq!(used, connections.min(requests));
    }

    #[test]
    fn everything_else_of_the_plan_goes_to_every_agent((agents, connections) in fleet()) {
        let plan = workload(connections, None);
        for share in split(&plan, &offers(&agents)).unwrap() {
            let Load::Closed(whole) = &plan.load;
            let undone = ClosedLoad { connections, ordinal: 0, shares: 1, ..closed(&share).clone() };
            prop_assert_eq!(&undone, whole);
            prop_assert_eq!(&share.workload.requests, &plan.requests);
        }
    }

    #[test]
    fn the_order_in_which_agents_came_does_not_matter((agents, connections) in fleet(), turn in any::<prop::sample::Index>()) {
        let plan = workload(connections, Some(connections * 10 + 3));
        let offers = offers(&agents);
        let mut turned = offers.clone();
        turned.rotate_left(turn.index(offers.len()));
        turned.reverse();
        prop_assert_eq!(split(&plan, &turned), split(&plan, &offers));
    }

    #[test]
    fn without_limits_every_share_is_within_one_of_its_quota(
        total in prop_oneof![0_u64..1000, any::<u64>()],
        weights in vec(prop_oneof![0_u64..10, any::<u64>()], 1..50),
    ) {
        let shares = by_weight(total, &weights);
        let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        if sum == 0 {
            prop_assert!(shares.iter().all(|share| *share == 0));
            return Ok(());
        }
        prop_assert_eq!(shares.iter().map(|share| u128::from(*share)).sum::<u128>(), u128::from(total));
        for (share, weight) in shares.iter().zip(&weights) {
            let product = u128::from(total) * u128::from(*weight);
            let (down, up) = (product / sum, product.div_ceil(sum));
            prop_assert!((down..=up).contains(&u128::from(*share)), "{share} of {down}..{up}");
        }
    }

    #[test]
    fn equal_agents_differ_by_at_most_one(total in any::<u64>(), agents in 1_usize..100) {
        let shares = by_weight(total, &vec![7; agents]);
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        prop_assert!(most - least <= 1);
    }

    #[test]
    fn what_fits_is_split_and_what_does_not_is_refused(
        limits in vec(prop_oneof![0_u64..20, any::<u64>()], 1..20),
        total in prop_oneof![0_u64..100, any::<u64>()],
    ) {
        let carried: u128 = limits.iter().map(|limit| u128::from(*limit)).sum();
        match within_limits(total, &vec![3; limits.len()], &limits) {
            Some(shares) => {
                prop_assert_eq!(shares.iter().map(|share| u128::from(*share)).sum::<u128>(), u128::from(total));
                prop_assert!(shares.iter().zip(&limits).all(|(share, limit)| share <= limit));
            }
            None => prop_assert!(carried < u128::from(total)),
        }
    }
}

#[test]
fn more_agents_than_requests_leave_some_idle_and_lose_none() {
    let agents = vec![(1, 100); 10];
    let shares = split(&workload(20, Some(3)), &offers(&agents)).unwrap();
    let requests: Vec<_> = shares.iter().map(|share| closed(share).requests.unwrap()).collect();
    assert_eq!(requests.iter().sum::<u64>(), 3);
    assert!(shares.iter().all(|share| closed(share).connections == 2));
}

#[test]
fn what_a_small_agent_cannot_carry_goes_to_the_others() {
    let shares = split(&workload(100, None), &offers(&[(2, 10), (2, 1_000), (4, 1_000)])).unwrap();
    let connections: Vec<_> = shares.iter().map(|share| closed(share).connections).collect();
    assert_eq!(connections, [10, 30, 60]);
}

#[test]
fn an_impossible_plan_is_refused_with_the_arithmetic_and_the_remedy() {
    let error = split(&workload(100_000, None), &offers(&[(2, 28_232), (2, 4_000)])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan wants 100000 connections, but 2 agent(s) can carry 32232 (lab000 28232, lab001 4000): add agents, \
         give agents more source addresses (--source-ip), raise their file limits, or lower `connections`"
    );
    assert_eq!(split(&workload(1, None), &[]), Err(SplitError::NoAgents));
}
