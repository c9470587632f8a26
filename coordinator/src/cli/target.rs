//! `inrush target`

use std::{io, thread};

use tokio_util::sync::CancellationToken;

use super::{
    args::TargetArgs,
    console::Console,
    error::CliError,
    interrupts::Interrupts,
    listen::{Exposure, bind_failed, resolve},
};
use crate::{exit::ExitStatus, target};

/// Runs the bundled target until a signal, or until stdin closes where a parent process holds it.
///
/// # Errors
/// When it cannot listen.
pub(super) async fn target(
    args: &TargetArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let address = resolve(&args.listen, Exposure::from_flag(args.insecure)).await?;
    let mut interrupts = Interrupts::catch()?;
    let failed = |error| bind_failed(address, &error);
    let listener = target::listen(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // The one line on stdout, for whoever starts it from a script.
    console.print(&format!("http://{address}\n"))?;
    console.say(&format!("target listening on {address}; its counters: http://{address}/__stats"));
    let shutdown = CancellationToken::new();
    let serving = target::serve(listener, shutdown.clone());
    let parent_gone = if args.exit_with_parent { watch_parent() } else { CancellationToken::new() };
    let asked = async {
        tokio::select! {
            () = interrupts.next() => {}
            () = parent_gone.cancelled() => {}
        }
        shutdown.cancel();
        std::future::pending().await
    };
    tokio::select! {
        served = serving => {
            served.map_err(|error| CliError::internal("the target broke", error))?;
            Ok(ExitStatus::Passed)
        }
        () = asked => Ok(ExitStatus::Passed),
    }
}

/// Cancels the token at the end of stdin, which the parent holds open as long as it lives. The thread is left behind when
/// something else ends us first: nothing wakes a read of stdin.
fn watch_parent() -> CancellationToken {
    let gone = CancellationToken::new();
    let watcher = gone.clone().drop_guard();
    thread::spawn(move || {
        let end = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tracing::debug!("stdin has ended: {end:?}");
        drop(watcher);
    });
    gone
}
