//! Random numbers that are the same on every machine.
//!
//! A plan with a seed makes the same arrivals wherever it runs. So the generator is written out (xoshiro256++ of
//! Blackman and Vigna, seeded through their splitmix64), and so are the two functions that a machine's own mathematics
//! library rounds in its own way: they use only additions, multiplications and divisions, which are the same everywhere.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    /// The stream of a seed and a path of numbers (a phase, an agent, a worker). Streams of other seeds and paths have
    /// nothing to do with it.
    pub fn stream(seed: u64, path: &[u64]) -> Self {
        // Each number is mixed before the next comes in, so that (1, 2) and (2, 1) differ.
        let mut state = path.iter().fold(splitmix(&mut { seed }), |state, part| {
            splitmix(&mut { state.wrapping_add(splitmix(&mut { *part })) })
        });
        Self(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let Self(s) = self;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// The next number above 0 and at most 1, uniformly.
    pub fn uniform(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        ((self.bits() >> 11) + 1) as f64 / STEPS
    }

    /// The next number of the exponential distribution with mean 1; 0 and more.
    pub fn exponential(&mut self) -> f64 {
        -ln(self.uniform())
    }

    /// Where the first of `count` uniform numbers between 0 and 1 lies; `count` is at least 1.
    pub(super) fn first_of(&mut self, count: u64) -> f64 {
        one_minus_exp(self.exponential() / count as f64)
    }
}

/// Steps `state` and gives the mixed output.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The natural logarithm of a normal positive number.
fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    // x = 2^exponent · fraction, the fraction within a factor √2 of 1.
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut fraction = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    if fraction > std::f64::consts::SQRT_2 {
        fraction /= 2.0;
        exponent += 1;
    }
    // ln f = 2 artanh((f-1)/(f+1)) = 2(s + s³/3 + s⁵/5 + …), |s| below 0.172: eleven terms leave out
    // less than the last place.
    let s = (fraction - 1.0) / (fraction + 1.0);
    let square = s * s;
    let series = (0..11_u32).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

/// `1 - e^{-x}` for 0 or more, without the loss that subtracting from 1 brings where `x` is small.
pub(super) fn one_minus_exp(x: f64) -> f64 {
    // Beyond this the result rounds to 1; and an infinite x stays out of the arithmetic below.
    if x >= 40.0 {
        return 1.0;
    }
    // e^{-x} = 2^{-halvings} · e^{-rest}, |rest| below 0.35: sixteen terms of 1 - e^{-r} = r(1 - r/2(1 - r/3(…))).
    let halvings = (x / std::f64::consts::LN_2 + 0.5) as u32;
    let rest = x - f64::from(halvings) * std::f64::consts::LN_2;
    let small = rest * (2..=16_u32).rev().fold(1.0, |sum, n| 1.0 - rest / f64::from(n) * sum);
    let scale = 1.0 / (1_u64 << halvings) as f64;
    (1.0 - scale) + scale * small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_give_their_published_numbers() {
        let mut state = 1_234_567;
        let found: [u64; 5] = std::array::from_fn(|_| splitmix(&mut state));
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(found, published);

        let mut random = Random([1, 2, 3, 4]);
        let found: [u64; 6] = std::array::from_fn(|_| random.bits());
        let published = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(found, published);
    }

    #[test]
    fn a_stream_is_its_own_and_always_the_same() {
        let draw = |seed, path: &[u64]| Random::stream(seed, path).bits();
        let streams = [
            draw(0, &[]),
            draw(1, &[]),
            draw(0, &[0]),
            draw(0, &[0, 0]),
            draw(0, &[1, 2]),
            draw(0, &[2, 1]),
            draw(1, &[2, 1]),
        ];
        let distinct: std::collections::BTreeSet<u64> = streams.into_iter().collect();
        assert_eq!(distinct.len(), streams.len());
        assert_eq!(draw(7, &[1, 2, 3]), draw(7, &[1, 2, 3]));
    }

    #[test]
    fn logarithm_and_exponential_are_right_to_the_last_places() {
        let close =
            |found: f64, right: f64| (found - right).abs() <= 1e-15 * right.abs().max(1e-16);
        let mut random = Random::stream(3, &[]);
        let uniform = std::iter::repeat_with(|| random.uniform()).take(20_000);
        for x in uniform.chain([1.0, 0.5, f64::MIN_POSITIVE, 1.0 - f64::EPSILON, 1.0 / 3.0]) {
            assert!(close(ln(x), x.ln()), "ln {x}: {} {}", ln(x), x.ln());
            for x in [x, 40.0 * x, 1e-9 * x, 1e-300 * x] {
                let (found, right) = (one_minus_exp(x), -(-x).exp_m1());
                assert!(close(found, right), "{x}: {found} {right}");
            }
        }
        assert_eq!((one_minus_exp(0.0), one_minus_exp(f64::INFINITY)), (0.0, 1.0));
    }

    #[test]
    fn uniform_numbers_stay_above_nothing_and_up_to_one() {
        // All bits zero and all bits one, the two ends.
        assert!(Random([0, 0, 0, 0]).uniform() > 0.0);
        let mut random = Random::stream(0, &[1]);
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
