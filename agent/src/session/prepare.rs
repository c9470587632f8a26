//! Making an assignment ready: limits, addresses, first connection, engine.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    time::Duration,
};

use inrush_common::{
    plan::{Load, Workload},
    units::Nanos,
};
use inrush_proto::v1::{self, not_ready::Kind};
use tokio::time::timeout;

use super::owned::Owned;
use crate::{
    capacity::{self, Limits},
    engine::{Engine, Job, connect_first},
    resolve::{reachable_from, resolve},
};

/// A resolver that needs longer is broken; waiting for it would only hide that.
const RESOLVE_WITHIN: Duration = Duration::from_secs(10);

/// For an assignment that sets no time.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// What of this agent matters to an assignment.
#[derive(Debug, Clone)]
pub struct Means {
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// Source addresses; empty: the system picks.
    pub sources: Vec<IpAddr>,
    /// Limits of machine and operator.
    pub limits: Limits,
}

/// An engine that waits for its start.
#[derive(Debug)]
pub(super) struct Prepared {
    /// It.
    pub engine: Owned,
    /// How long it may drain after a stop.
    pub grace: Duration,
}

/// Why an assignment cannot be executed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unprepared {
    /// Whose fault.
    pub kind: Kind,
    /// In words.
    pub detail: String,
}

fn unprepared(kind: Kind, detail: impl ToString) -> Unprepared {
    Unprepared { kind, detail: detail.to_string() }
}

/// Prepares `assign` within the time it gives.
///
/// # Errors
/// With the first thing that does not work.
pub(super) async fn prepare(assign: v1::Assign, means: Means) -> Result<Prepared, Unprepared> {
    let internal = |detail: String| unprepared(Kind::Internal, detail);
    let wire = assign.workload.ok_or_else(|| internal("the assignment has no workload".into()))?;
    let workload = Workload::try_from(wire)
        .map_err(|error| internal(format!("the assignment's workload is bad: {error}")))?;
    let within = match assign.ready_within_ns {
        0 => READY_WITHIN,
        nanos => Duration::from_nanos(nanos),
    };
    let Some(request) = workload.requests.first() else {
        return Err(internal("the assignment's workload has no request".into()));
    };
    let url = request.url.clone();
    match timeout(within, reach(workload, &means)).await {
        Ok(prepared) => prepared,
        Err(_) => {
            let within = Nanos::from(within);
            let detail = format!("no connection to {url} within {within}, the time to get ready");
            Err(unprepared(Kind::TargetUnreachable, detail))
        }
    }
}

async fn reach(workload: Workload, means: &Means) -> Result<Prepared, Unprepared> {
    let unreachable = |error| unprepared(Kind::TargetUnreachable, error);
    let Load::Closed(load) = &workload.load;
    let connections = load.connections;
    let idle = connections == 0 || load.requests == Some(0);
    let url = &workload.requests[0].url;
    let found = resolve(url, RESOLVE_WITHIN).await.map_err(unreachable)?;
    let mut addresses = reachable_from(url, found, &means.sources).map_err(unreachable)?;
    check(connections, &addresses, means)?;
    // With nothing to send, the target does not hear of this agent.
    let mut first_connection = None;
    if !idle {
        let first =
            connect_first(&workload, &addresses, &means.sources).await.map_err(|error| {
                let ours = error.class.is_generator_fault();
                unprepared(if ours { Kind::Capacity } else { Kind::TargetUnreachable }, error)
            })?;
        // Where a name has addresses of both families, a server often listens on one only, and every other
        // connection would fail.
        addresses.retain(|address| address.is_ipv4() == first.address().is_ipv4());
        check(connections, &addresses, means)?;
        first_connection = Some(first);
    }
    let grace = workload.grace;
    let job = Job {
        workload,
        addresses,
        sources: means.sources.clone(),
        workers: means.workers,
        first_connection,
    };
    let engine = Engine::spawn(job).map_err(|error| {
        unprepared(Kind::Internal, format!("cannot start {} workers: {error}", means.workers))
    })?;
    Ok(Prepared { engine: Owned::new(engine), grace })
}

/// Whether so many connections can be had to these addresses.
fn check(connections: u64, addresses: &[SocketAddr], means: &Means) -> Result<(), Unprepared> {
    let targets: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let paths = capacity::paths(&means.sources, &targets);
    let unfit = |error| unprepared(Kind::Capacity, error);
    means.limits.check(connections, paths).map_err(unfit)
}
