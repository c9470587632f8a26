//! The union of the shares is the plan.

use std::{collections::BTreeSet, time::Duration};

use inrush_common::{
    assign::{Assignment, Offer, SplitError, by_weight, split, within_limits},
    plan::{
        ArrivalProcess, ClosedLoad, ConnectionPolicy, Expect, Load, OpenLoad, Overflow, Phase,
        Request, ThinkTime, Workload,
    },
    schedule::{ConnectionProfile, Interleave, Rate, RateProfile},
};
use proptest::{collection::vec, option, prelude::*};

const MOST_CONNECTIONS: u64 = 10_000_000;
const MOST_REQUESTS: u64 = 1_000_000_000_000_000;

fn workload(loads: Vec<(Duration, Load)>) -> Workload {
    let phase = |(index, (starts_at, load))| Phase {
        name: format!("phase {index}"),
        measure: true,
        starts_at,
        load,
    };
    Workload {
        requests: vec![Request {
            name: "all".to_owned(),
            method: http::Method::GET,
            url: http::Uri::from_static("http://example.test/"),
            headers: Vec::new(),
            body: bytes::Bytes::new(),
            expect: Expect::default(),
        }],
        phases: loads.into_iter().enumerate().map(phase).collect(),
        timeout: Duration::from_secs(30),
        connect_timeout: Duration::from_secs(5),
        grace: Duration::from_secs(5),
        give_up_after: Duration::from_secs(10),
        connections: ConnectionPolicy::default(),
        seed: 1,
    }
}

fn closed(connections: u64, requests: Option<u64>) -> Load {
    Load::Closed(ClosedLoad {
        profile: ConnectionProfile::constant(connections, 0).unwrap(),
        lanes: Interleave::whole(requests.map_or(connections, |n| n.min(connections))),
        requests,
        duration: requests.is_none().then_some(Duration::from_secs(10)),
        think_time: ThinkTime::None,
    })
}

fn open(rate: Rate, duration: Duration, max_in_flight: u64) -> Load {
    let nanos = u64::try_from(duration.as_nanos()).unwrap();
    let profile = RateProfile::constant(rate, nanos).unwrap();
    Load::Open(OpenLoad {
        slots: Interleave::whole(profile.count()),
        profile,
        arrivals: ArrivalProcess::Uniform,
        max_in_flight,
        on_overflow: Overflow::Queue,
    })
}

fn one(load: Load) -> Workload {
    workload(vec![(Duration::ZERO, load)])
}

fn offers(agents: &[(u32, u64)]) -> Vec<Offer> {
    let offer = |(index, (workers, max_connections)): (usize, &(u32, u64))| Offer {
        agent: format!("lab{index:03}").parse().unwrap(),
        workers: *workers,
        max_connections: *max_connections,
    };
    agents.iter().enumerate().map(offer).collect()
}

fn connections(shares: &[Assignment], phase: usize) -> Vec<u64> {
    shares.iter().map(|share| share.workload.phases[phase].load.connections()).collect()
}

