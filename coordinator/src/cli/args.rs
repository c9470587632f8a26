//! The command line as types.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use inrush_agent::cli::AgentArgs;
use inrush_common::{address::DEFAULT_COORDINATOR, id::RunId};

use super::certs_args::CertsCommand;

use super::{error::CliError, sink::Sinks};

const ABOUT: &str =
    "Distributed HTTP load testing: many machines make the load, one report says what came of it";

const EXAMPLES: &str = "\
Examples:
  inrush demo                             see a whole run, nothing else needed
  inrush init && inrush run plan.toml     a first plan, run on this machine
  inrush serve                            in a lab: the coordinator …
  inrush agent --coordinator 127.0.0.1:7070 --name lab1   … an agent on each machine …
  inrush submit plan.toml                 … and a run over all of them

The report goes to stdout, progress and logs to stderr. Exit codes:
  0 passed            2 usage or plan error
  3 threshold failed  4 run invalid
  5 target unreachable at the start
  6 cancelled by the user
  7 coordinator or agent error";

/// `inrush`
#[derive(Debug, Parser)]
#[command(name = "inrush", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 110)]
#[command(disable_help_subcommand = true)]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Colour the output; auto: on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        help_heading = "Global options"
    )]
    pub color: ColorWhen,
    /// Log more to stderr: -v what happens, -vv every step.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
}

/// When output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ColorWhen {
    #[default]
    Auto,
    Always,
    Never,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show a whole run: a bundled target, a coordinator, two local agents, one report.
    Demo(DemoArgs),
    /// Run a plan on this machine, with local agents.
    Run(RunArgs),
    /// Run the coordinator that agents and submitters connect to.
    Serve(ServeArgs),
    /// Run an agent: it makes the load that a coordinator assigns to it.
    Agent(AgentArgs),
    /// Submit a plan to a coordinator, follow the run and print its report.
    Submit(SubmitArgs),
    /// List the agents of a coordinator.
    Agents(CoordinatorArgs),
    /// List the runs of a coordinator, newest first.
    Runs(CoordinatorArgs),
    /// Follow a run and print its report at the end. Ctrl-C leaves; the run goes on.
    Watch(WatchArgs),
    /// Stop a run: requests in flight may finish, unless --now. Its report is kept.
    Cancel(CancelArgs),
    /// Print the report of a run, also of one that ended long ago.
    Report(ReportArgs),
    /// Check a plan and say what it would do. Sends nothing.
    Check(CheckArgs),
    /// Explain a run before it runs: every agent's share, ports, memory, and what would be refused. Sends nothing.
    Explain(ExplainArgs),
    /// Write a starter plan.
    Init(InitArgs),
    /// Certificates: the coordinator's CA, tokens to join it, and their end.
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Run the bundled target: a small, counting HTTP server to try things on.
    Target(TargetArgs),
}

/// Where the coordinator is.
#[derive(Debug, Args)]
pub(super) struct CoordinatorArgs {
    /// Address of the coordinator, HOST:PORT.
    #[arg(long, value_name = "A", env = "INRUSH_COORDINATOR", default_value = DEFAULT_COORDINATOR)]
    pub coordinator: String,
    /// Where this user's certificates are [default: $XDG_STATE_HOME/inrush, ~/.local/state/inrush or ./inrush-data]
    #[arg(long, value_name = "D", env = "INRUSH_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
}

/// Where the report goes, beside the text on stdout.
#[derive(Debug, Args)]
pub(super) struct ReportsArgs {
    /// Write the report as JSON to this file; "-": to stdout, instead of the text.
    #[arg(long, value_name = "F")]
    pub json: Option<PathBuf>,
    /// Write the thresholds as JUnit XML to this file; "-": to stdout, instead of the text.
    #[arg(long, value_name = "F")]
    pub junit: Option<PathBuf>,
    /// Write the figures of the run, its phases, requests and seconds as CSV to this file; "-": to stdout, instead of the
    /// text.
    #[arg(long, value_name = "F")]
    pub csv: Option<PathBuf>,
}

impl ReportsArgs {
    /// Gets the places ready.
    ///
    /// # Errors
    /// When one cannot be written to.
    pub(super) fn prepare(&self) -> Result<Sinks, CliError> {
        Sinks::prepare(self.json.as_deref(), self.junit.as_deref(), self.csv.as_deref())
    }
}

/// Where results go and how much is said on the way.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Where the report goes.
    #[command(flatten)]
    pub reports: ReportsArgs,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `inrush demo`
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Where the report goes.
    #[command(flatten)]
    pub reports: ReportsArgs,
}

const RUN_EXAMPLES: &str = "\
Examples:
  inrush run plan.toml
  inrush run plan.toml --json report.json --junit junit.xml --quiet
  inrush run plan.toml --local-agents 4 --workers 1
  inrush run - < plan.toml

The agents are child processes, and each has its own file limit: by default there is one for every two cores, and more \
where the plan has more connections than one process may open. A machine has about 28,000 local ports for one target \
and source address. With more connections than that, and a target on the loopback interface, each agent gets a source \
address of its own (127.0.0.2, 127.0.0.3, …).

Ctrl-C stops the run: the first lets requests in flight finish, the second does not. The report is printed either way.";

