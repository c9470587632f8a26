//! The open model: how fast requests start, and how many.

use std::ops::Range;

use toml::Spanned;

use super::{
    ArrivalProcess, OpenLoad, Overflow,
    compile::Compiler,
    duration,
    keys::{self, grouped},
    problem::{Problem, code},
    raw_load::{RawOpen, RawShape},
    shape::{self, Line, Step},
};
use crate::{
    schedule::{Interleave, ProfileError, Rate, RateProfile, Segment},
    units::nanos,
};

/// So many requests may be in flight where the plan does not say.
const MAX_IN_FLIGHT: u64 = 10_000;

/// Checks the table at `path`; `None` only when a problem is reported, here or by the reader before.
pub(super) fn check(
    compiler: &mut Compiler<'_>,
    path: &str,
    table: &Spanned<RawOpen>,
) -> Option<OpenLoad> {
    let raw = table.get_ref();
    let at = |name: &str| format!("{path}.{name}");
    let before = compiler.problems.len();
    presence(compiler, path, table);
    let load = Load {
        raw,
        line: shape::line(compiler, &at("rate"), &raw.rate),
        steps: shape::steps(compiler, &at("steps"), "rate", &raw.steps),
        requests: compiler.count(&at("requests"), &raw.requests),
        duration_ns: compiler.given_duration(&at("duration"), &raw.duration).map(nanos),
    };
    let arrivals = [ArrivalProcess::Uniform, ArrivalProcess::Poisson];
    let arrivals = compiler.choice(&at("arrivals"), &raw.arrivals, &arrivals, ArrivalProcess::name);
    let overflows = [Overflow::Queue, Overflow::Drop];
    let on_overflow =
        compiler.choice(&at("on_overflow"), &raw.on_overflow, &overflows, Overflow::name);
    let max_in_flight = compiler.count(&at("max_in_flight"), &raw.max_in_flight);
    let (arrivals, on_overflow) = (arrivals?, on_overflow?);
    // What is there but wrong is not the same as what is not wanted.
    let unusable = raw.rate.is_wrong()
        || raw.steps.is_wrong()
        || raw.requests.is_wrong()
        || raw.duration.is_wrong()
        || raw.max_in_flight.is_wrong();
    if unusable || compiler.problems.iter().skip(before).any(Problem::is_error) {
        return None;
    }
    let (profile, requests) = load.profile(compiler, path)?;
    Some(OpenLoad {
        profile,
        slots: Interleave::whole(requests),
        arrivals,
        // More than there are requests are never in flight.
        max_in_flight: max_in_flight.unwrap_or(MAX_IN_FLIGHT).min(requests),
        on_overflow,
    })
}

/// Reports what is missing, and what cannot be together.
fn presence(compiler: &mut Compiler<'_>, path: &str, table: &Spanned<RawOpen>) {
    let raw = table.get_ref();
    if !raw.steps.is_missing() {
        compiler.exclude(&raw.rate, "rate", (&raw.steps, "steps"), "each step has its own");
        compiler.exclude(&raw.duration, "duration", (&raw.steps, "steps"), "each step has its own");
        return;
    }
    let ramp = raw.rate.given().filter(|rate| matches!(rate.get_ref(), RawShape::Ramp { .. }));
    if raw.rate.is_missing() && (raw.duration.is_missing() || raw.requests.is_missing()) {
        compiler.error(
            code::NO_RATE,
            table.span(),
            "nothing says how fast requests start: `rate` is missing",
            "two of `rate`, `duration` and `requests` are needed",
            format!("add `{}`", keys::find("load.open.rate").example),
        );
    } else if let Some(ramp) = ramp
        && raw.duration.is_missing()
    {
        let message = format!("`{}.duration` is missing", keys::shown(path));
        let help = "say how long the ramp takes: duration = \"30s\"";
        compiler.error(code::MISSING_KEY, ramp.span(), message, "a ramp over what time?", help);
    } else if raw.duration.is_missing() && raw.requests.is_missing() {
        compiler.error(
            code::NO_END,
            table.span(),
            "nothing ends the load: `requests` and `duration` are both missing",
            "neither is in this table",
            format!(
                "add `{}` or `{}`",
                keys::find("load.open.duration").example,
                keys::find("load.open.requests").example
            ),
        );
    }
}

/// What the table says, as far as it is there; all of it is good.
struct Load<'r> {
    raw: &'r RawOpen,
    line: Option<Line<Rate>>,
    steps: Option<Vec<Step<Rate>>>,
    requests: Option<u64>,
    duration_ns: Option<u64>,
}

