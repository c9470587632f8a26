//! What holds for all arrivals.

use std::sync::Arc;

use inrush_common::schedule::{
    Arrival, ArrivalKind, Arrivals, ArrivalsError, Interleave, Rate, RateProfile, Seed, Worker,
    critical_distance, distance_to_exponential,
};
use proptest::prelude::*;

use crate::{
    examples::SECOND,
    strategies::{by_hand, small_profile},
};

const POISSON: ArrivalKind = ArrivalKind::Poisson(Seed { plan: 42, phase: 1 });

fn constant(requests_per_second: u64, seconds: u64) -> RateProfile {
    RateProfile::constant(Rate::per_second(requests_per_second).unwrap(), seconds * SECOND).unwrap()
}

/// Every worker's arrivals, of `counts.len()` agents.
fn all(profile: &RateProfile, kind: ArrivalKind, counts: &[u64], workers: u32) -> Vec<Arrivals> {
    let profile = Arc::new(profile.clone());
    let parts = Interleave::deal(counts).unwrap();
    let worker = |part: Interleave, number| {
        let worker = Worker { number, of: workers };
        Arrivals::new(Arc::clone(&profile), kind, part, worker).unwrap()
    };
    let worker = &worker;
    parts.into_iter().flat_map(|part| (0..workers).map(move |n| worker(part.clone(), n))).collect()
}

/// The distance of the gaps from exponential ones, in multiples of the mean by the profile.
fn distance(profile: &RateProfile, mut dues: Vec<u64>) -> (f64, f64) {
    dues.sort_unstable();
    let amounts = dues.into_iter().map(|due| profile.cumulative(due).as_f64());
    let amounts: Vec<f64> = std::iter::once(0.0).chain(amounts).collect();
    let mut gaps: Vec<f64> = amounts.array_windows().map(|[a, b]| b - a).collect();
    gaps.sort_by(f64::total_cmp);
    (distance_to_exponential(&gaps).unwrap(), critical_distance(gaps.len() as u64))
}

proptest! {
    #[test]
    fn uniform_arrivals_of_all_workers_are_one_timeline(
        profile in small_profile(2_000),
        agents in 1_u64..40,
        workers in 1_u32..5,
    ) {
        let single: Vec<u64> = (0..).map_while(|k| profile.due(k)).collect();
        let counts = by_hand(profile.count(), agents);
        let mut union = Vec::new();
        for arrivals in all(&profile, ArrivalKind::Uniform, &counts, workers) {
            prop_assert!(arrivals.clone().is_sorted());
            union.extend(arrivals);
        }
        union.sort_unstable();
        let expected = (0..).zip(single).map(|(index, due_ns)| Arrival { index, due_ns });
        prop_assert_eq!(union, expected.collect::<Vec<_>>());
    }

    #[test]
    fn poisson_arrivals_have_every_index_once_in_the_time_of_the_load(
        profile in small_profile(2_000),
        agents in 1_u64..10,
        workers in 1_u32..5,
        plan in any::<u64>(),
    ) {
        let kind = ArrivalKind::Poisson(Seed { plan, phase: 0 });
        let counts = by_hand(profile.count(), agents);
        let mut indices = Vec::new();
        for arrivals in all(&profile, kind, &counts, workers) {
            prop_assert!(arrivals.clone().map(|arrival| arrival.due_ns).is_sorted());
            for arrival in arrivals {
                prop_assert!(arrival.due_ns < profile.duration_ns());
                indices.push(arrival.index);
            }
        }
        indices.sort_unstable();
        prop_assert!(indices.into_iter().eq(0..profile.count()));
    }
}

#[test]
fn poisson_gaps_are_exponential_by_worker_and_over_the_fleet() {
    let ramp = RateProfile::ramp(
        Rate::per_second(100).unwrap(),
        Rate::per_second(900).unwrap(),
        20 * SECOND,
    );
    for profile in [constant(1_000, 10), ramp.unwrap(), constant(1, 10_000)] {
        for (agents, workers) in [(1, 1), (3, 2), (7, 1)] {
            let counts = by_hand(profile.count(), agents);
            let workers = all(&profile, POISSON, &counts, workers);
            let dues = workers.into_iter().flatten().map(|arrival| arrival.due_ns).collect();
            let (found, most) = distance(&profile, dues);
            assert!(found < most, "{agents} agents: {found} of {most}");
        }
    }
}

