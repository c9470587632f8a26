//! From the text of a threshold to the threshold, with every mistake in it.

use std::ops::Range;

use super::{
    Limit, Operator, Scope, Threshold,
    cursor::Cursor,
    fault::{Fault, shown},
    hints::{counter_names, other_words, stands_alone, suggestion},
    metric::{Counter, Metric, OutcomeFilter, Pace, Statistic, Time},
    value::{self, Kind, Ratio},
};
use crate::plan::{code, nearest::nearest};

/// What of the plan a threshold may speak of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The names of its requests; `None` where they are not known: any will do.
    pub requests: Option<&'a [String]>,
    /// Its phases, likewise.
    pub phases: Option<&'a [KnownPhase<'a>]>,
}

/// What of a phase matters to thresholds.
#[derive(Debug, Clone, Copy)]
pub struct KnownPhase<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it counts in the figures of the run.
    pub measured: bool,
    /// Whether it says how many requests there are to be: only then can any be missing.
    pub counted: bool,
}

/// Reads a threshold.
///
/// # Errors
/// With everything that is wrong with it, in the order of the text; at least one.
pub fn parse(text: &str, known: &Known<'_>) -> Result<Threshold, Vec<Fault>> {
    let mut parser = Parser { cursor: Cursor::new(text), faults: Vec::new(), known };
    let threshold = parser.threshold();
    let mut faults = parser.faults;
    match threshold {
        Some(threshold) if faults.is_empty() => Ok(threshold),
        _ => {
            faults.sort_by_key(|fault| (fault.part.start, fault.part.end));
            Err(faults)
        }
    }
}

/// What stands before the parenthesis.
#[derive(Debug, Clone, Copy)]
enum Aggregate {
    Statistic(Statistic),
    Count,
}

/// Reads on after a mistake wherever it can. `None` only where a fault is noted.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) faults: Vec<Fault>,
    pub(super) known: &'t Known<'t>,
}

const EXAMPLES: &str =
    "for example: p99(response_time) < 250ms, failed_ratio < 0.1% or count(errors.reset) == 0";

