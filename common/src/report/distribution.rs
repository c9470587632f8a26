//! Distributions out of histograms.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Distribution, SplitByOutcome};
use crate::stats::{Histogram, HistogramError};

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.percentile(0.5),
            p90_ns: histogram.percentile(0.9),
            p95_ns: histogram.percentile(0.95),
            p99_ns: histogram.percentile(0.99),
            p99_9_ns: histogram.percentile(0.999),
            p99_99_ns: histogram.percentile(0.9999),
            max_ns: histogram.max(),
            stdev_ns: histogram.stdev(),
            overflow: histogram.overflow(),
            histogram: STANDARD.encode(histogram.to_v2_deflate()),
        }
    }
}

impl Distribution {
    /// The samples behind it, to ask for what has no key of its own.
    ///
    /// # Errors
    /// When `histogram` is not what the report's reference says; in a report of our own making it is, and others are
    /// never asked.
    pub(crate) fn samples(&self) -> Result<Histogram, HistogramError> {
        let bytes = STANDARD
            .decode(&self.histogram)
            .map_err(|error| HistogramError::Encoding(error.to_string()))?;
        Histogram::from_v2_deflate(&bytes, self.overflow)
    }
}

impl SplitByOutcome {
    pub(super) fn new(succeeded: &Histogram, failed: &Histogram) -> Self {
        let mut all = succeeded.clone();
        all.add(failed);
        Self { all: (&all).into(), succeeded: succeeded.into(), failed: failed.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(samples: impl IntoIterator<Item = u64>) -> Distribution {
        let mut histogram = Histogram::default();
        samples.into_iter().for_each(|nanos| histogram.record(nanos));
        (&histogram).into()
    }

    #[test]
    fn a_percentile_appears_with_ten_samples_beyond_it() {
        let given = |samples: u64| {
            let of = distribution((1..=samples).map(|n| n * 10_000));
            let high = [of.p90_ns, of.p95_ns, of.p99_ns, of.p99_9_ns, of.p99_99_ns];
            assert!(of.p50_ns.is_some() && of.max_ns.is_some());
            high.iter().flatten().count()
        };
        let samples = [1, 2, 9, 10, 99, 100, 199, 200, 999, 1_000, 9_999, 10_000, 99_999, 100_000];
        assert_eq!(samples.map(given), [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
    }

    #[test]
    fn nothing_has_no_numbers_and_no_histogram() {
        let nothing = distribution([]);
        assert_eq!((nothing.count, nothing.overflow, nothing.histogram.as_str()), (0, 0, ""));
        assert_eq!((nothing.min_ns, nothing.p50_ns, nothing.mean_ns), (None, None, None));
        assert_eq!((nothing.max_ns, nothing.stdev_ns), (None, None));
    }

    #[test]
    fn what_lies_above_the_top_is_counted_and_makes_the_highest_unknown() {
        let samples = (0..99).map(|_| 1_000_000).chain([7_200_000_000_000]);
        let of = distribution(samples);
        assert_eq!((of.count, of.overflow), (100, 1));
        assert_eq!((of.max_ns, of.mean_ns, of.stdev_ns), (None, None, None));
        assert!(of.min_ns <= of.p50_ns && of.p50_ns <= of.p90_ns && of.p90_ns.is_some());
    }
}
