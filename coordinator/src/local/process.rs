//! One child process of this same program, which never outlives us.
//!
//! Its stdin is a pipe that we hold open and never write to; the child ends when it closes, and it closes however we
//! end, also by SIGKILL. It has a process group of its own, so that a terminal's Ctrl-C reaches us alone and we decide
//! what becomes of the run.

use std::{
    collections::VecDeque,
    env,
    ffi::OsString,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use super::LocalError;

/// For a child to end after it was asked to.
const END_WITHIN: Duration = Duration::from_secs(3);
/// For the rest of a child's stderr after its end. A grandchild could hold it open.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);
/// Lines kept of a child's stderr; older ones are forgotten.
const KEPT_LINES: usize = 20;
/// Longer lines are broken.
const LINE_BYTES: u64 = 1_000;

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec {
    /// What people call it.
    pub name: String,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where its stdout goes.
    pub stdout: Stdio,
    /// Whether its stderr goes on to ours; the last lines are kept in any case.
    pub pass_stderr: bool,
}

/// A running child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Apart from the child, since `Child::wait` would close it and with it end the child.
    stdin: Option<ChildStdin>,
    stderr: JoinHandle<VecDeque<String>>,
}

impl Process {
    /// Starts this same program with other arguments.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn start(spec: ProcessSpec) -> Result<Self, LocalError> {
        let ProcessSpec { name, args, stdout, pass_stderr } = spec;
        let started = env::current_exe().and_then(|program| {
            Command::new(program)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(stdout)
                .stderr(Stdio::piped())
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
        });
        let mut child = started.map_err(|error| LocalError::Spawn { name: name.clone(), error })?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().expect("stderr is piped");
        let prefix = pass_stderr.then(|| name.clone());
        let stderr = tokio::spawn(keep_last_lines(stderr, prefix));
        Ok(Self { name, child, stdin, stderr })
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its stdout, where that is piped; the first time only.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end, which nobody asked for. May be dropped and called again.
    ///
    /// Returns how it ended, in words.
    pub async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => evidence(status),
            Err(error) => format!("its process cannot be waited for ({error})"),
        }
    }

    /// What it said last, on lines of their own; empty if nothing. For a child that has ended.
    pub async fn last_words(&mut self) -> String {
        match timeout(LAST_WORDS_WITHIN, &mut self.stderr).await {
            Ok(Ok(lines)) => lines.iter().map(|line| format!("\n  {line}")).collect(),
            _ => String::new(),
        }
    }

    /// Ends it: asks, waits, then kills. Afterwards there is no such process.
    pub async fn stop(mut self) {
        drop(self.stdin.take());
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            tracing::debug!("{} could not be told to end: {error}", self.name);
        }
        if timeout(END_WITHIN, self.child.wait()).await.is_err() {
            tracing::warn!(
                "{} did not end within {} s and is killed",
                self.name,
                END_WITHIN.as_secs()
            );
            if let Err(error) = self.child.kill().await {
                tracing::warn!("{} cannot be killed: {error}", self.name);
            }
        }
    }
}

/// How a process ended, in words.
fn evidence(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process ended by signal {signal}"),
        (None, Some(code)) => format!("its process ended with exit code {code}"),
        (None, None) => "its process ended".to_owned(),
    }
}

/// Reads to the end, keeps the last lines, and passes all of them on under a name if there is one.
async fn keep_last_lines(
    stream: impl AsyncRead + Unpin,
    prefix: Option<String>,
) -> VecDeque<String> {
    let mut reader = BufReader::new(stream);
    let mut lines = VecDeque::with_capacity(KEPT_LINES);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return lines,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        if let Some(prefix) = &prefix {
            writeln!(std::io::stderr(), "{prefix}: {text}").ok();
        }
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_of_a_talkative_child_are_kept() {
        let text: String = (0..100).map(|number| format!("line {number}\n")).collect();
        let lines = keep_last_lines(text.as_bytes(), None).await;
        assert_eq!(lines.len(), KEPT_LINES);
        assert_eq!(lines.back().unwrap(), "line 99");
    }

    #[tokio::test]
    async fn a_line_without_an_end_does_not_grow_for_ever() {
        let text = "x".repeat(1_000_000);
        let lines = keep_last_lines(text.as_bytes(), None).await;
        assert!(lines.iter().all(|line| line.len() == 1_000), "{}", lines.len());
    }

    #[test]
    fn the_evidence_names_the_signal_or_the_code() {
        assert_eq!(evidence(ExitStatus::from_raw(9)), "its process ended by signal 9");
        assert_eq!(evidence(ExitStatus::from_raw(7 << 8)), "its process ended with exit code 7");
    }
}
