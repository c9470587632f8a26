//! What is wrong with a plan, as a value.

use std::{fmt, ops::Range};

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The plan is refused.
    Error,
    /// The plan runs, but probably not as meant.
    Warning,
}

/// One thing wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable, for people to search for and tools to match: `plan::unknown_key`.
    pub code: &'static str,
    /// Whether the plan can still run.
    pub severity: Severity,
    /// What is wrong, with the value in question; lower case, no full stop.
    pub message: String,
    /// The place in the plan's source, in bytes; empty ranges point between two characters.
    pub span: Range<usize>,
    /// What stands at the place, in a few words ("not a known key").
    pub label: String,
    /// What to do about it.
    pub help: String,
}

impl Problem {
    /// Something that refuses the plan.
    pub(crate) fn error(
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (message, label, help) = (message.into(), label.into(), help.into());
        Self { code, severity: Severity::Error, message, span, label, help }
    }

    /// Something that is probably not meant.
    pub(crate) fn warning(
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message, label, help) }
    }

    /// Whether this refuses the plan.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal, $meaning:literal;)*) => {
        /// The codes of all problems; they never change their meaning.
        pub mod code {
            $(#[doc = $meaning] pub const $name: &str = $code;)*

            /// Every code with what it means, in the order of the reference.
            pub const ALL: &[(&str, &str)] = &[$(($code, $meaning)),*];
        }
    };
}

codes! {
    ENCODING = "plan::encoding", "The file is not UTF-8 text.";
    TOO_LARGE = "plan::too_large", "The plan is larger than a plan can be.";
    EMPTY = "plan::empty", "The plan holds no keys at all.";
    SYNTAX = "plan::syntax", "The text is not TOML.";
    DUPLICATE_KEY = "plan::duplicate_key", "A key or a table stands in the plan twice.";
    UNKNOWN_KEY = "plan::unknown_key", "There is no such key here.";
    NOT_AVAILABLE = "plan::not_available", "Inrush knows of this, but this version cannot do it.";
    WRONG_TYPE = "plan::wrong_type", "The value is of another type than the key wants.";
    MISSING_KEY = "plan::missing_key", "A key that every plan needs is missing.";
    MISSING_UNIT = "plan::missing_unit", "A duration is a bare number.";
    BAD_DURATION = "plan::bad_duration", "A duration cannot be read.";
    OUT_OF_RANGE = "plan::out_of_range", "A value is below or above what the key allows.";
    BAD_NAME = "plan::bad_name", "The plan's name cannot be shown in lists.";
    NO_LOAD = "plan::no_load", "The plan does not say how load is made.";
    TWO_LOADS = "plan::two_loads", "The plan has more than one load model.";
    NO_END = "plan::no_end", "Neither a count nor a duration ends the load.";
    NO_RATE = "plan::no_rate", "Nothing says how fast the requests of an open load start.";
    NO_REQUESTS = "plan::no_requests", "The load never makes a request.";
    CONFLICT = "plan::conflict", "Two keys contradict each other.";
    BAD_RATE = "plan::bad_rate", "A rate cannot be read.";
    BAD_RANGE = "plan::bad_range", "Of two values, the first must not be above the second.";
    DOES_NOT_FIT = "plan::does_not_fit", "So many requests do not fit into the time.";
    DUPLICATE_PHASE = "plan::duplicate_phase", "Two phases have the same name.";
    UNKNOWN_PHASE = "plan::unknown_phase", "No phase has the name that another is to start after.";
    PHASE_CYCLE = "plan::phase_cycle", "A phase starts after itself, by way of others or directly.";
    UNKNOWN_END = "plan::unknown_end", "A phase starts after one whose end is not known.";
    NOT_MEASURED = "plan::not_measured", "No phase is measured.";
    BAD_ADDRESS = "plan::bad_address", "Not a host with a port.";
    BAD_URL = "plan::bad_url", "The URL cannot be requested.";
    BAD_URL_CHARACTER = "plan::bad_url_character", "A character cannot stand in a URL.";
    CREDENTIALS_IN_URL = "plan::credentials_in_url", "The URL holds a user name or a password.";
    FRAGMENT = "plan::fragment", "The URL's fragment is not sent (warning).";
    BAD_METHOD = "plan::bad_method", "The HTTP method cannot be used.";
    BAD_HEADER_NAME = "plan::bad_header_name", "A header name holds what a header name cannot.";
    BAD_HEADER_VALUE = "plan::bad_header_value", "A header value holds what a header value cannot.";
    REFUSED_HEADER = "plan::refused_header", "Inrush itself must write this header.";
    DUPLICATE_HEADER = "plan::duplicate_header", "A header's name stands in the plan twice.";
    TWO_BODIES = "plan::two_bodies", "The plan has both `body` and `body_file`.";
    BODY_FILE = "plan::body_file", "The body file cannot be read, or is too large.";
    BAD_STATUS = "plan::bad_status", "Not a status code, nor a range of them.";
    DUPLICATE_STATUS = "plan::duplicate_status", "A status code is listed twice (warning).";
    BAD_CHOICE = "plan::bad_choice", "Not one of the words the key takes.";
    IDLE_CONNECTIONS = "plan::idle_connections", "There are more connections than requests (warning).";
    ENDS_FIRST = "plan::ends_first", "Of the count and the time of an open load, one ends before the other (warning).";
    MANY_MORE = "plan::many_more", "There are more problems than anyone would read.";
    ENDLESS_RAMP = "plan::endless_ramp", "The ramp takes as long as the run, or longer (warning).";
    BAD_THRESHOLD = "plan::bad_threshold", "A threshold cannot be read, or can never hold.";
    UNKNOWN_METRIC = "plan::unknown_metric", "A threshold names a metric, an aggregate or a selector that there is not.";
    NO_FIGURE = "plan::no_figure", "The report has no figure for what a threshold selects.";
    UNKNOWN_NAME = "plan::unknown_name", "No request or phase of the plan has the name that a threshold selects.";
    WRONG_UNIT = "plan::wrong_unit", "A threshold's limit has not the unit of its metric.";
}
