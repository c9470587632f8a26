//! The plan: what a test is.
//!
//! [`load()`] is the way in. It reads the TOML into a raw form that keeps every place, then compiles that: checks it
//! and applies the defaults. A [`Plan`] comes only out of it, so a `Plan` in hand is a valid one. All problems are
//! found at once; each has a code, a place, what was expected and a remedy ([`Problem`]), and [`render()`] shows them.
//!
//! ```text
//! bytes ─ decode ─▶ text ─ Source ─▶ TOML tables ─ raw::read ─▶ RawPlan ─ compile ─▶ Plan
//!                                        └ syntax, nearest └ problems ┴ problems ─▶ render
//! ```

mod closed;
mod compile;
mod connections;
pub(crate) mod duration;
mod files;
mod headers;
mod init;
pub mod keys;
mod load;
mod mask;
mod model;
pub(crate) mod nearest;
mod open;
mod order;
mod phases;
mod problem;
mod raw;
mod raw_load;
mod reader;
mod render;
mod shape;
mod source;
mod status;
mod syntax;
mod thresholds;
mod url;
mod values;

use toml::de::DeTable;

pub use files::{Files, MAX_BODY_FILE, named_files};
pub use init::STARTER;
pub use model::{
    AgentsPolicy, ArrivalProcess, ClosedLoad, ConnectionPolicy, Expect, Header, Load, OnLoss,
    OpenLoad, Overflow, Phase, Plan, Request, Resolve, StopRule, ThinkTime, Workload,
};
pub use problem::{Problem, Severity, code};
pub use render::render;
use source::Source;
pub use source::{NotText, decode};
use syntax::Readable;

/// The longest plan: 1 MiB. What is larger belongs into a file that the plan names.
pub const MAX_PLAN: usize = 1024 * 1024;

/// So many problems are told one by one.
pub const MOST_PROBLEMS: usize = 200;

/// A plan that can run.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The plan.
    pub plan: Plan,
    /// What is probably not meant, in the order of the source.
    pub warnings: Vec<Problem>,
}

/// Reads, checks and compiles a plan. `source_name` is its file name, from which a plan without a name gets one.
///
/// # Errors
/// With every problem of the plan, warnings among them, in the order of the source; at least one is an error. Of more
/// than [`MOST_PROBLEMS`] the rest is only counted: that is no plan, but some other file.
pub fn load(source_name: &str, source: &str, files: &dyn Files) -> Result<Loaded, Vec<Problem>> {
    if source.len() > MAX_PLAN {
        return Err(vec![too_large()]);
    }
    let read = Source::new(source);
    let readable = Readable::new(read.text());
    let text = readable.text.clone();
    let (document, errors) = DeTable::parse_recoverable(&text);
    let document = document.get_ref();
    let (plan, found) = if document.is_empty() {
        (None, vec![empty()])
    } else {
        let mut unknown = nearest::unknown_keys(document);
        let (raw, wrong) = raw::read(document, &unknown.meant);
        let (plan, found) = compile::compile(&raw, source_name, &read, files);
        unknown.problems.extend(wrong);
        unknown.problems.extend(found);
        (plan, unknown.problems)
    };
    let mut problems = readable.join(&errors, found);
    for problem in &mut problems {
        problem.span = read.in_saved(&problem.span);
    }
    problems.sort_by_key(|problem| (problem.span.start, problem.severity, problem.span.end));
    let refused = problems.iter().any(Problem::is_error);
    leave_out(&mut problems);
    match plan {
        Some(plan) if !refused => Ok(Loaded { plan, warnings: problems }),
        _ => Err(problems),
    }
}

/// Replaces what is too much to read by how much it is.
fn leave_out(problems: &mut Vec<Problem>) {
    let Some(next) = problems.get(MOST_PROBLEMS) else { return };
    let (more, place) = (problems.len() - MOST_PROBLEMS, next.span.clone());
    // Where any of the problems is an error, one of those that stay is: this one.
    let rest = Problem::error(
        code::MANY_MORE,
        place,
        format!("there are at least {more} more problems"),
        "the next one",
        "correct those above first, and look whether this file is a plan",
    );
    let warnings_only = !problems.iter().any(Problem::is_error);
    problems.truncate(MOST_PROBLEMS);
    let severity = if warnings_only { Severity::Warning } else { Severity::Error };
    problems.push(Problem { severity, ..rest });
}

fn empty() -> Problem {
    Problem::error(
        code::EMPTY,
        0..0,
        "the plan is empty",
        "no key in the plan",
        "`inrush init` writes a plan to start from",
    )
}

fn too_large() -> Problem {
    Problem::error(
        code::TOO_LARGE,
        0..0,
        format!("the plan has more than {MAX_PLAN} bytes"),
        "too large",
        "put a large body into a file and name it: body_file = \"body.json\"",
    )
}
