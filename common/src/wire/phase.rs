//! An agent's share of a phase.

use std::time::Duration;

use inrush_proto::v1;

use super::{MAX_TIMELINE_NS, WireError, count, rate, unknown};
use crate::{
    plan::{ArrivalProcess, ClosedLoad, Load, OpenLoad, Overflow, Phase, ThinkTime},
    schedule::{
        ConnectionProfile, ConnectionShape, ConnectionStep, Group, Interleave, RateProfile, Segment,
    },
    units::nanos,
};

impl From<&Phase> for v1::Phase {
    fn from(phase: &Phase) -> Self {
        let load = match &phase.load {
            Load::Closed(closed) => v1::phase::Load::Closed(closed.into()),
            Load::Open(open) => v1::phase::Load::Open(open.into()),
        };
        Self {
            name: phase.name.clone(),
            measure: phase.measure,
            starts_at_ns: nanos(phase.starts_at),
            load: Some(load),
        }
    }
}

impl TryFrom<v1::Phase> for Phase {
    type Error = WireError;

    fn try_from(message: v1::Phase) -> Result<Self, WireError> {
        let load = match message.load.ok_or_else(|| WireError::missing("load"))? {
            v1::phase::Load::Closed(closed) => {
                Load::Closed(closed.try_into().map_err(|error: WireError| error.under("closed"))?)
            }
            v1::phase::Load::Open(open) => {
                Load::Open(open.try_into().map_err(|error: WireError| error.under("open"))?)
            }
        };
        Ok(Self {
            name: message.name,
            measure: message.measure,
            starts_at: on_timeline("starts_at_ns", message.starts_at_ns)?,
            load,
        })
    }
}

fn on_timeline(field: &str, nanos: u64) -> Result<Duration, WireError> {
    if nanos > MAX_TIMELINE_NS {
        let expected = format!("at most {MAX_TIMELINE_NS}, got {nanos}");
        return Err(WireError::new(field, expected));
    }
    Ok(Duration::from_nanos(nanos))
}

impl From<&ClosedLoad> for v1::ClosedLoad {
    fn from(closed: &ClosedLoad) -> Self {
        Self {
            profile: Some((&closed.profile).into()),
            lanes: Some((&closed.lanes).into()),
            requests: closed.requests,
            duration_ns: closed.duration.map(nanos),
            think_time: Some(closed.think_time.into()),
        }
    }
}

impl TryFrom<v1::ClosedLoad> for ClosedLoad {
    type Error = WireError;

    fn try_from(message: v1::ClosedLoad) -> Result<Self, WireError> {
        if message.requests.is_none() && message.duration_ns.is_none() {
            return Err(WireError::new("requests", "a count or a duration, got neither"));
        }
        let profile: ConnectionProfile = message
            .profile
            .ok_or_else(|| WireError::missing("profile"))?
            .try_into()
            .map_err(|error: WireError| error.under("profile"))?;
        let lanes: Interleave = message
            .lanes
            .ok_or_else(|| WireError::missing("lanes"))?
            .try_into()
            .map_err(|error: WireError| error.under("lanes"))?;
        if lanes.total() > profile.peak() {
            let expected = format!("at most {} in all, got {}", profile.peak(), lanes.total());
            return Err(WireError::new("lanes", expected));
        }
        if lanes.count() == 0 && message.requests.is_some_and(|requests| requests > 0) {
            return Err(WireError::new("lanes", "at least 1 to make requests on, got 0"));
        }
        Ok(Self {
            profile,
            lanes,
            requests: message.requests.map(|requests| count("requests", requests)).transpose()?,
            duration: message
                .duration_ns
                .map(|nanos| on_timeline("duration_ns", nanos))
                .transpose()?,
            think_time: message
                .think_time
                .ok_or_else(|| WireError::missing("think_time"))?
                .try_into()
                .map_err(|error: WireError| error.under("think_time"))?,
        })
    }
}

impl From<&ConnectionProfile> for v1::ConnectionProfile {
    fn from(profile: &ConnectionProfile) -> Self {
        match profile.shape() {
            ConnectionShape::Constant { connections, ramp_up_ns } => {
                Self { connections: *connections, ramp_up_ns: *ramp_up_ns, steps: Vec::new() }
            }
            ConnectionShape::Steps(steps) => {
                let steps = steps.iter().map(|step| v1::ConnectionStep {
                    from: step.from,
                    to: step.to,
                    duration_ns: step.duration_ns,
                });
                Self { steps: steps.collect(), ..Self::default() }
            }
        }
    }
}

impl TryFrom<v1::ConnectionProfile> for ConnectionProfile {
    type Error = WireError;

    fn try_from(message: v1::ConnectionProfile) -> Result<Self, WireError> {
        let profile = if message.steps.is_empty() {
            Self::constant(message.connections, message.ramp_up_ns)
        } else {
            let steps = message.steps.iter().map(|step| ConnectionStep {
                from: step.from,
                to: step.to,
                duration_ns: step.duration_ns,
            });
            Self::steps(steps.collect())
        };
        profile.map_err(|error| WireError::new("steps", error))
    }
}

