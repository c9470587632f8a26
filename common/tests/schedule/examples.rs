//! Loads as people write them, with the starts they expect.

use std::sync::Arc;

use inrush_common::schedule::{
    Amount, ArrivalKind, Arrivals, Interleave, ProfileError, Rate, RateProfile, Segment, Worker,
};

use crate::strategies::by_hand;

pub(crate) const SECOND: u64 = 1_000_000_000;

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn steps(steps: &[(&str, &str, u64)]) -> RateProfile {
    let segment = |(from, to, seconds): &(&str, &str, u64)| Segment {
        from: rate(from),
        to: rate(to),
        duration_ns: seconds * SECOND,
    };
    RateProfile::new(steps.iter().map(segment).collect()).unwrap()
}

fn dues(profile: &RateProfile) -> Vec<u64> {
    (0..).map_while(|k| profile.due(k)).collect()
}

/// The dues of a profile in milliseconds, which they are whole numbers of.
fn milliseconds(profile: &RateProfile) -> Vec<u64> {
    dues(profile)
        .into_iter()
        .inspect(|due| assert_eq!(due % 1_000_000, 0))
        .map(|due| due / 1_000_000)
        .collect()
}

/// The union of all arrivals of so many agents with so many workers each.
fn union(profile: &RateProfile, agents: u64, workers: u32) -> Vec<(u64, u64)> {
    let profile = Arc::new(profile.clone());
    let counts: Vec<u64> = by_hand(profile.count(), agents);
    let mut all = Vec::new();
    for part in Interleave::deal(&counts).unwrap() {
        for number in 0..workers {
            let worker = Worker { number, of: workers };
            let profile = Arc::clone(&profile);
            let arrivals =
                Arrivals::new(profile, ArrivalKind::Uniform, part.clone(), worker).unwrap();
            all.extend(arrivals.map(|arrival| (arrival.index, arrival.due_ns)));
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn a_constant_rate_starts_at_once_and_evenly() {
    let profile = steps(&[("0.5", "0.5", 20)]);
    let expected: Vec<u64> = (0..10).map(|k| k * 2_000).collect();
    assert_eq!(milliseconds(&profile), expected);
    assert_eq!((profile.count(), profile.peak()), (10, rate("0.5")));
    // By its count alone it is just as long.
    assert_eq!(RateProfile::for_requests(rate("0.5"), 10), Ok(profile));
}

#[test]
fn bursts_with_pauses_wait_for_the_end_of_the_pause() {
    let profile = steps(&[("0.5", "0.5", 6), ("0", "0", 2)].repeat(5));
    let expected: Vec<u64> =
        (0..5).flat_map(|round| [0, 2_000, 4_000].map(|at| round * 8_000 + at)).collect();
    assert_eq!(milliseconds(&profile), expected);
    assert_eq!(profile.duration_ns(), 40 * SECOND);
}

#[test]
fn a_slow_ramp_and_what_follows_have_their_own_counts() {
    let ramp = steps(&[("0", "0.4", 20)]);
    // √(2k / 0.02)
    assert_eq!(dues(&ramp), [0, 10_000_000_000, 14_142_135_623, 17_320_508_075]);
    let after = steps(&[("0.4", "0.4", 30)]);
    let expected: Vec<u64> = (0..12).map(|k| k * 2_500).collect();
    assert_eq!(milliseconds(&after), expected);
}

#[test]
fn a_number_of_requests_is_spread_over_its_whole_time() {
    for (requests, seconds) in
        [(10, 30), (1, 604_800), (7, 300), (150_000, 30), (6_048_000_000_000, 604_800)]
    {
        let profile = RateProfile::spread(requests, seconds * SECOND).unwrap();
        assert_eq!(profile.count(), requests);
        // Even to the millionth of a request per second that the rate is whole in.
        let gap = seconds * SECOND / requests;
        let last = profile.due(requests - 1).unwrap();
        let even = seconds * SECOND - gap;
        assert!(last < seconds * SECOND, "{requests}: {last}");
        assert!(last.abs_diff(even) <= even / profile.peak().micro() + 1, "{requests}: {last}");
    }
    assert_eq!(RateProfile::spread(0, 0).unwrap().count(), 0);
    assert_eq!(RateProfile::spread(1, 0), Err(ProfileError::TooDense));
    assert_eq!(RateProfile::spread(10_000_001, SECOND), Err(ProfileError::TooDense));
}

#[test]
fn ramps_from_and_to_nothing_have_the_same_count() {
    let (up, down) = (steps(&[("0", "50", 10)]), steps(&[("50", "0", 10)]));
    let (up, down) = (dues(&up), dues(&down));
    assert_eq!((up.len(), down.len()), (250, 250));
    // √(2k/5) and 10 - √(100 - 2k/5) seconds.
    assert_eq!((up[0], up[10], up[249]), (0, 2 * SECOND, 9_979_979_959));
    assert_eq!((down[0], down[90], down[240]), (0, 2 * SECOND, 8 * SECOND));
    assert!(down[249] < 10 * SECOND);
    // Read backwards the falling ramp is the rising one: request 250-k is due when k are left.
    for k in 1..250 {
        let mirrored = 10 * SECOND - down[250 - k];
        assert!(mirrored - up[k] <= 1, "{k}: {mirrored} {}", up[k]);
    }
}

#[test]
fn a_steep_ramp_has_its_integral_to_the_request() {
    let profile = steps(&[("100", "10000", 20)]);
    assert_eq!(profile.count(), 101_000);
    let seconds: Vec<u64> =
        (0..20).map(|s| profile.planned_between(s * SECOND, (s + 1) * SECOND)).collect();
    assert_eq!(seconds.iter().sum::<u64>(), 101_000);
    // 347.5 and 9,752.5 on the average of the second; a begun request belongs to where it begins.
    assert_eq!((seconds[0], seconds[19]), (348, 9_752));
}

#[test]
fn a_jump_contributes_nothing_and_changes_the_rate() {
    let profile = steps(&[("1", "1", 2), ("1", "1000", 0), ("2", "2", 2), ("0", "9", 0)]);
    assert_eq!(milliseconds(&profile), [0, 1_000, 2_000, 2_500, 3_000, 3_500]);
    assert_eq!(profile.peak(), rate("2"));
    let rates = [0, 2 * SECOND - 1, 2 * SECOND, 4 * SECOND - 1, 4 * SECOND];
    let expected = ["1", "1", "2", "2", "0"].map(rate);
    assert_eq!(rates.map(|t| profile.rate_at(t)), expected);
}

#[test]
fn nothing_is_due_in_a_pause_and_in_no_time() {
    for profile in [steps(&[("0", "0", 10)]), steps(&[("100", "100", 0)]), steps(&[("0", "0", 0)])]
    {
        assert_eq!((profile.count(), profile.due(0)), (0, None));
        assert_eq!(profile.planned_between(0, u64::MAX), 0);
        assert_eq!(union(&profile, 3, 2), []);
    }
    // A pause at the beginning moves the first start to its end.
    assert_eq!(milliseconds(&steps(&[("0", "0", 3), ("1", "1", 2)])), [3_000, 4_000]);
}

#[test]
fn an_hour_at_an_awkward_rate_does_not_drift() {
    let third = RateProfile::constant(rate("0.333333"), 3_600 * SECOND).unwrap();
    assert_eq!(third.count(), 1_200);
    assert_eq!(third.due(1_199), Some(3_597_003_597_003));
    let million = RateProfile::constant(rate("1_000_003"), 3_600 * SECOND).unwrap();
    assert_eq!(million.count(), 3_600_010_800);
    // Every 1,000,003rd start is on a whole second, also in the last one.
    for second in [0, 1, 1_800, 3_599] {
        assert_eq!(million.due(second * 1_000_003), Some(second * SECOND));
        assert_eq!(million.planned_before(second * SECOND), second * 1_000_003);
    }
}

#[test]
fn any_number_of_agents_makes_the_timeline_of_one_machine() {
    let profiles = [
        ("tiny rate", steps(&[("0.1", "0.1", 100)])),
        ("three requests", RateProfile::for_requests(rate("2"), 3).unwrap()),
        ("slow ramp", steps(&[("0", "0.4", 20), ("0.4", "0.4", 30)])),
        ("bursts", steps(&[("0.5", "0.5", 6), ("0", "0", 2)].repeat(5))),
        ("steep ramp", steps(&[("100", "10000", 1), ("10000", "0", 1)])),
        ("highest rate", RateProfile::constant(Rate::MAX, SECOND / 1_000).unwrap()),
    ];
    for (name, profile) in profiles {
        let single: Vec<(u64, u64)> = (0..).zip(dues(&profile)).collect();
        assert!(!single.is_empty());
        for (agents, workers) in [(1, 1), (1, 4), (3, 1), (7, 2), (8, 3)] {
            assert!(union(&profile, agents, workers) == single, "{name}: {agents} × {workers}");
        }
    }
}

#[test]
fn the_highest_rate_for_a_week_is_within_the_numbers() {
    let week = RateProfile::constant(Rate::MAX, RateProfile::MAX_DURATION_NS).unwrap();
    assert_eq!(week.count(), 6_048_000_000_000);
    assert_eq!(week.due(week.count() - 1), Some(RateProfile::MAX_DURATION_NS - 100));
    assert_eq!(week.total(), Amount::requests(6_048_000_000_000));
    assert_eq!(RateProfile::for_requests(Rate::MAX, week.count()), Ok(week));
    let tiny = RateProfile::for_requests(rate("0.000001"), 1);
    assert_eq!(tiny, Err(ProfileError::TooLong));
}

#[test]
fn what_is_no_profile_is_refused() {
    let segment = Segment::constant(Rate::MAX, RateProfile::MAX_DURATION_NS);
    assert_eq!(RateProfile::new(vec![]), Err(ProfileError::Empty));
    assert_eq!(RateProfile::new(vec![segment, segment]), Err(ProfileError::TooLong));
    let endless = Segment::constant(Rate::ZERO, u64::MAX);
    assert_eq!(RateProfile::new(vec![segment, endless]), Err(ProfileError::TooLong));
    let many = vec![Segment::constant(Rate::ZERO, 0); 10_001];
    assert_eq!(RateProfile::new(many), Err(ProfileError::TooManySegments(10_001)));
    assert_eq!(RateProfile::duration_for(Rate::ZERO, 1), Err(ProfileError::NeverDone));
    assert_eq!(RateProfile::duration_for(Rate::ZERO, 0), Ok(0));
    assert_eq!(RateProfile::duration_for(Rate::MAX, u64::MAX), Err(ProfileError::TooLong));
}
