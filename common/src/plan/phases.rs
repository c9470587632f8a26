//! Phases: what each does, and when it starts.

use std::time::Duration;

use toml::Spanned;

use super::{
    Load, Phase,
    compile::Compiler,
    keys, load, nearest,
    problem::code,
    raw::{Field, RawPhase},
};
use crate::{schedule::RateProfile, units::nanos, wire::MAX_PHASES};

/// A phase before it is known when it starts. What is `None` is wrong or, in `load`, missing, and reported.
struct Draft<'r> {
    raw: &'r Spanned<RawPhase>,
    name: Option<String>,
    measure: Option<bool>,
    begin: Option<Begin>,
    load: Option<Load>,
}

/// When a phase begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
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
    let starts = starts(compiler, &drafts);
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
fn shortened(name: &str) -> String {
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

/// When each starts. Where that is not known, a problem is reported for it or for a phase before it.
fn starts(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>]) -> Vec<Option<Duration>> {
    let mut starts: Vec<Option<Duration>> = vec![None; drafts.len()];
    let mut settled = vec![false; drafts.len()];
    // Each round settles at least one, or none is left that can be.
    loop {
        let mut progress = false;
        for (index, draft) in drafts.iter().enumerate() {
            if settled[index] {
                continue;
            }
            match draft.begin {
                Some(Begin::After(before)) if settled[before] => {
                    let length = drafts[before].load.as_ref().and_then(Load::duration);
                    starts[index] = starts[before]
                        .zip(length)
                        .map(|(start, length)| start.saturating_add(length));
                }
                Some(Begin::After(_)) => continue,
                Some(Begin::At(start)) => starts[index] = Some(start),
                None => {}
            }
            settled[index] = true;
            progress = true;
        }
        if !progress {
            break;
        }
    }
    unknown_ends(compiler, drafts);
    cycles(compiler, drafts, &settled);
    too_late(compiler, drafts, &starts);
    starts
}

/// Reports phases that others start after, but whose end nobody knows before.
fn unknown_ends(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>]) {
    for (index, draft) in drafts.iter().enumerate() {
        let next = drafts.iter().find(|next| next.begin == Some(Begin::After(index)));
        let (Some(next), Some(load)) = (next, &draft.load) else { continue };
        if load.duration().is_some() {
            continue;
        }
        let named = |draft: &Draft<'_>| match &draft.name {
            Some(name) => format!("phase {}", shortened(name)),
            None => "a phase".to_owned(),
        };
        compiler.error(
            code::UNKNOWN_END,
            next.raw.span(),
            format!("{} starts after {}, whose end is not known", named(next), named(draft)),
            "starts when?",
            format!(
                "give {} a `duration`, or start this one with `start_at`; a phase that only a count ends can be the last",
                named(draft)
            ),
        );
    }
}

/// Reports phases that start after themselves, once for each circle.
fn cycles(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>], settled: &[bool]) {
    let before = |index: usize| match drafts[index].begin {
        Some(Begin::After(before)) => before,
        _ => index,
    };
    let mut told = vec![false; drafts.len()];
    for start in (0..drafts.len()).filter(|index| !settled[*index]) {
        // So many steps back from any phase, one is in the circle.
        let entry = (0..drafts.len()).fold(start, |index, _| before(index));
        if told[entry] {
            continue;
        }
        let mut circle = vec![entry];
        while let Some(next) = circle.last().map(|last| before(*last))
            && next != entry
        {
            circle.push(next);
        }
        for index in &circle {
            told[*index] = true;
        }
        // Where it is not said, a phase starts after one before it in the plan: that alone makes no circle.
        let said = |index: &&usize| drafts[**index].raw.get_ref().start_after.given().is_some();
        let Some(first) = circle.iter().filter(said).min() else { continue };
        let Some(typed) = drafts[*first].raw.get_ref().start_after.given() else { continue };
        let name = |index: usize| match &drafts[index].name {
            Some(name) => shortened(name),
            None => "a phase".to_owned(),
        };
        let mut way = vec![name(*first)];
        let mut at = before(*first);
        while at != *first && way.len() < 6 {
            way.push(name(at));
            at = before(at);
        }
        way.push(if at == *first { name(at) } else { "…".to_owned() });
        compiler.error(
            code::PHASE_CYCLE,
            typed.span(),
            format!("phase {} starts after itself: {}", name(*first), way.join(" after ")),
            "never starts",
            "start one of them with `start_at`, or after another phase",
        );
    }
}

/// Reports phases beyond what a run may take.
fn too_late(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>], starts: &[Option<Duration>]) {
    for (draft, start) in drafts.iter().zip(starts) {
        let length = draft.load.as_ref().map(|load| load.duration().unwrap_or_default());
        let Some(end) = start.zip(length).map(|(start, length)| start.saturating_add(length))
        else {
            continue;
        };
        if nanos(end) <= RateProfile::MAX_DURATION_NS {
            continue;
        }
        let name = draft.name.as_deref().map(shortened).unwrap_or_default();
        compiler.error(
            code::OUT_OF_RANGE,
            draft.raw.span(),
            format!("phase {name} ends more than 7d after the start of the run"),
            "too late",
            format!(
                "shorten the phases; with {} it can start earlier",
                keys::find("phases.start_at").example
            ),
        );
        // What follows it is late as well.
        return;
    }
}
