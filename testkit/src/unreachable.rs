//! Addresses at which nothing can be reached, held for as long as a test needs them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

/// An address that refuses every connect, and that nobody else can take meanwhile.
#[derive(Debug)]
pub struct Refusing {
    addr: SocketAddr,
    /// Bound, so the port is taken; not listening, so a connect is answered with a reset.
    _socket: Socket,
}

impl Refusing {
    /// Takes a loopback port.
    pub fn start() -> Self {
        let (socket, addr) = bound();
        Self { addr, _socket: socket }
    }

    /// The address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// An address at which a connect neither succeeds nor fails: its queue is full, and the kernel
/// drops what else knocks.
#[derive(Debug)]
pub struct Deaf {
    addr: SocketAddr,
    _listener: Socket,
    /// The connection that fills the queue.
    _first: TcpStream,
}

impl Deaf {
    /// Takes a loopback port and fills its queue.
    pub fn start() -> Self {
        let (listener, addr) = bound();
        // Linux queues one connection more than the backlog says.
        listener.listen(0).expect("a bound socket can listen");
        let first = TcpStream::connect(addr).expect("the queue has room for one");
        Self { addr, _listener: listener, _first: first }
    }

    /// The address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be opened");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port is free");
    let addr = socket.local_addr().ok().and_then(|addr| addr.as_socket());
    (socket, addr.expect("a bound socket has an address"))
}