#[test]
fn evenly_spaced_arrivals_are_no_poisson_process() {
    let profile = constant(1_000, 1);
    let dues = (0..1_000).map(|k| profile.due(k).unwrap()).collect();
    let (found, most) = distance(&profile, dues);
    assert!(found > 0.6 && most < 0.06);
}

#[test]
fn a_seed_makes_the_same_times_on_every_machine() {
    let profile = Arc::new(constant(10, 1));
    let times = |kind, worker| -> Vec<u64> {
        let part = Interleave::deal(&[4, 6]).unwrap().remove(0);
        let arrivals = Arrivals::new(Arc::clone(&profile), kind, part, worker).unwrap();
        arrivals.map(|arrival| arrival.due_ns).collect()
    };
    let found = times(POISSON, Worker::ALONE);
    // As worked out apart from this code, with the logarithm and exponential of another library.
    assert_eq!(found, [497_973_014, 758_270_350, 766_966_729, 811_026_048]);
    let (first, second) = (Worker { number: 0, of: 2 }, Worker { number: 1, of: 2 });
    let other = ArrivalKind::Poisson(Seed { plan: 42, phase: 2 });
    let streams = [times(POISSON, first), times(POISSON, second), times(other, first)];
    assert!(streams.array_windows().all(|[a, b]| a != b), "{streams:?}");
}

#[test]
fn what_is_next_can_be_looked_at_and_what_is_left_counted() {
    let part = Interleave::deal(&[5]).unwrap().remove(0);
    for kind in [ArrivalKind::Uniform, POISSON] {
        let profile = Arc::new(constant(5, 1));
        let mut arrivals = Arrivals::new(profile, kind, part.clone(), Worker::ALONE).unwrap();
        for left in (1..=5).rev() {
            assert_eq!(arrivals.remaining(), left);
            assert_eq!(arrivals.size_hint(), (left as usize, Some(left as usize)));
            let next = arrivals.peek();
            assert!(next.is_some());
            assert_eq!(arrivals.next(), next);
        }
        assert_eq!((arrivals.remaining(), arrivals.peek(), arrivals.next()), (0, None, None));
    }
}

#[test]
fn fewer_requests_than_the_time_has_end_the_load_early() {
    let profile = constant(10, 10);
    let last = |kind| {
        let workers = all(&profile, kind, &[7, 13], 2);
        let dues: Vec<u64> = workers.into_iter().flatten().map(|arrival| arrival.due_ns).collect();
        assert_eq!(dues.len(), 20);
        dues.into_iter().max().unwrap()
    };
    assert_eq!(last(ArrivalKind::Uniform), 1_900_000_000);
    let last = last(POISSON);
    assert!((SECOND..2 * SECOND).contains(&last), "{last}");
}

#[test]
fn what_cannot_be_started_is_refused() {
    let profile = Arc::new(constant(10, 1));
    let parts = Interleave::deal(&[5, 6]).unwrap();
    let refused = |part: &Interleave, worker| {
        Arrivals::new(Arc::clone(&profile), ArrivalKind::Uniform, part.clone(), worker).err()
    };
    let too_many = ArrivalsError::TooMany { dealt: 11, due: 10 };
    assert_eq!(refused(&parts[0], Worker::ALONE), Some(too_many));
    let parts = Interleave::deal(&[5, 5]).unwrap();
    for worker in [Worker { number: 2, of: 2 }, Worker { number: 0, of: 0 }] {
        assert_eq!(refused(&parts[0], worker), Some(ArrivalsError::NoSuchWorker(worker)));
        assert_eq!(parts[0].worker(worker).count(), 0);
    }
}
