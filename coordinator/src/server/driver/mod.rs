//! The driver: the one task that knows all agents and runs, and reacts to one event at a time.
//!
//! It waits for nothing but its queue and the clock, for the store to take what is written, and, for a bounded time, for
//! the shares of a run to be on disk. What becomes of a run is decided by [`run::Run`](crate::run::Run); here it is
//! carried out.

mod agents;
mod entry;
mod runs;
mod watchdog;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use inrush_common::id::RunId;
use inrush_proto::v1;
use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Config, event::Event};
use crate::{registry::Registry, store::Store};
use entry::Entry;

/// Most agents connected.
const MOST_AGENTS: usize = 2_000;

/// Most runs waiting for their turn.
const MOST_QUEUED: usize = 100;

/// How often watchers hear of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The longest that time is not looked at; with a short lease it is looked at more often.
const LONGEST_TICK: Duration = Duration::from_millis(50);

pub(super) struct Driver {
    config: Config,
    address: SocketAddr,
    store: Store,
    tasks: TaskTracker,
    registry: Registry,
    /// The first one may be under way, the others wait.
    runs: VecDeque<Entry>,
    /// Runs whose report is being derived: their watchers wait for it.
    finishing: Vec<(RunId, watch::Receiver<v1::RunUpdate>)>,
    /// When leases were last looked at.
    looked_at: Instant,
}

impl Driver {
    pub(super) fn new(
        config: Config,
        address: SocketAddr,
        store: Store,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            config,
            address,
            store,
            tasks,
            registry: Registry::new(MOST_AGENTS),
            runs: VecDeque::new(),
            finishing: Vec::new(),
            looked_at: crate::clock::now(),
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Event>, stop: CancellationToken) {
        let mut tick =
            interval(LONGEST_TICK.min(self.config.lease / 10).max(Duration::from_millis(1)));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut progress = interval(PROGRESS_EVERY);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // In this order: a queue that never gets empty must not put off the deadlines. A lease does not depend on
                // what waits in it, for sessions note themselves when they hear of an agent.
                biased;
                () = stop.cancelled() => break,
                _ = tick.tick() => self.tick().await,
                Some(event) = inbox.recv() => self.react(event).await,
                _ = progress.tick() => self.publish_progress(),
            }
        }
        self.stop().await;
    }

    async fn react(&mut self, event: Event) {
        match event {
            Event::Hello { hello, reply } => {
                let taken = self.hello(*hello).await;
                answer(reply, taken);
            }
            Event::Disconnected { agent, link } => self.registry.disconnect(&agent, link),
            Event::Ready { agent, run } => self.ready(agent, run).await,
            Event::NotReady { agent, run, kind, detail } => {
                self.not_ready(agent, run, kind, detail).await;
            }
            Event::Started { agent, run, at_ns } => self.started(agent, run, at_ns).await,
            Event::Stored { digest, written } => self.stored(&digest, written).await,
            Event::ProcessEnded { agent, evidence, done } => {
                self.lose(&agent, Duration::ZERO, evidence).await;
                answer(done, ());
            }
            Event::Check { plan, reply } => answer(reply, self.would_take(&plan)),
            Event::Submit { run, plan, reply } => {
                let queued = self.queue(run, *plan);
                answer(reply, queued);
                self.start_next().await;
            }
            Event::Watch { run, reply } => answer(reply, self.watch(&run)),
            Event::Cancel { run, mode, reply } => {
                let state = self.cancel(&run, mode).await;
                answer(reply, state);
            }
            Event::Agents { reply } => {
                answer(reply, self.registry.list(crate::clock::monotonic_ns()));
            }
        }
    }
}

/// Whoever asked may have gone away meanwhile.
fn answer<T>(reply: tokio::sync::oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}

#[cfg(test)]
mod tests;
