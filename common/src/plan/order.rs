//! When phases start: after each other, or at their own times.

use std::time::Duration;

use toml::Spanned;

use super::{
    Load,
    compile::Compiler,
    phases::{Begin, Draft, shortened},
    problem::code,
};
use crate::{schedule::RateProfile, units::nanos};

/// When each starts. Where that is not known, a problem is reported for it or for a phase before it.
pub(super) fn starts(compiler: &mut Compiler<'_>, drafts: &[Draft<'_>]) -> Vec<Option<Duration>> {
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
        let said = next.raw.get_ref().start_after.given().map(Spanned::span);
        compiler.error(
            code::UNKNOWN_END,
            said.unwrap_or_else(|| next.raw.span()),
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
            "shorten it, or let it start earlier",
        );
        // What follows it is late as well.
        return;
    }
}