fn planned(shares: &[Assignment], phase: usize) -> Vec<u64> {
    let planned = shares.iter().map(|share| share.workload.phases[phase].load.planned());
    planned.map(|planned| planned.expect("the load has a count")).collect()
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

/// Phases that may overlap: when each begins, how long it is, its connections, and whether it is open.
fn phases() -> impl Strategy<Value = Vec<(u64, u64, u64, bool)>> {
    vec((0_u64..20, 1_u64..20, 1_u64..1_000, any::<bool>()), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_sum_to_the_plan_and_respect_the_limits(
        (agents, wanted) in fleet(),
        requests in prop_oneof![0_u64..100, 0..=MOST_REQUESTS],
    ) {
        let shares = split(&one(closed(wanted, Some(requests))), &offers(&agents)).unwrap();
        prop_assert_eq!(shares.len(), agents.len());
        let connections = connections(&shares, 0);
        let planned = planned(&shares, 0);
        prop_assert_eq!(connections.iter().sum::<u64>(), wanted.min(requests));
        if wanted > 0 {
            prop_assert_eq!(planned.iter().sum::<u64>(), requests);
        }
        for ((connections, planned), (_, limit)) in connections.iter().zip(&planned).zip(&agents) {
            prop_assert!(connections <= limit);
            prop_assert!(*connections > 0 || *planned == 0, "requests without a connection");
            prop_assert!(planned >= connections, "a connection without a request");
        }
    }

    #[test]
    fn an_open_load_is_dealt_to_the_last_arrival(
        agents in vec((1_u32..16, 1_u64..50_000), 1..40),
        micro in prop_oneof![1_u64..1_000_000, 1_000_000..=Rate::MAX.micro()],
        seconds in 1_u64..100_000,
        in_flight in 1_u64..100_000,
    ) {
        let carried: u64 = agents.iter().map(|(_, limit)| limit).sum();
        let in_flight = in_flight.min(carried);
        let load = open(Rate::from_micro(micro).unwrap(), Duration::from_secs(seconds), in_flight);
        let wanted = load.planned().unwrap();
        let shares = split(&one(load), &offers(&agents)).unwrap();
        let (connections, planned) = (connections(&shares, 0), planned(&shares, 0));
        prop_assert_eq!(connections.iter().sum::<u64>(), in_flight);
        prop_assert_eq!(planned.iter().sum::<u64>(), wanted);
        prop_assert!(connections.iter().zip(&planned).all(|(connections, planned)| *connections > 0 || *planned == 0));
    }

    #[test]
    fn phases_that_are_at_work_together_fit_together(
        phases in phases(),
        hold in 0_u64..100,
        weights in vec(1_u32..16, 1..20),
    ) {
        let loads = phases.iter().map(|(begin, length, connections, is_open)| {
            let length = Duration::from_secs(*length);
            let load = if *is_open {
                open(Rate::per_second(10_000).unwrap(), length, *connections)
            } else {
                let Load::Closed(load) = closed(*connections, None) else { unreachable!() };
                Load::Closed(ClosedLoad { duration: Some(length), ..load })
            };
            (Duration::from_secs(*begin), load)
        });
        let mut plan = workload(loads.collect());
        plan.connections.hold = hold;
        // Just as many as are needed: there is no room for any rounding up.
        let wanted = plan.peak_connections();
        let limits = by_weight(wanted, &weights.iter().map(|weight| u64::from(*weight)).collect::<Vec<_>>());
        let agents: Vec<_> = weights.iter().copied().zip(limits.iter().copied()).collect();
        let shares = split(&plan, &offers(&agents)).unwrap();
        for (share, limit) in shares.iter().zip(&limits) {
            prop_assert!(share.workload.peak_connections() <= *limit);
        }
        prop_assert_eq!(shares.iter().map(|share| share.workload.connections.hold).sum::<u64>(), hold);
        for (index, phase) in plan.phases.iter().enumerate() {
            prop_assert_eq!(connections(&shares, index).iter().sum::<u64>(), phase.load.connections());
        }
    }

    #[test]
    fn the_connections_of_all_agents_are_those_of_the_plan_one_by_one(
        (agents, wanted) in fleet(),
        ramp_up_s in 0_u64..100,
    ) {
        let wanted = wanted.min(2_000);
        let Load::Closed(load) = closed(wanted, None) else { unreachable!() };
        let profile = ConnectionProfile::constant(wanted, ramp_up_s * 1_000_000_000).unwrap();
        let plan = one(Load::Closed(ClosedLoad { profile, ..load }));
        let shares = split(&plan, &offers(&agents)).unwrap();
        let lanes: Vec<u64> = shares.iter().flat_map(|share| {
            let Load::Closed(closed) = &share.workload.phases[0].load else { unreachable!() };
            let lanes = closed.lanes.clone();
            (0..lanes.count()).map(move |j| lanes.index(j).unwrap())
        }).collect();
        prop_assert_eq!(lanes.len() as u64, wanted);
        prop_assert_eq!(lanes.into_iter().collect::<BTreeSet<_>>(), (0..wanted).collect::<BTreeSet<_>>());
    }

    #[test]
    fn everything_else_of_the_plan_goes_to_every_agent((agents, wanted) in fleet(), rate in option::of(1_u64..1 << 40)) {
        let mut plan = one(closed(wanted, None));
        plan.connections.connect_rate = rate.map(|micro| Rate::from_micro(micro).unwrap());
        let shares = split(&plan, &offers(&agents)).unwrap();
        let mut opened = 0;
        for share in &shares {
            let mut undone = share.workload.clone();
            undone.phases.clone_from(&plan.phases);
            opened += undone.connections.connect_rate.map_or(0, Rate::micro);
            undone.connections.connect_rate = plan.connections.connect_rate;
            prop_assert_eq!(&undone, &plan);
        }
        // A share is never nothing: an agent that is given none of it opens nothing anyhow.
        let asked = rate.unwrap_or(0);
        prop_assert!(wanted == 0 || (asked..=asked + agents.len() as u64).contains(&opened), "{opened} of {asked}");
    }

    #[test]
    fn the_order_in_which_agents_came_does_not_matter((agents, wanted) in fleet(), turn in any::<prop::sample::Index>()) {
        let plan = one(closed(wanted, Some(wanted * 10 + 3)));
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
    let shares = split(&one(closed(20, Some(3))), &offers(&agents)).unwrap();
    let requests = planned(&shares, 0);
    assert_eq!(requests.iter().sum::<u64>(), 3);
    assert_eq!(connections(&shares, 0), requests, "a connection for each request, no more");
    let rate = Rate::per_second(1).unwrap();
    let shares = split(&one(open(rate, Duration::from_secs(3), 3)), &offers(&agents)).unwrap();
    assert_eq!(planned(&shares, 0).iter().sum::<u64>(), 3);
}

#[test]
fn what_a_small_agent_cannot_carry_goes_to_the_others() {
    let shares =
        split(&one(closed(100, None)), &offers(&[(2, 10), (2, 1_000), (4, 1_000)])).unwrap();
    assert_eq!(connections(&shares, 0), [10, 30, 60]);
}

#[test]
fn an_impossible_plan_is_refused_with_the_arithmetic_and_the_remedy() {
    let error =
        split(&one(closed(100_000, None)), &offers(&[(2, 28_232), (2, 4_000)])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan wants 100000 connections, but 2 agent(s) can carry 32232 (lab000 28232, lab001 4000): add agents, \
         give agents more source addresses (--source-ip), raise their file limits, or lower `connections`"
    );
    assert_eq!(split(&one(closed(1, None)), &[]), Err(SplitError::NoAgents));
}
