//! What a threshold can be about: closed sets, and their names.

use std::fmt;

use super::value::Kind;
use crate::outcome::ErrorClass;

/// A figure of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// One number of a distribution of times.
    Time {
        /// Which number.
        statistic: Statistic,
        /// Of which distribution.
        time: Time,
        /// Of which requests.
        outcome: OutcomeFilter,
    },
    /// Failed requests over completed ones.
    FailedRatio,
    /// A number of requests per second.
    Rate(Pace),
    /// A number of things.
    Count(Counter),
}

impl Metric {
    /// What its limit is given in.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Time { .. } => Kind::Time,
            Self::FailedRatio => Kind::Ratio,
            Self::Rate(_) => Kind::Rate,
            Self::Count(_) => Kind::Count,
        }
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident { $($(#[$what:meta])* $variant:ident => $name:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$what])* $variant),+
        }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it is written.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            pub(super) fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )+};
}

names! {
    /// A distribution of times in the report.
    Time {
        /// Intended start to last byte.
        ResponseTime => "response_time",
        /// Start of sending to last byte.
        ServiceTime => "service_time",
        /// Actual minus intended start.
        ScheduleLag => "schedule_lag",
        /// Start of sending to first byte.
        Ttfb => "ttfb",
        /// TCP connects.
        Connect => "connect",
        /// TLS handshakes.
        Tls => "tls",
        /// The generator's own lateness.
        WorkerLag => "worker_lag",
    }

    /// Of which requests a distribution is.
    OutcomeFilter {
        /// All completed ones.
        All => "all",
        /// The succeeded.
        Succeeded => "succeeded",
        /// The failed.
        Failed => "failed",
    }

    /// A number of requests per second.
    Pace {
        /// Ended well.
        Throughput => "throughput",
        /// Begun.
        Started => "started_rate",
        /// Ended.
        Completed => "completed_rate",
    }

    /// A number of connections.
    ConnectionCount {
        /// Slots that ever had a working connection.
        Established => "established",
        /// Made, reconnects included.
        Opened => "opened",
        /// Attempts that failed.
        Failed => "failed",
        /// Most open at one instant.
        Peak => "peak",
    }
}

impl Time {
    /// Whether the report has it for succeeded and failed requests apart.
    pub const fn is_split(self) -> bool {
        matches!(self, Self::ResponseTime | Self::ServiceTime | Self::ScheduleLag | Self::Ttfb)
    }
}

/// Which number of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The largest.
    Max,
    /// The standard deviation.
    Stdev,
    /// A percentile; `med` and `median` are its 50th.
    Percentile(Percentile),
}

impl Statistic {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "min" => Some(Self::Min),
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Max),
            "stdev" => Some(Self::Stdev),
            "med" | "median" => Some(Self::Percentile(Percentile::MEDIAN)),
            _ => Percentile::from_number(name.strip_prefix('p')?).map(Self::Percentile),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min => f.write_str("min"),
            Self::Mean => f.write_str("mean"),
            Self::Max => f.write_str("max"),
            Self::Stdev => f.write_str("stdev"),
            Self::Percentile(percentile) => write!(f, "p{percentile}"),
        }
    }
}

/// A percentile above the 0th and below the 100th, to a millionth of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile {
    millionths: u32,
}

impl Percentile {
    /// The 50th.
    pub const MEDIAN: Self = Self { millionths: 50_000_000 };
    /// Digits behind the point.
    pub(super) const PLACES: u32 = 6;

    fn from_number(text: &str) -> Option<Self> {
        let number = Some(text).filter(|text| !text.contains('_'))?;
        let millionths = super::value::decimal(number, Self::PLACES).ok()?;
        let millionths = u32::try_from(millionths).ok()?;
        (1..100_000_000).contains(&millionths).then_some(Self { millionths })
    }

    /// As a share, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.millionths) / 1e8
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::value::plain(u128::from(self.millionths), Self::PLACES))
    }
}

/// A number of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Requests begun.
    Started,
    /// Requests ended.
    Completed,
    /// Requests ended well.
    Succeeded,
    /// Requests ended badly.
    Failed,
    /// Requests planned and not begun.
    NotStarted,
    /// Requests begun and not ended.
    InFlightAtEnd,
    /// Failures without a response: of a class, or all.
    Errors(Option<ErrorClass>),
    /// Responses with these statuses.
    Status(StatusSet),
    /// Connections.
    Connections(ConnectionCount),
}

impl Counter {
    /// Those that count requests.
    pub(super) const OF_REQUESTS: [(&'static str, Self); 6] = [
        ("started", Self::Started),
        ("completed", Self::Completed),
        ("succeeded", Self::Succeeded),
        ("failed", Self::Failed),
        ("not_started", Self::NotStarted),
        ("in_flight_at_end", Self::InFlightAtEnd),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        if let Some((_, found)) = Self::OF_REQUESTS.iter().find(|(known, _)| *known == name) {
            return Some(*found);
        }
        match name.split_once('.') {
            None if name == "errors" => Some(Self::Errors(None)),
            Some(("errors", class)) => {
                ErrorClass::from_name(class).map(|class| Self::Errors(Some(class)))
            }
            Some(("status", codes)) => StatusSet::from_name(codes).map(Self::Status),
            Some(("connections", which)) => {
                ConnectionCount::from_name(which).map(Self::Connections)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors(None) => f.write_str("errors"),
            Self::Errors(Some(class)) => write!(f, "errors.{class}"),
            Self::Status(set) => write!(f, "status.{set}"),
            Self::Connections(which) => write!(f, "connections.{which}"),
            of_requests => {
                let known = Self::OF_REQUESTS.iter().find(|(_, counter)| counter == of_requests);
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

/// Status codes that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusSet {
    /// One code, 100 to 999.
    Code(u16),
    /// All codes with this first digit, 1 to 9.
    Class(u16),
}

impl StatusSet {
    fn from_name(name: &str) -> Option<Self> {
        let digits = |text: &str, length| {
            let all = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| all)
        };
        match name.strip_suffix("xx") {
            Some(class) => digits(class, 1).filter(|class| *class > 0).map(Self::Class),
            None => digits(name, 3).filter(|code| *code >= 100).map(Self::Code),
        }
    }

    /// Whether a status code is one of them.
    pub const fn holds(self, status: u16) -> bool {
        match self {
            Self::Code(code) => status == code,
            Self::Class(class) => status / 100 == class,
        }
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_written_again() {
        for name in [
            "started",
            "completed",
            "succeeded",
            "failed",
            "not_started",
            "in_flight_at_end",
            "errors",
            "errors.reset",
            "status.503",
            "status.5xx",
            "connections.opened",
        ] {
            assert_eq!(Counter::from_name(name).unwrap().to_string(), name);
        }
        for name in ["min", "mean", "max", "stdev", "p50", "p99", "p99.9", "p99.999999", "p0.5"] {
            assert_eq!(Statistic::from_name(name).unwrap().to_string(), name);
        }
        assert_eq!(Statistic::from_name("med"), Statistic::from_name("p50.0"));
    }

    #[test]
    fn what_is_no_name_is_not_found() {
        for name in ["p", "p0", "p100", "p99.", "p-1", "p99.9999999", "p1e1", "p9_9", "P99", "ü"] {
            assert_eq!(Statistic::from_name(name), None, "{name}");
        }
        for name in ["status.99", "status.1000", "status.0xx", "status.", "status.5XX", "errors."] {
            assert_eq!(Counter::from_name(name), None, "{name}");
        }
    }
}
