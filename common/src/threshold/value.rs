//! Limits: numbers with their units, exact. What is written is what is compared; nothing passes through a float.

use std::{fmt, ops::Range, time::Duration};

use super::fault::{Fault, shown};
use crate::{
    plan::{code, duration},
    units,
};

/// What a limit is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A duration.
    Time,
    /// A part of a whole.
    Ratio,
    /// A number per second, minute or hour.
    Rate,
    /// A whole number.
    Count,
}

impl Kind {
    /// In words, with an example.
    const fn wanted(self) -> (&'static str, &'static str) {
        match self {
            Self::Time => ("a time", "write a time with its unit: 250ms, 1s or 0.5s"),
            Self::Ratio => {
                ("a percentage", "write a percentage, or a ratio from 0 to 1: 0.1% or 0.001")
            }
            Self::Rate => ("a rate", "write a number per second, minute or hour: 5000/s or 1/m"),
            Self::Count => ("a count", "write a whole number without a unit: 100"),
        }
    }
}

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nanoseconds.
    Time(u64),
    /// A part of a whole.
    Ratio(Ratio),
    /// A number in a time.
    Rate(Rate),
    /// A number.
    Count(u64),
}

impl Limit {
    /// Whether it is nothing at all.
    pub const fn is_zero(self) -> bool {
        match self {
            Self::Time(number) | Self::Count(number) => number == 0,
            Self::Ratio(ratio) => ratio.parts == 0,
            Self::Rate(rate) => rate.millionths == 0,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(nanos) => {
                write!(f, "{}", humantime::format_duration(Duration::from_nanos(*nanos)))
            }
            Self::Ratio(ratio) => write!(f, "{ratio}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// A part of a whole, 0 to 1, in parts of [`Ratio::WHOLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio {
    parts: u64,
}

impl Ratio {
    /// All of it.
    pub const WHOLE: u64 = 1_000_000_000_000;
    const PLACES: u32 = 12;

    /// How many parts of [`Ratio::WHOLE`].
    pub const fn parts(self) -> u64 {
        self.parts
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", plain(u128::from(self.parts), Self::PLACES - 2))
    }
}

/// A number of requests in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    millionths: u64,
    per: Per,
}

impl Rate {
    const PLACES: u32 = 6;
    /// Far above what any fleet can do, and far below where the arithmetic ends.
    const MOST: u64 = 1_000_000_000_000;

    /// How many millionths of a request.
    pub const fn millionths(self) -> u64 {
        self.millionths
    }

    /// In which time.
    pub const fn per(self) -> Per {
        self.per
    }

    /// As a number per second.
    pub fn per_second(self) -> f64 {
        self.millionths as f64 / 1e6 / self.per.seconds() as f64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = plain(u128::from(self.millionths), Self::PLACES);
        write!(f, "{number}{}", self.per.unit())
    }
}

/// The time of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// `/s`
    Second,
    /// `/m`
    Minute,
    /// `/h`
    Hour,
}

impl Per {
    const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// How long it is.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Second => "/s",
            Self::Minute => "/m",
            Self::Hour => "/h",
        }
    }
}

