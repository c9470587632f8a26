//! The end of a run: its report to where it belongs, and the exit status.

use inrush_common::report::Report;

use super::{console::Console, error::CliError, json::JsonSink};
use crate::{
    exit::{self, ExitStatus},
    render,
};

/// Writes the report and says how the process is to end.
///
/// # Errors
/// When a place for it takes it no more. The other place has it then.
pub(super) fn deliver(
    report: &Report,
    sink: JsonSink,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let on_stdout = if sink.is_stdout() {
        render::json(report)
    } else {
        render::text(report, console.color_out())
    };
    let printed = console.print(&on_stdout);
    if !matches!(sink, JsonSink::Nowhere | JsonSink::Stdout) {
        sink.write(&render::json(report))?;
    }
    printed?;
    Ok(exit::of(report))
}
