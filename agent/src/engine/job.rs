//! What an engine is given to do, and the first connection to the target.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    time::Duration,
};

use inrush_common::{outcome::ErrorClass, plan::Workload};

use super::route::Route;
use crate::{
    bounds::Bounds,
    clock,
    http::{
        classify,
        connect::{self, Connecting},
    },
};

/// One agent's part of a run.
#[derive(Debug)]
pub struct Job {
    /// This agent's share.
    pub workload: Workload,
    /// The resolved target; never empty. Used in turn.
    pub addresses: Vec<SocketAddr>,
    /// Local addresses to connect from, in turn; empty: the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// Worker threads; fewer are used where there are fewer connections.
    pub workers: NonZeroUsize,
    /// From [`connect_first`]: becomes the first connection of the run, so that there is no hidden probe.
    pub first_connection: Option<FirstConnection>,
    /// What the operator allows: names that are looked up again may lead elsewhere than before.
    pub bounds: Bounds,
}

/// A connection made before the start.
#[derive(Debug)]
pub struct FirstConnection {
    pub(super) stream: std::net::TcpStream,
    pub(super) address: SocketAddr,
    pub(super) connect_ns: u64,
}

impl FirstConnection {
    /// The target's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The target cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConnectFailed {
    /// How.
    pub class: ErrorClass,
    /// Which address.
    pub address: SocketAddr,
    /// In words.
    pub text: String,
}

impl fmt::Display for ConnectFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.address, self.text, self.class)
    }
}

/// Opens the first connection, to find out before the start whether the target can be reached. The addresses are
/// tried in turn; each attempt is bounded by `connect_timeout`.
///
/// # Errors
/// The last attempt's error when none works.
pub async fn connect_first(
    workload: &Workload,
    addresses: &[SocketAddr],
    sources: &[IpAddr],
) -> Result<FirstConnection, ConnectFailed> {
    let mut route = Route::new(addresses, sources, 0);
    let mut result = attempt(&mut route, workload.connect_timeout).await;
    for _ in 1..addresses.len() {
        if result.is_ok() {
            break;
        }
        result = attempt(&mut route, workload.connect_timeout).await;
    }
    result
}

async fn attempt(route: &mut Route, limit: Duration) -> Result<FirstConnection, ConnectFailed> {
    let (address, source) = route.next();
    connect_to(address, source, limit).await.map_err(|error| {
        let class = classify::connect(&error);
        let text = match class {
            ErrorClass::ConnectTimeout => format!("no answer within {limit:?}"),
            _ => connect::describe(&error),
        };
        ConnectFailed { class, address, text }
    })
}

async fn connect_to(
    address: SocketAddr,
    source: Option<IpAddr>,
    limit: Duration,
) -> io::Result<FirstConnection> {
    let began = clock::now();
    let connecting = Connecting::begin(address, source)?;
    tokio::time::timeout(limit, std::future::poll_fn(|cx| connecting.poll(cx))).await??;
    let connect_ns = clock::nanos(clock::now().saturating_duration_since(began));
    Ok(FirstConnection { stream: connecting.into_stream().into_std()?, address, connect_ns })
}
