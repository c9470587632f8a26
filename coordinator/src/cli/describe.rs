//! A load in words, for `inrush check` and whoever else says what a plan would do.

use std::time::Duration;

use inrush_common::{
    plan::{
        ClosedLoad, ConnectionPolicy, Load, OpenLoad, Overflow, Phase, Resolve, ThinkTime, Workload,
    },
    schedule::{ConnectionShape, Rate, RateProfile},
    units::{Count, Nanos},
};

/// One line for each phase, and what stands before it: its name, where there are several.
pub(super) fn phases(workload: &Workload) -> Vec<(String, String)> {
    let several = workload.phases.len() > 1;
    let line = |phase: &Phase| {
        let load = load(&phase.load);
        let not_measured = if phase.measure { "" } else { ", not measured" };
        if several {
            let from = match phase.starts_at {
                Duration::ZERO => "from the start".to_owned(),
                later => format!("from {}", Nanos::from(later)),
            };
            ("phase".to_owned(), format!("{}, {from}{not_measured}: {load}", phase.name))
        } else {
            ("load".to_owned(), load)
        }
    };
    workload.phases.iter().map(line).collect()
}

/// A load: its model, how much, how long.
pub(super) fn load(load: &Load) -> String {
    match load {
        Load::Closed(closed) => closed_load(closed),
        Load::Open(open) => open_load(open),
    }
}

fn closed_load(closed: &ClosedLoad) -> String {
    let shape = match closed.profile.shape() {
        ConnectionShape::Constant { connections, ramp_up_ns: 0 } => {
            format!("{} connections at a time", Count(*connections))
        }
        ConnectionShape::Constant { connections, ramp_up_ns } => {
            let (connections, ramp_up) = (Count(*connections), Nanos(*ramp_up_ns));
            format!("{connections} connections at a time, opened over {ramp_up}")
        }
        ConnectionShape::Steps(steps) => {
            let steps: Vec<(u64, u64)> = steps.iter().map(|step| (step.from, step.to)).collect();
            shape(&steps, |connections| Count(connections).to_string(), " connections at a time")
        }
    };
    let think = match closed.think_time {
        ThinkTime::None => String::new(),
        ThinkTime::Fixed(pause) => format!(", each thinks for {}", Nanos::from(pause)),
        ThinkTime::Uniform(least, most) => {
            format!(", each thinks for {} to {}", Nanos::from(least), Nanos::from(most))
        }
        ThinkTime::Exponential(mean) => {
            format!(", each thinks for {} on average", Nanos::from(mean))
        }
    };
    format!("closed model, {shape}{think}; {}", end(closed.requests, closed.duration))
}

/// What ends a closed load.
fn end(requests: Option<u64>, duration: Option<Duration>) -> String {
    match (requests, duration) {
        (Some(requests), None) => format!("{} requests in all", Count(requests)),
        (None, Some(duration)) => format!("for {}", Nanos::from(duration)),
        (Some(requests), Some(duration)) => {
            format!("{} requests in all, for at most {}", Count(requests), Nanos::from(duration))
        }
        (None, None) => "without end".to_owned(),
    }
}

fn open_load(open: &OpenLoad) -> String {
    let overflow = match open.on_overflow {
        Overflow::Queue => "waits",
        Overflow::Drop => "is dropped",
    };
    format!(
        "open model, {}, {} arrivals; {} requests over {}, at most {} in flight, what is due beyond that {overflow}",
        rate(&open.profile),
        open.arrivals.name(),
        Count(open.slots.count()),
        Nanos(open.profile.duration_ns()),
        Count(open.max_in_flight),
    )
}

/// A rate over time.
pub(super) fn rate(profile: &RateProfile) -> String {
    let segments = profile.segments().iter();
    let segments: Vec<(Rate, Rate)> = segments.map(|segment| (segment.from, segment.to)).collect();
    shape(&segments, |rate| rate.to_string(), "")
}

/// Something that goes in straight lines from one value to the next: `5`, `0 to 50`, or `0 to 50 in 3 steps`.
fn shape<A: Copy + Ord>(lines: &[(A, A)], show: impl Fn(A) -> String, unit: &str) -> String {
    let ends = lines.iter().flat_map(|(from, to)| [*from, *to]);
    let (Some(least), Some(most)) = (ends.clone().min(), ends.max()) else {
        return String::new();
    };
    let range = match lines {
        _ if least == most => show(most),
        [(from, to)] => format!("{} to {}", show(*from), show(*to)),
        _ => format!("{} to {}", show(least), show(most)),
    };
    match lines.len() {
        1 => format!("{range}{unit}"),
        steps => format!("{range}{unit} in {steps} steps"),
    }
}

