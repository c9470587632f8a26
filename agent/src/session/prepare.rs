//! Making an assignment ready: limits, addresses, first connection, engine.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    time::Duration,
};

use inrush_common::{churn::Churn, plan::Workload, units::Nanos};
use inrush_proto::v1;
use tokio::time::timeout;

use super::{owned::Owned, state::Fault};
use crate::{
    bounds::Bounds,
    capacity::{Limits, Needs},
    engine::{Engine, Job, connect_first},
    resolve::{Place, add_new, reachable_from, resolve},
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
    /// What the operator allows.
    pub bounds: Bounds,
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
    pub fault: Fault,
    /// In words.
    pub detail: String,
}

fn unprepared(fault: Fault, detail: impl ToString) -> Unprepared {
    Unprepared { fault, detail: detail.to_string() }
}

/// Prepares `assign` within the time it gives.
///
/// # Errors
/// With the first thing that does not work.
pub(super) async fn prepare(assign: v1::Assign, means: Means) -> Result<Prepared, Unprepared> {
    let internal = |detail: String| unprepared(Fault::Internal, detail);
    let wire = assign.workload.ok_or_else(|| internal("the assignment has no workload".into()))?;
    let workload = Workload::try_from(wire)
        .map_err(|error| internal(format!("the assignment's workload is bad: {error}")))?;
    let within = match assign.ready_within_ns {
        0 => READY_WITHIN,
        nanos => Duration::from_nanos(nanos),
    };
    let places = Place::all_of(&workload)
        .map_err(|error| internal(format!("the assignment's workload is bad: {error}")))?;
    match timeout(within, reach(workload, &places, &means)).await {
        Ok(prepared) => prepared,
        Err(_) => {
            let within = Nanos::from(within);
            let places: Vec<String> = places.iter().map(Place::to_string).collect();
            let places = places.join(", ");
            let detail =
                format!("no connection to {places} within {within}, the time to get ready");
            Err(unprepared(Fault::TargetUnreachable, detail))
        }
    }
}

async fn reach(
    workload: Workload,
    places: &[Place],
    means: &Means,
) -> Result<Prepared, Unprepared> {
    let unreachable = |error| unprepared(Fault::TargetUnreachable, error);
    let forbidden = |error| unprepared(Fault::Forbidden, error);
    means.bounds.permit_rate(&workload).map_err(forbidden)?;
    let mut found = Vec::new();
    for place in places {
        let addresses = resolve(place, RESOLVE_WITHIN).await.map_err(unreachable)?;
        means.bounds.permit(&place.host, &addresses).map_err(forbidden)?;
        add_new(&mut found, addresses);
    }
    let addresses = reachable_from(places, found, &means.sources).map_err(unreachable)?;
    build(workload, addresses, means).await
}

/// Makes the first connection to one of `addresses`, and the engine.
async fn build(
    workload: Workload,
    mut addresses: Vec<SocketAddr>,
    means: &Means,
) -> Result<Prepared, Unprepared> {
    let connections = workload.peak_connections();
    let idle = connections == 0 || workload.planned_requests() == Some(0);
    check(&workload, &addresses, means)?;
    // With nothing to send, the target does not hear of this agent.
    let mut first_connection = None;
    if !idle {
        let first =
            connect_first(&workload, &addresses, &means.sources).await.map_err(|error| {
                let ours = error.class.is_generator_fault();
                unprepared(if ours { Fault::Capacity } else { Fault::TargetUnreachable }, error)
            })?;
        // Where a name has addresses of both families, a server often listens on one only, and every other
        // connection would fail.
        addresses.retain(|address| address.is_ipv4() == first.address().is_ipv4());
        check(&workload, &addresses, means)?;
        first_connection = Some(first);
    }
    let grace = workload.grace;
    let job = Job {
        workload,
        addresses,
        sources: means.sources.clone(),
        workers: means.workers,
        first_connection,
        bounds: means.bounds.clone(),
    };
    let engine = Engine::spawn(job).map_err(|error| {
        unprepared(Fault::Internal, format!("cannot start {} workers: {error}", means.workers))
    })?;
    Ok(Prepared { engine: Owned::new(engine), grace })
}

/// Whether this machine has what the workload needs for connections to these addresses.
fn check(workload: &Workload, addresses: &[SocketAddr], means: &Means) -> Result<(), Unprepared> {
    // Ports are counted by address and port of the target.
    let targets: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let needs = Needs {
        connections: workload.peak_connections(),
        churn: Churn::of(workload),
        targets: &targets,
        sources: &means.sources,
    };
    means.limits.check(needs).map_err(|error| unprepared(Fault::Capacity, error))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use inrush_common::{
        outcome::ErrorClass,
        plan::{ClosedLoad, ConnectionPolicy, Expect, Load, Phase, Request, ThinkTime},
        schedule::{ConnectionProfile, Interleave},
        stats::Stats,
    };
    use inrush_testkit::{LONG, Response, Target};

    use super::*;
    use crate::clock;

    /// Every request on a connection of its own.
    fn workload(requests: u64) -> Workload {
        Workload {
            requests: vec![Request {
                name: "it".to_owned(),
                method: http::Method::GET,
                url: http::Uri::from_static("http://localhost/"),
                headers: vec![],
                body: bytes::Bytes::new(),
                expect: Expect::default(),
            }],
            phases: vec![Phase {
                name: Phase::ONLY.to_owned(),
                measure: true,
                starts_at: Duration::ZERO,
                load: Load::Closed(ClosedLoad {
                    profile: ConnectionProfile::constant(4, 0).unwrap(),
                    lanes: Interleave::whole(requests.min(4)),
                    requests: Some(requests),
                    duration: None,
                    think_time: ThinkTime::None,
                }),
            }],
            timeout: LONG,
            connect_timeout: LONG,
            grace: LONG,
            give_up_after: LONG,
            connections: ConnectionPolicy::default(),
            seed: 0,
        }
    }

    #[tokio::test]
    async fn a_family_on_which_nobody_answers_gets_no_request() {
        let target = Target::always(Response::hello().header("Connection", "close"));
        let port = target.addr().port();
        let silent = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let answers = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let workers = NonZeroUsize::new(2).unwrap();
        let means = Means {
            workers,
            sources: vec![],
            limits: Limits::read(workers, &[], None),
            bounds: Bounds::default(),
        };
        for addresses in [vec![silent, answers], vec![answers, silent]] {
            let mut engine = build(workload(40), addresses, &means).await.unwrap().engine;
            engine.start(clock::now());
            let mut stats = Stats::default();
            while let Some(interval) = timeout(LONG, engine.next()).await.unwrap() {
                stats.add_interval(&interval.stats);
            }
            let total = stats.total();
            assert_eq!((total.succeeded, total.failed), (40, 0), "{:?}", total.examples);
            assert_eq!(total.errors[ErrorClass::ConnectRefused as usize], 0);
            assert_eq!(stats.connections.failed, 0);
        }
        let nobody = build(workload(1), vec![silent], &means).await.unwrap_err();
        assert!(nobody.detail.contains(&silent.to_string()), "{nobody:?}");
    }
}
