//! How a number of connections or a rate goes over time: it stays, it goes from one value to another, or it does so in
//! steps.

use std::time::Duration;

use toml::Spanned;

use super::{
    compile::Compiler,
    keys::{self, Kind, grouped},
    problem::{Problem, code},
    raw::Field,
    raw_load::{RawShape, RawStep},
};
use crate::{
    schedule::{Rate, RateError, RateProfile},
    units::nanos,
};

/// A straight line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<A> {
    pub(super) from: A,
    pub(super) to: A,
    /// Whether it is written as a ramp, which a line from 5 to 5 is too.
    pub(super) is_ramp: bool,
}

/// A line and how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step<A> {
    pub(super) line: Line<A>,
    pub(super) duration: Duration,
}

/// What goes over time.
pub(super) trait Amount: Copy {
    /// As the plan has it.
    type Typed;

    /// Checks one; 0 is allowed at the end of a ramp.
    fn check(
        compiler: &mut Compiler<'_>,
        path: &str,
        typed: &Spanned<Self::Typed>,
        end_of_ramp: bool,
    ) -> Option<Self>;
}

/// Connections.
impl Amount for u64 {
    type Typed = i128;

    fn check(
        compiler: &mut Compiler<'_>,
        path: &str,
        typed: &Spanned<i128>,
        end_of_ramp: bool,
    ) -> Option<Self> {
        let least = match keys::find(path).kind {
            Kind::Connections { least } if !end_of_ramp => least,
            _ => 0,
        };
        compiler.number(path, typed, least, keys::MOST_CONNECTIONS)
    }
}

impl Amount for Rate {
    type Typed = String;

    fn check(
        compiler: &mut Compiler<'_>,
        path: &str,
        typed: &Spanned<String>,
        end_of_ramp: bool,
    ) -> Option<Self> {
        let rate = compiler.rate(path, typed)?;
        let may_be_zero =
            end_of_ramp || matches!(keys::find(path).kind, Kind::RateOrRamp { pause: true });
        if rate.is_zero() && !may_be_zero {
            compiler.beyond(path, typed.span(), ", got 0");
            return None;
        }
        Some(rate)
    }
}

impl Compiler<'_> {
    /// A rate, 0 or more.
    pub(super) fn rate(&mut self, path: &str, typed: &Spanned<String>) -> Option<Rate> {
        let text = typed.get_ref();
        let shown: String = text.chars().take(40).collect();
        let (label, help) = match text.parse() {
            Ok(rate) => return Some(rate),
            Err(RateError::Negative | RateError::TooHigh) => {
                let got = if text.len() > 20 { String::new() } else { format!(", got {text}") };
                self.beyond(path, typed.span(), &got);
                return None;
            }
            Err(RateError::Exponent) => {
                ("an exponent", "write the number out, such as 1_000 for 1e3".to_owned())
            }
            Err(RateError::TooFine) => {
                ("too many decimal places", "a rate has at most six of them: 0.000001".to_owned())
            }
            Err(RateError::NotDecimal) => {
                ("not a decimal number", format!("for example: {}", keys::find(path).example))
            }
        };
        let message = format!("`{}` is no rate: {shown}", keys::shown(path));
        self.error(code::BAD_RATE, typed.span(), message, label, help);
        None
    }
}

/// A number or a ramp; `None` where it is missing, or with a problem reported.
pub(super) fn line<A: Amount>(
    compiler: &mut Compiler<'_>,
    path: &str,
    field: &Field<RawShape<A::Typed>>,
) -> Option<Line<A>>
where
    A::Typed: Clone,
{
    let shape = field.given()?;
    match shape.get_ref() {
        RawShape::Constant(typed) => {
            let typed = Spanned::new(shape.span(), typed.clone());
            let amount = A::check(compiler, path, &typed, false)?;
            Some(Line { from: amount, to: amount, is_ramp: false })
        }
        RawShape::Ramp { from, to } => {
            for (name, end) in [("from", from), ("to", to)] {
                if end.is_missing() {
                    let message = format!("`{}.{name}` is missing", keys::shown(path));
                    let help = format!(
                        "a ramp has both ends: {} = {{ from = 10, to = 100 }}",
                        keys::find(path).name()
                    );
                    compiler.error(code::MISSING_KEY, shape.span(), message, "half a ramp", help);
                }
            }
            let mut end = |end: &Field<A::Typed>| A::check(compiler, path, end.given()?, true);
            let (from, to) = (end(from), end(to));
            Some(Line { from: from?, to: to?, is_ramp: true })
        }
    }
}

/// Steps that last; `None` where they are missing, or with a problem reported.
///
/// A step without duration is a jump to where the next one begins: nothing happens in it, and none is kept.
pub(super) fn steps<A: Amount>(
    compiler: &mut Compiler<'_>,
    path: &str,
    amount: &str,
    field: &Field<Vec<RawStep<A::Typed>>>,
) -> Option<Vec<Step<A>>>
where
    A::Typed: Clone,
{
    let typed = field.given()?;
    let (list, shown) = (typed.get_ref(), keys::shown(path));
    let example = || format!("for example: {}", keys::find(path).example);
    if list.is_empty() {
        let message = format!("`{shown}` has no step");
        compiler.error(code::OUT_OF_RANGE, typed.span(), message, "nothing in here", example());
        return None;
    }
    if let Some(next) = list.get(RateProfile::MAX_SEGMENTS) {
        let most = grouped(RateProfile::MAX_SEGMENTS as u64);
        let message = format!("`{shown}` has {} steps, at most {most} are possible", list.len());
        let help = "a ramp is one step, from one value to another";
        compiler.error(code::OUT_OF_RANGE, next.span.clone(), message, "one too many", help);
        return None;
    }
    let before = compiler.problems.len();
    let mut steps = Vec::new();
    for raw in list {
        let (amount, duration) =
            (format!("{}.{amount}", raw.path), format!("{}.duration", raw.path));
        if raw.amount.is_missing() {
            compiler.missing(&amount, raw.span.clone());
        }
        if raw.duration.is_missing() {
            compiler.missing(&duration, raw.span.clone());
        }
        let line = line(compiler, &amount, &raw.amount);
        let duration = compiler.given_duration(&duration, &raw.duration);
        steps.extend(line.zip(duration).map(|(line, duration)| Step { line, duration }));
    }
    if steps.len() < list.len() || compiler.problems.iter().skip(before).any(Problem::is_error) {
        return None;
    }
    let total =
        steps.iter().map(|step| step.duration).fold(Duration::ZERO, Duration::saturating_add);
    if total.is_zero() || nanos(total) > RateProfile::MAX_DURATION_NS {
        let (message, label) = if total.is_zero() {
            (format!("the steps of `{shown}` take no time"), "together 0s")
        } else {
            (format!("the steps of `{shown}` take more than 7d"), "together too long")
        };
        compiler.error(code::OUT_OF_RANGE, typed.span(), message, label, example());
        return None;
    }
    steps.retain(|step| !step.duration.is_zero());
    Some(steps)
}
