//! The bundled HTTP target: something to send load to, with counters of its own.
//!
//! | path | answers |
//! | --- | --- |
//! | `/` | 200, the 13 bytes `Hello, world!` |
//! | `/bytes/N` | 200, N bytes, up to 1 GiB |
//! | `/delay/MS` | 200 `Hello, world!`, MS milliseconds later, up to 60 000 |
//! | `/status/CODE` | that status, 200 to 599 |
//! | `/echo` | 200, the request's body and content type, up to 8 MiB |
//! | `GET /__stats` | the counters as JSON; see [`Stats`] |
//! | `POST /__stats` | the counters as they were, and sets them to zero |
//!
//! A request body is always read to its end before the answer, and every method is served alike. It
//! speaks HTTP/1.1, keeps connections alive and never times out an idle one: a load test may open
//! its connections long before it uses them.

mod answer;
mod body;
mod counters;
mod route;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use counters::Stats;

use counters::{Counted, Counters, Seat};

/// How long answers in progress may take once the target is told to stop.
pub const GRACE: Duration = Duration::from_secs(2);

/// Connections that may wait to be accepted. The kernel cuts it to `net.core.somaxconn`.
const BACKLOG: u32 = 65_535;

/// How long accepting rests when the process or the system has run out of something.
const ACCEPT_REST: Duration = Duration::from_millis(20);

/// Opens the target's listener, with a backlog that a surge of connections fits into, and raises this
/// process's soft file limit to the hard one: each connection is an open file.
///
/// # Errors
/// What the system says to the bind, for instance that the address is in use.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    inrush_agent::capacity::raise_file_limit();
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown`, then gives the answers in progress [`GRACE`] to finish.
///
/// It runs on the caller's runtime, with a task for each connection.
///
/// # Errors
/// The listener itself broke. Running out of files is no error: accepting rests and goes on.
pub async fn serve(listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    let counters = Arc::new(Counters::default());
    let connections = TaskTracker::new();
    let accepting = accept_all(&listener, &counters, &shutdown, &connections);
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        broken = accepting => Err(broken),
    };
    drop(listener);
    // Each connection ends by itself within the grace, also when it was the listener that broke.
    shutdown.cancel();
    connections.close();
    connections.wait().await;
    result
}

/// Accepts until the listener breaks.
async fn accept_all(
    listener: &TcpListener,
    counters: &Arc<Counters>,
    shutdown: &CancellationToken,
    connections: &TaskTracker,
) -> io::Error {
    let mut resting = false;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                resting = false;
                let seat = Arc::new(Seat::new(Arc::clone(counters)));
                connections.spawn(serve_connection(stream, seat, shutdown.clone()));
            }
            Err(error) => match severity(&error) {
                Severity::Peer => {}
                Severity::Exhausted => {
                    if !resting {
                        tracing::warn!(%error, "the target cannot accept for now; it goes on trying");
                    }
                    resting = true;
                    tokio::time::sleep(ACCEPT_REST).await;
                }
                Severity::Listener => return error,
            },
        }
    }
}

/// Whose trouble a failed accept is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// The connection was gone before it was accepted.
    Peer,
    /// Out of files or memory, which passes.
    Exhausted,
    /// The listener is of no use any more.
    Listener,
}

fn severity(error: &io::Error) -> Severity {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Severity::Exhausted,
        Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::FAULT) => Severity::Listener,
        // On Linux accept also hands over network errors of the new connection.
        _ => Severity::Peer,
    }
}

async fn serve_connection(stream: TcpStream, seat: Arc<Seat>, shutdown: CancellationToken) {
    // An answer's last segment must not wait for an acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let io = TokioIo::new(Counted::new(stream, Arc::clone(&seat)));
    let service = service_fn(move |request| answer::answer(request, Arc::clone(&seat)));
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .pipeline_flush(true)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, connection.as_mut()).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        // A client may break off whenever it likes.
        tracing::debug!(%error, "a connection ended early");
    }
}
