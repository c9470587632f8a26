//! From a plan's source to a plan.

use std::collections::BTreeMap;

use bytes::Bytes;
use inrush_common::plan::{self, Plan};

/// Compiles a plan as it was submitted, or says what is wrong with it, as text for people.
///
/// # Errors
/// With all problems of the plan, rendered.
pub fn compile(
    source_name: &str,
    source: &str,
    files: &BTreeMap<String, Bytes>,
) -> Result<Plan, String> {
    match plan::load(source_name, source, files) {
        Ok(loaded) => Ok(loaded.plan),
        Err(problems) => Err(plan::render(source_name, source, &problems, false)),
    }
}