impl Parser<'_> {
    fn threshold(&mut self) -> Option<Threshold> {
        self.cursor.blanks();
        if self.cursor.rest().is_empty() {
            return self.fault(Fault::unreadable(self.cursor.here(), "nothing here", EXAMPLES));
        }
        let (kind, figure) = self.figure();
        if figure.is_none() {
            self.cursor.skip_to_operator();
        }
        let operator = self.operator();
        let limit = self.limit(kind, operator);
        let (metric, scope) = figure?;
        Some(Threshold { metric, scope, operator: operator?, limit: limit? })
    }

    pub(super) fn fault<T>(&mut self, fault: Fault) -> Option<T> {
        self.faults.push(fault);
        None
    }

    /// Everything before the operator; and what the limit is to be given in, where that much is clear.
    fn figure(&mut self) -> (Option<Kind>, Option<(Metric, Scope)>) {
        let first = self.cursor.word();
        if first.is_empty() {
            let here = self.cursor.here();
            return (None, self.fault(Fault::unreadable(here, "expected a metric", EXAMPLES)));
        }
        if !self.cursor.eat('(') {
            let metric = self.bare(&first);
            return (metric.map(Metric::kind), self.selected(metric, first));
        }
        let aggregate = self.aggregate(&first);
        let name = self.cursor.word();
        if name.is_empty() {
            let here = self.cursor.here();
            return (None, self.fault(Fault::unreadable(here, "expected a metric", EXAMPLES)));
        }
        let metric = aggregate.and_then(|aggregate| self.aggregated(aggregate, &first, &name));
        let kind = self.kind(aggregate, &name);
        let figure = self.selected(metric, name);
        // Behind selectors that cannot be read, a parenthesis cannot be told from a missing one.
        if figure.is_some() && !self.cursor.eat(')') {
            let here = self.cursor.here();
            return (
                kind,
                self.fault(Fault::unreadable(here, "expected )", "close the parenthesis")),
            );
        }
        (kind, figure)
    }

    /// The selectors behind a metric, applied to it.
    fn selected(&mut self, metric: Option<Metric>, name: Range<usize>) -> Option<(Metric, Scope)> {
        let selectors = self.selectors()?;
        self.select(metric?, name, selectors)
    }

    /// What an aggregate's limit is given in. Where aggregate and metric do not fit, who knows which is meant.
    fn kind(&self, aggregate: Option<Aggregate>, name: &Range<usize>) -> Option<Kind> {
        let name = self.cursor.text(name);
        let is_time = Time::from_name(name).is_some();
        let is_other = stands_alone(name).is_some() || Counter::from_name(name).is_some();
        match aggregate {
            Some(Aggregate::Statistic(_)) if !is_other => Some(Kind::Time),
            Some(Aggregate::Count) if !is_time => Some(Kind::Count),
            None if is_time => Some(Kind::Time),
            _ => None,
        }
    }

    fn aggregate(&mut self, part: &Range<usize>) -> Option<Aggregate> {
        let typed = self.cursor.text(part);
        if typed == "count" {
            return Some(Aggregate::Count);
        }
        if let Some(found) = Statistic::from_name(typed) {
            return Some(Aggregate::Statistic(found));
        }
        let all = ["p99", "p95", "p90", "p50", "med", "min", "mean", "max", "stdev", "count"];
        let help = match typed {
            "avg" | "average" => "did you mean `mean`?".to_owned(),
            "p0" => "the smallest is `min`".to_owned(),
            "p100" => "the largest is `max`".to_owned(),
            "std" | "stddev" | "sd" => "did you mean `stdev`?".to_owned(),
            _ if typed.starts_with('p') && typed.contains(|c: char| c.is_ascii_digit()) => {
                "percentiles are above p0 and below p100, to six digits: p99, p99.9".to_owned()
            }
            _ => suggestion(typed, all),
        };
        let message = format!("there is no aggregate {:?}", shown(typed));
        let (part, label) = (part.clone(), "not a known aggregate");
        self.fault(Fault::new(code::UNKNOWN_METRIC, part, message, label, help))
    }

    /// The metric in the parentheses of an aggregate.
    fn aggregated(
        &mut self,
        aggregate: Aggregate,
        first: &Range<usize>,
        part: &Range<usize>,
    ) -> Option<Metric> {
        let (typed, word) = (self.cursor.text(part), self.cursor.text(first));
        match aggregate {
            Aggregate::Statistic(statistic) => {
                if let Some(time) = Time::from_name(typed) {
                    let outcome = OutcomeFilter::All;
                    return Some(Metric::Time { statistic, time, outcome });
                }
                let (times, others) =
                    (Time::ALL.iter().map(|time| time.name()), stands_alone(typed));
                let help = if let Some(help) = other_words(typed) {
                    help
                } else if let Some(example) = others {
                    format!("`{typed}` stands alone: {example}")
                } else if Counter::from_name(typed).is_some() {
                    format!("it is counted: count({typed})")
                } else {
                    suggestion(typed, times)
                };
                self.unknown(
                    part,
                    format!("`{word}` takes a distribution of times, not {:?}", shown(typed)),
                    help,
                )
            }
            Aggregate::Count => {
                if let Some(counter) = Counter::from_name(typed) {
                    return Some(Metric::Count(counter));
                }
                let help = if typed.starts_with("status.") {
                    "a status is three digits, or one and xx: status.503, status.5xx".to_owned()
                } else if Time::from_name(typed).is_some() {
                    "a time is no count: p99(response_time), or count(completed)".to_owned()
                } else {
                    let names = counter_names();
                    let words = names.iter().map(String::as_str);
                    // All of the error classes would be more than anyone reads.
                    match nearest(typed, words) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "what can be counted: started, completed, succeeded, failed, not_started, errors, \
                                 errors.CLASS, status.503, status.5xx, connections.opened"
                            .to_owned(),
                    }
                };
                self.unknown(part, format!("nothing called {:?} is counted", shown(typed)), help)
            }
        }
    }

    /// A metric without an aggregate.
    fn bare(&mut self, part: &Range<usize>) -> Option<Metric> {
        let typed = self.cursor.text(part);
        if typed == "failed_ratio" {
            return Some(Metric::FailedRatio);
        }
        if let Some(pace) = Pace::from_name(typed) {
            return Some(Metric::Rate(pace));
        }
        let (message, help) = if let Some(time) = Time::from_name(typed) {
            let message = format!("`{time}` is a distribution: which of its numbers is meant?");
            (message, format!("write an aggregate: p99({time}), max({time})"))
        } else if Counter::from_name(typed).is_some() {
            (format!("`{typed}` needs an aggregate"), format!("write count({typed})"))
        } else {
            let help = match (other_words(typed), Statistic::from_name(typed)) {
                (Some(help), _) => help,
                (None, Some(_)) => format!("say of what: {typed}(response_time)"),
                (None, None) => {
                    let counters = counter_names();
                    let rates = Pace::ALL.iter().map(|pace| pace.name()).chain(["failed_ratio"]);
                    let times = Time::ALL.iter().map(|time| time.name());
                    let counters = counters.iter().map(String::as_str);
                    match nearest(typed, rates.chain(times).chain(counters)) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => EXAMPLES.to_owned(),
                    }
                }
            };
            (format!("there is no metric {:?}", shown(typed)), help)
        };
        self.unknown(part, message, help)
    }

    fn unknown<T>(&mut self, part: &Range<usize>, message: String, help: String) -> Option<T> {
        let label = "not a metric here";
        self.fault(Fault::new(code::UNKNOWN_METRIC, part.clone(), message, label, help))
    }

    fn operator(&mut self) -> Option<Operator> {
        let part = self.cursor.signs();
        let typed = self.cursor.text(&part);
        if let Some(found) = Operator::ALL.into_iter().find(|operator| operator.sign() == typed) {
            return Some(found);
        }
        let (part, help) = match typed {
            "=" | "===" => (part, "write =="),
            "=<" => (part, "write <="),
            "=>" => (part, "write >="),
            "<>" | "!==" | "!" | "~=" => (part, "write !="),
            "" => (self.cursor.here(), "compare with <, <=, >, >=, == or !="),
            _ => (part, "operators are <, <=, >, >=, == and !="),
        };
        // Where a string does not end, it has swallowed what followed.
        let swallowed = self.faults.iter().any(|fault| fault.part.end == part.start);
        if part.is_empty() && self.cursor.rest().is_empty() && swallowed {
            return None;
        }
        let label = if typed.is_empty() { "expected a comparison" } else { "not an operator" };
        let found = self.fault(Fault::unreadable(part, label, help));
        if typed.is_empty() {
            // There may be one further on, and a limit behind it.
            self.cursor.skip_to_operator();
            self.cursor.signs();
        }
        found
    }

    /// All that is left. Without knowing of what kind it must be, only whether there is any.
    fn limit(&mut self, kind: Option<Kind>, operator: Option<Operator>) -> Option<Limit> {
        self.cursor.blanks();
        let (at, text) = (self.cursor.at(), self.cursor.rest().trim_end());
        let Some(kind) = kind else {
            return if text.is_empty() && operator.is_some() {
                let here = self.cursor.here();
                self.fault(Fault::unreadable(here, "expected a limit", EXAMPLES))
            } else {
                None
            };
        };
        if text.is_empty() && operator.is_none() {
            // The comparison that is missing has been told.
            return None;
        }
        let limit = match value::parse(text, at, kind) {
            Ok(limit) => limit,
            Err(fault) => return self.fault(fault),
        };
        let whole = at..at + text.len();
        let all = matches!(limit, Limit::Ratio(ratio) if ratio.parts() == Ratio::WHOLE);
        match operator {
            Some(Operator::Less) if limit.is_zero() => {
                let help = "nothing is below nothing: write == and the limit";
                self.fault(Fault::unreadable(whole, "can never hold", help))
            }
            Some(Operator::More) if all => {
                let help = "nothing is above all: write == 100%";
                self.fault(Fault::unreadable(whole, "can never hold", help))
            }
            _ => Some(limit),
        }
    }
}
