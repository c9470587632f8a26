//! The agent's command line, the same in `inrush-agent` and `inrush agent`.

use std::{
    collections::BTreeMap,
    env,
    io::{self, IsTerminal as _, Read as _},
    net::IpAddr,
    num::NonZeroUsize,
    path::PathBuf,
    process::ExitCode,
    thread,
};

use inrush_common::{
    address::{self, DEFAULT_COORDINATOR},
    id::{AgentName, Epoch},
    schedule::Rate,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tracing_subscriber::EnvFilter;

use crate::{
    bounds::{Allowed, Bounds},
    capacity::{BadSource, Limits, check_source, raise_file_limit, usable_cpus},
    clock,
    credentials::{JoinError, Vault, Way, default_state_dir},
    identity,
    join::{self, NoWay},
    session::{self, Config, Means, SessionError},
};

/// More worker threads than any machine has cores.
const MOST_WORKERS: usize = 4_096;

/// How an agent is started.
#[derive(Debug, Clone, clap::Args)]
pub struct AgentArgs {
    /// Where the coordinator listens: HOST:PORT or http://HOST:PORT; without a port it is 7070
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_COORDINATOR, env = "INRUSH_COORDINATOR")]
    #[arg(value_parser = parse_coordinator)]
    pub coordinator: String,

    /// Join a coordinator that speaks TLS: a token from `inrush certs token`, a file with one, or "-": from stdin. Used
    /// once; later starts find the certificate
    #[arg(long, value_name = "TOKEN|FILE", env = "INRUSH_JOIN_TOKEN", hide_env_values = true)]
    pub join: Option<String>,

    /// Where certificates are kept [default: $XDG_STATE_HOME/inrush, ~/.local/state/inrush or ./inrush-data]
    #[arg(long, value_name = "D", env = "INRUSH_STATE_DIR")]
    pub state_dir: Option<PathBuf>,

    /// Name in the fleet, unique [default: that of the certificate, or the host's name]
    #[arg(long)]
    pub name: Option<AgentName>,

    /// A label, for people and for choosing agents; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,

    /// Address of this machine to connect from; may be repeated or comma separated. Each one brings its own local
    /// ports [default: the system picks one]
    #[arg(long = "source-ip", value_name = "IP", value_delimiter = ',')]
    pub source_ips: Vec<IpAddr>,

    /// Worker threads [default: one per CPU that this process may use, by its CPU set and quota]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    pub workers: Option<NonZeroUsize>,

    /// Take no more connections than this, whatever the machine could
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_connections: Option<u64>,

    /// Send load nowhere else than there: a network (10.0.0.0/8), an address or a name, with or without a port; may be
    /// repeated. Addresses are checked after names were resolved
    #[arg(long = "allow-target", value_name = "TARGET")]
    pub allow_targets: Vec<Allowed>,

    /// Refuse shares that may exceed so many requests per second
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub max_rate: Option<Rate>,

    /// End at once when stdin is closed, which it is when the parent process dies. SIGINT is then the parent's
    /// business
    #[arg(long, hide = true)]
    pub exit_with_parent: bool,
}

fn parse_coordinator(text: &str) -> Result<String, String> {
    address::coordinator(text).map_err(|error| error.to_string())
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse::<Rate>().ok().filter(|rate| !rate.is_zero());
    rate.ok_or_else(|| {
        format!("expected requests per second, more than 0 and up to {}, such as 5000", Rate::MAX)
    })
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected KEY=VALUE, such as rack=2".to_owned()),
    }
}

fn parse_workers(text: &str) -> Result<NonZeroUsize, String> {
    text.parse::<NonZeroUsize>()
        .ok()
        .filter(|workers| workers.get() <= MOST_WORKERS)
        .ok_or_else(|| format!("expected a number from 1 to {MOST_WORKERS}"))
}

/// Why an agent ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A source address is not usable here.
    #[error(transparent)]
    Source(#[from] BadSource),
    /// The operating system denies what the agent needs.
    #[error("cannot start the agent: {0}")]
    Start(#[source] io::Error),
    /// There is no way to the coordinator.
    #[error(transparent)]
    Way(#[from] NoWay),
    /// The session ended in another way than asked.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl AgentError {
    /// The process's exit code: 2 for what the command line got wrong, 7 for the rest.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Source(_)
            | Self::Way(
                NoWay::Unreadable { .. }
                | NoWay::Token { .. }
                | NoWay::Name { .. }
                | NoWay::Join(JoinError::Role { .. }),
            ) => 2,
            Self::Start(_) | Self::Way(_) | Self::Session(_) => 7,
        })
    }
}

/// Runs an agent until it is told to leave. Logs go to stderr, by `RUST_LOG` (default: `info`).
pub fn run(args: AgentArgs) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .compact()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(filter)
        // They would go to stderr too, and panic there when it is gone.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    if subscriber.try_init().is_err() {
        tracing::debug!("logging was set up before");
    }
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            error.exit_code()
        }
    }
}

fn serve(args: AgentArgs) -> Result<(), AgentError> {
    if args.exit_with_parent {
        watch_parent().map_err(AgentError::Start)?;
    }
    let parent_decides = args.exit_with_parent;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AgentError::Start)?;
    let (way, name) = runtime.block_on(find_way(&args))?;
    let config = configure(args, way, name)?;
    let machine = config.means.limits.offer();
    tracing::info!(
        "agent {} with {} worker(s), up to {} connections",
        config.name,
        machine.workers,
        machine.max_connections()
    );
    if let Some(millis) = machine.cpu_quota_millis {
        tracing::info!("a quota allows {:.2} CPU", millis as f64 / 1_000.0);
    }
    let end = runtime.block_on(async {
        let interrupts = interrupts(parent_decides).map_err(AgentError::Start)?;
        Ok(session::run(config, interrupts).await?)
    });
    // A name resolution under way would hold up the process.
    runtime.shutdown_background();
    end
}

