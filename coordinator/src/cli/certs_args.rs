//! The arguments of `inrush certs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use inrush_common::{address::DEFAULT_COORDINATOR, id::AgentName, join::Role};

use super::args::CoordinatorArgs;

const CERTS_EXAMPLES: &str = "\
Examples:
  inrush certs init --data-dir /var/lib/inrush                 on the coordinator's machine, once
  inrush certs token --name lab1 --data-dir /var/lib/inrush    … a token for an agent
  inrush agent --join token.txt --coordinator 127.0.0.1:7070   … on the agent's machine
  inrush certs token --role user --name ada --data-dir /var/lib/inrush
  inrush certs join token.txt --coordinator 127.0.0.1:7070     … as that user
  inrush certs list --data-dir /var/lib/inrush
  inrush certs revoke lab1 --data-dir /var/lib/inrush";

/// `inrush certs`
#[derive(Debug, Subcommand)]
#[command(after_help = CERTS_EXAMPLES)]
pub(super) enum CertsCommand {
    /// Make a CA in a data directory: `inrush serve` speaks TLS then. Prints its fingerprint.
    Init(CertsDirArgs),
    /// Make a token that lets one agent or user join, once. Prints it.
    Token(CertsTokenArgs),
    /// List the certificates that were issued.
    List(CertsDirArgs),
    /// Revoke all certificates of a name.
    Revoke(CertsRevokeArgs),
    /// Join a coordinator as a user: submit, watch and the others find the certificate.
    Join(CertsJoinArgs),
}

/// `inrush certs init` and `list`
#[derive(Debug, Args)]
pub(super) struct CertsDirArgs {
    /// The coordinator's data directory [default: that of `inrush serve`]
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
}

/// Where tokens are made.
#[derive(Debug, Args)]
pub(super) struct CertsAtArgs {
    /// The coordinator's data directory [default: that of `inrush serve`]
    #[arg(long, value_name = "D")]
    pub data_dir: Option<PathBuf>,
    /// Ask a running coordinator instead, with this user's certificate: for agents only.
    #[arg(long, value_name = "A", conflicts_with = "data_dir")]
    pub coordinator: Option<String>,
    /// Where this user's certificates are [default: $XDG_STATE_HOME/inrush, ~/.local/state/inrush or ./inrush-data]
    #[arg(long, value_name = "D", env = "INRUSH_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
}

impl CertsAtArgs {
    /// The coordinator that is to be asked.
    pub(super) fn to_coordinator(&self) -> CoordinatorArgs {
        CoordinatorArgs {
            coordinator: self.coordinator.clone().unwrap_or_else(|| DEFAULT_COORDINATOR.to_owned()),
            state_dir: self.state_dir.clone(),
        }
    }
}

/// `inrush certs token`
#[derive(Debug, Args)]
pub(super) struct CertsTokenArgs {
    /// What it lets its holder be: agent or user.
    #[arg(long, value_name = "ROLE", default_value = "agent")]
    pub role: Role,
    /// The only name it is good for [default: the holder chooses one that is free]
    #[arg(long, value_name = "N")]
    pub name: Option<AgentName>,
    /// How long it is good.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = super::certs::expiry)]
    pub expires: std::time::Duration,
    /// Where it is made.
    #[command(flatten)]
    pub at: CertsAtArgs,
}

/// `inrush certs revoke`
#[derive(Debug, Args)]
pub(super) struct CertsRevokeArgs {
    /// Whose certificates.
    #[arg(value_name = "NAME")]
    pub name: AgentName,
    /// Where they are.
    #[command(flatten)]
    pub dir: CertsDirArgs,
}

/// `inrush certs join`
#[derive(Debug, Args)]
pub(super) struct CertsJoinArgs {
    /// A token for a user, a file with one, or "-": from stdin.
    #[arg(value_name = "TOKEN|FILE", env = "INRUSH_JOIN_TOKEN", hide_env_values = true)]
    pub token: String,
    /// The name to have [default: the token's, or $USER]
    #[arg(long, value_name = "N")]
    pub name: Option<AgentName>,
    /// Where the coordinator is.
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
}