/// The longest time that is measured: the top of the histograms.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Reads a limit of this kind; `at` is where the text begins in the threshold.
pub(super) fn parse(text: &str, at: usize, kind: Kind) -> Result<Limit, Fault> {
    let whole = at..at + text.len();
    let (wanted, example) = kind.wanted();
    if text.is_empty() {
        return Err(Fault::unreadable(whole, &format!("expected {wanted}"), example));
    }
    if text.starts_with('-') {
        return Err(Fault::unreadable(at..at + 1, "a limit cannot be negative", example));
    }
    let length = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_'));
    let (number, unit) = text.split_at(length.unwrap_or(text.len()));
    let unit = unit.trim_start();
    let unit_part = whole.end - unit.len()..whole.end;
    let wrong_unit = || {
        let (part, label) = if unit.is_empty() {
            (whole.clone(), "the unit is missing".to_owned())
        } else {
            (unit_part.clone(), format!("not a unit of {wanted}"))
        };
        let message = format!("{:?} is not {wanted}", shown(text));
        Fault::new(code::WRONG_UNIT, part, message, label, example)
    };
    let exact =
        |places| decimal(number, places).map_err(|why| why.fault(at..at + number.len(), example));
    if number.is_empty() {
        let label = format!("expected {wanted}");
        return Err(Fault::unreadable(whole, &label, example));
    }
    match (kind, unit) {
        (Kind::Time, "" | "%") => Err(wrong_unit()),
        (Kind::Time, unit) if unit.starts_with('/') => Err(wrong_unit()),
        (Kind::Time, _) => time(text, &whole),
        (Kind::Ratio, "%") => ratio(exact(Ratio::PLACES - 2)?, whole, number),
        (Kind::Ratio, "") => ratio(exact(Ratio::PLACES)?, whole, number),
        (Kind::Rate, unit) => {
            let per = Per::ALL.into_iter().find(|per| per.unit() == unit);
            let per = per.ok_or_else(|| match unit {
                "" => Fault { help: format!("did you mean {number}/s?"), ..wrong_unit() },
                _ => wrong_unit(),
            })?;
            let millionths = u64::try_from(exact(Rate::PLACES)?).unwrap_or(u64::MAX);
            if millionths > Rate::MOST * 1_000_000 {
                return Err(Fault::unreadable(
                    whole,
                    "more than any fleet can do",
                    "write at most 1000000000000/s",
                ));
            }
            Ok(Limit::Rate(Rate { millionths, per }))
        }
        (Kind::Count, "") => match u64::try_from(exact(0)?) {
            Ok(count) => Ok(Limit::Count(count)),
            Err(_) => Err(Fault::unreadable(whole, "more than can be counted", example)),
        },
        (Kind::Ratio | Kind::Count, _) => Err(wrong_unit()),
    }
}

fn time(text: &str, whole: &Range<usize>) -> Result<Limit, Fault> {
    let found = duration::parse(text).map_err(|why| {
        let part = whole.start + why.part.start..whole.start + why.part.end;
        let message = format!("{:?} is not a time", shown(text));
        Fault::new(code::WRONG_UNIT, part, message, why.label, why.help)
    })?;
    if found > LONGEST {
        let help = "no time above one hour is measured: write at most 1h";
        return Err(Fault::unreadable(whole.clone(), "longer than one hour", help));
    }
    Ok(Limit::Time(units::nanos(found)))
}

fn ratio(parts: u128, whole: Range<usize>, number: &str) -> Result<Limit, Fault> {
    match u64::try_from(parts) {
        Ok(parts) if parts <= Ratio::WHOLE => Ok(Limit::Ratio(Ratio { parts })),
        _ => {
            let help = format!(
                "a ratio is from 0 to 1, a percentage from 0% to 100%: did you mean {number}%?"
            );
            Err(Fault::unreadable(whole, "more than all of them", help))
        }
    }
}

/// Why a text is no decimal number that can be kept exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoDecimal {
    /// Not digits, with at most one point between them.
    Form,
    /// More digits behind the point than this.
    TooExact(u32),
    /// More digits before the point than are ever needed.
    TooLarge,
}

impl NoDecimal {
    fn fault(self, part: Range<usize>, example: &str) -> Fault {
        let label = match self {
            Self::Form => "not a number".to_owned(),
            Self::TooExact(0) => "not a whole number".to_owned(),
            Self::TooExact(places) => format!("more than {places} digits behind the point"),
            Self::TooLarge => "too large".to_owned(),
        };
        Fault::unreadable(part, &label, example)
    }
}

