//! A threshold against a report. Figures and limits are compared as whole numbers, so that a figure on its limit is on
//! it, and not a rounding beside.

use std::cmp::Ordering;

use super::{
    Limit, Threshold,
    figure::Line,
    metric::{ConnectionCount, Counter, Metric, Pace, Percentile, Statistic},
    value::Ratio,
};
use crate::{
    report::{Amount, Distribution, Report, ThresholdRow, ThresholdUnit},
    stats::Histogram,
    units::Count,
};

/// Compares a figure of the report with its limit.
///
/// A figure that the report does not know (too few samples, nothing completed) passes no threshold: what was not shown
/// does not hold. The row's `detail` says why it is not known.
pub fn evaluate(threshold: &Threshold, report: &Report) -> ThresholdRow {
    let found = Line::find(report, &threshold.scope)
        .ok_or_else(|| NO_FIGURE.to_owned())
        .and_then(|line| observe(threshold.metric, &line));
    let (unit, limit) = match threshold.limit {
        Limit::Time(nanos) => (ThresholdUnit::Nanoseconds, Amount::Whole(nanos)),
        Limit::Ratio(ratio) => {
            (ThresholdUnit::Ratio, Amount::Real(ratio.parts() as f64 / Ratio::WHOLE as f64))
        }
        Limit::Rate(rate) => (ThresholdUnit::PerSecond, Amount::Real(rate.per_second())),
        Limit::Count(count) => (ThresholdUnit::Count, Amount::Whole(count)),
    };
    let (observed, passed, detail) = match found {
        Ok(observed) => {
            let passed = observed
                .compare(threshold.limit)
                .is_some_and(|ordering| threshold.operator.holds(ordering));
            (Some(observed.amount()), passed, None)
        }
        Err(why) => (None, false, Some(why)),
    };
    ThresholdRow { expression: threshold.to_string(), unit, observed, limit, passed, detail }
}

/// A figure, exact.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Observed {
    /// Nanoseconds.
    Time(u64),
    /// So many of so many.
    Ratio { part: u64, whole: u64 },
    /// So many in so many nanoseconds, and what the report prints for it.
    Rate { count: u64, nanos: u64, printed: f64 },
    /// A number.
    Count(u64),
}

impl Observed {
    fn amount(self) -> Amount {
        match self {
            Self::Time(number) | Self::Count(number) => Amount::Whole(number),
            Self::Ratio { part, whole } => Amount::Real(part as f64 / whole as f64),
            Self::Rate { printed, .. } => Amount::Real(printed),
        }
    }

    /// How it stands to the limit; `None` for a limit of another kind, which no threshold has.
    fn compare(self, limit: Limit) -> Option<Ordering> {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        match (self, limit) {
            (Self::Time(found), Limit::Time(limit)) | (Self::Count(found), Limit::Count(limit)) => {
                Some(found.cmp(&limit))
            }
            (Self::Ratio { part, whole }, Limit::Ratio(limit)) => {
                Some(product(part, Ratio::WHOLE).cmp(&product(limit.parts(), whole)))
            }
            (Self::Rate { count, nanos, .. }, Limit::Rate(limit)) => {
                // count / (nanos / 1e9) against (millionths / 1e6) / seconds.
                let found =
                    product(count, 1_000_000_000 * limit.per().seconds()).saturating_mul(1_000_000);
                Some(found.cmp(&product(limit.millionths(), nanos)))
            }
            _ => None,
        }
    }
}

const NO_FIGURE: &str = "the report has no such figure";

fn observe(metric: Metric, line: &Line<'_>) -> Result<Observed, String> {
    match metric {
        Metric::Time { statistic, time, outcome } => {
            let of = line.distribution(time, outcome).ok_or(NO_FIGURE)?;
            statistic_of(of, statistic).map(Observed::Time)
        }
        Metric::FailedRatio => match line.ledger.completed {
            0 => Err("no request completed".to_owned()),
            whole => Ok(Observed::Ratio { part: line.ledger.failed, whole }),
        },
        Metric::Rate(pace) => Ok(rate(line, pace)),
        Metric::Count(counter) => count(line, counter).map(Observed::Count),
    }
}

/// The printed rate is a count over the line's duration. The two are taken back out of it, so that it is compared
/// exactly and is still the printed one.
fn rate(line: &Line<'_>, pace: Pace) -> Observed {
    let printed = match pace {
        Pace::Throughput => line.rates.throughput,
        Pace::Started => line.rates.started,
        Pace::Completed => line.rates.completed,
    };
    let count = (printed * line.duration_s).round() as u64;
    // Over no time at all there was nothing, and nothing per second is 0.
    let nanos = ((line.duration_s * 1e9).round() as u64).max(1);
    Observed::Rate { count, nanos, printed }
}

fn count(line: &Line<'_>, counter: Counter) -> Result<u64, String> {
    let ledger = line.ledger;
    match counter {
        Counter::Started => Ok(ledger.started),
        Counter::Completed => Ok(ledger.completed),
        Counter::Succeeded => Ok(ledger.succeeded),
        Counter::Failed => Ok(ledger.failed),
        Counter::NotStarted => {
            ledger.not_started.ok_or_else(|| "the plan has no count of requests".to_owned())
        }
        Counter::InFlightAtEnd => Ok(ledger.in_flight_at_end),
        Counter::Errors(class) => {
            let rows = line.errors.ok_or(NO_FIGURE)?.iter();
            let rows = rows.filter(|row| class.is_none_or(|class| class.name() == row.class));
            Ok(rows.map(|row| row.count).fold(0, u64::saturating_add))
        }
        Counter::Status(set) => {
            let rows = line.status.ok_or(NO_FIGURE)?.iter().filter(|row| set.holds(row.code));
            Ok(rows.map(|row| row.count).fold(0, u64::saturating_add))
        }
        Counter::Connections(which) => {
            let connections = line.connections.ok_or(NO_FIGURE)?;
            Ok(match which {
                ConnectionCount::Established => connections.established,
                ConnectionCount::Opened => connections.opened,
                ConnectionCount::Failed => connections.failed,
                ConnectionCount::Peak => connections.peak,
            })
        }
    }
}

fn statistic_of(of: &Distribution, statistic: Statistic) -> Result<u64, String> {
    if of.count == 0 {
        return Err("no samples".to_owned());
    }
    let found = match statistic {
        Statistic::Min => of.min_ns,
        Statistic::Mean => of.mean_ns,
        Statistic::Max => of.max_ns,
        Statistic::Stdev => of.stdev_ns,
        Statistic::Percentile(percentile) => {
            let needed = Histogram::needed(percentile.share());
            if of.count < needed {
                let (needed, has) = (Count(needed), Count(of.count));
                return Err(format!("needs {needed} samples, has {has}"));
            }
            percentile_of(of, percentile)?
        }
    };
    found.ok_or_else(|| "it is above one hour, the longest time that is measured".to_owned())
}

fn percentile_of(of: &Distribution, percentile: Percentile) -> Result<Option<u64>, String> {
    let histogram = of.samples().map_err(|error| format!("not known: {error}"))?;
    Ok(histogram.percentile(percentile.share()))
}
