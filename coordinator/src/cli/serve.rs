//! `inrush serve`

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use inrush_agent::capacity::raise_file_limit;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    args::ServeArgs,
    console::Console,
    error::CliError,
    interrupts::Interrupts,
    listen::{Exposure, bind_failed, resolve},
};
use crate::{
    exit::ExitStatus,
    server::{self, Config},
};

/// For the coordinator to end after it was told to.
pub(super) const END_WITHIN: Duration = Duration::from_secs(10);

/// Runs a coordinator until a signal.
///
/// # Errors
/// When it cannot listen or store, or breaks.
pub(super) async fn serve(
    args: &ServeArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let exposure = Exposure::from_flag(args.insecure);
    let address = resolve(&args.listen, exposure).await?;
    let mut interrupts = Interrupts::catch()?;
    // An agent each has a connection.
    raise_file_limit();
    let listener =
        TcpListener::bind(address).await.map_err(|error| bind_failed(address, &error))?;
    let data_dir = args
        .data_dir
        .clone()
        .unwrap_or_else(|| default_data_dir(env::var_os("XDG_STATE_HOME"), env::var_os("HOME")));
    let shutdown = CancellationToken::new();
    let usual = Config::new(&data_dir);
    // Several signs of life fit into any lease.
    let heartbeat = usual.heartbeat.min(args.lease / 4);
    let config = Config { lease: args.lease, heartbeat, ..usual };
    let coordinator = server::start(listener, config, shutdown.clone())
        .await
        .map_err(|error| CliError::Internal(error.to_string()))?;
    announce(coordinator.local_addr(), &data_dir, exposure, console);
    let mut ended = std::pin::pin!(coordinator.join());
    tokio::select! {
        result = &mut ended => {
            return result.map(|()| ExitStatus::Passed).map_err(broke);
        }
        () = interrupts.next() => {}
    }
    console.say("ending; again to end at once");
    shutdown.cancel();
    tokio::select! {
        result = timeout(END_WITHIN, &mut ended) => match result {
            Ok(result) => result.map(|()| ExitStatus::Passed).map_err(broke),
            Err(_) => Err(CliError::Internal(format!(
                "the coordinator did not end within {} s", END_WITHIN.as_secs()
            ))),
        },
        () = interrupts.next() => {
            Err(CliError::Internal("ended at once, on the second signal".to_owned()))
        }
    }
}

fn broke(error: impl std::fmt::Display) -> CliError {
    CliError::internal("the coordinator broke", error)
}

fn announce(address: SocketAddr, data_dir: &Path, exposure: Exposure, console: &mut Console<'_>) {
    let reached = if address.ip().is_unspecified() {
        format!("THIS-MACHINE:{}", address.port())
    } else {
        address.to_string()
    };
    console.say(&format!(
        "coordinator of inrush {} listening on {address}\nstoring runs in {}\nstart agents with: inrush agent \
         --coordinator {reached}\nsubmit a plan with: inrush submit plan.toml --coordinator {reached}",
        env!("CARGO_PKG_VERSION"),
        data_dir.display(),
    ));
    if exposure == Exposure::Insecure && !address.ip().to_canonical().is_loopback() {
        console.say(
            "warning: --insecure: no encryption, and whoever reaches this port may make the agents send load",
        );
    }
}

/// As the XDG base directory specification has it for state; a relative `XDG_STATE_HOME` is to be ignored.
fn default_data_dir(state_home: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(state_home)
        .map(|state| state.join("inrush"))
        .or_else(|| absolute(home).map(|home| home.join(".local/state/inrush")))
        .unwrap_or_else(|| PathBuf::from("inrush-data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_stored_where_state_belongs() {
        let of = |state: &str, home: &str| {
            let given = |text: &str| (!text.is_empty()).then(|| text.into());
            default_data_dir(given(state), given(home))
        };
        assert_eq!(of("/s", "/home/u"), Path::new("/s/inrush"));
        assert_eq!(of("relative", "/home/u"), Path::new("/home/u/.local/state/inrush"));
        assert_eq!(of("", "/home/u"), Path::new("/home/u/.local/state/inrush"));
        assert_eq!(of("", ""), Path::new("inrush-data"));
    }
}
