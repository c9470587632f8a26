//! `inrush demo`: a whole run that needs nothing else.
//!
//! The target waits 20 ms before each answer. So the demo takes the same few seconds on every machine, leaves it mostly
//! idle, and the reader knows beforehand what the response time must come out as.

use std::{process::Stdio, time::Duration};

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use inrush_common::{report::Report, units::Count};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{
    args::DemoArgs,
    console::Console,
    deliver::deliver,
    error::CliError,
    interrupts::Interrupts,
    plan::PlanFile,
    run::{LocalRun, progress_style},
};
use crate::{
    exit::ExitStatus,
    local::{Fleet, LocalError, Process, ProcessSpec},
    target::Stats,
};

const REQUESTS: u64 = 20_000;
const CONNECTIONS: u64 = 100;
const DELAY_MS: u64 = 20;
const AGENTS: usize = 2;
/// For the target to say where it listens, and for its counters.
const TARGET_WITHIN: Duration = Duration::from_secs(10);

/// Runs the demo.
///
/// # Errors
/// When a part of it fails, or the target has counted other requests than the report.
pub(super) async fn demo(
    args: &DemoArgs,
    verbosity: u8,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let sinks = args.reports.prepare()?;
    let mut interrupts = Interrupts::catch()?;
    let mut target = start_target(verbosity)?;
    let result = async {
        let address = tokio::select! {
            address = address_of(&mut target) => address?,
            () = interrupts.next() => {
                return Err(CliError::Cancelled("cancelled before the run began".to_owned()));
            }
        };
        let report = run_against(&address, verbosity, &mut interrupts, console).await?;
        let counted = counters(&address).await?;
        Ok((report, counted))
    }
    .await;
    target.stop().await;
    let (report, counted) = result?;
    let status = deliver(&report, sinks, console)?;
    console.say(&cross_check(&report, counted)?);
    console.say(
        "\nNext: inrush init writes a plan to start from, inrush run plan.toml runs it, inrush --help lists the rest.",
    );
    Ok(status)
}

fn start_target(verbosity: u8) -> Result<Process, LocalError> {
    Process::start(ProcessSpec {
        name: "target".to_owned(),
        args: ["target", "--listen", "127.0.0.1:0", "--exit-with-parent"].map(Into::into).into(),
        stdout: Stdio::piped(),
        pass_stderr: verbosity > 0,
    })
}

/// What the target says on its one line of stdout: `http://ADDRESS`.
async fn address_of(target: &mut Process) -> Result<String, CliError> {
    let stdout = target.take_stdout().expect("stdout is piped and was not taken");
    let mut line = String::new();
    let mut stdout = BufReader::new(stdout);
    match timeout(TARGET_WITHIN, stdout.read_line(&mut line)).await {
        Ok(Ok(read)) if read > 0 => {}
        Ok(_) => {
            let evidence = target.ended().await;
            let last_words = target.last_words().await;
            return Err(
                LocalError::Ended { name: "target".to_owned(), evidence, last_words }.into()
            );
        }
        Err(_) => return Err(late("the target did not say where it listens")),
    }
    line.trim().strip_prefix("http://").map(str::to_owned).ok_or_else(|| {
        CliError::Internal(format!("the target said {line:?} in place of its address"))
    })
}

async fn run_against(
    address: &str,
    verbosity: u8,
    interrupts: &mut Interrupts,
    console: &mut Console<'_>,
) -> Result<Report, CliError> {
    let source = format!(
        "name = \"demo\"\nurl = \"http://{address}/delay/{DELAY_MS}\"\n\n[load.closed]\nconnections = \
         {CONNECTIONS}\nrequests = {REQUESTS}\n"
    );
    console.say(&format!(
        "inrush demo: {AGENTS} agents send {} requests over {CONNECTIONS} connections to a target of our own at \
         {address},\nwhich waits {DELAY_MS} ms before each answer. The plan:\n",
        Count(REQUESTS)
    ));
    for line in source.lines() {
        console.say(format!("    {line}").trim_end());
    }
    console.say("");
    let local = LocalRun {
        plan: PlanFile::of_text("demo", source)?,
        fleet: Fleet { workers: 1, sources: vec![Vec::new(); AGENTS] },
        data_dir: None,
        style: progress_style(console, false, verbosity),
        verbosity,
    };
    local.report(interrupts, console).await
}

/// Asks the target what it has counted.
async fn counters(address: &str) -> Result<Stats, CliError> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::internal("the target does not say what it counted", error)
    };
    let asking = async {
        let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        let request = Request::get("/__stats")
            .header(http::header::HOST, address)
            .body(Empty::<bytes::Bytes>::new())
            .map_err(|error| failed(&error))?;
        // What ends the connection is seen by the answer, too.
        let driver = tokio::spawn(connection);
        let body = async { sender.send_request(request).await?.into_body().collect().await }.await;
        driver.abort();
        let body = body.map_err(|error| failed(&error))?.to_bytes();
        serde_json::from_slice(&body).map_err(|error| failed(&error))
    };
    timeout(TARGET_WITHIN, asking)
        .await
        .unwrap_or_else(|_| Err(late("the target did not say what it counted")))
}

/// The report against the target's own books.
fn cross_check(report: &Report, counted: Stats) -> Result<String, CliError> {
    let started = report.ledger.started;
    // A run that was stopped leaves requests on the wire that the target never got to see.
    let unsure = report.ledger.in_flight_at_end + report.ledger.failed;
    if counted.requests == started {
        Ok(format!(
            "Cross-check: the target counted {} requests over {} connections itself; the report says the same.",
            Count(counted.requests),
            counted.connections
        ))
    } else if counted.requests <= started && counted.requests + unsure >= started {
        Ok(format!(
            "Cross-check: the target counted {} requests itself, of {} started; {} did not come to a good \
             end.",
            Count(counted.requests),
            Count(started),
            Count(unsure)
        ))
    } else {
        Err(CliError::Internal(format!(
            "the target counted {} requests, but the report says {}: this should not be possible, please report it",
            Count(counted.requests),
            Count(started)
        )))
    }
}

fn late(what: &str) -> CliError {
    CliError::Internal(format!("{what} within {} s", TARGET_WITHIN.as_secs()))
}
