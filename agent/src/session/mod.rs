//! The session with the coordinator: takes work, starts and stops the engine, hands in results.
//!
//! One loop on the control thread waits for whatever comes next: a message, an interval of the engine, the end of
//! preparing, a timer, a signal. What follows from it is decided by `state`, a pure function; this module only carries
//! it out. The engine is never waited for, and does not notice when the stream breaks.

mod act;
mod backoff;
mod clock_sync;
mod link;
mod owned;
mod prepare;
mod pulse;
mod run;
mod state;
mod uplink;

use std::{
    collections::BTreeMap,
    future::pending,
    time::{Duration, Instant},
};

use inrush_common::{
    id::{AgentName, Epoch, RunId},
    stats::SHAPE,
};
use inrush_proto::{PROTOCOL_VERSION, v1};
use tokio::sync::mpsc;

pub use self::{link::Refused, prepare::Means};
use self::{
    link::{Link, LinkEvent},
    pulse::Pulse,
    run::{Run, Sources},
    state::{Event, State},
};
use crate::{clock, credentials::Way, engine::EngineInterval};

/// Beyond a run's grace: for the engine to end after a stop, and for the results to be handed in on leaving.
const MARGIN: Duration = inrush_common::deadlines::ENGINE_ENDS_WITHIN;

/// For the last messages when leaving.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Who this agent is, and what it has.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the coordinator listens, and who we are to it.
    pub coordinator: Way,
    /// Unique in the fleet.
    pub name: AgentName,
    /// This life of the process.
    pub epoch: Epoch,
    /// For people and for choosing agents.
    pub labels: BTreeMap<String, String>,
    /// For making load.
    pub means: Means,
}

/// Why an agent ends otherwise than asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The coordinator does not want it.
    #[error("{refused}{}", lost(.held))]
    Refused {
        /// Its words.
        refused: Refused,
        /// What is lost with it.
        held: Option<Held>,
    },
    /// It was to leave, and could not hand in its results in time.
    #[error("left before the coordinator had all results{}", lost(.held))]
    NotHandedIn {
        /// What is lost.
        held: Option<Held>,
    },
    /// It was told twice to leave.
    #[error("interrupted twice{}", lost(.held))]
    Interrupted {
        /// What is lost.
        held: Option<Held>,
    },
}

/// Results that were not handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Of this run.
    pub run: RunId,
    /// So many intervals.
    pub snapshots: usize,
}

fn lost(held: &Option<Held>) -> String {
    held.as_ref().map_or_else(String::new, |Held { run, snapshots }| {
        format!("; {snapshots} interval(s) of run {run} were not handed in and are lost")
    })
}

/// Serves the coordinator until an interrupt comes, or the coordinator refuses the agent. Each item of `interrupts` is
/// one signal: the first lets the run under way drain and its results be handed in, the second ends at once.
///
/// # Errors
/// When it ends otherwise than asked.
pub async fn run(config: Config, interrupts: mpsc::Receiver<()>) -> Result<(), SessionError> {
    Session::new(config).serve(interrupts).await
}

struct Session {
    config: Config,
    link: Link,
    state: State,
    pulse: Pulse,
    run: Run,
    /// When the present run was assigned.
    since: Instant,
    /// A start that came before the clocks were compared.
    early_start: Option<Event>,
    /// Set on leaving.
    leave_by: Option<Instant>,
    exit: bool,
}

/// What the loop was woken by.
enum Wake {
    Link(LinkEvent),
    Interval(Option<EngineInterval>),
    Began(Instant),
    Prepared(run::PreparingEnd),
    Interrupt(Option<()>),
    Timer,
}

impl Session {
    fn new(config: Config) -> Self {
        let now = clock::now();
        Self {
            link: Link::new(config.coordinator.clone()),
            run: Run::new(&config),
            config,
            state: State::default(),
            pulse: Pulse::new(now),
            since: now,
            early_start: None,
            leave_by: None,
            exit: false,
        }
    }

