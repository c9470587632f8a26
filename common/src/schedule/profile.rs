//! How a rate goes over a time, and when its requests are due.

use super::{Amount, Rate, Segment};

/// A rate over time, in straight lines; what an open load promises.
///
/// With `N(t)` the integral of the rate, request `k` (from 0) is due at the last instant at which no more than `k`
/// requests have come together, rounded down to a nanosecond. So the first is due where the rate begins, a request that
/// falls on a pause is due at its end, and there are `⌈N(end)⌉` of them. Every instant is worked out from its index in
/// integers: nothing adds up, and nothing drifts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateProfile {
    segments: Vec<Segment>,
    /// When each segment begins, in nanoseconds, and the end of the last.
    times: Vec<u64>,
    /// What has come together when each segment begins, in units, and at the end of the last.
    amounts: Vec<u128>,
}

/// Where in a profile the last look-up was, which makes the next one near it cheap. Any cursor is right for any index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor(usize);

/// Why something is no rate profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No segment.
    #[error("a rate profile needs at least one step")]
    Empty,
    /// More than [`RateProfile::MAX_SEGMENTS`].
    #[error("{0} steps are too many: a rate profile has at most {max}", max = RateProfile::MAX_SEGMENTS)]
    TooManySegments(usize),
    /// Together longer than [`RateProfile::MAX_DURATION_NS`].
    #[error("a rate profile is too long: it lasts at most a week (168h)")]
    TooLong,
    /// Requests, but no rate.
    #[error("at a rate of 0 no request is ever due: expected a rate above 0")]
    NeverDone,
    /// More requests in a time than the highest rate makes.
    #[error(
        "so many requests in so short a time are more than {} makes: expected fewer, or a longer time",
        Rate::MAX
    )]
    TooDense,
}

impl RateProfile {
    /// The longest profile, in nanoseconds: a week.
    pub const MAX_DURATION_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;
    /// The most segments.
    pub const MAX_SEGMENTS: usize = 10_000;

    /// One segment after the other.
    ///
    /// # Errors
    /// When there is none, when there are too many, or when they are longer than a week.
    pub fn new(segments: Vec<Segment>) -> Result<Self, ProfileError> {
        if segments.is_empty() {
            return Err(ProfileError::Empty);
        }
        if segments.len() > Self::MAX_SEGMENTS {
            return Err(ProfileError::TooManySegments(segments.len()));
        }
        let (mut time, mut amount) = (0_u64, 0_u128);
        let (mut times, mut amounts) = (vec![time], vec![amount]);
        for segment in &segments {
            time = time
                .checked_add(segment.duration_ns)
                .filter(|end| *end <= Self::MAX_DURATION_NS)
                .ok_or(ProfileError::TooLong)?;
            amount += segment.area();
            times.push(time);
            amounts.push(amount);
        }
        Ok(Self { segments, times, amounts })
    }

    /// The same rate all the time.
    ///
    /// # Errors
    /// When it is longer than a week.
    pub fn constant(rate: Rate, duration_ns: u64) -> Result<Self, ProfileError> {
        Self::new(vec![Segment::constant(rate, duration_ns)])
    }

    /// One straight line.
    ///
    /// # Errors
    /// When it is longer than a week.
    pub fn ramp(from: Rate, to: Rate, duration_ns: u64) -> Result<Self, ProfileError> {
        Self::new(vec![Segment { from, to, duration_ns }])
    }

    /// The same rate for exactly so many requests: [`duration_for`](Self::duration_for) long.
    ///
    /// # Errors
    /// When the rate is 0, or they take longer than a week.
    pub fn for_requests(rate: Rate, requests: u64) -> Result<Self, ProfileError> {
        Self::constant(rate, Self::duration_for(rate, requests)?)
    }

    /// How long a constant rate takes for exactly so many requests, in nanoseconds: `requests / rate`, rounded down, which
    /// is the instant at which the next one would be due.
    ///
    /// # Errors
    /// When the rate is 0, or they take longer than a week.
    pub fn duration_for(rate: Rate, requests: u64) -> Result<u64, ProfileError> {
        let per_nanosecond = 2 * u128::from(rate.micro());
        let whole = Amount::requests(requests).units();
        let duration = match whole.checked_div(per_nanosecond) {
            Some(duration) => duration,
            None if requests == 0 => 0,
            None => return Err(ProfileError::NeverDone),
        };
        u64::try_from(duration)
            .ok()
            .filter(|duration| *duration <= Self::MAX_DURATION_NS)
            .ok_or(ProfileError::TooLong)
    }

