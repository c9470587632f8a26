//! The plan's load: one, or one for each phase; closed or open.

use std::{ops::Range, time::Duration};

use toml::Spanned;

use super::{
    Load, Phase, closed,
    compile::Compiler,
    keys, open, phases,
    problem::code,
    raw::{Field, RawPlan},
    raw_load::RawLoad,
};

/// The phases of a plan, of which there is one where it has a load only. `None` only when a problem is reported, here or
/// by the reader before.
pub(super) fn check(compiler: &mut Compiler<'_>, raw: &RawPlan) -> Option<Vec<Phase>> {
    match (&raw.load, &raw.phases) {
        (Field::Is(load), Field::Missing) => {
            let load = of(compiler, "load", load, "the plan", 0..0)?;
            let (name, starts_at) = (Phase::ONLY.to_owned(), Duration::ZERO);
            Some(vec![Phase { name, measure: true, starts_at, load }])
        }
        (Field::Missing, Field::Is(phases)) => phases::check(compiler, phases),
        (Field::Is(load), Field::Is(phases)) => {
            let at = load.span().start.max(phases.span().start);
            let second = if at == load.span().start { load.span() } else { phases.span() };
            compiler.error(
                code::TWO_LOADS,
                second,
                "the plan has both [load] and [[phases]]",
                "the second of the two",
                "keep one: with phases, each has its own [phases.load.closed] or [phases.load.open]",
            );
            of(compiler, "load", load, "the plan", 0..0);
            phases::check(compiler, phases);
            None
        }
        (Field::Missing, Field::Missing) => {
            no_load(compiler, "the plan", "load", 0..0);
            None
        }
        (Field::Wrong, _) | (_, Field::Wrong) => None,
    }
}

/// The load of `whom`, which stands at `path`. `place` is where to say that there is none.
pub(super) fn of(
    compiler: &mut Compiler<'_>,
    path: &str,
    load: &Spanned<RawLoad>,
    whom: &str,
    place: Range<usize>,
) -> Option<Load> {
    let RawLoad { closed, open, second } = load.get_ref();
    if let Some(second) = second {
        let shown = keys::shown(path);
        compiler.error(
            code::TWO_LOADS,
            second.clone(),
            format!("two load models: `{shown}.closed` and `{shown}.open`"),
            "the second one",
            "keep one of them; a plan with [[phases]] has one in each",
        );
    }
    let closed_load = closed
        .given()
        .and_then(|table| closed::check(compiler, &format!("{path}.closed"), table))
        .map(Load::Closed);
    let open_load = open
        .given()
        .and_then(|table| open::check(compiler, &format!("{path}.open"), table))
        .map(Load::Open);
    if closed.is_missing() && open.is_missing() {
        no_load(compiler, whom, path, place);
    }
    if second.is_some() { None } else { closed_load.or(open_load) }
}

/// Reports that there is no load.
pub(super) fn no_load(compiler: &mut Compiler<'_>, whom: &str, path: &str, place: Range<usize>) {
    let shown = keys::shown(path);
    let (connections, requests) =
        (keys::find("load.closed.connections"), keys::find("load.closed.requests"));
    compiler.error(
        code::NO_LOAD,
        place,
        format!("{whom} does not say how load is made"),
        format!("no [{shown}.closed] and no [{shown}.open]"),
        format!(
            "add [{shown}.closed] with `{}` and `{}`, or [{shown}.open] with `{}` and `{}`",
            connections.example,
            requests.example,
            keys::find("load.open.rate").example,
            keys::find("load.open.duration").example
        ),
    );
}
