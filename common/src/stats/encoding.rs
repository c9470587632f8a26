//! Looks through an HdrHistogram V2 encoding before the library decodes it.
//!
//! The library takes memory by what the header says and adds counts without limits; these bytes come from strangers.

use super::histogram::{DIGITS, HIGHEST_NS, LOWEST_NS, SHAPE};

/// Why bytes are not a histogram of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// Not an HdrHistogram V2 encoding.
    #[error("an HdrHistogram V2 encoding: {0}")]
    Encoding(String),
    /// A histogram, but of another shape.
    #[error("a histogram of shape {SHAPE}, got ns {low}..{high} {digits}")]
    Shape {
        /// Lowest discernible value.
        low: u64,
        /// Highest trackable value.
        high: u64,
        /// Significant digits.
        digits: u32,
    },
}

fn broken(what: &str) -> HistogramError {
    HistogramError::Encoding(what.to_owned())
}

/// First four bytes: V2, with words of 64 bits.
const COOKIE: u32 = 0x1c84_9313;
const HEADER_BYTES: usize = 40;

/// Buckets up to the one that [`HIGHEST_NS`] lies in.
const BUCKETS: u64 = 24_205;

/// Most samples in one interval of one agent: more than any machine makes, and so few that millions of such intervals
/// add up without overflow.
const MAX_SAMPLES: u64 = 1_000_000_000_000;

/// Refuses what is not an encoding of our shape, or could not be added up.
pub(super) fn check(bytes: &[u8]) -> Result<(), HistogramError> {
    let (header, counts) = bytes
        .split_at_checked(HEADER_BYTES)
        .ok_or_else(|| broken("it is shorter than its header of 40 bytes"))?;
    let word = |at: usize| header[at..at + 4].iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    if word(0) != COOKIE {
        return Err(broken("it does not begin with the V2 cookie"));
    }
    if usize::try_from(word(4)) != Ok(counts.len()) {
        return Err(broken("its length is not the one in its header"));
    }
    if word(8) != 0 || long(32) != 1.0_f64.to_bits() {
        return Err(broken("it is normalised or scaled"));
    }
    let (digits, low, high) = (word(12), long(16), long(24));
    if (low, high, digits) != (LOWEST_NS, HIGHEST_NS, u32::from(DIGITS)) {
        return Err(HistogramError::Shape { low, high, digits });
    }
    check_counts(counts)
}

/// Counts by bucket, rising: a positive number is a count, a negative one so many empty buckets.
fn check_counts(mut bytes: &[u8]) -> Result<(), HistogramError> {
    let (mut bucket, mut samples) = (0_u64, 0_u64);
    while !bytes.is_empty() {
        let encoded = varint(&mut bytes).ok_or_else(|| broken("its last number is cut off"))?;
        let magnitude = (encoded >> 1) + (encoded & 1);
        let (buckets, more) = if encoded & 1 == 1 { (magnitude, 0) } else { (1, magnitude) };
        bucket = bucket.saturating_add(buckets);
        samples = samples.saturating_add(more);
        if bucket > BUCKETS {
            return Err(broken("it has counts above the highest value"));
        }
        if samples > MAX_SAMPLES {
            return Err(broken("it has more samples than can be"));
        }
    }
    Ok(())
}

/// A number in groups of 7 bits, the lowest first; a ninth byte is taken whole.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for group in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if group == 8 {
            return Some(value | u64::from(*byte) << 56);
        }
        value |= u64::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Histogram;

    fn encoded(samples: &[u64]) -> Vec<u8> {
        let mut histogram = Histogram::default();
        for nanos in samples {
            histogram.record(*nanos);
        }
        histogram.to_v2()
    }

    #[test]
    fn the_whole_shape_passes_and_one_bucket_more_does_not() {
        assert_eq!(check(&encoded(&[0, 1, HIGHEST_NS])), Ok(()));
        // Appended: one more count, in the bucket after the highest.
        let mut above = encoded(&[HIGHEST_NS]);
        above.push(2);
        let length = u32::try_from(above.len() - HEADER_BYTES).unwrap();
        above[4..8].copy_from_slice(&length.to_be_bytes());
        assert_eq!(check(&above), Err(broken("it has counts above the highest value")));
    }

    #[test]
    fn another_shape_is_named() {
        let mut bytes = encoded(&[5_000]);
        bytes[12..16].copy_from_slice(&5_u32.to_be_bytes());
        bytes[24..32].copy_from_slice(&u64::MAX.to_be_bytes());
        let error = HistogramError::Shape { low: 1_000, high: u64::MAX, digits: 5 };
        assert_eq!(check(&bytes), Err(error.clone()));
        assert_eq!(
            error.to_string(),
            "a histogram of shape ns 1000..3600000000000 3, got ns 1000..18446744073709551615 5"
        );
    }

    #[test]
    fn a_header_that_claims_gigabytes_is_refused_by_its_length() {
        let mut bytes = encoded(&[5_000]);
        bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(check(&bytes), Err(broken("its length is not the one in its header")));
        assert_eq!(check(&bytes[..39]), Err(broken("it is shorter than its header of 40 bytes")));
    }

    #[test]
    fn counts_that_would_overflow_a_sum_are_refused() {
        for number in [u64::MAX, u64::MAX - 1] {
            let mut bytes = encoded(&[5_000]);
            bytes.truncate(HEADER_BYTES);
            let mut rest = number;
            for _ in 0..8 {
                bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
                rest >>= 7;
            }
            bytes.push(u8::try_from(rest).unwrap());
            bytes[4..8].copy_from_slice(&9_u32.to_be_bytes());
            assert!(matches!(check(&bytes), Err(HistogramError::Encoding(_))), "{number}");
            assert!(Histogram::from_v2(&bytes, 0).is_err());
        }
    }
}
