//! Thresholds: what a test must reach, one comparison each.
//!
//! ```text
//! p99(response_time{request="login"}) < 250ms
//! └┬┘ └─────┬─────┘ └──────┬───────┘  ┬ └─┬─┘
//!  aggregate metric        selectors  │   limit
//!                                     operator
//! ```
//!
//! [`parse()`] reads one, with a place for everything that is wrong; what it refuses, a report has no figure for.
//! [`evaluate()`] compares it with a [`Report`](crate::report::Report): the very one that is printed, so that no
//! threshold can disagree with the numbers beside it.
//!
//! Thresholds say nothing about whether the numbers may be believed; that is the verdict's part.

mod cursor;
mod evaluate;
mod fault;
mod figure;
mod hints;
mod metric;
mod parse;
mod select;
mod value;

use std::fmt;

pub use evaluate::evaluate;
pub use fault::Fault;
pub use metric::{
    ConnectionCount, Counter, Metric, OutcomeFilter, Pace, Percentile, Statistic, StatusSet, Time,
};
pub use parse::{Known, KnownPhase, parse};
pub use value::{Kind, Limit, Per, Rate, Ratio};

/// One comparison of a figure with a limit.
///
/// Comes only out of [`parse()`], so that the report has the figure and the limit has its unit. `Display` writes it
/// in one way, which reads back as the same threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    metric: Metric,
    scope: Scope,
    operator: Operator,
    limit: Limit,
}

impl Threshold {
    /// What is compared.
    pub const fn metric(&self) -> Metric {
        self.metric
    }

    /// Of which part of the run.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// How it is compared.
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// What it is compared with.
    pub const fn limit(&self) -> Limit {
        self.limit
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.metric {
            Metric::Time { statistic, time, .. } => (format!("{statistic}({time}"), ")"),
            Metric::FailedRatio => ("failed_ratio".to_owned(), ""),
            Metric::Rate(pace) => (pace.to_string(), ""),
            Metric::Count(counter) => (format!("count({counter}"), ")"),
        };
        f.write_str(&before)?;
        let outcome = match self.metric {
            Metric::Time { outcome: OutcomeFilter::All, .. } => None,
            Metric::Time { outcome, .. } => Some(outcome.name()),
            _ => None,
        };
        let selectors: Vec<String> = [
            ("request", self.scope.request.as_deref()),
            ("phase", self.scope.phase.as_deref()),
            ("outcome", outcome),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", cursor::quoted(value?))))
        .collect();
        if !selectors.is_empty() {
            write!(f, "{{{}}}", selectors.join(", "))?;
        }
        write!(f, "{after} {} {}", self.operator, self.limit)
    }
}

/// Of which part of the run a figure is: of all of it, where neither is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only this request of the plan.
    pub request: Option<String>,
    /// Only this phase of the plan.
    pub phase: Option<String>,
}

/// How a figure is compared with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Less, Self::AtMost, Self::More, Self::AtLeast, Self::Equal, Self::NotEqual];

    /// As it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }

    /// Whether it holds for a figure that stands so to its limit.
    pub(crate) const fn holds(self, figure_to_limit: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => figure_to_limit.is_lt(),
            Self::AtMost => figure_to_limit.is_le(),
            Self::More => figure_to_limit.is_gt(),
            Self::AtLeast => figure_to_limit.is_ge(),
            Self::Equal => figure_to_limit.is_eq(),
            Self::NotEqual => figure_to_limit.is_ne(),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.sign())
    }
}