impl From<ThinkTime> for v1::ThinkTime {
    fn from(think_time: ThinkTime) -> Self {
        use v1::think_time::Kind;
        let (kind, from, to) = match think_time {
            ThinkTime::None => (Kind::Fixed, Duration::ZERO, Duration::ZERO),
            ThinkTime::Fixed(pause) => (Kind::Fixed, pause, Duration::ZERO),
            ThinkTime::Uniform(from, to) => (Kind::Uniform, from, to),
            ThinkTime::Exponential(mean) => (Kind::Exponential, mean, Duration::ZERO),
        };
        Self { kind: kind.into(), from_ns: nanos(from), to_ns: nanos(to) }
    }
}

impl TryFrom<v1::ThinkTime> for ThinkTime {
    type Error = WireError;

    fn try_from(message: v1::ThinkTime) -> Result<Self, WireError> {
        use v1::think_time::Kind;
        let from = on_timeline("from_ns", message.from_ns)?;
        let to = on_timeline("to_ns", message.to_ns)?;
        match Kind::try_from(message.kind) {
            Ok(Kind::Fixed) if from.is_zero() => Ok(Self::None),
            Ok(Kind::Fixed) => Ok(Self::Fixed(from)),
            Ok(Kind::Uniform) if from <= to => Ok(Self::Uniform(from, to)),
            Ok(Kind::Uniform) => {
                let expected =
                    format!("at least from_ns ({}), got {}", message.from_ns, message.to_ns);
                Err(WireError::new("to_ns", expected))
            }
            Ok(Kind::Exponential) => Ok(Self::Exponential(from)),
            Ok(Kind::Unspecified) | Err(_) => Err(unknown("kind", message.kind)),
        }
    }
}

impl From<&OpenLoad> for v1::OpenLoad {
    fn from(open: &OpenLoad) -> Self {
        use v1::open_load as wire;
        let arrivals = match open.arrivals {
            ArrivalProcess::Uniform => wire::Arrivals::Uniform,
            ArrivalProcess::Poisson => wire::Arrivals::Poisson,
        };
        let on_overflow = match open.on_overflow {
            Overflow::Queue => wire::Overflow::Queue,
            Overflow::Drop => wire::Overflow::Drop,
        };
        let segments = open.profile.segments().iter().map(|segment| v1::RateSegment {
            from_micro: segment.from.micro(),
            to_micro: segment.to.micro(),
            duration_ns: segment.duration_ns,
        });
        Self {
            segments: segments.collect(),
            slots: Some((&open.slots).into()),
            arrivals: arrivals.into(),
            on_overflow: on_overflow.into(),
            max_in_flight: open.max_in_flight,
        }
    }
}

impl TryFrom<v1::OpenLoad> for OpenLoad {
    type Error = WireError;

    fn try_from(message: v1::OpenLoad) -> Result<Self, WireError> {
        use v1::open_load as wire;
        let segments = message.segments.iter().enumerate().map(|(index, segment)| {
            let at = |error: WireError| error.element("segments", index);
            Ok(Segment {
                from: rate("from_micro", segment.from_micro).map_err(at)?,
                to: rate("to_micro", segment.to_micro).map_err(at)?,
                duration_ns: segment.duration_ns,
            })
        });
        let profile = RateProfile::new(segments.collect::<Result<_, WireError>>()?)
            .map_err(|error| WireError::new("segments", error))?;
        let slots: Interleave = message
            .slots
            .ok_or_else(|| WireError::missing("slots"))?
            .try_into()
            .map_err(|error: WireError| error.under("slots"))?;
        if slots.total() > profile.count() {
            let expected = format!("at most {} in all, got {}", profile.count(), slots.total());
            return Err(WireError::new("slots", expected));
        }
        if message.max_in_flight == 0 && slots.count() > 0 {
            return Err(WireError::new("max_in_flight", "at least 1 to make requests with, got 0"));
        }
        let arrivals = match wire::Arrivals::try_from(message.arrivals) {
            Ok(wire::Arrivals::Uniform) => ArrivalProcess::Uniform,
            Ok(wire::Arrivals::Poisson) => ArrivalProcess::Poisson,
            Ok(wire::Arrivals::Unspecified) | Err(_) => {
                return Err(unknown("arrivals", message.arrivals));
            }
        };
        let on_overflow = match wire::Overflow::try_from(message.on_overflow) {
            Ok(wire::Overflow::Queue) => Overflow::Queue,
            Ok(wire::Overflow::Drop) => Overflow::Drop,
            Ok(wire::Overflow::Unspecified) | Err(_) => {
                return Err(unknown("on_overflow", message.on_overflow));
            }
        };
        let max_in_flight = count("max_in_flight", message.max_in_flight)?;
        Ok(Self { profile, slots, arrivals, max_in_flight, on_overflow })
    }
}

impl From<&Interleave> for v1::Interleave {
    fn from(interleave: &Interleave) -> Self {
        let groups = interleave.groups().iter();
        let group = |group: &Group| v1::InterleaveGroup { each: group.each, agents: group.agents };
        Self { groups: groups.map(group).collect(), place: interleave.place() }
    }
}

impl TryFrom<v1::Interleave> for Interleave {
    type Error = WireError;

    fn try_from(message: v1::Interleave) -> Result<Self, WireError> {
        let group = |group: &v1::InterleaveGroup| Group { each: group.each, agents: group.agents };
        Self::from_parts(message.groups.iter().map(group).collect(), message.place)
            .map_err(|error| WireError::new("groups", error))
    }
}
