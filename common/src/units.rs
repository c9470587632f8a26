//! Numbers for people: counts, byte counts and durations with their unit.

use std::{fmt, time::Duration};

/// A number of things, printed with separators: 1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A number of bytes, printed with a decimal unit (1 kB = 1,000 B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
        let mut unit = 0;
        let mut value = self.0 as f64;
        // 999.95 would be rounded to "1000.0".
        while value >= 999.95 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        let text =
            if unit == 0 { format!("{} B", self.0) } else { format!("{value:.1} {}", UNITS[unit]) };
        f.pad(&text)
    }
}

/// A duration, printed with three significant digits and the unit that suits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

/// A duration in nanoseconds; of more than 584 years, as many as there can be.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(nanos(duration))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
        let nanos = self.0 as f64;
        let (size, unit) =
            UNITS.into_iter().find(|(size, _)| nanos >= size * 0.9995).unwrap_or((1.0, "ns"));
        let value = nanos / size;
        let digits = if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        };
        let digits = if unit == "ns" { 0 } else { digits };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_and_rounding_never_prints_a_thousand_of_a_unit() {
        assert_eq!(Count(999).to_string(), "999");
        assert_eq!(Count(1_000).to_string(), "1,000");
        assert_eq!(Count(12_345_678).to_string(), "12,345,678");
        assert_eq!(ByteCount(999).to_string(), "999 B");
        assert_eq!(ByteCount(999_999).to_string(), "1.0 MB");
        assert_eq!(Nanos(999_999).to_string(), "1.00 ms");
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(Nanos(1_234).to_string(), "1.23 µs");
        assert_eq!(Nanos(12_345_678).to_string(), "12.3 ms");
        assert_eq!(Nanos(61_400_000_000).to_string(), "61.4 s");
    }
}
