//! `inrush run`: a coordinator in this process, agents in child processes, and a run like any other.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use inrush_agent::{
    capacity::{Limits, raise_file_limit, usable_cpus},
    cgroup::available_memory,
    kernel::port_hold,
    resolve::{Place, resolve},
};
use inrush_common::{churn::Churn, plan::Plan, report::Report};
use tempfile::TempDir;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    args::RunArgs,
    console::Console,
    deliver::deliver,
    error::CliError,
    follow::{Followed, OnInterrupt, follow},
    interrupts::Interrupts,
    plan::PlanFile,
    serve::END_WITHIN,
};
use crate::{
    client::Client,
    exit::ExitStatus,
    live::Style,
    local::{AwaitError, Death, Fleet, LocalAgents, Machine, TargetReach, Wanted, size},
    server::{self, Config, Coordinator},
};

/// For the target's name. Without an answer the arithmetic assumes one address, and the agents find out the rest.
const RESOLVE_WITHIN: Duration = Duration::from_secs(5);

/// `inrush run`
///
/// # Errors
/// When the plan is wrong, the machine cannot carry it, or a part of Inrush fails.
pub(super) async fn run(
    args: &RunArgs,
    verbosity: u8,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let plan = PlanFile::read(&args.plan, console)?;
    let sinks = args.output.reports.prepare()?;
    let fleet = fleet(&plan.plan, args.local_agents, args.workers).await?;
    let mut interrupts = Interrupts::catch()?;
    let style = progress_style(console, args.output.quiet, verbosity);
    let local = LocalRun { plan, fleet, data_dir: args.data_dir.clone(), style, verbosity };
    let report = local.report(&mut interrupts, console).await?;
    deliver(&report, sinks, console)
}

/// Logs would tear a bar apart.
pub(super) fn progress_style(console: &Console<'_>, quiet: bool, verbosity: u8) -> Style {
    match console.progress(quiet) {
        Style::Bar if verbosity > 0 => Style::Lines,
        style => style,
    }
}

/// The local agents for a plan on this machine.
pub(super) async fn fleet(
    plan: &Plan,
    agents: Option<u32>,
    workers: Option<u32>,
) -> Result<Fleet, CliError> {
    let cores = usable_cpus();
    let addresses = target_addresses(plan).await;
    let most_workers = workers.and_then(|workers| NonZeroUsize::new(workers as usize));
    raise_file_limit();
    let limits = Limits::read(most_workers.unwrap_or(cores), &[], None);
    let machine = Machine {
        cores: u32::try_from(cores.get()).unwrap_or(u32::MAX),
        process: limits.machine,
        memory_bytes: available_memory(),
        port_hold: port_hold(&addresses),
    };
    let wanted = Wanted {
        connections: plan.workload.peak_connections(),
        churn: Churn::of(&plan.workload),
        min_agents: plan.agents.min,
        agents,
        workers,
        target: TargetReach::of(&addresses),
    };
    size(machine, wanted).map_err(|error| CliError::Local(error.into()))
}

/// The addresses of the plan's target, as far as its names resolve now.
async fn target_addresses(plan: &Plan) -> Vec<IpAddr> {
    let mut addresses = HashSet::new();
    match Place::all_of(&plan.workload) {
        Ok(places) => {
            for place in places {
                match resolve(&place, RESOLVE_WITHIN).await {
                    Ok(found) => addresses.extend(found.iter().map(SocketAddr::ip)),
                    Err(error) => tracing::debug!("{error}"),
                }
            }
        }
        Err(error) => tracing::debug!("{error}"),
    }
    addresses.into_iter().collect()
}

/// A run on this machine.
#[derive(Debug)]
pub(super) struct LocalRun {
    /// What is run.
    pub plan: PlanFile,
    /// By which agents.
    pub fleet: Fleet,
    /// Where its data is kept; `None`: nowhere, it goes with the run.
    pub data_dir: Option<PathBuf>,
    /// How progress is shown.
    pub style: Style,
    /// How much is logged.
    pub verbosity: u8,
}

