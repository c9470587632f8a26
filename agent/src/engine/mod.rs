//! The engine: worker threads that make load and record what happens.
//!
//! A worker owns its connections, its share of the requests and its accounts, and shares nothing that a request would
//! touch. Once a second it hands its accounts over through a bounded queue; [`Engine::next`] adds the workers' parts up.

mod alarms;
mod budget;
mod closed;
mod collector;
mod command;
mod connecting;
mod gaps;
mod idle;
mod job;
mod lanes;
mod lookup;
mod open;
mod opening;
mod pace;
mod pacer;
mod phase;
mod phases;
mod reach;
mod ready;
mod requesting;
mod route;
mod share;
mod slots;
mod traffic;
mod worker;

use std::{io, sync::Arc, thread::JoinHandle, time::Instant};

use inrush_common::{
    outcome::NotStarted,
    plan::{Load, Resolve, Workload},
    schedule::{self, ArrivalKind, Arrivals, ArrivalsError},
};
use tokio::sync::watch;

use self::{
    collector::Collector,
    command::Command,
    lookup::Lookups,
    pace::Pace,
    reach::Reach,
    share::Share,
    worker::{Assigned, Shared},
};
use crate::resolve::Place;

pub(crate) use self::idle::MOST_LINGERING;
pub use self::{
    collector::EngineInterval,
    command::StopMode,
    job::{ConnectFailed, FirstConnection, Job, connect_first},
};

/// The load of one run, made by threads of its own. Dropping it aborts the load and waits for the threads.
#[derive(Debug)]
pub struct Engine {
    command: watch::Sender<Command>,
    began: watch::Receiver<Option<Instant>>,
    collector: Collector,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Starts the worker threads, which wait for [`start`](Self::start).
    ///
    /// # Errors
    /// When the system gives no thread or no file for a runtime.
    pub fn spawn(job: Job) -> io::Result<Self> {
        if job.workload.requests.is_empty() || job.addresses.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a job needs at least one request and one target address",
            ));
        }
        check(&job.workload).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let shares = Share::split(&job.workload, job.workers.get());
        let (command, commands) = watch::channel(Command::default());
        let (began, beginning) = watch::channel(None);
        let policy = &job.workload.connections;
        let lookups = match policy.resolve {
            Resolve::Once => None,
            Resolve::PerConnection => Lookups::of(places(&job.workload)?, job.bounds)?,
        };
        let pace = policy.connect_rate.map(|rate| Arc::new(Pace::new(rate)));
        let shared = Arc::new(Shared {
            lookups,
            pace,
            workload: job.workload,
            addresses: job.addresses,
            sources: job.sources,
            reach: Reach::default(),
            failed: false.into(),
            began,
        });
        let mut links = Vec::with_capacity(shares.len());
        let mut threads = Vec::with_capacity(shares.len());
        let mut first = job.first_connection;
        for share in shares {
            let (reporter, link) = collector::link();
            let assigned = Assigned {
                share,
                shared: Arc::clone(&shared),
                commands: commands.clone(),
                reporter,
                first: first.take(),
            };
            links.push(link);
            threads.push(assigned.spawn()?);
        }
        let collector =
            Collector::new(links, (shared.workload.phases.len(), shared.workload.requests.len()));
        Ok(Self { command, began: beginning, collector, threads })
    }

    /// Says when the run starts. Only the first call counts.
    pub fn start(&self, at: Instant) {
        self.command.send_if_modified(|command| command.start(at));
    }

    /// When the first worker really began, as read from the clock by itself; `None` until then, and for ever when the
    /// load was stopped before its start.
    pub fn began(&self) -> watch::Receiver<Option<Instant>> {
        self.began.clone()
    }

    /// Stops the load; what has not begun is accounted for with `reason`. Before the start, that is everything.
    /// [`StopMode::Abort`] after [`StopMode::Drain`] ends the waiting; the first reason stays.
    pub fn stop(&self, mode: StopMode, reason: NotStarted) {
        self.command.send_if_modified(|command| command.stop(mode, reason));
    }

    /// The next interval of the run, one per second; the last has a `completion`, and after it comes `None`.
    ///
    /// Cancel safe. Needs a runtime with a timer.
    pub async fn next(&mut self) -> Option<EngineInterval> {
        self.collector.next().await
    }
}

fn places(workload: &Workload) -> io::Result<Vec<Place>> {
    Place::all_of(workload).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// What a worker would stumble over.
fn check(workload: &Workload) -> Result<(), ArrivalsError> {
    for phase in &workload.phases {
        if let Load::Open(open) = &phase.load {
            let profile = Arc::new(open.profile.clone());
            let slots = open.slots.clone();
            Arrivals::new(profile, ArrivalKind::Uniform, slots, schedule::Worker::ALONE)?;
        }
    }
    Ok(())
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop(StopMode::Abort, NotStarted::Aborted);
        for thread in self.threads.drain(..) {
            // A worker catches its own panic and reports it.
            drop(thread.join());
        }
    }
}