/// How connections are made and kept, where the plan asks for anything but the usual; one line for each.
pub(super) fn connections(policy: &ConnectionPolicy) -> Vec<String> {
    let mut lines = Vec::new();
    match policy.requests_per_connection {
        Some(1) => lines.push("a new one for every request".to_owned()),
        Some(requests) => lines.push(format!("a new one after {} requests", Count(requests))),
        None => {}
    }
    if let Some(rate) = policy.connect_rate {
        lines.push(format!("at most {rate} are opened"));
    }
    if policy.resolve == Resolve::PerConnection {
        lines.push("the target's name is looked up for each".to_owned());
    }
    match policy.connect_to.as_slice() {
        [] => {}
        [only] => lines.push(format!("to {only} instead of the URL's host")),
        [first, ..] => {
            let (addresses, first) = (Count(policy.connect_to.len() as u64), first);
            lines.push(format!("to {addresses} addresses in turn, {first} first"));
        }
    }
    if policy.hold > 0 {
        lines.push(format!("{} more are held open and idle", Count(policy.hold)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::plan::PlanFile;

    fn workload(load: &str) -> Workload {
        let source = format!("url = \"http://127.0.0.1/\"\n{load}\n");
        PlanFile::of_text("plan.toml", source).unwrap().plan.workload
    }

    fn words(load: &str) -> String {
        let phases = phases(&workload(load));
        phases.into_iter().map(|(what, text)| format!("{what}: {text}\n")).collect()
    }

    #[test]
    fn every_kind_of_load_has_its_words() {
        for (source, expected) in [
            (
                "load.closed = { connections = { from = 1, to = 20 }, duration = '10s' }",
                "load: closed model, 1 to 20 connections at a time; for 10.0 s\n",
            ),
            (
                "[load.closed]\nsteps = [{ connections = 5, duration = '1s' }, { connections = 0, duration = '2s' }]\n\
                 requests = 100\nthink_time = { exponential = '2s' }",
                "load: closed model, 0 to 5 connections at a time in 2 steps, each thinks for 2.00 s on average; 100 \
                 requests in all, for at most 3.00 s\n",
            ),
            (
                "load.closed = { connections = 2, requests = 5, think_time = '500ms' }",
                "load: closed model, 2 connections at a time, each thinks for 500 ms; 5 requests in all\n",
            ),
            (
                "load.open = { rate = 0.4, requests = 10 }",
                "load: open model, 0.4/s, uniform arrivals; 10 requests over 25.0 s, at most 10 in flight, what is due \
                 beyond that waits\n",
            ),
            (
                "load.open = { rate = { from = 0, to = 50 }, duration = '10s', arrivals = 'poisson', on_overflow = 'drop' }",
                "load: open model, 0/s to 50/s, poisson arrivals; 250 requests over 10.0 s, at most 250 in flight, what \
                 is due beyond that is dropped\n",
            ),
        ] {
            assert_eq!(words(source), expected);
        }
    }

    #[test]
    fn phases_are_told_with_their_names_and_starts() {
        let phases = "[[phases]]\nname = 'warm-up'\nmeasure = false\nload.closed = { connections = 5, duration = '10s' }\n\
                      [[phases]]\nname = 'main'\nload.open = { rate = 5, duration = '1m' }\n";
        assert_eq!(
            words(phases),
            "phase: warm-up, from the start, not measured: closed model, 5 connections at a time; for 10.0 s\n\
             phase: main, from 10.0 s: open model, 5/s, uniform arrivals; 300 requests over 60.0 s, at most 300 in \
             flight, what is due beyond that waits\n"
        );
    }

    #[test]
    fn only_what_is_unusual_about_connections_is_told() {
        let load = "load.closed = { connections = 5, requests = 10 }";
        assert_eq!(connections(&workload(load).connections), [""; 0]);
        let all = "requests_per_connection = 10\nconnect_rate = 0.5\nresolve = 'per-connection'\nhold = 1_000\n\
                   connect_to = ['127.0.0.1:1', '127.0.0.1:2']\n";
        assert_eq!(
            connections(&workload(&format!("{all}{load}")).connections),
            [
                "a new one after 10 requests",
                "at most 0.5/s are opened",
                "the target's name is looked up for each",
                "to 2 addresses in turn, 127.0.0.1:1 first",
                "1,000 more are held open and idle",
            ]
        );
    }
}
