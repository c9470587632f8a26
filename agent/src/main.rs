//! `inrush-agent`: the agent alone, for machines that need nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use inrush_agent::cli::{self, AgentArgs};

/// Makes load for an Inrush coordinator.
#[derive(Debug, clap::Parser)]
#[command(name = "inrush-agent", version)]
struct Args {
    #[command(flatten)]
    agent: AgentArgs,
}

fn main() -> ExitCode {
    cli::run(Args::parse().agent)
}
