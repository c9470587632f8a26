//! The `inrush` binary.

use std::{env, io, process::ExitCode};

fn main() -> ExitCode {
    inrush_coordinator::cli::run(env::args_os(), &mut io::stdout(), &mut io::stderr())
}
