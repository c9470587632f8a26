//! Amounts of requests, finer than one: what a rate adds up to over a time.

/// An amount of requests in units of half a femto-request (5·10⁻¹⁶ of a request).
///
/// A rate in micro-requests per second times a time in nanoseconds is a whole number of femto-requests, and the area
/// under a ramp is a whole number of halves of them. So every end of a segment is exact, and a week at the highest
/// rate (1.2·10²⁸ units) leaves ten decimal places of a `u128` free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u128);

impl Amount {
    /// Units in one request.
    pub const UNITS_PER_REQUEST: u128 = 2_000_000_000_000_000;

    /// So many whole requests.
    pub fn requests(requests: u64) -> Self {
        Self(u128::from(requests) * Self::UNITS_PER_REQUEST)
    }

    /// So many units of half a femto-request.
    pub fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// In units of half a femto-request.
    pub fn units(self) -> u128 {
        self.0
    }

    /// In whole requests, a begun one counted. More than fit are as many as fit.
    pub fn rounded_up(self) -> u64 {
        u64::try_from(self.0.div_ceil(Self::UNITS_PER_REQUEST)).unwrap_or(u64::MAX)
    }

    /// In requests, as near as a float comes: for charts and distances.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::UNITS_PER_REQUEST as f64
    }
}
