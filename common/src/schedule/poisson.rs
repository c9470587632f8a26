//! Arrivals that know nothing of each other.

use super::{Amount, Random};

/// So many independent points, uniform in an amount, in rising order.
///
/// Given its count, a Poisson process is exactly this, and points in the amount become arrivals of the profile's rate by
/// its inverse. The points are drawn one by one: the first of `m` uniform points in what is left lies at the share
/// `1 - V^{1/m}` of it, `V` uniform. The place is a whole number of units, so that it loses nothing over any count.
#[derive(Debug, Clone)]
pub(super) struct Scatter {
    random: Random,
    /// How many points are still to come.
    remaining: u64,
    at: u128,
    end: u128,
}

impl Scatter {
    /// `count` points in `[0, end)`.
    pub(super) fn new(random: Random, count: u64, end: Amount) -> Self {
        let remaining = if end == Amount::default() { 0 } else { count };
        Self { random, remaining, at: 0, end: end.units() }
    }
}

impl Iterator for Scatter {
    type Item = Amount;

    fn next(&mut self) -> Option<Amount> {
        let after = self.remaining.checked_sub(1)?;
        let share = self.random.first_of(self.remaining);
        self.remaining = after;
        let left = self.end - self.at;
        // What is left never becomes nothing, so that the last point also lies before the end.
        self.at += ((left as f64 * share) as u128).min(left - 1);
        Some(Amount::from_units(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_rise_stay_before_the_end_and_are_as_many_as_asked() {
        for (count, end) in [(0, 5), (1, 1), (1_000, 1), (1_000, 7), (10_000, u128::MAX >> 30)] {
            let scatter = Scatter::new(Random::stream(1, &[]), count, Amount::from_units(end));
            let points: Vec<u128> = scatter.map(Amount::units).collect();
            assert_eq!(points.len() as u64, count);
            assert!(points.is_sorted() && points.iter().all(|point| *point < end));
        }
        assert_eq!(Scatter::new(Random::stream(1, &[]), 3, Amount::default()).count(), 0);
    }

    #[test]
    fn a_week_of_points_at_the_highest_rate_still_has_room_between_them() {
        let (count, end) = (6_048_000_000_000, Amount::requests(6_048_000_000_000));
        let points: Vec<f64> = Scatter::new(Random::stream(5, &[]), count, end)
            .take(100_000)
            .map(Amount::as_f64)
            .collect();
        let mean = points[points.len() - 1] / points.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!(points.array_windows().all(|[a, b]| a < b));
    }
}
