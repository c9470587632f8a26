//! What connection profiles do, as examples and for all of them.

use inrush_common::schedule::{
    ConnectionProfile, ConnectionProfileError as Error, ConnectionStep, Interleave, Span, Worker,
};
use proptest::prelude::*;

use crate::{
    examples::SECOND,
    strategies::{by_hand, connection_steps, up_to},
};

const FOR_EVER: u64 = u64::MAX;

fn ramp(from: u64, to: u64) -> ConnectionProfile {
    ConnectionProfile::ramp(from, to, 10 * SECOND).unwrap()
}

/// When a lane is on, in milliseconds, rounded up.
fn lane(profile: &ConnectionProfile, i: u64) -> Vec<(u64, u64)> {
    let milliseconds = |t: u64| if t == FOR_EVER { t } else { t.div_ceil(1_000_000) };
    profile.lane(i).map(|span| (milliseconds(span.on_ns), milliseconds(span.off_ns))).collect()
}

#[test]
fn the_second_connection_of_a_ramp_to_two_works_in_its_second_half() {
    let profile = ramp(1, 2);
    assert_eq!(lane(&profile, 0), [(0, FOR_EVER)]);
    assert_eq!(lane(&profile, 1), [(5_000, FOR_EVER)]);
    assert_eq!(lane(&profile, 2), []);
    assert_eq!(profile.peak(), 2);
    let around = [5 * SECOND - 1, 5 * SECOND, FOR_EVER].map(|t| profile.at(t));
    assert_eq!(around, [1, 2, 2]);
}

#[test]
fn a_ramp_from_nothing_opens_each_connection_in_the_middle_of_its_part() {
    let profile = ramp(0, 10);
    for i in 0..10 {
        assert_eq!(lane(&profile, i), [(i * 1_000 + 500, FOR_EVER)]);
    }
    assert_eq!((profile.at(0), profile.peak()), (0, 10));
}

#[test]
fn a_falling_ramp_keeps_what_it_ends_with_and_may_end_with_nothing() {
    let profile = ramp(10, 1);
    assert_eq!(lane(&profile, 0), [(0, FOR_EVER)]);
    // 10 - 0.9 t falls below 9.5 after 0.555… s, and below 1.5 after 9.444… s.
    let last = profile.lane(9).next();
    assert_eq!(last, Some(Span { on_ns: 0, off_ns: 555_555_556 }));
    assert_eq!(lane(&profile, 1), [(0, 9_445)]);
    let empty = ramp(10, 0);
    // At exactly a half it is still on: it leaves a nanosecond later.
    assert_eq!(empty.lane(0).next(), Some(Span { on_ns: 0, off_ns: 9_500_000_001 }));
    assert_eq!(empty.at(10 * SECOND), 0);
}

#[test]
fn steps_switch_lanes_off_and_on_again_and_a_jump_takes_no_time() {
    let step = |connections, seconds| ConnectionStep::constant(connections, seconds * SECOND);
    let steps = vec![step(3, 2), step(1, 2), step(7, 0), step(3, 2), step(3, 1), step(0, 0)];
    let profile = ConnectionProfile::steps(steps).unwrap();
    assert_eq!(lane(&profile, 0), [(0, 7_000)]);
    assert_eq!(lane(&profile, 2), [(0, 2_000), (4_000, 7_000)]);
    assert_eq!(profile.peak(), 3);
    assert_eq!(profile.lane_from(2, 0), profile.lane(2).next());
    assert_eq!(profile.lane_from(2, 2 * SECOND), profile.lane(2).nth(1));
    assert_eq!(profile.lane_from(2, 7 * SECOND), None);
    // A jump at the very end is what it stays at.
    let jump = ConnectionStep { from: 1, to: 5, duration_ns: 0 };
    let profile = ConnectionProfile::steps(vec![step(1, 1), jump]).unwrap();
    assert_eq!((profile.peak(), lane(&profile, 4)), (5, vec![(1_000, FOR_EVER)]));
}

#[test]
fn constant_connections_open_evenly_over_their_ramp() {
    let profile = ConnectionProfile::constant(3, SECOND).unwrap();
    let on: Vec<u64> = (0..3).flat_map(|i| profile.lane(i)).map(|span| span.on_ns).collect();
    assert_eq!(on, [0, 333_333_333, 666_666_666]);
    let at = [0, 333_333_332, 333_333_333, 666_666_666, FOR_EVER].map(|t| profile.at(t));
    assert_eq!(at, [1, 1, 2, 3, 3]);
    let at_once = ConnectionProfile::constant(100, 0).unwrap();
    assert_eq!((at_once.at(0), lane(&at_once, 99)), (100, vec![(0, FOR_EVER)]));
    let none = ConnectionProfile::constant(0, SECOND).unwrap();
    assert_eq!((none.at(0), none.peak(), lane(&none, 0)), (0, 0, vec![]));
}

