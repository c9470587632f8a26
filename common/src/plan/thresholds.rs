//! The plan's thresholds and stop rules: reads each against what the plan has.

use std::slice;

use toml::Spanned;

use super::{
    Phase, StopRule,
    compile::Compiler,
    keys::{self, Kind},
    problem::code,
    raw::{Field, RawPlan, RawStop},
};
use crate::threshold::{self, Known, KnownPhase, Threshold};

/// More conditions than this to end a run early, and nobody knows why it ended.
const MOST_STOP_RULES: usize = 20;

/// Reads both. `None` only with a problem reported, here or by the reader before. Where phases or requests could not be
/// read, what depends on them is taken as right: there is a problem already.
pub(super) fn check(
    compiler: &mut Compiler<'_>,
    raw: &RawPlan,
    phases: Option<&[Phase]>,
    request: Option<&String>,
) -> (Option<Vec<Threshold>>, Option<Vec<StopRule>>) {
    let phases: Option<Vec<_>> = phases.map(|phases| phases.iter().map(known_phase).collect());
    let known = Known { requests: request.map(slice::from_ref), phases: phases.as_deref() };
    (thresholds(compiler, &raw.thresholds, &known), stop_rules(compiler, &raw.stop_when, &known))
}

fn known_phase(phase: &Phase) -> KnownPhase<'_> {
    KnownPhase {
        name: &phase.name,
        measured: phase.measure,
        counted: phase.load.planned().is_some(),
    }
}

fn thresholds(
    compiler: &mut Compiler<'_>,
    field: &Field<Vec<Spanned<String>>>,
    known: &Known<'_>,
) -> Option<Vec<Threshold>> {
    let list = match field {
        Field::Missing => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Is(list) => list,
    };
    let most = match keys::find("thresholds").kind {
        Kind::Thresholds { most } => most,
        _ => usize::MAX,
    };
    too_many(compiler, list.get_ref(), most, "thresholds")?;
    let read = list.get_ref().iter().map(|typed| one(compiler, typed, known));
    // All are read before the first that is wrong ends it.
    read.collect::<Vec<_>>().into_iter().collect()
}

fn stop_rules(
    compiler: &mut Compiler<'_>,
    field: &Field<Vec<Spanned<RawStop>>>,
    known: &Known<'_>,
) -> Option<Vec<StopRule>> {
    let list = match field {
        Field::Missing => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Is(list) => list,
    };
    too_many(compiler, list.get_ref(), MOST_STOP_RULES, "stop_when")?;
    let mut rules = Vec::new();
    for rule in list.get_ref() {
        let raw = rule.get_ref();
        let threshold = match &raw.threshold {
            Field::Is(typed) => one(compiler, typed, known),
            Field::Missing => {
                let help = format!("write {}", keys::find("stop_when.threshold").example);
                let message = "`stop_when.threshold` is missing";
                let label = "stops when what is broken?";
                compiler.error(code::MISSING_KEY, rule.span(), message, label, help);
                None
            }
            Field::Wrong => None,
        };
        let after = compiler.duration(&format!("{}.after", raw.path), &raw.after);
        let abort = compiler.flag(&format!("{}.abort", raw.path), &raw.abort);
        rules.push(threshold.zip(after).zip(abort));
    }
    let rule = |((threshold, after), abort)| StopRule { threshold, after, abort };
    rules.into_iter().map(|parts| parts.map(rule)).collect()
}

fn too_many<T>(
    compiler: &mut Compiler<'_>,
    list: &[Spanned<T>],
    most: usize,
    key: &str,
) -> Option<()> {
    let Some(next) = list.get(most) else { return Some(()) };
    let message = format!("`{key}` has {} entries, at most {most} are taken", list.len());
    let help = "keep those that decide; the report has all the numbers anyhow";
    compiler.error(code::OUT_OF_RANGE, next.span(), message, "one too many", help);
    None
}

fn one(
    compiler: &mut Compiler<'_>,
    typed: &Spanned<String>,
    known: &Known<'_>,
) -> Option<Threshold> {
    let (text, whole, source) = (typed.get_ref(), typed.span(), compiler.source);
    match threshold::parse(text, known) {
        Ok(threshold) => Some(threshold),
        Err(faults) => {
            let problems = faults.into_iter().map(|fault| {
                fault.problem(|part| {
                    if text.is_empty() { whole.clone() } else { source.inside(&whole, text, part) }
                })
            });
            compiler.problems.extend(problems);
            None
        }
    }
}
