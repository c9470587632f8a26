//! `inrush submit`, `watch` and `cancel`: runs of a coordinator that outlives this command.

use inrush_common::{address::DEFAULT_COORDINATOR, id::RunId};
use inrush_proto::v1::cancel_request::Mode;

use super::{
    args::{CancelArgs, SubmitArgs, WatchArgs},
    connect::connect,
    console::Console,
    deliver::deliver,
    error::CliError,
    follow::{Followed, OnInterrupt, follow},
    interrupts::Interrupts,
    plan::PlanFile,
    sink::Sinks,
};
use crate::{
    client::{Client, ClientError},
    exit::ExitStatus,
    live::Style,
};

/// `inrush submit`
///
/// # Errors
/// When the plan is wrong, the coordinator refuses it, or goes away.
pub(super) async fn submit(
    args: &SubmitArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let plan = PlanFile::read(&args.plan, console)?;
    let sinks = args.output.reports.prepare()?;
    let mut client = connect(&args.coordinator).await?;
    let mut interrupts = Interrupts::catch()?;
    let run = client.submit(&plan.name, &plan.source, plan.files).await?;
    if args.detach {
        console.print(&format!("{run}\n"))?;
        return Ok(ExitStatus::Passed);
    }
    let style = console.progress(args.output.quiet);
    if style != Style::Quiet {
        console.say(&format!("run {run} at {}", client.address()));
        console.say(&come_back(&run, client.address()));
    }
    let on_interrupt = OnInterrupt::Cancel;
    let followed =
        follow(&mut client, Some(&run), on_interrupt, style, &mut interrupts, console).await;
    finish(followed, Some(&run), &client, sinks, console)
}

/// `inrush watch`
///
/// # Errors
/// When there is no such run, or the coordinator goes away.
pub(super) async fn watch(
    args: &WatchArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let sinks = args.output.reports.prepare()?;
    let mut client = connect(&args.coordinator).await?;
    let mut interrupts = Interrupts::catch()?;
    let style = console.progress(args.output.quiet);
    let run = args.run.as_ref();
    let followed =
        follow(&mut client, run, OnInterrupt::Leave, style, &mut interrupts, console).await;
    finish(followed, run, &client, sinks, console)
}

/// `inrush cancel`
///
/// # Errors
/// When there is no such run, or it has ended.
pub(super) async fn cancel(
    args: &CancelArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let mut client = connect(&args.coordinator).await?;
    let (mode, words) = if args.now {
        (Mode::Abort, "stopping at once")
    } else {
        (Mode::Drain, "draining: requests in flight may finish")
    };
    client.cancel(&args.run, mode).await?;
    let run = &args.run;
    console
        .say(&format!("{run}: {words}; its report: {}", command("report", run, client.address())));
    Ok(ExitStatus::Passed)
}

fn finish(
    followed: Result<Followed, CliError>,
    run: Option<&RunId>,
    client: &Client,
    sinks: Sinks,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    match followed {
        Ok(Followed::Ended(report)) => deliver(&report, sinks, console),
        Ok(Followed::Left(run)) => {
            console.say(&format!("left; the run goes on. {}", come_back(&run, client.address())));
            Ok(ExitStatus::Passed)
        }
        Err(error) => {
            if let (CliError::Client(ClientError::Lost { .. }), Some(run)) = (&error, run) {
                console.say(&format!(
                    "the run is not lost: when the coordinator is there again, {}",
                    command("watch", run, client.address())
                ));
            }
            Err(error)
        }
    }
}

fn come_back(run: &RunId, address: &str) -> String {
    format!(
        "to come back to it: {}; to stop it: {}",
        command("watch", run, address),
        command("cancel", run, address)
    )
}

/// The command line that does it, as short as it can be.
fn command(verb: &str, run: &RunId, address: &str) -> String {
    if address == DEFAULT_COORDINATOR {
        format!("inrush {verb} {run}")
    } else {
        format!("inrush {verb} {run} --coordinator {address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_names_the_coordinator_where_it_is_not_the_usual_one() {
        let run: RunId = "r1".parse().unwrap();
        assert_eq!(command("watch", &run, DEFAULT_COORDINATOR), "inrush watch r1");
        assert_eq!(
            come_back(&run, "127.0.0.1:9"),
            "to come back to it: inrush watch r1 --coordinator 127.0.0.1:9; to stop it: inrush cancel r1 --coordinator \
             127.0.0.1:9"
        );
    }
}
