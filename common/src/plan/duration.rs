//! Durations as plans write them: a number and its unit, `"30s"`, `"250ms"`, `"1m 30s"`.

use std::{ops::Range, time::Duration};

use humantime::DurationError;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoDuration {
    /// Where in the text.
    pub(crate) part: Range<usize>,
    /// What stands there, in a few words.
    pub(crate) label: &'static str,
    /// The remedy.
    pub(crate) help: String,
}

const EXAMPLES: &str =
    "write a number and its unit: \"30s\", \"250ms\", \"5m\", \"1h\" or \"1m 30s\"";

/// Reads a duration.
///
/// # Errors
/// With the place of the first thing that cannot be read.
pub(crate) fn parse(text: &str) -> Result<Duration, NoDuration> {
    let fail = |part, label| NoDuration { part, label, help: EXAMPLES.to_owned() };
    // Bounds the arithmetic of the parser well below its overflow; "999d 23h 59m 59s 999ms" fits.
    let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    if text.len() > 40 || longest > 11 {
        return Err(fail(0..text.len(), "too long or too exact"));
    }
    humantime::parse_duration(text).map_err(|error| match error {
        DurationError::InvalidCharacter(at) if starts(text, at, '-') => {
            fail(at..at + 1, "a duration cannot be negative")
        }
        DurationError::NumberExpected(at) if starts(text, at, '-') => {
            fail(at..at + 1, "a duration cannot be negative")
        }
        DurationError::InvalidCharacter(at) => fail(character(text, at), "not expected here"),
        DurationError::NumberExpected(at) => fail(character(text, at), "expected a number"),
        DurationError::UnknownUnit { unit, value, .. } if unit.is_empty() => NoDuration {
            part: 0..text.len(),
            label: "the unit is missing",
            help: format!("write the unit: \"{value}s\" or \"{value}ms\""),
        },
        DurationError::UnknownUnit { start, end, .. } => NoDuration {
            part: start..end,
            label: "not a unit of time",
            help: "units are ns, us, ms, s, m, h and d: \"30s\", \"250ms\", \"1m 30s\"".to_owned(),
        },
        DurationError::NumberOverflow => fail(0..text.len(), "too large or too exact"),
        DurationError::Empty => fail(0..text.len(), "nothing here"),
    })
}

/// A duration as plans write it, and as [`parse`] reads it.
pub(crate) fn spell(nanos: u64) -> String {
    humantime::format_duration(Duration::from_nanos(nanos)).to_string()
}

fn starts(text: &str, at: usize, with: char) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(with))
}

fn character(text: &str, at: usize) -> Range<usize> {
    let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    at..at + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_a_unit_and_a_unit_a_number() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse("250 ms"), Ok(Duration::from_millis(250)));
        for (text, part, label) in [
            ("", 0..0, "nothing here"),
            ("30", 0..2, "the unit is missing"),
            ("30 sex", 3..6, "not a unit of time"),
            ("1m 30x", 5..6, "not a unit of time"),
            ("-3s", 0..1, "a duration cannot be negative"),
            ("s", 0..1, "expected a number"),
            ("3ü", 1..3, "not expected here"),
            ("123456789012s", 0..13, "too long or too exact"),
            ("0.1ns", 0..5, "too large or too exact"),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!((found.part, found.label), (part, label), "{text:?}");
        }
    }

    #[test]
    fn the_largest_sums_do_not_overflow() {
        assert!(parse("99999999999y 99999999999y 99999999999y").is_ok());
        assert!(parse("30500568904943w 25216s 1000000000ns").is_err());
    }
}