    async fn serve(mut self, mut interrupts: mpsc::Receiver<()>) -> Result<(), SessionError> {
        let mut interruptible = true;
        while !self.exit {
            match self.wake(&mut interrupts, interruptible).await {
                Wake::Link(LinkEvent::Refused(refused)) => {
                    return Err(SessionError::Refused { refused, held: self.run.held() });
                }
                Wake::Link(event) => self.on_link(event),
                Wake::Interval(interval) => self.on_interval(interval),
                Wake::Began(at) => self.run.began(at),
                Wake::Prepared(end) => {
                    let event = self.run.prepared(end);
                    self.step(event);
                }
                Wake::Interrupt(None) => interruptible = false,
                Wake::Interrupt(Some(())) if self.leave_by.is_none() => self.on_first_interrupt(),
                Wake::Interrupt(Some(())) => {
                    return Err(SessionError::Interrupted { held: self.run.held() });
                }
                Wake::Timer => self.on_timer()?,
            }
        }
        self.part().await;
        Ok(())
    }

    async fn wake(&mut self, interrupts: &mut mpsc::Receiver<()>, interruptible: bool) -> Wake {
        let deadline = self.next_deadline();
        let to_send = self.has_something_to_send();
        // Ready is only said once the clocks were compared: a start cannot be kept before.
        let synchronised = self.pulse.is_synchronised();
        let Self { config, link, state, run, .. } = self;
        let timer = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => pending().await,
            }
        };
        let Sources { engine, began, preparing } = run.sources();
        tokio::select! {
            event = link.event(|| hello(config, state), to_send) => Wake::Link(event),
            interval = run::next_interval(engine) => Wake::Interval(interval),
            at = run::beginning(began) => Wake::Began(at),
            end = run::end_of(preparing), if synchronised => Wake::Prepared(end),
            interrupt = interrupts.recv(), if interruptible => Wake::Interrupt(interrupt),
            () = timer => Wake::Timer,
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let up = self.link.is_up();
        let lease = self.state.needs_lease() || up;
        [
            self.pulse.heartbeat_at().filter(|_| up),
            self.pulse.lease_ends_at().filter(|_| lease),
            self.run.stop_by(),
            self.leave_by,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn on_timer(&mut self) -> Result<(), SessionError> {
        let now = clock::now();
        if self.link.is_up() {
            self.pulse.beat(now);
        }
        if self.pulse.lease_ends_at().is_some_and(|end| end <= now) {
            let silence = self.pulse.expire(now);
            self.step(Event::LeaseExpired);
            if self.link.is_up() {
                self.link.cut(&format!("nothing heard for {silence}"));
                self.on_lost();
            }
        }
        if self.run.stop_by().is_some_and(|by| by <= now) {
            self.step(Event::EngineStuck);
        }
        if self.leave_by.is_some_and(|by| by <= now) {
            return Err(SessionError::NotHandedIn { held: self.run.held() });
        }
        Ok(())
    }

    fn on_first_interrupt(&mut self) {
        match self.state.phase().run() {
            Some(run) => tracing::info!("leaving, once run {run} has ended and is handed in"),
            None => tracing::info!("leaving"),
        }
        self.leave_by = Some(clock::now() + self.run.grace() + MARGIN);
        self.step(Event::Leave);
    }

    /// The last messages, then an orderly end of the stream; all of it bounded.
    async fn part(mut self) {
        let last = async {
            while self.link.is_up() && self.run.has_control() {
                let event = self.link.event(|| hello(&self.config, &self.state), true).await;
                if !matches!(event, LinkEvent::Writable) {
                    continue;
                }
                if let Some(message) = self.run.next_control() {
                    self.send(message);
                }
            }
        };
        if tokio::time::timeout(CLOSE_WITHIN, last).await.is_ok() {
            self.link.close(CLOSE_WITHIN).await;
        }
    }
}

fn hello(config: &Config, state: &State) -> v1::Hello {
    v1::Hello {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: config.name.to_string(),
        epoch: config.epoch.0,
        labels: config.labels.clone(),
        capacity: Some(config.means.limits.offer().into()),
        histogram_shape: SHAPE.to_owned(),
        run: state.phase().run().map(RunId::to_string).unwrap_or_default(),
        host: Some(v1::Host { hostname: crate::identity::hostname() }),
    }
}
