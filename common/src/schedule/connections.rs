//! How the number of connections of a closed load goes over time.

use std::iter::FusedIterator;

/// The number of connections over time. Each connection is a lane: lane `i`, from 0, is on while there are to be more
/// than `i`.
///
/// Between whole numbers the profile is rounded, a half up. So a ramp from 1 to 2 opens its second connection half-way,
/// and each number of connections gets its fair part of a ramp. After its end the profile stays at its last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionProfile {
    shape: ConnectionShape,
    /// When each step begins, in nanoseconds, and the end of the last. For a constant number: the end of its ramp.
    times: Vec<u64>,
}

/// What a [`ConnectionProfile`] is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionShape {
    /// The same number all the time, opened one by one: lane `i` at `ramp_up_ns * i / connections` nanoseconds, rounded
    /// down.
    Constant {
        /// How many.
        connections: u64,
        /// Over what time they open, in nanoseconds.
        ramp_up_ns: u64,
    },
    /// One step after the other.
    Steps(Vec<ConnectionStep>),
}

/// A stretch of time over which the number of connections goes in a straight line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionStep {
    /// The number of connections at its beginning.
    pub from: u64,
    /// The number of connections at its end.
    pub to: u64,
    /// How long it is, in nanoseconds. 0 is a jump: only where the last step ends does its value count.
    pub duration_ns: u64,
}

/// A stretch of time in which a lane is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first nanosecond after the beginning of the load at which it is on.
    pub on_ns: u64,
    /// The first at which it is off again; `u64::MAX` when it stays on.
    pub off_ns: u64,
}

/// Why something is no connection profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionProfileError {
    /// No step.
    #[error("a connection profile needs at least one step")]
    Empty,
    /// More than [`ConnectionProfile::MAX_STEPS`].
    #[error("{0} steps are too many: a connection profile has at most {max}", max = ConnectionProfile::MAX_STEPS)]
    TooManySteps(usize),
    /// Together longer than [`ConnectionProfile::MAX_DURATION_NS`].
    #[error("a connection profile is too long: it lasts at most a week (168h)")]
    TooLong,
    /// More than [`ConnectionProfile::MAX_CONNECTIONS`].
    #[error("{0} connections are too many: at most {max} can be dealt", max = ConnectionProfile::MAX_CONNECTIONS)]
    TooMany(u64),
}

impl ConnectionProfile {
    /// The longest profile, in nanoseconds: a week.
    pub const MAX_DURATION_NS: u64 = super::RateProfile::MAX_DURATION_NS;
    /// The most steps.
    pub const MAX_STEPS: usize = 10_000;
    /// The most connections at one time.
    pub const MAX_CONNECTIONS: u64 = 1_000_000_000_000;

    /// A profile of this shape.
    ///
    /// # Errors
    /// When there are no steps or too many, too many connections, or it is longer than a week.
    pub fn new(shape: ConnectionShape) -> Result<Self, ConnectionProfileError> {
        let mut times = Vec::new();
        match &shape {
            ConnectionShape::Constant { connections, ramp_up_ns } => {
                few_enough(*connections)?;
                times.push(soon_enough(0, *ramp_up_ns)?);
            }
            ConnectionShape::Steps(steps) if steps.is_empty() => {
                return Err(ConnectionProfileError::Empty);
            }
            ConnectionShape::Steps(steps) if steps.len() > Self::MAX_STEPS => {
                return Err(ConnectionProfileError::TooManySteps(steps.len()));
            }
            ConnectionShape::Steps(steps) => {
                let mut time = 0;
                times.push(time);
                for step in steps {
                    few_enough(step.from.max(step.to))?;
                    time = soon_enough(time, step.duration_ns)?;
                    times.push(time);
                }
            }
        }
        Ok(Self { shape, times })
    }

    /// The same number all the time, of which lane `i` opens at `ramp_up_ns * i / connections` nanoseconds.
    ///
    /// # Errors
    /// When there are too many, or the ramp is longer than a week.
    pub fn constant(connections: u64, ramp_up_ns: u64) -> Result<Self, ConnectionProfileError> {
        Self::new(ConnectionShape::Constant { connections, ramp_up_ns })
    }

    /// One straight line.
    ///
    /// # Errors
    /// When there are too many connections, or it is longer than a week.
    pub fn ramp(from: u64, to: u64, duration_ns: u64) -> Result<Self, ConnectionProfileError> {
        Self::steps(vec![ConnectionStep { from, to, duration_ns }])
    }

    /// One step after the other.
    ///
    /// # Errors
    /// When there are no steps or too many, too many connections, or they are longer than a week.
    pub fn steps(steps: Vec<ConnectionStep>) -> Result<Self, ConnectionProfileError> {
        Self::new(ConnectionShape::Steps(steps))
    }

    /// What it is made of.
    pub fn shape(&self) -> &ConnectionShape {
        &self.shape
    }

    /// When it is at its last value for good, in nanoseconds: the end of its steps, or of the ramp of a constant number.
    pub fn duration_ns(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }

    /// The highest number of connections it reaches: how many lanes there are.
    pub fn peak(&self) -> u64 {
        match &self.shape {
            ConnectionShape::Constant { connections, .. } => *connections,
            ConnectionShape::Steps(steps) => {
                let lasting = steps.iter().filter(|step| step.duration_ns > 0);
                let during = lasting.map(|step| step.from.max(step.to)).max().unwrap_or(0);
                during.max(self.last())
            }
        }
    }

