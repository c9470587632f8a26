//! The end of a run: its report to where it belongs, and the exit status.

use inrush_common::report::Report;

use super::{
    console::Console,
    error::CliError,
    sink::{Sink, Sinks},
};
use crate::{
    exit::{self, ExitStatus},
    render,
};

/// Writes the report and says how the process is to end.
///
/// # Errors
/// When a place for it takes it no more. The other places have it then.
pub(super) fn deliver(
    report: &Report,
    sinks: Sinks,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let on_stdout = if sinks.json.is_stdout() {
        render::json(report)
    } else if sinks.junit.is_stdout() {
        render::junit(report)
    } else if sinks.csv.is_stdout() {
        render::csv(report)
    } else {
        render::text(report, console.color_out())
    };
    let printed = console.print(&on_stdout);
    let write = |sink: Sink, render: fn(&Report) -> String| {
        if sink.is_file() { sink.write(&render(report)) } else { Ok(()) }
    };
    // All of them, whatever becomes of one.
    let written = [
        write(sinks.json, render::json),
        write(sinks.junit, render::junit),
        write(sinks.csv, render::csv),
    ];
    written.into_iter().collect::<Result<(), CliError>>()?;
    printed?;
    Ok(exit::of(report))
}
