//! Watches a run's stop rules beside the driver. Decoding and adding up the snapshots of a thousand agents takes longer than
//! the driver may be away from its deadlines, so it is done on a thread of its own.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use inrush_common::{
    id::{AgentName, RunId},
    plan::Plan,
    wire::decode_snapshot,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::run::{Broken, Window};

/// What waits for the watchdog: some seconds of a thousand agents, some KB each. When full, what comes is left out, and the
/// window begins anew: it never stops a run for numbers that it did not see.
const TOLD: usize = 4_096;

/// The driver's end. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Watchdog {
    told: mpsc::Sender<Told>,
    missed: Arc<AtomicBool>,
    broken: oneshot::Receiver<Broken>,
}

enum Told {
    /// A snapshot, as it is stored.
    Snapshot(Bytes),
    /// An agent is lost.
    Lost(AgentName),
}

impl Watchdog {
    /// Begins to watch a run of `plan` by `agents`; `None` where the plan has no stop rules.
    pub(super) fn start(
        run: &RunId,
        plan: &Plan,
        agents: impl IntoIterator<Item = AgentName>,
        tasks: &TaskTracker,
    ) -> Option<Self> {
        let window = Window::new(plan, agents)?;
        let (told, inbox) = mpsc::channel(TOLD);
        let (verdict, broken) = oneshot::channel();
        let missed = Arc::new(AtomicBool::new(false));
        let (run, seen) = (run.clone(), Arc::clone(&missed));
        tasks.spawn_blocking(move || {
            if let Some(broken) = watch(&run, window, inbox, &seen)
                && verdict.send(broken).is_err()
            {
                tracing::debug!(%run, "a stop rule was broken after the end of its run");
            }
        });
        Some(Self { told, missed, broken })
    }

    /// A snapshot of the run was stored.
    pub(super) fn snapshot(&self, encoded: Bytes) {
        self.tell(Told::Snapshot(encoded));
    }

    /// The run lost an agent.
    pub(super) fn lost(&self, agent: AgentName) {
        self.tell(Told::Lost(agent));
    }

    fn tell(&self, told: Told) {
        match self.told.try_send(told) {
            // A rule is broken already.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.missed.store(true, Ordering::Release),
        }
    }

    /// The rule that is broken, once.
    pub(super) fn broken(&mut self) -> Option<Broken> {
        self.broken.try_recv().ok()
    }
}

/// Until a rule is broken, or nobody tells anything any more.
fn watch(
    run: &RunId,
    mut window: Window,
    mut inbox: mpsc::Receiver<Told>,
    missed: &AtomicBool,
) -> Option<Broken> {
    while let Some(told) = inbox.blocking_recv() {
        if missed.swap(false, Ordering::AcqRel) {
            tracing::warn!(%run, "snapshots come faster than the stop rules are judged: their windows begin anew");
            window.restart();
        }
        let broken = match told {
            Told::Snapshot(encoded) => match decode_snapshot(&encoded) {
                Ok(snapshot) => window.add(&snapshot),
                Err(error) => {
                    tracing::error!(%run, %error, "a snapshot cannot be read back");
                    window.restart();
                    None
                }
            },
            Told::Lost(agent) => window.lose(&agent),
        };
        if broken.is_some() {
            return broken;
        }
    }
    None
}
