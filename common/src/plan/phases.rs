//! Phases: what each does, and when it starts.

use std::time::Duration;

use toml::Spanned;

use super::{
    Load, Phase,
    compile::Compiler,
    load, nearest, order,
    problem::code,
    raw::{Field, RawPhase},
};
use crate::wire::MAX_PHASES;

/// A phase before it is known when it starts. What is `None` is wrong or missing, and reported.
pub(super) struct Draft<'r> {
    pub(super) raw: &'r Spanned<RawPhase>,
    pub(super) name: Option<String>,
    measure: Option<bool>,
    pub(super) begin: Option<Begin>,
    pub(super) load: Option<Load>,
}

/// When a phase begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// So long after the start of the run.
    At(Duration),
    /// At the end of the phase with this index.
    After(usize),
}

/// Checks all; `None` only when a problem is reported, here or by the reader before.
pub(super) fn check(
    compiler: &mut Compiler<'_>,
    list: &Spanned<Vec<Spanned<RawPhase>>>,
) -> Option<Vec<Phase>> {
    let phases = list.get_ref();
    if phases.is_empty() {
        load::no_load(compiler, "`phases` is empty and", "phases.load", list.span());
        return None;
    }
    if let Some(next) = phases.get(MAX_PHASES) {
        let message =
            format!("the plan has {} phases, at most {MAX_PHASES} are possible", phases.len());
        let help = "a phase can have steps: steps = [{ rate = 100, duration = \"1m\" }]";
        compiler.error(code::OUT_OF_RANGE, next.span(), message, "one too many", help);
        return None;
    }
    let names = names(compiler, phases);
    let mut drafts = Vec::new();
    for (index, raw) in phases.iter().enumerate() {
        drafts.push(draft(compiler, index, raw, &names));
    }
    not_measured(compiler, &drafts);
    let starts = order::starts(compiler, &drafts);
    let phases = drafts.into_iter().zip(starts).map(|(draft, starts_at)| {
        Some(Phase {
            name: draft.name?,
            measure: draft.measure?,
            starts_at: starts_at?,
            load: draft.load?,
        })
    });
    phases.collect()
}

/// The name of each, where it has a good one.
fn names(compiler: &mut Compiler<'_>, phases: &[Spanned<RawPhase>]) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = Vec::new();
    for phase in phases {
        let (path, typed) = (format!("{}.name", phase.get_ref().path), &phase.get_ref().name);
        if typed.is_missing() {
            compiler.missing(&path, phase.span());
        }
        let name = typed.given().and_then(|typed| compiler.name(&path, typed));
        if let Some(typed) = typed.given()
            && name.is_some()
            && names.contains(&name)
        {
            compiler.error(
                code::DUPLICATE_PHASE,
                typed.span(),
                format!("there are two phases {:?}", typed.get_ref()),
                "the second one",
                "give each phase a name of its own: the report has a row for each",
            );
        }
        names.push(name);
    }
    names
}

fn draft<'r>(
    compiler: &mut Compiler<'_>,
    index: usize,
    raw: &'r Spanned<RawPhase>,
    names: &[Option<String>],
) -> Draft<'r> {
    let phase = raw.get_ref();
    let at = |name: &str| format!("{}.{name}", phase.path);
    let whom = match names.get(index) {
        Some(Some(name)) => format!("phase {name:?}"),
        _ => "the phase".to_owned(),
    };
    let load = match &phase.load {
        Field::Is(load) => load::of(compiler, &at("load"), load, &whom, raw.span()),
        Field::Missing => {
            load::no_load(compiler, &whom, &at("load"), raw.span());
            None
        }
        Field::Wrong => None,
    };
    Draft {
        raw,
        name: names.get(index).cloned().flatten(),
        measure: compiler.flag(&at("measure"), &phase.measure),
        begin: begin(compiler, index, phase, names),
        load,
    }
}

fn begin(
    compiler: &mut Compiler<'_>,
    index: usize,
    phase: &RawPhase,
    names: &[Option<String>],
) -> Option<Begin> {
    let help = "either the time is known, or the phase before it";
    compiler.exclude(&phase.start_at, "start_at", (&phase.start_after, "start_after"), help);
    match (&phase.start_at, &phase.start_after) {
        (Field::Missing, Field::Missing) => Some(match index.checked_sub(1) {
            Some(before) => Begin::After(before),
            None => Begin::At(Duration::ZERO),
        }),
        (Field::Is(_), Field::Missing) => compiler
            .given_duration(&format!("{}.start_at", phase.path), &phase.start_at)
            .map(Begin::At),
        (Field::Missing, Field::Is(typed)) => after(compiler, typed, names).map(Begin::After),
        _ => None,
    }
}

/// The phase that has this name.
fn after(
    compiler: &mut Compiler<'_>,
    typed: &Spanned<String>,
    names: &[Option<String>],
) -> Option<usize> {
    let text = typed.get_ref();
    if let Some(found) = names.iter().position(|name| name.as_ref() == Some(text)) {
        return Some(found);
    }
    // It may be the one whose name cannot be used.
    if names.iter().any(Option::is_none) {
        return None;
    }
    let all: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    let help = match nearest::nearest(text, all.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => {
            let shown: Vec<String> = all.iter().take(5).map(|name| shortened(name)).collect();
            let more = if all.len() > 5 { ", …" } else { "" };
            format!("there are {}{more}", shown.join(", "))
        }
    };
    let message = format!("there is no phase {}", shortened(text));
    compiler.error(code::UNKNOWN_PHASE, typed.span(), message, "not a phase of this plan", help);
    None
}

/// In quotes, and short enough for a message.
pub(super) fn shortened(name: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    format!("{shown:?}")
}

/// Reports that all would be for nothing.
fn not_measured(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>]) {
    let first = drafts.first().and_then(|draft| draft.raw.get_ref().measure.given());
    if let Some(first) = first
        && drafts.iter().all(|draft| draft.measure == Some(false))
    {
        compiler.error(
            code::NOT_MEASURED,
            first.span(),
            "no phase is measured: the report would have no result",
            if drafts.len() == 1 { "the only phase" } else { "like all the others" },
            "leave out `measure = false` in at least one phase",
        );
    }
}
