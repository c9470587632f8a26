//! How far what arrived is from what was planned: the distance of Kolmogorov and Smirnov to an exponential distribution.
//!
//! The gaps of Poisson arrivals, each divided by the gap its rate would have, are exponential with mean 1.

use super::random::one_minus_exp;

/// The greatest distance between the share of gaps up to a value and what the exponential distribution with mean 1 has
/// there, `1 - e^{-x}`. `gaps` are in rising order and without unit: multiples of the mean. `None` when there are none.
pub fn distance_to_exponential(gaps: &[f64]) -> Option<f64> {
    let count = gaps.len() as f64;
    gaps.iter()
        .enumerate()
        .map(|(below, gap)| {
            let share = one_minus_exp(gap.max(0.0));
            // The counted share jumps at the gap: both sides of it count.
            (share - below as f64 / count).max((below + 1) as f64 / count - share)
        })
        .max_by(f64::total_cmp)
}

/// [`distance_to_exponential`] of gaps that were counted in buckets: for every bucket, in rising order, its upper edge as
/// a multiple of the mean, and how many gaps lie in it. What happens within a bucket is not seen, so this is at most the
/// true distance. `None` when there are none.
pub fn distance_of_buckets(buckets: impl Iterator<Item = (f64, u64)> + Clone) -> Option<f64> {
    let total: u64 = buckets.clone().map(|(_, count)| count).sum();
    if total == 0 {
        return None;
    }
    let mut up_to = 0;
    buckets
        .map(|(edge, count)| {
            up_to += count;
            (one_minus_exp(edge.max(0.0)) - up_to as f64 / total as f64).abs()
        })
        .max_by(f64::total_cmp)
}

/// The distance that chance alone exceeds once in a hundred times, of `count` gaps: `1.63 / √count`, which holds from
/// about 35 gaps on.
pub fn critical_distance(count: u64) -> f64 {
    1.63 / (count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::{super::Random, *};

    fn gaps(count: usize) -> Vec<f64> {
        let mut random = Random::stream(11, &[]);
        let mut gaps: Vec<f64> = (0..count).map(|_| random.exponential()).collect();
        gaps.sort_by(f64::total_cmp);
        gaps
    }

    #[test]
    fn exponential_gaps_pass_and_even_ones_do_not() {
        let found = distance_to_exponential(&gaps(10_000)).unwrap();
        assert!(found < critical_distance(10_000), "{found}");
        // All at the mean: 1 - 1/e below it, 1/e above.
        let even = distance_to_exponential(&[1.0; 50]).unwrap();
        assert!((even - (1.0 - (-1.0_f64).exp())).abs() < 1e-12);
        assert!(even > critical_distance(50));
    }

    #[test]
    fn the_smallest_samples_have_the_distance_that_one_works_out_by_hand() {
        // At ln 2 the distribution has a half; so have none and all of one gap.
        let one = distance_to_exponential(&[std::f64::consts::LN_2]).unwrap();
        assert!((one - 0.5).abs() < 1e-15);
        assert_eq!(distance_to_exponential(&[]), None);
        assert_eq!(distance_to_exponential(&[0.0]), Some(1.0));
        assert_eq!(distance_to_exponential(&[f64::INFINITY]), Some(1.0));
    }

    #[test]
    fn buckets_tell_nearly_what_the_gaps_tell() {
        let gaps = gaps(2_000);
        let exact = distance_to_exponential(&gaps).unwrap();
        let edges = (1..=2_000).map(|edge| f64::from(edge) / 100.0);
        let buckets: Vec<(f64, u64)> = edges
            .map(|edge| {
                let within = gaps.iter().filter(|gap| (edge - 0.01..edge).contains(*gap)).count();
                (edge, within as u64)
            })
            .collect();
        let found = distance_of_buckets(buckets.into_iter()).unwrap();
        assert!(found <= exact && exact - found < 0.01, "{found} {exact}");
        assert_eq!(distance_of_buckets([(1.0, 0)].into_iter()), None);
    }
}
