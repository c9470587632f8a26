//! The door: accepts connections, speaks TLS where there is a CA, and cuts those that come to nothing.
//!
//! Everything before the first call that is allowed has one deadline, and happens in a task of its own: a client that is
//! slow, silent or does not speak TLS keeps nobody waiting but itself.

use std::{
    future::Future,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout_at},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use super::{
    farewell::turn_away,
    lobby::{Lobby, Visit},
    peer::{Peer, Who},
};
use crate::{
    certs::{CertsError, Standings},
    clock,
};

/// For TLS and the first call that is allowed.
const FIRST_CALL_WITHIN: Duration = Duration::from_secs(10);

/// Connections through the handshake that the server has not taken yet. When full, those behind them wait.
const TAKEN_SOON: usize = 64;

/// When no connection can be accepted (no file is left), the next attempt comes after so long.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// From the revocation of a certificate to the end of its connections: time to say why.
const CUT_AFTER: Duration = Duration::from_millis(300);

/// Refused strangers are in the log once in so long.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

/// The first byte of TLS: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// How connections are secured.
#[derive(Debug, Clone)]
pub(super) enum Lock {
    /// Not at all.
    None,
    /// With TLS.
    Tls(Arc<ServerConfig>, Standings),
}

impl Lock {
    pub(super) fn new(standings: Option<&Standings>) -> Result<Self, CertsError> {
        match standings {
            None => Ok(Self::None),
            Some(standings) => {
                let config = standings.authority().server_config(clock::wall())?;
                Ok(Self::Tls(Arc::new(config), standings.clone()))
            }
        }
    }
}

/// Accepts connections until `stop`; gives those that may call.
pub(super) fn open(
    listener: TcpListener,
    lock: Lock,
    stop: CancellationToken,
) -> ReceiverStream<io::Result<Connection>> {
    let (to, connections) = mpsc::channel(TAKEN_SOON);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = accept(&listener, &lock, &to) => {}
        }
    });
    ReceiverStream::new(connections)
}

async fn accept(listener: &TcpListener, lock: &Lock, to: &mpsc::Sender<io::Result<Connection>>) {
    let lobby = Lobby::new();
    let complaints = Complaints::default();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let visit = Arc::new(lobby.enter(address.ip()));
                let welcomed = welcome(stream, address, lock.clone(), visit, to.clone());
                let complaints = complaints.clone();
                tokio::spawn(async move {
                    if let Err(why) = welcomed.await {
                        complaints.say(address, &why);
                    }
                });
            }
            Err(error) => {
                tracing::warn!("a connection cannot be accepted: {error}");
                sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

/// From TCP to a connection that may call.
async fn welcome(
    stream: TcpStream,
    address: SocketAddr,
    lock: Lock,
    visit: Arc<Visit>,
    to: mpsc::Sender<io::Result<Connection>>,
) -> Result<(), String> {
    let until = clock::now() + FIRST_CALL_WITHIN;
    let opened = tokio::select! {
        () = visit.crowded_out.cancelled() => return Err("it made room for a newer one".to_owned()),
        opened = timeout_at(until.into(), unlock(stream, &lock)) => opened,
    };
    let (io, who) = opened.map_err(|_| "it did not get through TLS in time".to_owned())??;
    let connection = Connection::new(io, Peer::new(address, who, visit), until);
    // The server is ending when it takes no more.
    drop(to.send(Ok(connection)).await);
    Ok(())
}

async fn unlock(stream: TcpStream, lock: &Lock) -> Result<(Io, Who), String> {
    let broken = |error: io::Error| error.to_string();
    stream.set_nodelay(true).map_err(broken)?;
    let Lock::Tls(config, standings) = lock else {
        return Ok((Io::Plain(stream), Who::Anybody));
    };
    let mut first = [0];
    if stream.peek(&mut first).await.map_err(broken)? == 0 {
        return Err("it said nothing".to_owned());
    }
    if first[0] != TLS_HANDSHAKE {
        return Err(turn_away(stream).await);
    }
    let stream = TlsAcceptor::from(Arc::clone(config)).accept(stream).await.map_err(broken)?;
    let shown = stream.get_ref().1.peer_certificates().and_then(|shown| shown.first());
    let who = match shown {
        None => Who::Stranger,
        Some(certificate) => match standings.of(certificate).await {
            Ok(Ok(standing)) => Who::Known(Arc::new(standing)),
            Ok(Err(words)) => Who::Refused(words.into()),
            Err(error) => return Err(error.to_string()),
        },
    };
    Ok((Io::Tls(Box::new(stream)), who))
}

/// Strangers in the log: one in a while, with the number of those before it.
#[derive(Debug, Clone, Default)]
struct Complaints(Arc<Mutex<(Option<Instant>, u64)>>);

impl Complaints {
    fn say(&self, address: SocketAddr, why: &str) {
        let now = clock::now();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (said_at, more) = &mut *last;
        if said_at.is_some_and(|at| now.saturating_duration_since(at) < COMPLAIN_EVERY) {
            *more += 1;
            return;
        }
        tracing::warn!(peer = %address, more = *more, "a connection came to nothing: {why}");
        *last = (Some(now), 0);
    }
}

#[derive(Debug)]
enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection as the gRPC server gets it. Its own watch cuts it.
pub(super) struct Connection {
    io: Io,
    peer: Peer,
    /// Ends when the connection is to be cut, with the reason.
    watch: Pin<Box<dyn Future<Output = &'static str> + Send>>,
    cut: Option<&'static str>,
}

impl Connection {
    fn new(io: Io, peer: Peer, until: Instant) -> Self {
        let watch = Box::pin(watch(peer.clone(), until));
        Self { io, peer, watch, cut: None }
    }

    /// Whether it goes on.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.is_none()
            && let Poll::Ready(why) = self.watch.as_mut().poll(cx)
        {
            tracing::debug!(peer = %self.peer.address, "a connection is cut: {why}");
            self.cut = Some(why);
        }
        self.cut.map_or(Ok(()), |why| Err(io::Error::new(io::ErrorKind::ConnectionAborted, why)))
    }
}

async fn watch(peer: Peer, until: Instant) -> &'static str {
    tokio::select! {
        biased;
        () = peer.visit.seated.cancelled() => {}
        () = peer.visit.crowded_out.cancelled() => return "it made room for a newer one",
        () = tokio::time::sleep_until(until.into()) => return "it made no call that is allowed in time",
    }
    let Who::Known(standing) = &peer.who else { return std::future::pending().await };
    tokio::select! {
        () = standing.revoked.cancelled() => {
            sleep(CUT_AFTER).await;
            "its certificate was revoked"
        }
        // Its owner has renewed it by now, and comes back with the new one.
        () = sleep(standing.good_for) => "its certificate has expired",
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

macro_rules! of_io {
    ($self:ident, $cx:ident, $call:ident $(, $argument:expr)*) => {{
        let this = $self.get_mut();
        this.check($cx)?;
        match &mut this.io {
            Io::Plain(io) => Pin::new(io).$call($cx $(, $argument)*),
            Io::Tls(io) => Pin::new(io.as_mut()).$call($cx $(, $argument)*),
        }
    }};
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of_io!(self, cx, poll_read, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        of_io!(self, cx, poll_write, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_io!(self, cx, poll_write_vectored, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(io) => io.is_write_vectored(),
            Io::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_io!(self, cx, poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_io!(self, cx, poll_shutdown)
    }
}
