//! One piece of a rate profile: the rate goes in a straight line from one value to another.

use super::Rate;

/// A stretch of time over which the rate goes in a straight line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The rate at its beginning.
    pub from: Rate,
    /// The rate at its end.
    pub to: Rate,
    /// How long it is, in nanoseconds. 0 contributes nothing: the rate only jumps.
    pub duration_ns: u64,
}

impl Segment {
    /// The rate does not change.
    pub fn constant(rate: Rate, duration_ns: u64) -> Self {
        Self { from: rate, to: rate, duration_ns }
    }

    /// All that it adds up to, in units of [`Amount`](super::Amount).
    pub(super) fn area(&self) -> u128 {
        (u128::from(self.from.micro()) + u128::from(self.to.micro())) * u128::from(self.duration_ns)
    }

    /// What it adds up to until `t` nanoseconds after its beginning (at most its duration), rounded up to a unit.
    pub(super) fn area_until(&self, t: u64) -> u128 {
        let (from, to) = (self.from.micro(), self.to.micro());
        // Twice the area of the rectangle below the first rate, and then of the triangle on or off it.
        let straight = 2 * u128::from(from) * u128::from(t);
        if from == to || self.duration_ns == 0 {
            return straight;
        }
        let Bend { whole, rest } = bend(from.abs_diff(to), t, self.duration_ns);
        if from < to { straight + whole + u128::from(rest) } else { straight - whole }
    }

    /// The last nanosecond of its own time at which it has added up to no more than `amount` units, which is less than
    /// its whole [`area`](Self::area).
    pub(super) fn last_within(&self, amount: u128) -> u64 {
        debug_assert!(amount < self.area());
        let (from, to) = (self.from.micro(), self.to.micro());
        if from == to {
            let t = amount / (2 * u128::from(from));
            return u64::try_from(t).expect("less than the whole area ends before the segment");
        }
        let mut t = self.guess(amount);
        // The guess is within a few units in the last place of the true time, less than a nanosecond in a week: each of
        // these loops turns once or not at all.
        while !self.is_within(t, amount) {
            t -= 1;
        }
        while self.is_within(t + 1, amount) {
            t += 1;
        }
        t
    }

    /// Whether no more than `amount` units have come together at `t`. The amount is whole, so an area that was rounded
    /// up to a unit is on the same side of it as the true one.
    fn is_within(&self, t: u64, amount: u128) -> bool {
        self.area_until(t) <= amount
    }

    /// About the time at which `amount` units have come together.
    ///
    /// It is worked out from the end with the lower rate, where all terms have the same sign: nothing cancels, also where
    /// the rate is zero. Square roots and divisions are exactly rounded on every machine; what they round is put right.
    fn guess(&self, amount: u128) -> u64 {
        let (from, to) = (self.from.micro(), self.to.micro());
        let duration = self.duration_ns as f64;
        let from_lower_end = |rate: u64, units: u128| {
            let (rate, units) = (rate as f64, units as f64);
            units / (rate + (rate * rate + from.abs_diff(to) as f64 * (units / duration)).sqrt())
        };
        let t = if from < to {
            // 0/0 at the foot of a ramp from zero is not a number, which the cast makes 0.
            from_lower_end(from, amount)
        } else {
            duration - from_lower_end(to, self.area() - amount)
        };
        (t as u64).min(self.duration_ns - 1)
    }

    /// The rate at `t` nanoseconds after its beginning, rounded down to a micro-request per second.
    pub(super) fn rate_at(&self, t: u64) -> Rate {
        let (from, to) = (self.from.micro(), self.to.micro());
        if self.duration_ns == 0 || t >= self.duration_ns {
            return self.to;
        }
        let duration = u128::from(self.duration_ns);
        let moved = u128::from(from.abs_diff(to)) * u128::from(t);
        let moved = if from < to { moved / duration } else { moved.div_ceil(duration) };
        let moved = u64::try_from(moved).expect("not further than the other end");
        let micro = if from < to { from + moved } else { from - moved };
        Rate::from_micro(micro).expect("between two rates")
    }
}

/// What a slope adds to or takes from a straight line.
struct Bend {
    /// In units, rounded down.
    whole: u128,
    /// Whether something was cut off.
    rest: bool,
}

/// `slope · t² / duration`, in 128 bits.
///
/// The product may need 142 bits. With `slope · t = q · duration + r` it is `q · t + r · t / duration`, where `q` is at
/// most the slope (`t ≤ duration`) and `r` less than the duration.
fn bend(slope: u64, t: u64, duration: u64) -> Bend {
    let (slope, t, duration) = (u128::from(slope), u128::from(t), u128::from(duration));
    let moved = slope * t;
    let quotient = moved / duration;
    let rest = (moved - quotient * duration) * t;
    let more = rest / duration;
    Bend { whole: quotient * t + more, rest: rest != more * duration }
}

#[cfg(test)]
mod tests {
    use super::super::Amount;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ramp(from: &str, to: &str, duration_ns: u64) -> Segment {
        Segment { from: from.parse().unwrap(), to: to.parse().unwrap(), duration_ns }
    }

    #[test]
    fn the_area_at_both_ends_is_exact() {
        for segment in [
            ramp("0", "50", 10 * SECOND),
            ramp("50", "0", 10 * SECOND),
            ramp("0.000001", "10000000", 604_800 * SECOND),
            ramp("10000000", "0.000001", 604_800 * SECOND),
            ramp("3", "3", 7),
            ramp("1", "2", 0),
        ] {
            assert_eq!(segment.area_until(0), 0);
            assert_eq!(segment.area_until(segment.duration_ns), segment.area());
        }
        assert_eq!(ramp("0", "50", 10 * SECOND).area(), Amount::requests(250).units());
    }

    #[test]
    fn the_last_moment_of_a_falling_ramp_is_found_to_the_nanosecond() {
        let week = ramp("10000000", "0", 604_800 * SECOND);
        // The last units come in where the rate is all but nothing.
        for left in [1, 2, 1_000, 1_000_000_007, Amount::UNITS_PER_REQUEST] {
            let amount = week.area() - left;
            let t = week.last_within(amount);
            assert!(week.area_until(t) <= amount && week.area_until(t + 1) > amount, "{left}");
        }
    }

    #[test]
    fn the_rate_is_between_its_ends() {
        let ramp = ramp("10", "0", 10 * SECOND);
        assert_eq!(ramp.rate_at(0), Rate::per_second(10).unwrap());
        assert_eq!(ramp.rate_at(4 * SECOND), Rate::per_second(6).unwrap());
        assert_eq!(ramp.rate_at(10 * SECOND), Rate::ZERO);
    }
}
