//! A request rate, exact to a millionth of a request per second.

use std::{fmt, str::FromStr};

use crate::units::Count;

/// A number of requests per second, held as whole micro-requests per second.
///
/// 0 is a rate: a pause. The largest is [`Rate::MAX`].
///
/// It is read from decimal text, so that `0.1` means a tenth and not the nearest binary fraction. A float of a parsed
/// TOML file can be read through its own `to_string`, which never writes an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// Micro-requests in a request.
const MICRO: u64 = 1_000_000;

impl Rate {
    /// Nothing at all: a pause.
    pub const ZERO: Self = Self(0);
    /// 10,000,000 requests per second.
    pub const MAX: Self = Self(10_000_000 * MICRO);

    /// So many requests per second.
    ///
    /// # Errors
    /// When it is more than [`Rate::MAX`].
    pub fn per_second(requests: u64) -> Result<Self, RateError> {
        requests.checked_mul(MICRO).ok_or(RateError::TooHigh).and_then(Self::from_micro)
    }

    /// So many millionths of a request per second.
    ///
    /// # Errors
    /// When it is more than [`Rate::MAX`].
    pub fn from_micro(micro_per_second: u64) -> Result<Self, RateError> {
        Some(Self(micro_per_second)).filter(|rate| *rate <= Self::MAX).ok_or(RateError::TooHigh)
    }

    /// In millionths of a request per second.
    pub const fn micro(self) -> u64 {
        self.0
    }

    /// In requests per second, as near as a float comes: for estimates and charts.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / MICRO as f64
    }

    /// Whether this is a pause.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The number of requests per second as decimal text without a unit: `5000`, `0.4`. [`Rate::from_str`] reads it.
    pub fn to_decimal(self) -> String {
        format!("{}{}", self.0 / MICRO, self.fraction())
    }

    fn fraction(self) -> String {
        match self.0 % MICRO {
            0 => String::new(),
            rest => format!(".{rest:06}").trim_end_matches('0').to_owned(),
        }
    }
}

/// With separators and unit: `5,000/s`, `0.4/s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{}/s", Count(self.0 / MICRO), self.fraction()))
    }
}

/// Why something is no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// Not decimal digits with at most one point, and underscores between digits.
    #[error("expected requests per second as a decimal number, such as 0.4 or 5_000")]
    NotDecimal,
    /// A minus sign.
    #[error("a rate cannot be negative: expected 0 or more requests per second")]
    Negative,
    /// 1e3.
    #[error("a rate has no exponent: write the number out, such as 1_000 for 1e3")]
    Exponent,
    /// More than six decimal places.
    #[error("a rate has at most six decimal places: the smallest is 0.000001 requests per second")]
    TooFine,
    /// Above [`Rate::MAX`].
    #[error("the highest rate is {} requests per second", Count(Rate::MAX.0 / MICRO))]
    TooHigh,
}

/// Reads requests per second: `5000`, `5_000`, `0.4`.
impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let unsigned = match text.strip_prefix('-') {
            Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(RateError::Negative);
            }
            _ => text.strip_prefix('+').unwrap_or(text),
        };
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) => (digits(whole)?, digits(fraction)?),
            None => (digits(unsigned)?, String::new()),
        };
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 6 {
            return Err(RateError::TooFine);
        }
        // More digits than the highest rate has: not worth a parse that could overflow.
        if whole.len() > 8 {
            return Err(RateError::TooHigh);
        }
        let micro = format!("{whole}{fraction:0<6}");
        micro.parse().map_err(|_| RateError::NotDecimal).and_then(Self::from_micro)
    }
}

/// The digits of a part of the number; an underscore may stand between two digits.
fn digits(text: &str) -> Result<String, RateError> {
    let fine = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if text.split('_').all(fine) {
        return Ok(text.replace('_', ""));
    }
    let mut parts = text.splitn(2, ['e', 'E']);
    let exponent = parts.next().is_some_and(|part| part.split('_').all(fine));
    Err(if exponent && parts.next().is_some() {
        RateError::Exponent
    } else {
        RateError::NotDecimal
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text_is_read_to_the_millionth_and_written_back() {
        for (text, micro, decimal, shown) in [
            ("0", 0, "0", "0/s"),
            ("0.4", 400_000, "0.4", "0.4/s"),
            ("0.1", 100_000, "0.1", "0.1/s"),
            ("5_000", 5_000_000_000, "5000", "5,000/s"),
            ("+12", 12_000_000, "12", "12/s"),
            ("1234.567_891", 1_234_567_891, "1234.567891", "1,234.567891/s"),
            ("0.000001", 1, "0.000001", "0.000001/s"),
            ("007.50000000", 7_500_000, "7.5", "7.5/s"),
            ("10_000_000", Rate::MAX.micro(), "10000000", "10,000,000/s"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.micro(), micro, "{text}");
            assert_eq!((rate.to_decimal().as_str(), rate.to_string().as_str()), (decimal, shown));
            assert_eq!(rate.to_decimal().parse(), Ok(rate));
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_its_reason() {
        for (text, error) in [
            ("", RateError::NotDecimal),
            ("fast", RateError::NotDecimal),
            (".5", RateError::NotDecimal),
            ("5.", RateError::NotDecimal),
            ("1.2.3", RateError::NotDecimal),
            ("_5", RateError::NotDecimal),
            ("5__0", RateError::NotDecimal),
            ("e3", RateError::NotDecimal),
            ("NaN", RateError::NotDecimal),
            ("inf", RateError::NotDecimal),
            ("٣", RateError::NotDecimal),
            ("- 1", RateError::NotDecimal),
            ("-1", RateError::Negative),
            ("1e3", RateError::Exponent),
            ("1.5E-2", RateError::Exponent),
            ("0.0000001", RateError::TooFine),
            ("10000000.000001", RateError::TooHigh),
            ("99999999999999999999999", RateError::TooHigh),
        ] {
            assert_eq!(text.parse::<Rate>(), Err(error), "{text:?}");
        }
        assert_eq!(Rate::per_second(u64::MAX), Err(RateError::TooHigh));
        assert_eq!(Rate::from_micro(Rate::MAX.micro() + 1), Err(RateError::TooHigh));
    }

    #[test]
    fn the_shortest_text_of_a_float_is_the_rate_that_was_written() {
        for (float, micro) in [(0.1_f64, 100_000), (0.3, 300_000), (1e3, 1_000_000_000), (1e-6, 1)]
        {
            assert_eq!(float.to_string().parse::<Rate>().map(Rate::micro), Ok(micro));
        }
    }
}
