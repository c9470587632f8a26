//! One attempt to connect.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll, ready},
};

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

/// A connection being made. A plain state, not a future with a name nobody can write down.
#[derive(Debug)]
pub(crate) struct Connecting {
    stream: TcpStream,
}

impl Connecting {
    /// Sends the first packet. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// What the kernel refuses at once: no file, no port, no route, and on loopback often a closed port.
    pub(crate) fn begin(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // Head and body of a request may leave in two writes: the second must not wait for an acknowledgement.
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            // The port is chosen at the connect, so that ports are counted per target and not per source.
            setsockopt(&socket, IpBindAddressNoPort, &true)?;
            socket
                .bind(&SocketAddr::new(source, 0).into())
                .map_err(|error| no_source(source, error))?;
        }
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { stream: TcpStream::from_std(socket.into())? })
    }

    /// Ready when the connection stands or the attempt failed.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream.poll_write_ready(cx))?;
        Poll::Ready(self.result())
    }

    /// How the attempt has ended, once it has.
    pub(crate) fn result(&self) -> io::Result<()> {
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The connection, once [`poll`](Self::poll) said it stands.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// Without a port to reserve, a bind can fail only for the address. Under its own code it would look like ports run out.
fn no_source(source: IpAddr, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            io::Error::other(format!("source address {source} is not one of this machine's"))
        }
        _ => error,
    }
}

/// Whether a failed attempt had made the connection, and the target then reset it: what refuses an attempt has another
/// code.
pub(crate) fn was_made(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}

/// A connect error in words, lower case.
pub(crate) fn describe(error: &io::Error) -> String {
    let words = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::CONNREFUSED) => "connection refused",
        Some(Errno::TIMEDOUT) => "connection attempt timed out",
        Some(Errno::HOSTUNREACH) => "no route to the host",
        Some(Errno::NETUNREACH) => "network unreachable",
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => "no local port left",
        Some(Errno::MFILE | Errno::NFILE) => "too many open files",
        Some(Errno::CONNRESET) => "connection reset during the attempt",
        _ => return error.to_string(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_sends_at_once_and_comes_from_its_source() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = "127.0.0.9".parse().unwrap();
        let address = listener.local_addr().unwrap();
        let connecting = Connecting::begin(address, Some(source)).unwrap();
        std::future::poll_fn(|cx| connecting.poll(cx)).await.unwrap();
        let stream = connecting.into_stream();
        assert!(stream.nodelay().unwrap(), "the second write of a request waits for nobody");
        let (_, peer) = listener.accept().unwrap();
        assert_eq!((peer.ip(), peer.port()), (source, stream.local_addr().unwrap().port()));
    }
}
