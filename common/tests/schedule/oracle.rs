//! What a profile adds up to, worked out another way: over a common denominator, in 256 bits.

use std::cmp::Ordering;

use inrush_common::schedule::{Amount, RateProfile, Segment};

/// A number of 256 bits: the high and the low half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wide(u128, u128);

impl Wide {
    fn product(a: u128, b: u128) -> Self {
        const LOW: u128 = (1 << 64) - 1;
        let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
        let cross = [(a1, b0), (a0, b1)].map(|(a, b)| a * b);
        cross
            .into_iter()
            .fold(Self(a1 * b1, a0 * b0), |sum, cross| sum.plus(Self(cross >> 64, cross << 64)))
    }

    fn plus(self, other: Self) -> Self {
        let (low, carry) = self.1.overflowing_add(other.1);
        Self(self.0 + other.0 + u128::from(carry), low)
    }
}

/// How `N(t)`, the requests that have come together at `t`, compares with `k`.
pub(crate) fn compare(profile: &RateProfile, t: u64, k: u64) -> Ordering {
    let (mut begin, mut base) = (0, 0);
    for segment in profile.segments() {
        if t - begin < segment.duration_ns {
            return in_segment(segment, base, t - begin, k);
        }
        begin += segment.duration_ns;
        base += half_femto(segment);
    }
    base.cmp(&units(k))
}

/// The whole integral, in half femto-requests.
pub(crate) fn integral(profile: &RateProfile) -> u128 {
    profile.segments().iter().map(half_femto).sum()
}

fn half_femto(segment: &Segment) -> u128 {
    u128::from(segment.duration_ns) * u128::from(segment.from.micro() + segment.to.micro())
}

fn units(k: u64) -> u128 {
    u128::from(k) * Amount::UNITS_PER_REQUEST
}

/// `base + 2·from·t ± slope·t²/d` against `k`, all times `d`.
fn in_segment(segment: &Segment, base: u128, t: u64, k: u64) -> Ordering {
    let (from, to) = (u128::from(segment.from.micro()), u128::from(segment.to.micro()));
    let (duration, t) = (u128::from(segment.duration_ns), u128::from(t));
    let triangle = Wide::product(from.abs_diff(to) * t, t);
    let came = Wide::product(base + 2 * from * t, duration);
    let wanted = Wide::product(units(k), duration);
    if from <= to { came.plus(triangle).cmp(&wanted) } else { came.cmp(&wanted.plus(triangle)) }
}

#[test]
fn wide_products_carry() {
    let max = u128::MAX;
    assert_eq!(Wide::product(max, max), Wide(max - 1, 1));
    assert_eq!(Wide::product(1 << 127, 6), Wide(3, 0));
    assert_eq!(Wide(0, max).plus(Wide(0, 1)), Wide(1, 0));
}
