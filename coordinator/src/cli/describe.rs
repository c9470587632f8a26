//! Loads in words, for every command that says what a plan does.

use inrush_common::{
    plan::{ClosedLoad, Load, OpenLoad, Overflow, ThinkTime},
    schedule::{ConnectionProfile, ConnectionShape, RateProfile},
    units::{Count, Nanos},
};

/// More steps of a profile than this are only counted.
const STEPS_SHOWN: usize = 6;

/// How much, how fast, how long.
pub(super) fn load(load: &Load) -> String {
    match load {
        Load::Closed(closed) => closed_load(closed),
        Load::Open(open) => open_load(open),
    }
}

fn closed_load(closed: &ClosedLoad) -> String {
    let end = match (closed.requests, closed.duration) {
        (Some(requests), None) => format!("{} requests in all", Count(requests)),
        (None, Some(duration)) => format!("for {}", Nanos::from(duration)),
        (Some(requests), Some(duration)) => {
            format!("{} requests in all, for at most {}", Count(requests), Nanos::from(duration))
        }
        (None, None) => "without end".to_owned(),
    };
    let pause = match closed.think_time {
        ThinkTime::None => String::new(),
        ThinkTime::Fixed(pause) => format!("; pauses of {} between requests", Nanos::from(pause)),
        ThinkTime::Uniform(least, most) => {
            format!("; pauses of {} to {} between requests", Nanos::from(least), Nanos::from(most))
        }
        ThinkTime::Exponential(mean) => {
            format!("; memoryless pauses of {} on average between requests", Nanos::from(mean))
        }
    };
    format!("closed model, {}{pause}; {end}", connections(&closed.profile))
}

fn connections(profile: &ConnectionProfile) -> String {
    match profile.shape() {
        ConnectionShape::Constant { connections, ramp_up_ns: 0 } => {
            format!("{} connections at a time", Count(*connections))
        }
        ConnectionShape::Constant { connections, ramp_up_ns } => format!(
            "{} connections at a time, opened over {}",
            Count(*connections),
            Nanos(*ramp_up_ns)
        ),
        ConnectionShape::Steps(steps) => {
            let step = |from: u64, to: u64, duration: u64| line(&Count(from), &Count(to), duration);
            let steps = steps.iter().map(|it| step(it.from, it.to, it.duration_ns));
            format!("{} connections at a time", listed(steps))
        }
    }
}

fn open_load(open: &OpenLoad) -> String {
    let overflow = match open.on_overflow {
        Overflow::Queue => "then they wait",
        Overflow::Drop => "then they are dropped",
    };
    format!(
        "open model, {}: {} requests, {} arrivals, at most {} in flight, {overflow}",
        rates(&open.profile),
        Count(open.slots.count()),
        open.arrivals.name(),
        Count(open.max_in_flight),
    )
}

fn rates(profile: &RateProfile) -> String {
    listed(profile.segments().iter().map(|it| line(&it.from, &it.to, it.duration_ns)))
}

/// A stretch of time over which something goes in a straight line.
fn line<T: PartialEq + std::fmt::Display>(from: &T, to: &T, duration_ns: u64) -> String {
    if from == to {
        format!("{from} for {}", Nanos(duration_ns))
    } else {
        format!("{from} to {to} over {}", Nanos(duration_ns))
    }
}

fn listed(parts: impl ExactSizeIterator<Item = String>) -> String {
    let more = parts.len().saturating_sub(STEPS_SHOWN);
    let mut parts: Vec<String> = parts.take(STEPS_SHOWN).collect();
    if more > 0 {
        parts.push(format!("{} more steps", Count(more as u64)));
    }
    parts.join(", then ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use inrush_common::{
        plan::ArrivalProcess,
        schedule::{ConnectionStep, Interleave, Rate, Segment},
    };

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn closed(profile: ConnectionProfile, think_time: ThinkTime) -> Load {
        Load::Closed(ClosedLoad {
            lanes: Interleave::whole(profile.peak()),
            profile,
            requests: None,
            duration: Some(Duration::from_secs(60)),
            think_time,
        })
    }

    fn open(
        segments: &[(&str, &str, u64)],
        arrivals: ArrivalProcess,
        on_overflow: Overflow,
    ) -> Load {
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        let segment = |(from, to, seconds): &(&str, &str, u64)| Segment {
            from: rate(from),
            to: rate(to),
            duration_ns: seconds * SECOND,
        };
        let profile = RateProfile::new(segments.iter().map(segment).collect()).unwrap();
        Load::Open(OpenLoad {
            slots: Interleave::whole(profile.count()),
            profile,
            arrivals,
            max_in_flight: 1_000,
            on_overflow,
        })
    }

    #[test]
    fn every_shape_of_a_load_has_words() {
        let ramp = ConnectionProfile::ramp(1, 50, 10 * SECOND).unwrap();
        let steps = ConnectionProfile::steps(vec![
            ConnectionStep::constant(10, 5 * SECOND),
            ConnectionStep { from: 10, to: 50, duration_ns: 5 * SECOND },
        ]);
        let second = Duration::from_secs(1);
        for (load_, words) in [
            (
                closed(ramp, ThinkTime::Fixed(second)),
                "closed model, 1 to 50 over 10.0 s connections at a time; pauses of 1.00 s between requests; for 60.0 s",
            ),
            (
                closed(steps.unwrap(), ThinkTime::Exponential(second)),
                "closed model, 10 for 5.00 s, then 10 to 50 over 5.00 s connections at a time; memoryless pauses of \
                 1.00 s on average between requests; for 60.0 s",
            ),
            (
                open(&[("5000", "5000", 30)], ArrivalProcess::Uniform, Overflow::Queue),
                "open model, 5,000/s for 30.0 s: 150,000 requests, uniform arrivals, at most 1,000 in flight, then they \
                 wait",
            ),
            (
                open(
                    &[("0", "0.4", 20), ("0.4", "0.4", 30)],
                    ArrivalProcess::Poisson,
                    Overflow::Drop,
                ),
                "open model, 0/s to 0.4/s over 20.0 s, then 0.4/s for 30.0 s: 16 requests, poisson arrivals, at most \
                 1,000 in flight, then they are dropped",
            ),
            (
                open(&[("1", "1", 1); 8], ArrivalProcess::Uniform, Overflow::Drop),
                "open model, 1/s for 1.00 s, then 1/s for 1.00 s, then 1/s for 1.00 s, then 1/s for 1.00 s, then 1/s \
                 for 1.00 s, then 1/s for 1.00 s, then 2 more steps: 8 requests, uniform arrivals, at most 1,000 \
                 in flight, then they are dropped",
            ),
        ] {
            assert_eq!(load(&load_), words);
        }
    }
}
