//! `cargo xtask`: measures what Inrush costs.
//!
//! `bench` sets it beside other load generators, `budget` counts its instructions. Both start all they need and end it.

mod bench;
mod budget;
mod clients;
mod cost;
mod engine;
mod machine;
mod memory;
mod nginx;

use std::{
    fmt,
    io::{self, Write as _},
    net::SocketAddr,
    process::ExitCode,
};

use clap::Parser as _;

/// Measures what Inrush costs.
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// CPU per request, beside wrk, h2load and oha where they are installed, against nginx.
    Bench(bench::Args),
    /// Resident memory per open connection, beside the same.
    Memory(memory::Args),
    /// Instructions per request in the agent's engine; fails above what is allowed.
    Budget,
    /// What the budget counts: the engine alone.
    #[command(hide = true)]
    Engine { address: SocketAddr, connections: u64, requests: u64 },
}

/// Why a task did not do what it should, in words.
#[derive(Debug)]
pub(crate) struct Failed(String);

impl Failed {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Puts what was being tried before an error.
pub(crate) fn trying(what: &str) -> impl Fn(io::Error) -> Failed {
    move |error| Failed(format!("{what}: {error}"))
}

fn main() -> ExitCode {
    let out = &mut io::stdout();
    let done = match Task::parse() {
        Task::Bench(args) => bench::run(&args, out),
        Task::Memory(args) => memory::run(&args, out),
        Task::Budget => budget::run(out),
        Task::Engine { address, connections, requests } => {
            engine::run(address, connections, requests)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when stderr is gone.
            drop(writeln!(io::stderr(), "xtask: {error}"));
            ExitCode::FAILURE
        }
    }
}
