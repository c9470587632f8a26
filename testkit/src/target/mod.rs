//! A scripted, counting HTTP/1.1 server for tests, on its own thread.

mod connection;
mod counts;
mod request;
mod script;

use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket},
    runtime::{Builder, Handle},
    sync::{Semaphore, watch},
};

pub use counts::{Counts, NotSeen};
pub use request::Received;
pub use script::{Response, Script, Step};

use connection::Connection;
use counts::Counters;

/// A deadline for events that come at once when the code is right: long enough for a busy machine.
pub const LONG: Duration = Duration::from_secs(20);

/// How a target is set up; `Options::default()` suits most tests.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// How many connections the kernel may hold that have not been accepted yet.
    pub backlog: u32,
    /// How many requests are kept for [`Target::requests`]; later ones are counted and dropped.
    pub keep: usize,
    /// Whether a step's bytes wait until the client has acknowledged the last one's (Nagle's algorithm).
    pub nagle: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), backlog: 4096, keep: 1_000, nagle: false }
    }
}

/// What the listener is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listening {
    /// Connections are accepted.
    Accepting,
    /// The listener is open and nobody accepts: connects succeed until the backlog is full.
    Deaf,
    /// The listener is gone: connects are refused.
    Closed,
}

/// What the handle and the server's tasks share.
struct Shared {
    counters: Counters,
    script: Box<dyn Script>,
    keep: usize,
    nagle: bool,
    /// At most `keep` requests.
    kept: Mutex<Vec<Received>>,
    /// One permit lets one [`Step::Pause`] pass; closed, it lets all pass.
    gate: Semaphore,
    listening: watch::Sender<Listening>,
}