    /// How many connections there are to be at `t_ns` nanoseconds after the beginning.
    pub fn at(&self, t_ns: u64) -> u64 {
        if t_ns >= self.duration_ns() {
            return self.last();
        }
        match &self.shape {
            ConnectionShape::Constant { connections, ramp_up_ns } => {
                // Lane i is open when ⌊ramp·i/C⌋ ≤ t, that is when ramp·i < (t+1)·C.
                let open = (u128::from(t_ns) + 1) * u128::from(*connections);
                narrow(open.div_ceil(u128::from(*ramp_up_ns))).min(*connections)
            }
            ConnectionShape::Steps(steps) => {
                // The last that has begun: those without duration are passed.
                let index = self.times.partition_point(|begin| *begin <= t_ns) - 1;
                steps[index].at(t_ns - self.times[index])
            }
        }
    }

    /// When lane `i` is on, in order. A lane from [`peak`](Self::peak) on never is.
    pub fn lane(&self, i: u64) -> Lane<'_> {
        Lane { profile: self, lane: i, next: 0 }
    }

    /// When lane `i` is on at `t_ns` or next after it; `None` when it is not on any more.
    pub fn lane_from(&self, i: u64, t_ns: u64) -> Option<Span> {
        self.lane(i).find(|span| span.off_ns > t_ns)
    }

    /// The number of connections from the end on.
    fn last(&self) -> u64 {
        match &self.shape {
            ConnectionShape::Constant { connections, .. } => *connections,
            ConnectionShape::Steps(steps) => steps.last().map_or(0, |step| step.to),
        }
    }
}

fn few_enough(connections: u64) -> Result<(), ConnectionProfileError> {
    if connections > ConnectionProfile::MAX_CONNECTIONS {
        return Err(ConnectionProfileError::TooMany(connections));
    }
    Ok(())
}

/// The end of what begins at `begin_ns`.
fn soon_enough(begin_ns: u64, duration_ns: u64) -> Result<u64, ConnectionProfileError> {
    begin_ns
        .checked_add(duration_ns)
        .filter(|end| *end <= ConnectionProfile::MAX_DURATION_NS)
        .ok_or(ConnectionProfileError::TooLong)
}

/// A quotient that is bounded by one of its factors.
fn narrow(quotient: u128) -> u64 {
    u64::try_from(quotient).expect("bounded by a u64 factor")
}

impl ConnectionStep {
    /// The same number all the time.
    pub fn constant(connections: u64, duration_ns: u64) -> Self {
        Self { from: connections, to: connections, duration_ns }
    }

    /// The number `t` nanoseconds after its beginning, before its end.
    fn at(&self, t: u64) -> u64 {
        let (duration, t) = (u128::from(self.duration_ns), u128::from(t));
        let (from, to) = (u128::from(self.from), u128::from(self.to));
        // Twice the weighted mean, and a half: rounded half up.
        narrow((2 * (from * (duration - t) + to * t) + duration) / (2 * duration))
    }

    /// When lane `i` is on within this step, in nanoseconds after its beginning.
    fn span(&self, i: u64) -> Option<(u64, u64)> {
        if i >= self.from.max(self.to) {
            return None;
        }
        let twice = 2 * i + 1;
        let (begins, ends) = (2 * self.from > twice, 2 * self.to > twice);
        let duration = u128::from(self.duration_ns);
        let slope = 2 * u128::from(self.from.abs_diff(self.to));
        // How far the half between i and i+1 is from the beginning, in time: `far / slope`.
        let far = u128::from(twice.abs_diff(2 * self.from)) * duration;
        let (on, off) = match (begins, ends) {
            (false, false) => return None,
            (true, true) => (0, self.duration_ns),
            (false, true) => (narrow(far.div_ceil(slope)), self.duration_ns),
            // At exactly the half it is still on.
            (true, false) => (0, narrow(far / slope + 1).min(self.duration_ns)),
        };
        (on < off).then_some((on, off))
    }
}

/// When a lane is on: half-open spans in order, none touching the next.
#[derive(Debug, Clone)]
pub struct Lane<'a> {
    profile: &'a ConnectionProfile,
    lane: u64,
    /// The step to look at next; the number of steps is the time after the last.
    next: usize,
}

impl Lane<'_> {
    /// What of the lane lies in step `index`, or in the time after the last.
    fn piece(&self, steps: &[ConnectionStep], index: usize) -> Option<Span> {
        let begin = self.profile.times[index];
        if let Some(step) = steps.get(index) {
            let (on, off) = step.span(self.lane)?;
            return Some(Span { on_ns: begin + on, off_ns: begin + off });
        }
        (self.profile.last() > self.lane).then_some(Span { on_ns: begin, off_ns: u64::MAX })
    }
}

impl Iterator for Lane<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let steps = match &self.profile.shape {
            ConnectionShape::Constant { connections, ramp_up_ns } => {
                let first = self.next == 0 && self.lane < *connections;
                self.next = 1;
                let product = u128::from(*ramp_up_ns) * u128::from(self.lane);
                return first.then(|| Span {
                    on_ns: narrow(product / u128::from(*connections)),
                    off_ns: u64::MAX,
                });
            }
            ConnectionShape::Steps(steps) => steps,
        };
        let mut span: Option<Span> = None;
        while self.next <= steps.len() {
            match (&mut span, self.piece(steps, self.next)) {
                (Some(span), Some(piece)) if piece.on_ns == span.off_ns => {
                    span.off_ns = piece.off_ns;
                }
                // It comes on again later: the next call's.
                (Some(_), Some(_)) => break,
                (None, Some(piece)) => span = Some(piece),
                (_, None) => {}
            }
            self.next += 1;
        }
        span
    }
}

impl FusedIterator for Lane<'_> {}