/// The number times 10 to the power of `places`. Underscores may stand between digits before the point.
pub(super) fn decimal(text: &str, places: u32) -> Result<u128, NoDecimal> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !whole.split('_').all(digits) || !fraction.is_none_or(digits) {
        return Err(NoDecimal::Form);
    }
    let fraction = fraction.unwrap_or_default().trim_end_matches('0');
    let missing = usize::try_from(places).unwrap_or(0).checked_sub(fraction.len());
    let zeros = missing.ok_or(NoDecimal::TooExact(places))?;
    let all = format!("{}{fraction}{}", whole.replace('_', ""), "0".repeat(zeros));
    // Of a number with fewer digits than this, every product that is ever formed fits.
    let all = all.trim_start_matches('0');
    if all.len() > 30 {
        return Err(NoDecimal::TooLarge);
    }
    Ok(all.parse().unwrap_or(0))
}

/// A number that was multiplied by 10 to the power of `places`, without needless zeros.
pub(super) fn plain(scaled: u128, places: u32) -> String {
    let scale = 10_u128.pow(places);
    let width = usize::try_from(places).unwrap_or(0);
    let text = format!("{}.{:0width$}", scaled / scale, scaled % scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(text: &str, kind: Kind, written: &str) {
        let limit = parse(text, 0, kind).unwrap();
        assert_eq!(limit.to_string(), written);
        assert_eq!(parse(written, 0, kind), Ok(limit));
    }

    #[test]
    fn limits_are_exact_and_written_in_one_way() {
        good("250ms", Kind::Time, "250ms");
        good("0.5s", Kind::Time, "500ms");
        good("1m 30s", Kind::Time, "1m 30s");
        good("1h", Kind::Time, "1h");
        good("0.1%", Kind::Ratio, "0.1%");
        good("0.001", Kind::Ratio, "0.1%");
        good("5 %", Kind::Ratio, "5%");
        good("1.0", Kind::Ratio, "100%");
        good("0.0000000001%", Kind::Ratio, "0.0000000001%");
        good("5_000/s", Kind::Rate, "5000/s");
        good("0.50 /s", Kind::Rate, "0.5/s");
        good("90/m", Kind::Rate, "90/m");
        good("1_000_000", Kind::Count, "1000000");
        good("007", Kind::Count, "7");
    }

    #[test]
    fn a_wrong_unit_is_shown_with_its_place_and_a_remedy() {
        for (text, kind, part, label) in [
            ("250", Kind::Time, 0..3, "the unit is missing"),
            ("5%", Kind::Time, 1..2, "not a unit of a time"),
            ("5/s", Kind::Time, 1..3, "not a unit of a time"),
            ("5 apples", Kind::Time, 2..8, "not a unit of time"),
            ("2h", Kind::Time, 0..2, "longer than one hour"),
            ("5ms", Kind::Ratio, 1..3, "not a unit of a percentage"),
            ("5", Kind::Ratio, 0..1, "more than all of them"),
            ("101%", Kind::Ratio, 0..4, "more than all of them"),
            ("0.0000000000001", Kind::Ratio, 0..15, "more than 12 digits behind the point"),
            ("5000", Kind::Rate, 0..4, "the unit is missing"),
            ("5k/s", Kind::Rate, 1..4, "not a unit of a rate"),
            ("5 rps", Kind::Rate, 2..5, "not a unit of a rate"),
            ("1.5", Kind::Count, 0..3, "not a whole number"),
            ("5ms", Kind::Count, 1..3, "not a unit of a count"),
            ("1__0", Kind::Count, 0..4, "not a number"),
            ("1.2.3%", Kind::Ratio, 0..5, "not a number"),
            ("99999999999999999999", Kind::Count, 0..20, "more than can be counted"),
            ("1000000000001/s", Kind::Rate, 0..15, "more than any fleet can do"),
            ("-1", Kind::Count, 0..1, "a limit cannot be negative"),
            ("ü", Kind::Count, 0..2, "expected a count"),
            ("", Kind::Time, 0..0, "expected a time"),
        ] {
            let fault = parse(text, 0, kind).unwrap_err();
            assert_eq!((fault.part, fault.label.as_str()), (part, label), "{text:?}");
            assert!(!fault.help.is_empty());
        }
    }
}