/// A running server. Dropping it stops it and closes its connections.
///
/// It has a runtime and a thread of its own, so it works in plain and in async tests, and goes on
/// while the test blocks.
pub struct Target {
    addr: SocketAddr,
    shared: Arc<Shared>,
    runtime: Handle,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Target {
    /// Starts a server on loopback that does what `script` says.
    ///
    /// A closure from [`Received`] to steps is a script; see [`Script`] for the other hooks.
    pub fn start(script: impl Script) -> Self {
        Self::with(Options::default(), script)
    }

    /// Starts a server with other options.
    pub fn with(options: Options, script: impl Script) -> Self {
        raise_file_limit();
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            script: Box::new(script),
            keep: options.keep,
            nagle: options.nagle,
            kept: Mutex::new(Vec::new()),
            gate: Semaphore::new(0),
            listening: watch::Sender::new(Listening::Accepting),
        });
        let (stop, stopped) = watch::channel(());
        let (started, start) = mpsc::sync_channel(1);
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("test-target".into())
            .spawn(move || run(options, &served, stopped, &started))
            .expect("the target's thread starts");
        let (addr, runtime) = start
            .recv()
            .expect("the target's thread says how its start went")
            .unwrap_or_else(|error| panic!("the target cannot listen: {error}"));
        Self { addr, shared, runtime, stop: Some(stop), thread: Some(thread) }
    }

    /// Answers every request with 200 and the 13 bytes `Hello, world!`.
    pub fn hello() -> Self {
        Self::always(Response::hello())
    }

    /// Answers every request with one status and an empty body.
    pub fn status(code: u16) -> Self {
        Self::always(Response::new(code))
    }

    /// Answers every request with one response.
    pub fn always(response: Response) -> Self {
        let step = Step::Respond(response);
        Self::start(move |_: &Received| vec![step.clone()])
    }

    /// Says hello, `delay` after each request.
    pub fn delay(delay: Duration) -> Self {
        let hello = Step::hello();
        Self::start(move |_: &Received| vec![Step::Delay(delay), hello.clone()])
    }

    /// Says hello `k` times on each connection, then closes it without having said that it would.
    pub fn closing_after(k: u64) -> Self {
        let hello = Step::hello();
        Self::start(move |request: &Received| {
            let mut steps = vec![hello.clone()];
            if request.index + 1 >= k {
                steps.push(Step::Close);
            }
            steps
        })
    }

    /// Reads requests and never answers.
    pub fn silent() -> Self {
        Self::start(|_: &Received| vec![Step::Hold])
    }

    /// Says hello to each request once [`release`](Self::release) lets it.
    pub fn gated() -> Self {
        let hello = Step::hello();
        Self::start(move |_: &Received| vec![Step::Pause, hello.clone()])
    }

    /// Writes the same raw bytes for each request and closes the connection.
    pub fn raw(bytes: &'static [u8]) -> Self {
        Self::start(move |_: &Received| vec![Step::write(bytes), Step::Close])
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a path on it; `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The counters at this moment.
    pub fn counts(&self) -> Counts {
        self.shared.counters.read()
    }

    /// The first requests seen, in order of arrival: as many as [`Options::keep`] says.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets `n` pauses pass, now or when they come.
    pub fn release(&self, n: usize) {
        self.shared.gate.add_permits(n);
    }

    /// Lets every pause pass from now on.
    pub fn release_all(&self) {
        self.shared.gate.close();
    }

    /// Leaves the listener open and accepts nobody: connects succeed until the backlog is full.
    pub fn stop_accepting(&self) {
        self.shared.listening.send_replace(Listening::Deaf);
    }

    /// Accepts again after [`stop_accepting`](Self::stop_accepting).
    pub fn accept_again(&self) {
        self.shared.listening.send_if_modified(|now| {
            let deaf = *now == Listening::Deaf;
            if deaf {
                *now = Listening::Accepting;
            }
            deaf
        });
    }

    /// Closes the listener: connects are refused. Open connections go on. Returns at once;
    /// [`Counts::listening`] tells when it is done.
    pub fn refuse(&self) {
        self.shared.listening.send_replace(Listening::Closed);
    }

    /// Listens again at the same address after [`refuse`](Self::refuse), as a restarted server does. Returns at once;
    /// [`Counts::listening`] tells when it is done.
    pub fn listen_again(&self) {
        self.shared.listening.send_replace(Listening::Accepting);
    }

    /// Blocks until the counters satisfy `wanted`, and gives them back.
    ///
    /// # Errors
    /// [`NotSeen`] with the last counters when that has not happened `within` the time given.
    pub fn wait_until(
        &self,
        within: Duration,
        wanted: impl Fn(&Counts) -> bool,
    ) -> Result<Counts, NotSeen> {
        self.shared.counters.wait(within, wanted)
    }

    /// Waits, in an async test, until the counters satisfy `wanted`, and gives them back.
    ///
    /// The deadline is real time, also under tokio's paused clock.
    ///
    /// # Errors
    /// [`NotSeen`] with the last counters when that has not happened `within` the time given.
    pub fn until(
        &self,
        within: Duration,
        wanted: impl Fn(&Counts) -> bool + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Counts, NotSeen>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        let waiting =
            self.runtime.spawn(async move { shared.counters.wait_async(within, wanted).await });
        async { waiting.await.expect("the target outlives those who wait on it") }
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("addr", &self.addr).field("counts", &self.counts()).finish()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic over there has been printed; a second one here would hide the test's own.
            drop(thread.join());
        }
    }
}

type Started = io::Result<(SocketAddr, Handle)>;

/// The thread: everything ends when `stopped`'s sender is dropped.
fn run(
    options: Options,
    shared: &Arc<Shared>,
    mut stopped: watch::Receiver<()>,
    started: &mpsc::SyncSender<Started>,
) {
    let listening = Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let _entered = runtime.enter();
        let listener = listen(options.listen, options.backlog)?;
        let addr = listener.local_addr()?;
        Ok((runtime, listener, addr))
    });
    match listening {
        Ok((runtime, listener, addr)) => {
            shared.counters.listening(true);
            if started.send(Ok((addr, runtime.handle().clone()))).is_ok() {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept_all(listener, addr, options.backlog, shared) => {}
                        _ = stopped.changed() => {}
                    }
                });
            }
        }
        Err(error) => drop(started.send(Err(error))),
    }
}

fn listen(addr: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(backlog)
}

/// Accepts while the listener's state says so; never returns.
async fn accept_all(listener: TcpListener, addr: SocketAddr, backlog: u32, shared: &Arc<Shared>) {
    let mut listening = shared.listening.subscribe();
    let mut listener = Some(listener);
    let mut index = 0;
    loop {
        let state = *listening.borrow_and_update();
        if state == Listening::Closed && listener.take().is_some() {
            shared.counters.listening(false);
        }
        if state == Listening::Accepting && listener.is_none() {
            listener = Some(listen(addr, backlog).expect("the target's own port is free again"));
            shared.counters.listening(true);
        }
        let accepted = async {
            match &listener {
                Some(listener) if state == Listening::Accepting => listener.accept().await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = listening.changed() => changed.expect("the state's sender is in `shared`"),
            accepted = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = Connection::new(stream, index, Arc::clone(shared));
                    index += 1;
                    tokio::spawn(connection.serve());
                }
                // Out of files, or the peer has gone already: neither is the end of a server.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            },
        }
    }
}

/// Target and client of a test often sit in one process and share its limit.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused, the limit stays as it is, and a test that needs more says so by itself.
    setrlimit(Resource::Nofile, limit).ok();
}
