//! How long to wait before the next attempt to reach the coordinator.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The wait before attempt `attempt` (0 is the first after a loss): doubling from 100 ms to 2 s, of which `random`
/// picks a point in the upper half, so that a fleet that lost its coordinator at one instant does not return at one.
pub(super) fn delay(attempt: u32, random: u64) -> Duration {
    let full = FIRST.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST);
    let half = full / 2;
    let share = random as f64 / u64::MAX as f64;
    half + half.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_two_seconds_and_are_never_shorter_than_half() {
        let longest: Vec<_> = (0..7).map(|n| delay(n, u64::MAX).as_millis()).collect();
        assert_eq!(longest, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!(delay(0, 0), FIRST / 2);
        assert_eq!(delay(u32::MAX, 0), LONGEST / 2);
    }
}
