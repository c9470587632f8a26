//! Profiles and counts over the whole range.

use inrush_common::schedule::{ConnectionStep, Rate, RateProfile, Segment};
use proptest::{collection::vec, prelude::*};

/// Numbers up to `max` of all magnitudes: as many small ones as large ones, and both ends.
pub(crate) fn up_to(max: u64) -> impl Strategy<Value = u64> {
    let bits = 64 - max.leading_zeros();
    prop_oneof![
        8 => (0..=bits, any::<u64>())
            .prop_map(move |(bits, noise)| (noise & ((1_u128 << bits) - 1) as u64).min(max)),
        1 => Just(0),
        1 => Just(max),
    ]
}

pub(crate) fn rate() -> impl Strategy<Value = Rate> {
    up_to(Rate::MAX.micro()).prop_map(|micro| Rate::from_micro(micro).unwrap())
}

/// Durations of which eight are no longer than a week.
pub(crate) fn duration() -> impl Strategy<Value = u64> {
    up_to(RateProfile::MAX_DURATION_NS / 8)
}

fn segment() -> impl Strategy<Value = Segment> {
    prop_oneof![
        (rate(), duration()).prop_map(|(rate, duration)| Segment::constant(rate, duration)),
        (rate(), rate(), duration()).prop_map(|(from, to, duration_ns)| Segment {
            from,
            to,
            duration_ns
        }),
        duration().prop_map(|duration| Segment::constant(Rate::ZERO, duration)),
    ]
}

pub(crate) fn profile() -> impl Strategy<Value = RateProfile> {
    let whole_week = (rate(), rate())
        .prop_map(|(from, to)| RateProfile::ramp(from, to, RateProfile::MAX_DURATION_NS));
    prop_oneof![
        6 => vec(segment(), 1..=8).prop_map(RateProfile::new),
        1 => whole_week,
    ]
    .prop_map(Result::unwrap)
}

/// A profile of at most so many requests: one whose durations are divided until it has no more.
pub(crate) fn small_profile(most: u64) -> impl Strategy<Value = RateProfile> {
    profile().prop_map(move |mut profile| {
        while profile.count() > most {
            let shorter =
                |segment: &Segment| Segment { duration_ns: segment.duration_ns / 7, ..*segment };
            profile = RateProfile::new(profile.segments().iter().map(shorter).collect()).unwrap();
        }
        profile
    })
}

/// Counts for agents: equal, nearly equal, very different, none.
pub(crate) fn counts(agents: usize, most: u64) -> impl Strategy<Value = Vec<u64>> {
    let each = most / agents as u64;
    prop_oneof![
        vec(up_to(each), 1..=agents),
        (up_to(most), 1..=agents).prop_map(|(total, agents)| by_hand(total, agents as u64)),
        (vec(up_to(each), 1..4), 1..=agents).prop_map(|(kinds, agents)| kinds
            .into_iter()
            .cycle()
            .take(agents)
            .collect()),
    ]
}

/// `total` over so many, as evenly as it goes.
pub(crate) fn by_hand(total: u64, agents: u64) -> Vec<u64> {
    (0..agents).map(|agent| total / agents + u64::from(agent < total % agents)).collect()
}

pub(crate) fn connection_steps(
    connections: u64,
    duration_ns: u64,
) -> impl Strategy<Value = Vec<ConnectionStep>> {
    let step = (up_to(connections), up_to(connections), up_to(duration_ns), any::<bool>());
    let step = step.prop_map(|(from, to, duration_ns, constant)| ConnectionStep {
        from,
        to: if constant { from } else { to },
        duration_ns,
    });
    vec(step, 1..=6)
}
