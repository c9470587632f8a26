//! Histograms of the system's one shape.

use std::fmt;

use hdrhistogram::serialization::{
    Deserializer, Serializer as _, V2DeflateSerializer, V2Serializer,
};

use super::encoding::{self, HistogramError};

/// The one shape, as it is compared when an agent says hello: values of another shape would merge without complaint
/// and be wrong.
pub const SHAPE: &str = "ns 1000..3600000000000 3";

pub(super) const LOWEST_NS: u64 = 1_000;
pub(super) const HIGHEST_NS: u64 = 3_600_000_000_000;
pub(super) const DIGITS: u8 = 3;

/// Durations in nanoseconds, 1 µs to 1 h at three significant digits (buckets about 0.1 % wide, at least 512 ns).
///
/// Memory is taken at the first record: an empty histogram costs 16 bytes, a used one about 190 KiB. Values above the
/// top are counted in [`overflow`](Self::overflow) and nowhere else: a saturated value would be a wrong value.
#[derive(Clone, Default)]
pub struct Histogram {
    counts: Option<Box<hdrhistogram::Histogram<u64>>>,
    overflow: u64,
}

fn empty_counts() -> Box<hdrhistogram::Histogram<u64>> {
    let counts = hdrhistogram::Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS);
    Box::new(counts.expect("the shape is a valid one"))
}

impl Histogram {
    /// Records one duration.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        if nanos > HIGHEST_NS {
            self.overflow = self.overflow.saturating_add(1);
            return;
        }
        let counts = self.counts.get_or_insert_with(empty_counts);
        // A recorded 0 would leave the largest value unset, and the histogram unequal to its own decoded encoding. 0
        // and 1 have one bucket.
        counts.record(nanos.max(1)).expect("the value is within the shape");
    }

    /// Adds all samples of `other`.
    pub fn add(&mut self, other: &Self) {
        self.overflow = self.overflow.saturating_add(other.overflow);
        let Some(theirs) = &other.counts else { return };
        match &mut self.counts {
            Some(ours) => ours.add(&**theirs).expect("all histograms have one shape"),
            None => self.counts = Some(theirs.clone()),
        }
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.overflow = 0;
        if let Some(counts) = &mut self.counts
            && !counts.is_empty()
        {
            counts.reset();
        }
    }

    /// Number of samples, those above the top included.
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, |counts| counts.len()).saturating_add(self.overflow)
    }

    /// Samples above the top of the shape (1 h).
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn filled(&self) -> Option<&hdrhistogram::Histogram<u64>> {
        self.counts.as_deref().filter(|counts| !counts.is_empty())
    }

    /// Smallest sample, in nanoseconds, to the bucket's precision (lower edge).
    pub fn min(&self) -> Option<u64> {
        self.filled().map(|counts| counts.min())
    }

    /// Largest sample, in nanoseconds, to the bucket's precision (upper edge). Unknown (`None`) when a sample
    /// was above the top.
    pub fn max(&self) -> Option<u64> {
        self.filled().filter(|_| self.overflow == 0).map(|counts| counts.max())
    }

    /// Arithmetic mean in nanoseconds. Unknown (`None`) when a sample was above the top.
    pub fn mean(&self) -> Option<u64> {
        let counts = self.filled().filter(|_| self.overflow == 0)?;
        // Bucket middles may put the mean of equal samples outside their own range.
        Some((counts.mean().round() as u64).clamp(counts.min(), counts.max()))
    }

    /// Standard deviation in nanoseconds. Unknown (`None`) when a sample was above the top.
    pub fn stdev(&self) -> Option<u64> {
        let counts = self.filled().filter(|_| self.overflow == 0)?;
        Some(counts.stdev().round() as u64)
    }

    /// The value below or at which the share `q` (0 to 1) of all samples lies, in nanoseconds (upper bucket edge).
    /// `None` without samples, or when that sample was above the top.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let counts = self.filled()?;
        if self.overflow == 0 {
            return Some(counts.value_at_quantile(q));
        }
        let rank = (q * self.count() as f64).ceil();
        let below = counts.len() as f64;
        (rank <= below).then(|| counts.value_at_quantile(rank / below))
    }

    /// The same where `q` is to be published: a high one (p90 up) is only known with at least ten samples beyond it,
    /// 10/(1−q) samples in all. With fewer it would be one or two samples with a grand name.
    pub fn percentile(&self, q: f64) -> Option<u64> {
        (self.count() >= Self::needed(q)).then(|| self.quantile(q)).flatten()
    }

    /// How many samples [`percentile`](Self::percentile) needs.
    pub fn needed(q: f64) -> u64 {
        if q < 0.9 { 1 } else { (10.0 / (1.0 - q)).round() as u64 }
    }

    /// Buckets that hold samples, as (highest value of the bucket in nanoseconds, count), rising.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.filled().map_or_else(Vec::new, |counts| {
            counts
                .iter_recorded()
                .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
                .collect()
        })
    }

    /// HdrHistogram V2 encoding; empty without samples. The overflow is not part of it.
    pub fn to_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(counts) = self.filled() {
            V2Serializer::new().serialize(counts, &mut bytes).expect("writing to memory works");
        }
        bytes
    }

    /// HdrHistogram V2 encoding, deflated, as other HdrHistogram readers take it; empty without samples.
    pub fn to_v2_deflate(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(counts) = self.filled() {
            V2DeflateSerializer::new()
                .serialize(counts, &mut bytes)
                .expect("writing to memory works");
        }
        bytes
    }

    /// The reverse of [`to_v2`](Self::to_v2), for bytes from anybody.
    ///
    /// # Errors
    /// When the bytes are no histogram, one of another shape, or one of more samples than an interval can have. That is
    /// found before memory is taken.
    pub fn from_v2(bytes: &[u8], overflow: u64) -> Result<Self, HistogramError> {
        if !bytes.is_empty() {
            encoding::check(bytes)?;
        }
        Self::from_own_v2(bytes, overflow)
    }

    /// The reverse of [`to_v2_deflate`](Self::to_v2_deflate), for bytes of a report that this process made.
    ///
    /// # Errors
    /// When the bytes are no histogram of the one shape.
    pub(crate) fn from_v2_deflate(bytes: &[u8], overflow: u64) -> Result<Self, HistogramError> {
        let found = Self::from_own_v2(bytes, overflow)?;
        if let Some(counts) = &found.counts {
            let (low, high, digits) = (counts.low(), counts.high(), counts.sigfig());
            if (low, high, digits) != (LOWEST_NS, HIGHEST_NS, DIGITS) {
                return Err(HistogramError::Shape { low, high, digits: u32::from(digits) });
            }
        }
        Ok(found)
    }

    /// The same for bytes that were encoded by this process.
    pub(super) fn from_own_v2(bytes: &[u8], overflow: u64) -> Result<Self, HistogramError> {
        if bytes.is_empty() {
            return Ok(Self { counts: None, overflow });
        }
        let counts: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &*bytes)
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        Ok(Self { counts: Some(Box::new(counts)), overflow })
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.overflow == other.overflow
            && match (self.filled(), other.filled()) {
                (None, None) => true,
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => false,
            }
    }
}

impl Eq for Histogram {}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("max", &self.max())
            .field("overflow", &self.overflow)
            .finish()
    }
}