    /// Exactly so many requests, evenly over a time: the highest rate that does not make one more.
    ///
    /// The rate is a whole number of micro-requests per second. What is cut off adds up to less than a request in eleven
    /// days, so the count is exact for any profile; the gaps are even, and the last one to the end may be shorter.
    ///
    /// # Errors
    /// When the time is longer than a week, or too short for so many at the highest rate.
    pub fn spread(requests: u64, duration_ns: u64) -> Result<Self, ProfileError> {
        let femto = u128::from(requests) * (Amount::UNITS_PER_REQUEST / 2);
        let micro = match femto.checked_div(u128::from(duration_ns)) {
            Some(micro) => micro,
            None if requests == 0 => 0,
            None => return Err(ProfileError::TooDense),
        };
        let rate = u64::try_from(micro).ok().and_then(|micro| Rate::from_micro(micro).ok());
        Self::constant(rate.ok_or(ProfileError::TooDense)?, duration_ns)
    }

    /// Its segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How long it is, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.times[self.segments.len()]
    }

    /// All that it adds up to; exact.
    pub fn total(&self) -> Amount {
        Amount::from_units(self.amounts[self.segments.len()])
    }

    /// How many requests are due in it: what it adds up to, a begun request counted.
    pub fn count(&self) -> u64 {
        self.total().rounded_up()
    }

    /// The highest rate it reaches.
    pub fn peak(&self) -> Rate {
        let lasting = self.segments.iter().filter(|segment| segment.duration_ns > 0);
        lasting.map(|segment| segment.from.max(segment.to)).max().unwrap_or(Rate::ZERO)
    }

    /// The rate at `t_ns` nanoseconds after the beginning, rounded down to a micro-request per second; after a jump where
    /// there is one, and 0 from the end on.
    pub fn rate_at(&self, t_ns: u64) -> Rate {
        if t_ns >= self.duration_ns() {
            return Rate::ZERO;
        }
        let index = self.segment_at(t_ns);
        self.segments[index].rate_at(t_ns - self.times[index])
    }

    /// What has come together `t_ns` nanoseconds after the beginning, rounded up to a unit of half a femto-request.
    pub fn cumulative(&self, t_ns: u64) -> Amount {
        if t_ns >= self.duration_ns() {
            return self.total();
        }
        let index = self.segment_at(t_ns);
        let within = self.segments[index].area_until(t_ns - self.times[index]);
        Amount::from_units(self.amounts[index] + within)
    }

    /// How many requests are due before `t_ns` nanoseconds after the beginning; exact.
    pub fn planned_before(&self, t_ns: u64) -> u64 {
        self.cumulative(t_ns).rounded_up()
    }

    /// How many requests are due from `from_ns` on and before `to_ns`, in nanoseconds after the beginning; exact, so that
    /// the intervals of a run add up to its count.
    pub fn planned_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.planned_before(to_ns).saturating_sub(self.planned_before(from_ns))
    }

    /// When request `k`, counted from 0, is due: nanoseconds after the beginning. `None` when there are not so many.
    pub fn due(&self, k: u64) -> Option<u64> {
        self.due_near(k, &mut Cursor::default())
    }

    /// [`due`](Self::due), cheap when `k` is near the one that was asked for with this cursor before.
    pub fn due_near(&self, k: u64, cursor: &mut Cursor) -> Option<u64> {
        self.instant_near(Amount::requests(k), cursor)
    }

    /// The last instant at which no more than `amount` has come together, rounded down to a nanosecond after the
    /// beginning. `None` when that is all there is, so that it stays so for ever.
    pub fn instant_near(&self, amount: Amount, cursor: &mut Cursor) -> Option<u64> {
        let units = amount.units();
        if units >= self.total().units() {
            return None;
        }
        let holds = |index: usize| {
            self.amounts.get(index).is_some_and(|begin| *begin <= units)
                && self.amounts.get(index + 1).is_some_and(|end| units < *end)
        };
        let index = if holds(cursor.0) {
            cursor.0
        } else {
            // The last segment that begins with no more: pauses and jumps before it are passed.
            self.amounts.partition_point(|begin| *begin <= units) - 1
        };
        cursor.0 = index;
        Some(self.times[index] + self.segments[index].last_within(units - self.amounts[index]))
    }

    /// The segment that is going on at `t_ns`, which is before the end. Those without duration never are.
    fn segment_at(&self, t_ns: u64) -> usize {
        self.times.partition_point(|begin| *begin <= t_ns) - 1
    }
}
