//! The plan's load: which model, how much, how long.

use toml::Spanned;

use crate::{
    schedule::{ConnectionProfile, Interleave},
    units::nanos,
};

use super::{
    ClosedLoad, Load, ThinkTime,
    compile::Compiler,
    keys::{self, grouped},
    problem::{Problem, code},
    raw::{Field, RawClosed, RawPlan},
};

/// Checks the load; `None` only when a problem is reported, here or by the reader before.
pub(super) fn check(compiler: &mut Compiler<'_>, raw: &RawPlan) -> Option<Load> {
    if let Some(open) = &raw.open {
        let (code, message, help) = match raw.closed {
            Field::Missing => (
                code::NOT_AVAILABLE,
                "the open model is not available in this version",
                "use the closed model: [load.closed]",
            ),
            _ => (
                code::TWO_LOADS,
                "two load models: `load.closed` and `load.open`",
                "keep [load.closed]: the open model is not available in this version",
            ),
        };
        compiler.error(code, open.clone(), message, "not available", help);
    }
    match &raw.closed {
        Field::Is(closed) => self::closed(compiler, closed).map(Load::Closed),
        Field::Missing if raw.open.is_none() => {
            let (connections, requests) =
                (keys::find("load.closed.connections"), keys::find("load.closed.requests"));
            compiler.error(
                code::NO_LOAD,
                0..0,
                "the plan does not say how load is made",
                "no [load.closed] in the plan",
                format!(
                    "add [load.closed] with `{}` and `{}`",
                    connections.example, requests.example
                ),
            );
            None
        }
        Field::Missing | Field::Wrong => None,
    }
}

fn closed(compiler: &mut Compiler<'_>, table: &Spanned<RawClosed>) -> Option<ClosedLoad> {
    let raw = table.get_ref();
    if raw.connections == Field::Missing {
        let help = format!("for example: {}", keys::find("load.closed.connections").example);
        let message = "`load.closed.connections` is missing";
        compiler.error(code::MISSING_KEY, table.span(), message, "not in this table", help);
    }
    if raw.requests == Field::Missing && raw.duration == Field::Missing {
        compiler.error(
            code::NO_END,
            table.span(),
            "nothing ends the run: `requests` and `duration` are both missing",
            "neither is in this table",
            format!(
                "add `{}`, or `{}`, or both: then what comes first ends it",
                keys::find("load.closed.requests").example,
                keys::find("load.closed.duration").example
            ),
        );
    }
    let before = compiler.problems.len();
    let connections = compiler.count("load.closed.connections", &raw.connections);
    let requests = compiler.count("load.closed.requests", &raw.requests);
    let duration = compiler.given_duration("load.closed.duration", &raw.duration);
    let ramp_up = compiler.duration("load.closed.ramp_up", &raw.ramp_up);

    if let (Some(connections), Some(requests), Field::Is(typed)) =
        (connections, requests, &raw.connections)
        && connections > requests
    {
        let (connections, requests) = (grouped(connections), grouped(requests));
        compiler.problems.push(Problem::warning(
            code::IDLE_CONNECTIONS,
            typed.span(),
            format!("more connections than requests: {connections} for {requests}"),
            format!("only {requests} of them will have work"),
            "lower `connections`, or raise `requests`",
        ));
    }
    if let (Some(duration), Some(ramp_up), Field::Is(typed)) = (duration, ramp_up, &raw.ramp_up)
        && ramp_up >= duration
    {
        compiler.problems.push(Problem::warning(
            code::ENDLESS_RAMP,
            typed.span(),
            "`ramp_up` is not shorter than `duration`",
            "the run ends in the ramp",
            "shorten `ramp_up`, or make the run longer",
        ));
    }
    // A count or a duration that is there but wrong is not the same as one that is not wanted.
    let usable = |missing: bool, there: bool| missing || there;
    let whole = usable(raw.requests == Field::Missing, requests.is_some())
        && usable(raw.duration == Field::Missing, duration.is_some())
        && !compiler.problems.iter().skip(before).any(Problem::is_error);
    let ended = requests.is_some() || duration.is_some();
    (whole && ended).then_some(())?;
    let connections = connections?;
    let used = requests.map_or(connections, |requests| requests.min(connections));
    Some(ClosedLoad {
        profile: ConnectionProfile::constant(connections, nanos(ramp_up?))
            .expect("the keys' limits are within the profile's"),
        lanes: Interleave::whole(used),
        requests,
        duration,
        think_time: ThinkTime::None,
    })
}