impl LocalRun {
    /// Runs it. Whatever comes of it, afterwards there are no agents and no coordinator.
    pub(super) async fn report(
        self,
        interrupts: &mut Interrupts,
        console: &mut Console<'_>,
    ) -> Result<Report, CliError> {
        let data = DataDir::open(self.data_dir.as_deref())?;
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| CliError::internal("cannot listen on 127.0.0.1", error))?;
        let shutdown = CancellationToken::new();
        let coordinator = server::start(listener, Config::new(data.path()), shutdown.clone())
            .await
            .map_err(|error| CliError::Internal(error.to_string()))?;
        let result = self.with_coordinator(&coordinator, interrupts, console).await;
        shutdown.cancel();
        match timeout(END_WITHIN, coordinator.join()).await {
            Ok(Ok(())) => {}
            // What there is of a report is worth more than this.
            Ok(Err(error)) => console.say(&format!("the coordinator broke: {error}")),
            Err(_) => tracing::warn!("the coordinator did not end within {END_WITHIN:?}"),
        }
        result
    }

    async fn with_coordinator(
        &self,
        coordinator: &Coordinator,
        interrupts: &mut Interrupts,
        console: &mut Console<'_>,
    ) -> Result<Report, CliError> {
        let address = coordinator.local_addr();
        let mut agents = LocalAgents::start(&self.fleet, address, self.verbosity)?;
        let mut deaths = Vec::new();
        let result =
            self.with_agents(coordinator, &mut agents, &mut deaths, interrupts, console).await;
        agents.stop().await;
        for death in deaths.iter().filter(|death| !death.last_words.is_empty()) {
            console.say(&format!("{}: {}{}", death.agent, death.evidence, death.last_words));
        }
        result
    }

    async fn with_agents(
        &self,
        coordinator: &Coordinator,
        agents: &mut LocalAgents,
        deaths: &mut Vec<Death>,
        interrupts: &mut Interrupts,
        console: &mut Console<'_>,
    ) -> Result<Report, CliError> {
        let mut client = Client::connect(&coordinator.local_addr().to_string()).await?;
        tokio::select! {
            connected = agents.connected(&mut client) => connected.map_err(not_there)?,
            () = interrupts.next() => {
                return Err(CliError::Cancelled("cancelled before the run began".to_owned()));
            }
        }
        let PlanFile { name, source, files, .. } = &self.plan;
        let run = client.submit(name, source, files.clone()).await?;
        let following =
            follow(&mut client, Some(&run), OnInterrupt::Cancel, self.style, interrupts, console);
        let followed = tokio::select! {
            followed = following => followed?,
            never = tell_deaths(coordinator, agents, deaths) => match never {},
        };
        match followed {
            Followed::Ended(report) => Ok(*report),
            Followed::Left(run) => Err(CliError::Cancelled(format!("left the run {run}"))),
        }
    }
}

/// Tells the coordinator of each agent's process that ends: it need not wait for a lease to run out.
async fn tell_deaths(
    coordinator: &Coordinator,
    agents: &mut LocalAgents,
    deaths: &mut Vec<Death>,
) -> std::convert::Infallible {
    loop {
        let death = agents.next_death().await;
        coordinator.agent_process_ended(&death.agent, death.evidence.clone()).await;
        deaths.push(death);
    }
}

fn not_there(error: AwaitError) -> CliError {
    match error {
        AwaitError::Local(error) => error.into(),
        AwaitError::Client(error) => error.into(),
    }
}

/// Where the run's data lies.
enum DataDir {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl DataDir {
    fn open(kept: Option<&Path>) -> Result<Self, CliError> {
        match kept {
            Some(path) => Ok(Self::Kept(path.to_path_buf())),
            None => tempfile::Builder::new()
                .prefix("inrush-")
                .tempdir()
                .map(Self::Temporary)
                .map_err(|error| CliError::internal("cannot make a temporary directory", error)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}