/// `inrush run`
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunArgs {
    /// The plan, a TOML file; "-": from stdin.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// How many agents to start [default: one for every two cores, more if the plan needs them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub local_agents: Option<u32>,
    /// Worker threads of each agent [default: cores / agents, at least 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
    /// Keep the run's data here, for `inrush report --data-dir` [default: nowhere]
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  inrush serve
  inrush serve --data-dir /var/lib/inrush
  inrush certs init && inrush serve --listen 0.0.0.0:7070     with TLS: whoever connects needs a certificate
  inrush serve --listen 0.0.0.0:7070 --insecure               without, on a network you trust

With a CA in its data directory (inrush certs init) the coordinator speaks TLS only.";

/// `inrush serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(super) struct ServeArgs {
    /// Address to listen on.
    #[arg(long, value_name = "A", default_value = DEFAULT_COORDINATOR)]
    pub listen: String,
    /// Where runs are stored [default: $XDG_STATE_HOME/inrush, ~/.local/state/inrush or ./inrush-data]
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Listen beyond this machine without encryption and without asking who connects.
    #[arg(long)]
    pub insecure: bool,
    /// An agent not heard of for so long is lost; an agent that hears nothing for so long stops its load.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = lease)]
    pub lease: std::time::Duration,
}

const SUBMIT_EXAMPLES: &str = "\
Examples:
  inrush submit plan.toml
  inrush submit plan.toml --coordinator 127.0.0.1:7070 --json report.json
  run=$(inrush submit plan.toml --detach) && inrush watch $run

The run belongs to the coordinator: if this command goes away, the run goes on, and `inrush watch` comes back to it. \
Ctrl-C stops the run: the first lets requests in flight finish, the second does not.";

/// `inrush submit`
#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(super) struct SubmitArgs {
    /// The plan, a TOML file; "-": from stdin.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Where the coordinator is.
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    /// Print the run's id and return at once.
    #[arg(long, conflicts_with_all = ["json", "junit", "csv"])]
    pub detach: bool,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `inrush watch`
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The run [default: the newest]
    #[arg(value_name = "RUN")]
    pub run: Option<RunId>,
    /// Where the coordinator is.
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    /// Where the report goes.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `inrush cancel`
#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The run, as `inrush runs` lists it.
    #[arg(value_name = "RUN")]
    pub run: RunId,
    /// Stop at once: requests in flight are counted as such.
    #[arg(long)]
    pub now: bool,
    /// Where the coordinator is.
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
}

/// `inrush report`
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The run [default: the newest]
    #[arg(value_name = "RUN")]
    pub run: Option<RunId>,
    /// Where the report goes.
    #[command(flatten)]
    pub reports: ReportsArgs,
    /// Read this data directory instead of asking a coordinator.
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Where the coordinator is.
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
}

/// `inrush check`
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The plan, a TOML file; "-": from stdin.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  inrush explain plan.toml                                the agents that `inrush run` would start
  inrush explain plan.toml --agents 8                     eight agents like this machine
  inrush explain plan.toml --agents 3 --ports 28232 --files 1000000 --workers 4
  inrush explain plan.toml --coordinator 127.0.0.1:7070   the agents that are connected there

It is arithmetic: nothing is sent to the target. The shares are those that a run would hand out. Ends with 0 when the run \
would be taken, with 2 when it would be refused.";

/// `inrush explain`
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(super) struct ExplainArgs {
    /// The plan, a TOML file; "-": from stdin.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Over so many agents [default: those that `inrush run` would start]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub agents: Option<u32>,
    /// Over the agents that are connected to this coordinator, HOST:PORT.
    #[arg(long, value_name = "A", conflicts_with = "agents")]
    pub coordinator: Option<String>,
    /// Worker threads of each of the N agents [default: the cores of this machine]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
    /// Local ports of each per source and target address [default: those of this machine]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u64).range(1..=65_535))]
    pub ports: Option<u64>,
    /// Files that each may open for connections [default: the limit of this machine]
    #[arg(long, value_name = "N", requires = "agents")]
    pub files: Option<u64>,
    /// Source addresses of each [default: 1]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub sources: Option<u32>,
    /// Bytes of a response, head and body, for the estimate of what comes in.
    #[arg(long, value_name = "BYTES")]
    pub response_size: Option<u64>,
    /// Write the explanation as JSON to this file; "-": to stdout, instead of the text.
    #[arg(long, value_name = "F")]
    pub json: Option<PathBuf>,
}

/// `inrush init`
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Where to write it.
    #[arg(value_name = "FILE", default_value = "plan.toml")]
    pub file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
}

const TARGET_ROUTES: &str = "\
Answers:
  /              13 bytes of text
  /bytes/N       N bytes
  /delay/MS      13 bytes after MS milliseconds
  /status/CODE   that status
  /echo          the request's own body
  /__stats       what was counted: requests, connections, bytes (POST: set to zero)";

/// `inrush target`
#[derive(Debug, Args)]
#[command(after_help = TARGET_ROUTES)]
pub(super) struct TargetArgs {
    /// Address to listen on; port 0: any free one.
    #[arg(long, value_name = "A", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// Listen beyond this machine: whoever reaches it can make it work.
    #[arg(long)]
    pub insecure: bool,
    /// End when stdin is closed: the target of a parent process that may be killed.
    #[arg(long, hide = true)]
    pub exit_with_parent: bool,
}

/// A lease: long enough to survive a hiccup of the network, short enough that a lost agent is noticed.
fn lease(text: &str) -> Result<std::time::Duration, String> {
    use std::time::Duration;
    let lease = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; expected a time with its unit, such as 10s"))?;
    if (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&lease) {
        Ok(lease)
    } else {
        Err("expected between 1s and 10m".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_lease_has_a_unit_and_a_sensible_length() {
        assert_eq!(lease("10s"), Ok(std::time::Duration::from_secs(10)));
        assert!(lease("10").unwrap_err().contains("such as 10s"));
        assert!(lease("10ms").is_err() && lease("1h").is_err());
    }
}
