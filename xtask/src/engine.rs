//! The agent's engine alone, without an agent around it: what the instruction budget is counted on.

use std::{collections::BTreeMap, net::SocketAddr, num::NonZeroUsize};

use inrush_agent::{
    clock,
    engine::{Engine, Job},
};
use inrush_common::plan;

use crate::Failed;

/// Sends so many requests over so many connections, with one worker.
///
/// # Errors
/// When not every one of them succeeds.
pub(crate) fn run(address: SocketAddr, connections: u64, requests: u64) -> Result<(), Failed> {
    let source = format!(
        "url = \"http://{address}/\"\n[load.closed]\nconnections = {connections}\nrequests = {requests}\n"
    );
    let loaded = plan::load("budget", &source, &BTreeMap::new())
        .map_err(|problems| Failed::new(format!("the plan is refused: {problems:?}")))?;
    let job = Job {
        workload: loaded.plan.workload,
        addresses: vec![address],
        sources: Vec::new(),
        workers: NonZeroUsize::MIN,
        first_connection: None,
        bounds: inrush_agent::bounds::Bounds::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Failed::new(format!("no runtime: {error}")))?;
    let mut engine =
        Engine::spawn(job).map_err(|error| Failed::new(format!("no engine: {error}")))?;
    engine.start(clock::now());
    let mut succeeded = 0;
    runtime.block_on(async {
        while let Some(interval) = engine.next().await {
            succeeded += interval.stats.total().succeeded;
        }
    });
    if succeeded == requests {
        Ok(())
    } else {
        Err(Failed::new(format!("{succeeded} of {requests} requests succeeded")))
    }
}
