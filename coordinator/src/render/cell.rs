//! One value as a few characters. What does not apply is a dash, never a 0.

use inrush_common::{
    report::{Amount, ThresholdRow, ThresholdUnit},
    units::{ByteCount, Count, Nanos},
};

/// Does not apply.
pub(super) const NONE: &str = "–";

/// A count.
pub(super) fn count(count: u64) -> String {
    Count(count).to_string()
}

/// A count that may not apply.
pub(super) fn maybe_count(value: Option<u64>) -> String {
    value.map_or_else(|| NONE.to_owned(), count)
}

/// A time. The histograms know nothing below a microsecond, so nothing finer is shown.
pub(super) fn time(nanos: u64) -> String {
    if nanos < 1_000 { "<1µs".to_owned() } else { Nanos(nanos).to_string().replace(' ', "") }
}

/// A time that may not apply, or have too few samples behind it.
pub(super) fn maybe_time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| NONE.to_owned(), time)
}

/// A number of bytes that may not apply.
pub(super) fn maybe_bytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| NONE.to_owned(), |bytes| ByteCount(bytes).to_string())
}

/// A duration that was computed as a number of seconds.
pub(super) fn seconds(seconds: f64) -> String {
    let nanos = (seconds * 1e9).round() as u64;
    if nanos == 0 { "0 s".to_owned() } else { Nanos(nanos).to_string() }
}

/// A number per second, to about four digits.
pub(super) fn rate(rate: f64) -> String {
    if rate >= 999.95 {
        count(rate.round() as u64)
    } else if rate >= 99.995 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.2}")
    }
}

/// A number per second that a plan asks for, to the digit.
pub(super) fn planned_rate(rate: f64) -> String {
    let whole = count(rate as u64);
    let rest = format!("{:.6}", rate.fract());
    let rest = rest.trim_start_matches('0').trim_end_matches('0').trim_end_matches('.');
    format!("{whole}{rest}/s")
}

/// A multiple.
pub(super) fn multiple(multiple: Option<f64>) -> String {
    multiple.map_or_else(|| NONE.to_owned(), |multiple| format!("{multiple:.2}"))
}

/// `part` of `whole` in percent. Some is never shown as none, and not all never as all.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NONE.to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    if part > 0 && percent < 0.01 {
        "<0.01 %".to_owned()
    } else if part < whole && percent > 99.99 {
        ">99.99 %".to_owned()
    } else if part == 0 || part == whole {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.2} %")
    }
}

/// A threshold's figure and limit. Where so few digits would make the two look the same and they are not, all digits.
pub(crate) fn observed_and_limit(row: &ThresholdRow) -> (String, String) {
    let (limit, Some(observed)) = (row.limit, row.observed) else {
        return (NONE.to_owned(), amount(row.limit, row.unit));
    };
    let (short, limit_short) = (amount(observed, row.unit), amount(limit, row.unit));
    if short == limit_short && observed != limit {
        (all_digits(observed, row.unit), all_digits(limit, row.unit))
    } else {
        (short, limit_short)
    }
}

fn amount(amount: Amount, unit: ThresholdUnit) -> String {
    match (amount, unit) {
        (Amount::Whole(nanos), ThresholdUnit::Nanoseconds) => time(nanos),
        (Amount::Real(ratio), ThresholdUnit::Ratio) if ratio > 0.0 && ratio < 0.000_1 => {
            "<0.01 %".to_owned()
        }
        (Amount::Real(ratio), ThresholdUnit::Ratio) => format!("{:.2} %", ratio * 100.0),
        (Amount::Real(per_second), ThresholdUnit::PerSecond) => format!("{}/s", rate(per_second)),
        (Amount::Whole(number), _) => count(number),
        (Amount::Real(number), _) => number.to_string(),
    }
}

fn all_digits(amount: Amount, unit: ThresholdUnit) -> String {
    match (amount, unit) {
        (Amount::Whole(nanos), ThresholdUnit::Nanoseconds) => format!("{} ns", count(nanos)),
        (Amount::Real(ratio), ThresholdUnit::Ratio) => format!("{} %", ratio * 100.0),
        (Amount::Real(per_second), ThresholdUnit::PerSecond) => format!("{per_second}/s"),
        (Amount::Whole(number), _) => count(number),
        (Amount::Real(number), _) => number.to_string(),
    }
}

/// A difference of two clocks, with how much it may be off.
pub(super) fn clock(offset_ns: Option<i64>, bound_ns: Option<u64>) -> String {
    let Some((offset, bound)) = offset_ns.zip(bound_ns) else { return NONE.to_owned() };
    let offset = match (offset.unsigned_abs(), offset < 0) {
        (0..1_000, _) => "0".to_owned(),
        (nanos, true) => format!("-{}", time(nanos)),
        (nanos, false) => format!("+{}", time(nanos)),
    };
    format!("{offset} ±{}", time(bound))
}

/// Somebody's words on one line, without anything that a terminal would obey.
pub(crate) fn words(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\r' | '\t' => plain.push(' '),
            // Also what turns the direction of writing, or breaks lines in its own way.
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                plain.extend(char.escape_unicode());
            }
            char if char.is_control() => plain.extend(char.escape_unicode()),
            char => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_all() {
        let shares = [(0, 9), (1, 1_000_000), (1, 3), (999_999, 1_000_000), (9, 9), (0, 0)];
        let texts = shares.map(|(part, whole)| percent(part, whole));
        assert_eq!(texts, ["0 %", "<0.01 %", "33.33 %", ">99.99 %", "100 %", "–"]);
    }

    #[test]
    fn rates_have_the_digits_that_matter() {
        let texts = [0.0, 0.5, 99.99, 99.999, 999.9, 999.96, 16_287.3].map(rate);
        assert_eq!(texts, ["0.00", "0.50", "99.99", "100.0", "999.9", "1,000", "16,287"]);
    }

    #[test]
    fn a_planned_rate_stands_as_it_was_written() {
        let texts = [0.1, 0.000_001, 1.0, 250.5, 5_000.0, 0.0].map(planned_rate);
        assert_eq!(texts, ["0.1/s", "0.000001/s", "1/s", "250.5/s", "5,000/s", "0/s"]);
    }

    #[test]
    fn times_are_short_and_say_nothing_that_was_not_measured() {
        assert_eq!(
            [0, 511, 1_023, 12_345_678, 61_400_000_000].map(time),
            ["<1µs", "<1µs", "1.02µs", "12.3ms", "61.4s"]
        );
        assert_eq!(clock(Some(-400_000), Some(300_000)), "-400µs ±300µs");
        assert_eq!(clock(Some(2_000_000), Some(300_000)), "+2.00ms ±300µs");
        assert_eq!(clock(Some(-999), Some(300_000)), "0 ±300µs");
        assert_eq!(clock(None, Some(3)), "–");
        assert_eq!([0.0, 4.5, 61.4].map(seconds), ["0 s", "4.50 s", "61.4 s"]);
    }

    #[test]
    fn words_do_not_move_the_cursor() {
        assert_eq!(words("a\nb\u{1b}[31mc\u{202e}d"), "a b\\u{1b}[31mc\\u{202e}d");
    }
}
