//! Processes under test, and what `/proc` says of them.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
    sync::Notify,
    task::JoinHandle,
    time::{interval, timeout},
};

/// Nothing here takes nearly so long, also on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// What a process has printed so far on one stream.
#[derive(Clone, Default)]
struct Printed {
    lines: Arc<Mutex<Vec<String>>>,
    more: Arc<Notify>,
}

impl Printed {
    fn text(&self) -> String {
        self.lines.lock().unwrap().iter().map(|line| format!("{line}\n")).collect()
    }

    fn line_with(&self, words: &str) -> Option<String> {
        self.lines.lock().unwrap().iter().find(|line| line.contains(words)).cloned()
    }
}

/// A process that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Asserts that stderr says something.
    #[track_caller]
    pub(crate) fn saying(self, words: &str) -> Self {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat(&self.err).contains(words), "no {words:?} in: {}", self.err);
        self
    }
}

/// A running `inrush`. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    pid: i32,
    out: Printed,
    err: Printed,
    readers: Vec<JoinHandle<()>>,
}

/// The built binary, for settings that [`start`] has not.
pub(crate) fn command(args: &[impl AsRef<OsStr>], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inrush"));
    command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("INRUSH_COORDINATOR")
        .env_remove("INRUSH_JOIN_TOKEN")
        .env_remove("INRUSH_STATE_DIR")
        // No certificate of whoever runs the tests plays a part.
        .env("XDG_STATE_HOME", folder)
        .env_remove("RUST_LOG")
        .kill_on_drop(true);
    command
}

/// Starts `inrush` with these arguments in this folder.
pub(crate) fn start(args: &[impl AsRef<OsStr>], folder: &Path) -> Running {
    spawn(&mut command(args, folder))
}

/// Runs `inrush` to its end.
pub(crate) async fn inrush(args: &[impl AsRef<OsStr>], folder: &Path) -> Ended {
    start(args, folder).ended().await
}

/// Starts a prepared command.
pub(crate) fn spawn(command: &mut Command) -> Running {
    let mut child = command.spawn().unwrap();
    let pid = child.id().unwrap().try_into().unwrap();
    let (out, err) = (Printed::default(), Printed::default());
    let mut readers = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        readers.push(tokio::spawn(read(stdout, out.clone())));
    }
    if let Some(stderr) = child.stderr.take() {
        readers.push(tokio::spawn(read(stderr, err.clone())));
    }
    Running { child, pid, out, err, readers }
}

async fn read(stream: impl AsyncRead + Unpin, printed: Printed) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        printed.lines.lock().unwrap().push(line);
        printed.more.notify_one();
    }
    printed.more.notify_one();
}

impl Running {
    /// Waits for a line on stderr and returns it.
    pub(crate) async fn says(&self, words: &str) -> String {
        self.line(&self.err, words).await
    }

    /// Waits for a line on stdout and returns it.
    pub(crate) async fn prints(&self, words: &str) -> String {
        self.line(&self.out, words).await
    }

    async fn line(&self, printed: &Printed, words: &str) -> String {
        let look = async {
            loop {
                let more = printed.more.notified();
                if let Some(line) = printed.line_with(words) {
                    return line;
                }
                more.await;
            }
        };
        let found = timeout(SOON, look).await;
        found.unwrap_or_else(|_| {
            panic!("no {words:?} in\nstdout: {}\nstderr: {}", self.out.text(), self.err.text())
        })
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> Ended {
        let status = timeout(SOON, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| {
            panic!("still running\nstdout: {}\nstderr: {}", self.out.text(), self.err.text())
        });
        for reader in &mut self.readers {
            timeout(SOON, reader).await.expect("its streams are closed").unwrap();
        }
        Ended { status: status.unwrap(), out: self.out.text(), err: self.err.text() }
    }

    /// What it has said on stderr so far.
    #[allow(dead_code, reason = "only the tests of security ask")]
    pub(crate) fn said(&self) -> String {
        self.err.text()
    }

    #[allow(dead_code, reason = "only the tests of security ask")]
    pub(crate) const fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid, signal);
    }

    /// Its child processes: pid and command line.
    pub(crate) fn children(&self) -> Vec<(i32, String)> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| parent(*pid) == Some(self.pid))
            .map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                (pid, String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// State and parent of a process; `None` when there is no such process.
fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

fn parent(pid: i32) -> Option<i32> {
    stat(pid).filter(|(state, _)| *state != 'Z').map(|(_, parent)| parent)
}

/// Waits until a process is gone. A zombie that nobody fetches is gone.
pub(crate) async fn gone(pid: i32) {
    let mut looks = interval(Duration::from_millis(10));
    let gone = async {
        while stat(pid).is_some_and(|(state, _)| state != 'Z') {
            looks.tick().await;
        }
    };
    timeout(SOON, gone).await.unwrap_or_else(|_| panic!("process {pid} is still there"));
}
