//! `inrush report`

use std::path::Path;

use inrush_common::{id::RunId, report::Report};

use super::{
    args::ReportArgs, connect::connect, console::Console, deliver::deliver, error::CliError,
};
use crate::{
    exit::ExitStatus,
    store::{Store, StoreError},
};

/// Prints the report of a run, from a coordinator or from a data directory.
///
/// # Errors
/// When there is no such run, or nobody to ask.
pub(super) async fn report(
    args: &ReportArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let sinks = args.reports.prepare()?;
    let run = args.run.as_ref();
    let report = match &args.data_dir {
        Some(data_dir) => stored(data_dir, run).await?,
        None => connect(&args.coordinator).await?.report(run).await?,
    };
    deliver(&report, sinks, console)
}

async fn stored(data_dir: &Path, run: Option<&RunId>) -> Result<Report, CliError> {
    // Opening would make a store where there is none, and a mistyped path into an empty one.
    if !data_dir.join("inrush.db").is_file() {
        return Err(CliError::Usage(format!(
            "--data-dir {}: no runs are stored there (it has no inrush.db)",
            data_dir.display()
        )));
    }
    let failed = |error: StoreError| CliError::Internal(error.to_string());
    let (store, _writer) = Store::open(data_dir).map_err(failed)?;
    let newest;
    let run = match run {
        Some(run) => run,
        None => {
            let runs = store.runs(1).await.map_err(failed)?;
            newest =
                runs.into_iter().next().map(|row| row.run).ok_or_else(|| {
                    CliError::Usage(format!("{} holds no runs", data_dir.display()))
                })?;
            &newest
        }
    };
    store
        .report(run)
        .await
        .map_err(failed)?
        .ok_or_else(|| CliError::Usage(format!("there is no run {run} in {}", data_dir.display())))
}
