//! Instructions per request of the engine's worker, counted by valgrind: the same on a busy machine as on a quiet one.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use inrush_testkit::Target;

use crate::{Failed, cost, trying};

/// A request may take so many instructions of its worker, from one turn to the next, hyper and the tokio driver
/// included, kernel not. The margin is 3 %. Whoever makes a request cheaper lowers it; whoever makes one dearer says why: phases
/// and lanes cost 650.
const BUDGET: u64 = 12_500;

const CONNECTIONS: u64 = 64;

/// What is there once, however many requests are sent, is in both counts and falls out of their difference.
const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

/// # Errors
/// When a request is dearer than it may be, or valgrind is not there.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Failed> {
    let target = Target::hello();
    let folder = tempfile::tempdir().map_err(trying("a folder for valgrind"))?;
    let few = worker_instructions(target.addr(), FEW, folder.path())?;
    let many = worker_instructions(target.addr(), MANY, folder.path())?;
    let per_request = many.saturating_sub(few) / (MANY - FEW);
    writeln!(out, "{per_request} instructions per request; the budget is {BUDGET}")
        .map_err(trying("stdout"))?;
    if per_request == 0 || per_request > BUDGET {
        return Err(Failed::new(format!(
            "a request takes {per_request} instructions, and may take 1 to {BUDGET} (xtask/src/budget.rs)"
        )));
    }
    Ok(())
}

/// Instructions of the one worker in a run of so many requests.
fn worker_instructions(target: SocketAddr, requests: u64, folder: &Path) -> Result<u64, Failed> {
    let counts = folder.join(format!("counts-{requests}"));
    let own = std::env::current_exe().map_err(trying("this program's path"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--separate-threads=yes"]);
    command.arg(format!("--callgrind-out-file={}", counts.display()));
    command.arg(own).arg("engine").arg(target.to_string());
    command.args([CONNECTIONS.to_string(), requests.to_string()]).stdin(Stdio::null());
    let (output, _) = cost::run(&mut command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed::new(format!("valgrind: {}: {}", output.status, said.trim())));
    }
    // Thread 1 is the one that collects what thread 2, the worker, hands in.
    let worker = counts.with_file_name(format!("counts-{requests}-02"));
    let text = fs::read_to_string(&worker).map_err(trying("what valgrind counted"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals:"));
    total
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| Failed::new(format!("{} holds no total", worker.display())))
}
