//! `inrush serve`

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use inrush_agent::{capacity::raise_file_limit, credentials::default_state_dir};
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
    certs::{self, Authority, Standings},
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
    let data_dir = data_dir(args.data_dir.as_deref());
    let standings = standings(&data_dir)?;
    let exposure = match (&standings, args.insecure) {
        (None, false) => Exposure::LoopbackWithoutCa,
        (None, true) => Exposure::Insecure,
        (Some(_), false) => Exposure::Secured,
        (Some(_), true) => {
            return Err(CliError::Usage(format!(
                "--insecure: there is a CA in {}, and with it the coordinator speaks TLS only: leave --insecure away, or \
                 choose another --data-dir",
                data_dir.display()
            )));
        }
    };
    let address = resolve(&args.listen, exposure).await?;
    let mut interrupts = Interrupts::catch()?;
    // An agent each has a connection.
    raise_file_limit();
    let listener =
        TcpListener::bind(address).await.map_err(|error| bind_failed(address, &error))?;
    let shutdown = CancellationToken::new();
    let usual = Config::new(&data_dir);
    // Several signs of life fit into any lease.
    let heartbeat = usual.heartbeat.min(args.lease / 4);
    let config = Config { lease: args.lease, heartbeat, standings, ..usual };
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
    let dir = data_dir.display();
    let join = match exposure {
        Exposure::Secured => format!(
            " --join TOKEN\ntokens for agents and users: inrush certs token --data-dir {dir}"
        ),
        Exposure::Loopback | Exposure::LoopbackWithoutCa | Exposure::Insecure => String::new(),
    };
    console.say(&format!(
        "coordinator of inrush {} listening on {address}\nstoring runs in {dir}\nstart agents with: inrush agent \
         --coordinator {reached}{join}\nsubmit a plan with: inrush submit plan.toml --coordinator {reached}",
        env!("CARGO_PKG_VERSION"),
    ));
    if exposure == Exposure::Insecure && !address.ip().to_canonical().is_loopback() {
        console.say(
            "warning: --insecure: no encryption, and whoever reaches this port may make the agents send load",
        );
    }
}

/// The data directory of an option, or the usual one.
pub(super) fn data_dir(given: Option<&Path>) -> PathBuf {
    let default = || default_state_dir(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"));
    given.map_or_else(default, Path::to_owned)
}

/// The CA in a data directory, if there is one. One that cannot be used is no reason to do without.
fn standings(data_dir: &Path) -> Result<Option<Standings>, CliError> {
    if !certs::is_there(data_dir) {
        return Ok(None);
    }
    let opened = Authority::open(data_dir)
        .and_then(|authority| Standings::open(authority, data_dir))
        .map_err(|error| CliError::Internal(error.to_string()))?;
    Ok(Some(opened))
}