#[test]
fn what_is_no_connection_profile_is_refused() {
    let (most, week) = (ConnectionProfile::MAX_CONNECTIONS, ConnectionProfile::MAX_DURATION_NS);
    assert_eq!(ConnectionProfile::steps(vec![]), Err(Error::Empty));
    let many = vec![ConnectionStep::constant(1, 0); 10_001];
    assert_eq!(ConnectionProfile::steps(many), Err(Error::TooManySteps(10_001)));
    assert_eq!(ConnectionProfile::ramp(0, 1, week + 1), Err(Error::TooLong));
    assert_eq!(ConnectionProfile::constant(1, week + 1), Err(Error::TooLong));
    let endless = [week, u64::MAX].map(|duration| ConnectionStep::constant(1, duration));
    assert_eq!(ConnectionProfile::steps(endless.to_vec()), Err(Error::TooLong));
    assert_eq!(ConnectionProfile::ramp(0, most + 1, 1), Err(Error::TooMany(most + 1)));
    assert_eq!(ConnectionProfile::constant(u64::MAX, 1), Err(Error::TooMany(u64::MAX)));
}

fn profile(connections: u64) -> impl Strategy<Value = ConnectionProfile> {
    let week = ConnectionProfile::MAX_DURATION_NS;
    prop_oneof![
        connection_steps(connections, week / 6).prop_map(ConnectionProfile::steps),
        connection_steps(connections, 40).prop_map(ConnectionProfile::steps),
        (up_to(connections), up_to(week))
            .prop_map(|(connections, ramp)| ConnectionProfile::constant(connections, ramp)),
    ]
    .prop_map(Result::unwrap)
}

proptest! {
    #[test]
    fn as_many_lanes_are_on_as_there_are_to_be_connections(
        profile in profile(30),
        times in proptest::collection::vec(up_to(ConnectionProfile::MAX_DURATION_NS), 5),
    ) {
        let lanes: Vec<Vec<Span>> = (0..profile.peak()).map(|i| profile.lane(i).collect()).collect();
        let mut times = times;
        for span in lanes.iter().flatten() {
            let edges = [span.on_ns, span.off_ns];
            times.extend(edges.iter().flat_map(|edge| [edge.saturating_sub(1), *edge]));
        }
        for t in times {
            let on = |lane: &&Vec<Span>| {
                lane.iter().any(|span| (span.on_ns..span.off_ns).contains(&t))
            };
            // The end of time itself belongs to no half-open span.
            if t < FOR_EVER {
                prop_assert_eq!(lanes.iter().filter(on).count() as u64, profile.at(t), "at {}", t);
            }
        }
    }

    #[test]
    fn the_spans_of_a_lane_are_in_order_and_apart(
        profile in profile(ConnectionProfile::MAX_CONNECTIONS),
        share in 0.0..=1.0,
    ) {
        let peak = profile.peak();
        let spans: Vec<Span> = profile.lane((peak as f64 * share) as u64).collect();
        prop_assert!(spans.iter().all(|span| span.on_ns < span.off_ns));
        prop_assert!(spans.array_windows().all(|[a, b]| a.off_ns < b.on_ns));
        prop_assert_eq!(ConnectionProfile::new(profile.shape().clone()), Ok(profile.clone()));
        prop_assert_eq!(profile.at(profile.duration_ns()), profile.at(FOR_EVER));
        for i in [peak, u64::MAX] {
            prop_assert_eq!(profile.lane(i).next(), None);
        }
        // A higher lane is on no earlier and no longer than the one below.
        for span in &spans {
            let below = profile.lane_from(0, span.on_ns).unwrap();
            prop_assert!(below.on_ns <= span.on_ns && span.off_ns <= below.off_ns);
        }
    }

    #[test]
    fn lanes_dealt_to_agents_and_workers_are_all_lanes(
        lanes in 0_u64..300,
        agents in 1_u64..20,
        of in 1_u32..5,
    ) {
        let parts = Interleave::deal(&by_hand(lanes, agents)).unwrap();
        let mut all: Vec<u64> = Vec::new();
        for part in &parts {
            for number in 0..of {
                let worker = Worker { number, of };
                let before = all.len();
                all.extend(part.worker(worker));
                prop_assert_eq!((all.len() - before) as u64, part.worker_count(worker));
            }
        }
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..lanes));
    }
}
