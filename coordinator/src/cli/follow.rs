//! Following a run to its end: progress out, interrupts in.

use std::time::{Duration, Instant};

use inrush_common::{id::RunId, report::Report};
use inrush_proto::v1::cancel_request::Mode;

use super::{console::Console, error::CliError, interrupts::Interrupts};
use crate::{
    client::{Client, ClientError, Watch},
    clock,
    live::{Style, View},
    run::HAND_IN_MARGIN,
};

/// After an abort the report is a matter of moments, unless an agent makes the coordinator wait for its last numbers.
/// This is for a coordinator that does not manage.
const REPORT_AFTER_ABORT: Duration = HAND_IN_MARGIN.saturating_add(Duration::from_secs(15));

/// What an interrupt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnInterrupt {
    /// The run is ours: stop it, and wait for its report.
    Cancel,
    /// We only look on: leave.
    Leave,
}

/// How following ended.
#[derive(Debug)]
pub(super) enum Followed {
    /// With the run.
    Ended(Box<Report>),
    /// The user left; the run goes on.
    Left(RunId),
}

/// Follows a run (without an id, the newest) until its report is there.
///
/// # Errors
/// When the coordinator goes away, or the user gives up on a run that does not stop.
pub(super) async fn follow(
    client: &mut Client,
    run: Option<&RunId>,
    on_interrupt: OnInterrupt,
    style: Style,
    interrupts: &mut Interrupts,
    console: &mut Console<'_>,
) -> Result<Followed, CliError> {
    let mut watch = client.watch(run).await?;
    let mut view = View::new(style);
    let mut run = run.cloned();
    let mut stop = Stop::NotAsked;
    loop {
        tokio::select! {
            update = next_before(&mut watch, stop.deadline()) => {
                let update = update?;
                if run.is_none() {
                    run = update.run.parse().ok();
                }
                if let Some(report) = watch.report(&update)? {
                    return Ok(Followed::Ended(Box::new(report)));
                }
                // A closed stderr leaves nobody to show progress to; the run goes on.
                view.update(console.err(), &update).ok();
            }
            () = interrupts.next() => {
                let Some(run) = &run else {
                    return Err(CliError::Cancelled("left before the run was known".to_owned()));
                };
                if on_interrupt == OnInterrupt::Leave {
                    return Ok(Followed::Left(run.clone()));
                }
                stop = stop.further()?;
                view.note(console.err(), stop.words()).ok();
                cancel(client, run, stop.mode()).await?;
            }
        }
    }
}

/// How far the user has gone in stopping the run.
#[derive(Debug, Clone, Copy)]
enum Stop {
    NotAsked,
    Drain,
    Abort(Instant),
}

impl Stop {
    /// The next step. There is one beyond the last: leaving without a report.
    fn further(self) -> Result<Self, CliError> {
        match self {
            Self::NotAsked => Ok(Self::Drain),
            Self::Drain => Ok(Self::Abort(clock::now() + REPORT_AFTER_ABORT)),
            Self::Abort(_) => {
                Err(CliError::Cancelled("left without waiting for the report".to_owned()))
            }
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::NotAsked => "",
            Self::Drain => "draining: requests in flight may finish; Ctrl-C again to stop at once",
            Self::Abort(_) => "stopping at once; Ctrl-C again to leave without the report",
        }
    }

    const fn mode(self) -> Mode {
        match self {
            Self::NotAsked => Mode::Unspecified,
            Self::Drain => Mode::Drain,
            Self::Abort(_) => Mode::Abort,
        }
    }

    const fn deadline(self) -> Option<Instant> {
        match self {
            Self::Abort(deadline) => Some(deadline),
            Self::NotAsked | Self::Drain => None,
        }
    }
}

async fn next_before(
    watch: &mut Watch,
    deadline: Option<Instant>,
) -> Result<inrush_proto::v1::RunUpdate, CliError> {
    let Some(deadline) = deadline else {
        return Ok(watch.next().await?);
    };
    tokio::time::timeout_at(deadline.into(), watch.next()).await.map_or_else(
        |_| {
            Err(CliError::Internal(format!(
                "the coordinator did not end the run within {} s of being told to stop at once",
                REPORT_AFTER_ABORT.as_secs()
            )))
        },
        |update| Ok(update?),
    )
}

/// Asks for a stop. A run that has ended in the meantime refuses, and its report is on its way.
async fn cancel(client: &mut Client, run: &RunId, mode: Mode) -> Result<(), CliError> {
    match client.cancel(run, mode).await {
        Ok(()) | Err(ClientError::Refused(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
