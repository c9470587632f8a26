//! The closed model: how many connections, how much, how long.

use std::time::Duration;

use toml::Spanned;

use super::{
    ClosedLoad, ThinkTime,
    compile::Compiler,
    keys::{self, grouped},
    problem::{Problem, code},
    raw::Field,
    raw_load::{RawClosed, RawShape, RawThink},
    shape::{self, Line, Step},
};
use crate::{
    schedule::{ConnectionProfile, ConnectionStep, Interleave},
    units::nanos,
};

/// Checks the table at `path`; `None` only when a problem is reported, here or by the reader before.
pub(super) fn check(
    compiler: &mut Compiler<'_>,
    path: &str,
    table: &Spanned<RawClosed>,
) -> Option<ClosedLoad> {
    let raw = table.get_ref();
    let at = |name: &str| format!("{path}.{name}");
    let before = compiler.problems.len();
    presence(compiler, path, table);
    let line = shape::line::<u64>(compiler, &at("connections"), &raw.connections);
    let steps = shape::steps::<u64>(compiler, &at("steps"), "connections", &raw.steps);
    let requests = compiler.count(&at("requests"), &raw.requests);
    let duration = compiler.given_duration(&at("duration"), &raw.duration);
    let ramp_up = compiler.duration(&at("ramp_up"), &raw.ramp_up);
    let think_time = think_time(compiler, &at("think_time"), &raw.think_time);
    let profile = profile(line, steps.as_deref(), ramp_up, duration);
    if let Some(profile) = &profile {
        doubts(compiler, raw, profile, requests, duration.zip(ramp_up));
    }
    // A count or a duration that is there but wrong is not the same as one that is not wanted.
    let unusable = raw.requests.is_wrong() || raw.duration.is_wrong() || raw.steps.is_wrong();
    if unusable || compiler.problems.iter().skip(before).any(Problem::is_error) {
        return None;
    }
    let profile = profile?;
    let peak = profile.peak();
    if peak == 0 {
        let message = format!("the load of [{}] makes no request", keys::shown(path));
        let help = "at some time there must be a connection";
        let label = "never a connection";
        compiler.error(code::NO_REQUESTS, shape_place(raw), message, label, help);
        return None;
    }
    let length = |steps: &[Step<u64>]| steps.iter().map(|step| step.duration).sum();
    Some(ClosedLoad {
        lanes: Interleave::whole(requests.map_or(peak, |requests| requests.min(peak))),
        profile,
        requests,
        duration: steps.as_deref().map(length).or(duration),
        think_time: think_time?,
    })
}

/// Reports what is missing, and what cannot be together.
fn presence(compiler: &mut Compiler<'_>, path: &str, table: &Spanned<RawClosed>) {
    let raw = table.get_ref();
    let at = |name: &str| format!("{path}.{name}");
    let (requests, duration) = (&raw.requests, &raw.duration);
    if !raw.steps.is_missing() {
        compiler.exclude(
            &raw.connections,
            "connections",
            (&raw.steps, "steps"),
            "each step has its own",
        );
        compiler.exclude(duration, "duration", (&raw.steps, "steps"), "each step has its own");
        compiler.exclude(&raw.ramp_up, "ramp_up", (&raw.steps, "steps"), "a step can be a ramp");
        return;
    }
    if raw.connections.is_missing() {
        compiler.missing(&at("connections"), table.span());
    }
    let ramp = raw.connections.given().filter(|c| matches!(c.get_ref(), RawShape::Ramp { .. }));
    if let Some(ramp) = ramp {
        if duration.is_missing() {
            let message = format!("`{}` is missing", keys::shown(&at("duration")));
            let help = "say how long the ramp takes: duration = \"1m 30s\"";
            compiler.error(code::MISSING_KEY, ramp.span(), message, "a ramp over what time?", help);
        }
        compiler.exclude(
            &raw.ramp_up,
            "ramp_up",
            (&raw.connections, "connections = { from, to }"),
            "a ramp of `connections` goes over `duration`",
        );
    } else if requests.is_missing() && duration.is_missing() {
        compiler.error(
            code::NO_END,
            table.span(),
            "nothing ends the load: `requests` and `duration` are both missing",
            "neither is in this table",
            format!(
                "add `{}`, or `{}`, or both: then what comes first ends it",
                keys::find("load.closed.requests").example,
                keys::find("load.closed.duration").example
            ),
        );
    }
}

