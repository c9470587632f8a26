//! The command line: arguments in, one command run, an exit status out.

mod args;
mod certs;
mod certs_args;
mod check;
mod connect;
mod console;
mod deliver;
mod demo;
mod describe;
mod error;
mod explain;
mod follow;
mod interrupts;
mod listen;
mod lists;
mod logging;
mod plan;
mod report;
mod run;
mod serve;
mod sink;
mod submit;
mod table;
mod target;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::{Parser as _, error::ErrorKind};
use tracing::level_filters::LevelFilter;

use self::{
    args::{Cli, ColorWhen, Command},
    console::Console,
    error::CliError,
};
use crate::exit::ExitStatus;

/// Runs the command that `args` name (the program's own name first). Results go to `stdout`, all else to `stderr`.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> ExitCode {
    match Cli::try_parse_from(args) {
        Ok(cli) => dispatch(&cli, &mut Console::new(stdout, stderr, cli.color)),
        Err(error) => no_command(&error, &mut Console::new(stdout, stderr, ColorWhen::Auto)).into(),
    }
}

/// Help and version are results; everything else that clap says is a mistake in the command line.
fn no_command(error: &clap::Error, console: &mut Console<'_>) -> ExitStatus {
    let text = error.render();
    let shown = |color: bool| if color { text.ansi().to_string() } else { text.to_string() };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let shown = shown(console.color_out());
            finish(console.print(&shown).map(|()| ExitStatus::Passed), console)
        }
        _ => {
            let shown = shown(console.color_err());
            console.say(shown.trim_end());
            ExitStatus::Usage
        }
    }
}

fn dispatch(cli: &Cli, console: &mut Console<'_>) -> ExitCode {
    // What runs for days logs what happens; what a person waits for, only what is wrong.
    let base = match cli.command {
        Command::Serve(_) | Command::Agent(_) => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    };
    logging::start(base, cli.verbose, console.color_err());
    if let Command::Agent(args) = &cli.command {
        return inrush_agent::cli::run(args.clone());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("inrush")
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(command(cli, console));
            // A thread that waits for stdin or a name server must not keep us.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(CliError::internal("cannot start", error)),
    };
    finish(result, console).into()
}

async fn command(cli: &Cli, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    match &cli.command {
        Command::Demo(args) => demo::demo(args, cli.verbose, console).await,
        Command::Run(args) => run::run(args, cli.verbose, console).await,
        Command::Serve(args) => serve::serve(args, console).await,
        Command::Agent(_) => unreachable!("has a runtime of its own"),
        Command::Submit(args) => submit::submit(args, console).await,
        Command::Agents(args) => lists::agents(args, console).await,
        Command::Runs(args) => lists::runs(args, console).await,
        Command::Watch(args) => submit::watch(args, console).await,
        Command::Cancel(args) => submit::cancel(args, console).await,
        Command::Report(args) => report::report(args, console).await,
        Command::Check(args) => check::check(args, console),
        Command::Explain(args) => explain::explain(args, console).await,
        Command::Init(args) => check::init(args, console),
        Command::Certs(command) => certs::certs(command, console).await,
        Command::Target(args) => target::target(args, console).await,
    }
}

fn finish(result: Result<ExitStatus, CliError>, console: &mut Console<'_>) -> ExitStatus {
    match result {
        Ok(status) => status,
        Err(error) => {
            let status = error.status();
            match error {
                CliError::Plan(rendered) => console.say(rendered.trim_end()),
                CliError::Cancelled(words) => console.say(&words),
                other => console.say(&format!("inrush: {other}")),
            }
            status
        }
    }
}