impl Load<'_> {
    /// The rate over time, and how many requests start.
    fn profile(self, compiler: &mut Compiler<'_>, path: &str) -> Option<(RateProfile, u64)> {
        let profile = match (&self.steps, self.line, self.duration_ns, self.requests) {
            (Some(steps), ..) => {
                let segment = |step: &Step<Rate>| Segment {
                    from: step.line.from,
                    to: step.line.to,
                    duration_ns: nanos(step.duration),
                };
                RateProfile::new(steps.iter().map(segment).collect())
            }
            (None, Some(line), Some(duration_ns), _) => {
                RateProfile::ramp(line.from, line.to, duration_ns)
            }
            (None, Some(line), None, Some(requests)) => {
                RateProfile::for_requests(line.to, requests)
            }
            (None, None, Some(duration_ns), Some(requests)) => {
                RateProfile::spread(requests, duration_ns)
            }
            // Reported as missing before.
            (None, ..) => return None,
        };
        let profile = profile.map_err(|error| self.misfit(compiler, error)).ok()?;
        let due = profile.count();
        if due == 0 {
            let message = format!("the load of [{}] makes no request", keys::shown(path));
            let help = "at some time the rate must be above 0";
            let label = "never more than 0 per second";
            compiler.error(code::NO_REQUESTS, self.shape_place(), message, label, help);
            return None;
        }
        match self.requests {
            Some(requests) if requests < due => {
                let cut = self.line.filter(|line| !line.is_ramp);
                let cut = cut.and_then(|line| RateProfile::for_requests(line.to, requests).ok());
                self.warn_of_count(compiler, due, cut.as_ref());
                Some((cut.unwrap_or(profile), requests))
            }
            Some(requests) if requests > due => {
                self.warn_of_time(compiler, requests, due);
                Some((profile, due))
            }
            _ => Some((profile, due)),
        }
    }

    /// Reports that rate, count and time do not go together.
    fn misfit(&self, compiler: &mut Compiler<'_>, error: ProfileError) {
        let place = self.raw.requests.given().map(Spanned::span).unwrap_or_default();
        let requests = grouped(self.requests.unwrap_or_default());
        let (message, label, help) = match error {
            ProfileError::TooDense => (
                format!("{requests} requests do not fit into `duration`"),
                "more than 10,000,000 per second",
                "lower `requests`, or lengthen `duration`",
            ),
            // The keys' limits leave nothing else.
            _ => (
                format!("{requests} requests at this rate take more than 7d"),
                "takes too long",
                "lower `requests`, or raise `rate`",
            ),
        };
        compiler.error(code::DOES_NOT_FIT, place, message, label, help);
    }

    /// Says that the count ends the load before its time is over.
    fn warn_of_count(&self, compiler: &mut Compiler<'_>, due: u64, cut: Option<&RateProfile>) {
        let place = self.raw.requests.given().map(Spanned::span).unwrap_or_default();
        let label = match cut {
            Some(cut) => format!("ends it after {}", duration::spell(cut.duration_ns())),
            None => "no more start after these".to_owned(),
        };
        compiler.problems.push(Problem::warning(
            code::ENDS_FIRST,
            place,
            format!(
                "`requests` ends the load before its time: {} would be due in it",
                grouped(due)
            ),
            label,
            format!("write requests = {}, or leave the key out", underscored(due)),
        ));
    }

    /// Says that the time is over before the count is reached.
    fn warn_of_time(&self, compiler: &mut Compiler<'_>, requests: u64, due: u64) {
        let place = self.raw.requests.given().map(Spanned::span).unwrap_or_default();
        compiler.problems.push(Problem::warning(
            code::ENDS_FIRST,
            place,
            format!(
                "the time ends the load after {} of {} requests",
                grouped(due),
                grouped(requests)
            ),
            format!("only {} are due in the time", grouped(due)),
            format!("write requests = {}, or leave the key out", underscored(due)),
        ));
    }

    /// Where the plan says how fast requests start.
    fn shape_place(&self) -> Range<usize> {
        let steps = self.raw.steps.given().map(Spanned::span);
        steps.or_else(|| self.raw.rate.given().map(Spanned::span)).unwrap_or_default()
    }
}

/// As a plan has it.
fn underscored(number: u64) -> String {
    grouped(number).replace(',', "_")
}