/// The connections over time, as far as all that it takes is good.
fn profile(
    line: Option<Line<u64>>,
    steps: Option<&[Step<u64>]>,
    ramp_up: Option<Duration>,
    duration: Option<Duration>,
) -> Option<ConnectionProfile> {
    let profile = match (steps, line) {
        (Some(steps), _) => {
            let step = |step: &Step<u64>| ConnectionStep {
                from: step.line.from,
                to: step.line.to,
                duration_ns: nanos(step.duration),
            };
            ConnectionProfile::steps(steps.iter().map(step).collect())
        }
        (None, Some(line)) if line.is_ramp => {
            ConnectionProfile::ramp(line.from, line.to, nanos(duration?))
        }
        (None, Some(line)) => ConnectionProfile::constant(line.to, nanos(ramp_up?)),
        (None, None) => return None,
    };
    Some(profile.expect("the keys' limits are within the profile's"))
}

/// Warns of what is probably not meant.
fn doubts(
    compiler: &mut Compiler<'_>,
    raw: &RawClosed,
    profile: &ConnectionProfile,
    requests: Option<u64>,
    times: Option<(Duration, Duration)>,
) {
    if let Some(requests) = requests
        && profile.peak() > requests
    {
        let (connections, requests) = (grouped(profile.peak()), grouped(requests));
        compiler.problems.push(Problem::warning(
            code::IDLE_CONNECTIONS,
            shape_place(raw),
            format!("more connections than requests: {connections} for {requests}"),
            format!("only {requests} of them will have work"),
            "lower `connections`, or raise `requests`",
        ));
    }
    if let (Some((duration, ramp_up)), Field::Is(typed)) = (times, &raw.ramp_up)
        && ramp_up >= duration
    {
        compiler.problems.push(Problem::warning(
            code::ENDLESS_RAMP,
            typed.span(),
            "`ramp_up` is not shorter than `duration`",
            "the load ends in the ramp",
            "shorten `ramp_up`, or make `duration` longer",
        ));
    }
}

/// Where the plan says how many connections there are.
fn shape_place(raw: &RawClosed) -> std::ops::Range<usize> {
    let steps = raw.steps.given().map(Spanned::span);
    steps.or_else(|| raw.connections.given().map(Spanned::span)).unwrap_or_default()
}

fn think_time(
    compiler: &mut Compiler<'_>,
    path: &str,
    field: &Field<RawThink>,
) -> Option<ThinkTime> {
    let typed = match field {
        Field::Missing => return Some(ThinkTime::None),
        Field::Wrong => return None,
        Field::Is(typed) => typed,
    };
    let fixed =
        |pause: Duration| if pause.is_zero() { ThinkTime::None } else { ThinkTime::Fixed(pause) };
    let mut bad = |code, place, message, label| {
        let help = format!("for example: {}", keys::find(path).example);
        compiler.error(code, place, message, label, help);
        None
    };
    let shown = keys::shown(path);
    match typed.get_ref() {
        RawThink::Fixed(text) => {
            let text = Field::Is(Spanned::new(typed.span(), text.clone()));
            compiler.given_duration(path, &text).map(fixed)
        }
        RawThink::Drawn { uniform: Field::Missing, exponential: Field::Missing } => {
            let message = format!("`{shown}` does not say how it is drawn");
            bad(code::MISSING_KEY, typed.span(), message, "neither `uniform` nor `exponential`")
        }
        RawThink::Drawn { uniform: Field::Is(_), exponential: Field::Is(second) } => {
            let message = format!("`{shown}` is drawn in two ways");
            bad(code::CONFLICT, second.span(), message, "`uniform` or `exponential`, not both")
        }
        RawThink::Drawn { uniform: Field::Is(range), .. } => {
            let [least, most] = range.get_ref().as_slice() else {
                let message = format!("`{shown}.uniform` has not two ends");
                return bad(code::OUT_OF_RANGE, range.span(), message, "expected two durations");
            };
            let (least, most) = (Field::Is(least.clone()), Field::Is(most.clone()));
            let (least, most) =
                (compiler.given_duration(path, &least), compiler.given_duration(path, &most));
            let (least, most) = (least?, most?);
            if least > most {
                let message = format!("`{shown}.uniform` runs backwards");
                let help = "write the shorter time first";
                let label = "the first is the longer one";
                compiler.error(code::BAD_RANGE, range.span(), message, label, help);
                return None;
            }
            Some(if least == most { fixed(least) } else { ThinkTime::Uniform(least, most) })
        }
        RawThink::Drawn { exponential, .. } => {
            let mean = compiler.given_duration(path, exponential)?;
            Some(if mean.is_zero() { ThinkTime::None } else { ThinkTime::Exponential(mean) })
        }
    }
}