/// The way to the coordinator and the name there; with a token that was not used yet, the agent joins.
async fn find_way(args: &AgentArgs) -> Result<(Way, AgentName), NoWay> {
    let token = args.join.as_deref().map(join::read_token).transpose()?;
    let default = || default_state_dir(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"));
    let vault = Vault::new(&args.state_dir.clone().unwrap_or_else(default));
    let host = identity::name_from(&identity::hostname());
    join::agent_way(&args.coordinator, token.as_ref(), &vault, args.name.as_ref(), &host).await
}

fn configure(args: AgentArgs, coordinator: Way, name: AgentName) -> Result<Config, AgentError> {
    for source in &args.source_ips {
        check_source(*source)?;
    }
    let mut sources = args.source_ips;
    sources.sort();
    sources.dedup();
    let workers = args.workers.unwrap_or_else(usable_cpus);
    raise_file_limit();
    let limits = Limits::read(workers, &sources, args.max_connections);
    Ok(Config {
        coordinator,
        name,
        epoch: Epoch(clock::boot_epoch()),
        labels: args.labels.into_iter().collect::<BTreeMap<_, _>>(),
        means: Means {
            workers,
            sources,
            limits,
            bounds: Bounds { targets: args.allow_targets, max_rate: args.max_rate },
        },
    })
}

/// One item for each SIGINT or SIGTERM. With a parent that decides, SIGINT is swallowed: the terminal sends it to the
/// whole process group, and the parent stops the run its own way.
fn interrupts(parent_decides: bool) -> io::Result<mpsc::Receiver<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // The second signal ends the process, so a third needs no place.
    let (to, interrupts) = mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => if parent_decides { continue },
                _ = terminate.recv() => {}
            }
            if to.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(interrupts)
}

/// Ends the process, load included, when stdin ends: the parent has died, or closed it. On a thread of its own, so that
/// it works when everything else is stuck.
fn watch_parent() -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "there is nobody left to clean up for")]
    let watch = || {
        let mut stdin = io::stdin().lock();
        let mut bytes = [0; 256];
        loop {
            match stdin.read(&mut bytes) {
                Ok(0) => std::process::exit(0),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => std::process::exit(0),
            }
        }
    };
    thread::Builder::new().name("parent-watch".to_owned()).spawn(watch)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        agent: AgentArgs,
    }

    fn parse(args: &[&str]) -> Result<AgentArgs, String> {
        Cli::try_parse_from(std::iter::once(&"agent").chain(args))
            .map(|cli| cli.agent)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_coordinator_is_a_host_with_a_port() {
        for good in ["127.0.0.1:7070", "http://lab.example.test:9/", "[::1]:7070", "lab"] {
            let address = parse_coordinator(good).unwrap();
            assert!(address.ends_with(":7070") || address.ends_with(":9"), "{address}");
        }
        for bad in ["", "lab:0", "a@b:1"] {
            let error = parse_coordinator(bad).unwrap_err();
            assert!(error.contains("HOST:PORT"), "{bad:?}: {error}");
        }
    }

    #[test]
    fn options_can_be_repeated_and_bad_ones_are_named() {
        let args = parse(&[
            "--label",
            "rack=2",
            "--label",
            "os=linux",
            "--source-ip",
            "127.0.0.2,127.0.0.3",
            "--source-ip",
            "127.0.0.4",
            "--workers",
            "3",
        ]);
        let args = args.unwrap();
        assert_eq!(args.labels[1], ("os".to_owned(), "linux".to_owned()));
        assert_eq!(args.source_ips.len(), 3);
        assert_eq!(args.workers.map(NonZeroUsize::get), Some(3));
        for (bad, word) in [
            (["--label", "rack"], "KEY=VALUE"),
            (["--workers", "0"], "1 to 4096"),
            (["--name", "lab 1"], "an agent name"),
            (["--source-ip", "lab"], "--source-ip"),
            (["--max-connections", "0"], "--max-connections"),
            (["--max-rate", "0"], "such as 5000"),
            (["--allow-target", "10.0.0.0/40"], "such as 10.0.0.0/8"),
        ] {
            let error = parse(&bad).unwrap_err();
            assert!(error.contains(word), "{bad:?}: {error}");
        }
    }

    fn start(args: AgentArgs) -> Result<Config, AgentError> {
        configure(args, Way::plain("127.0.0.1:7070"), "lab1".parse().unwrap())
    }

    #[test]
    fn a_source_address_of_another_machine_is_a_usage_error() {
        let args = parse(&["--source-ip", "203.0.113.9"]).unwrap();
        let error = start(args).unwrap_err();
        assert!(matches!(error, AgentError::Source(_)), "{error}");
        assert_eq!(error.exit_code(), ExitCode::from(2));
    }

    #[test]
    fn source_addresses_given_twice_bring_their_ports_once() {
        let args = parse(&["--source-ip", "127.0.0.2,127.0.0.2"]).unwrap();
        let config = start(args).unwrap();
        assert_eq!(config.means.limits.offer().sources, 1);
        assert_eq!(config.name.as_str(), "lab1");
    }
}
