//! The counters and histograms of one stretch of time: recorded by a worker, added up by everybody after it.

use std::collections::BTreeMap;

use super::{AddressCounts, Histogram};
use crate::outcome::{ErrorClass, NotStarted, Outcome};

/// Longest error example kept, in bytes.
pub const EXAMPLE_BYTES: usize = 300;

/// One completed request, as the engine measured it. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How it ended.
    pub outcome: Outcome,
    /// Intended start to the last byte, or to the failure.
    pub response_time: u64,
    /// Actual start of sending to the last byte, or to the failure. `None`: it failed before anything was sent.
    pub service_time: Option<u64>,
    /// Actual start of sending minus intended start. `None`: it failed before anything was sent.
    pub schedule_lag: Option<u64>,
    /// Start of sending to the first byte of the response. `None`: no byte came.
    pub ttfb: Option<u64>,
    /// Bytes written for it, head included.
    pub bytes_out: u64,
    /// Bytes read for it, head included.
    pub bytes_in: u64,
}

/// The distributions of one group of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// Intended start to the last byte.
    pub response_time: Histogram,
    /// Start of sending to the last byte.
    pub service_time: Histogram,
    /// Actual minus intended start.
    pub schedule_lag: Histogram,
    /// Start of sending to the first byte.
    pub ttfb: Histogram,
}

impl Times {
    fn record(&mut self, sample: &Sample) {
        self.response_time.record(sample.response_time);
        if let Some(nanos) = sample.service_time {
            self.service_time.record(nanos);
        }
        if let Some(nanos) = sample.schedule_lag {
            self.schedule_lag.record(nanos);
        }
        if let Some(nanos) = sample.ttfb {
            self.ttfb.record(nanos);
        }
    }

    /// Adds all samples of `other`.
    pub fn add(&mut self, other: &Self) {
        self.response_time.add(&other.response_time);
        self.service_time.add(&other.service_time);
        self.schedule_lag.add(&other.schedule_lag);
        self.ttfb.add(&other.ttfb);
    }

    fn clear(&mut self) {
        self.response_time.clear();
        self.service_time.clear();
        self.schedule_lag.clear();
        self.ttfb.clear();
    }
}

/// How often a status code came, by what the plan made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusCount {
    /// Counted as successes.
    pub succeeded: u64,
    /// Counted as failures.
    pub failed: u64,
}

/// One error in words, beside its count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Example {
    /// When, on the run's timeline, in nanoseconds.
    pub at_ns: u64,
    /// Bounded text.
    pub text: String,
}

/// The accounts of one request of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestStats {
    /// Requests begun, those that failed to connect included.
    pub started: u64,
    /// Completed and counted as success.
    pub succeeded: u64,
    /// Completed and counted as failure: by status or by error.
    pub failed: u64,
    /// Planned requests that will never start, by [`NotStarted`].
    pub not_started: [u64; NotStarted::ALL.len()],
    /// Responses by status code.
    pub statuses: BTreeMap<u16, StatusCount>,
    /// Failures without a response, by [`ErrorClass`].
    pub errors: [u64; ErrorClass::ALL.len()],
    /// The earliest example of each class.
    pub examples: BTreeMap<ErrorClass, Example>,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Distributions of the succeeded.
    pub succeeded_times: Times,
    /// Distributions of the failed.
    pub failed_times: Times,
}

impl RequestStats {
    /// Requests that ended.
    pub const fn completed(&self) -> u64 {
        self.succeeded.saturating_add(self.failed)
    }

    /// Planned requests that will never start, for whatever reason.
    pub fn not_started_total(&self) -> u64 {
        self.not_started.iter().copied().fold(0, u64::saturating_add)
    }

    /// Records a completed request.
    pub fn record(&mut self, sample: &Sample) {
        self.bytes_out += sample.bytes_out;
        self.bytes_in += sample.bytes_in;
        let success = sample.outcome.is_success();
        match sample.outcome {
            Outcome::Response { status, .. } => {
                let count = self.statuses.entry(status).or_default();
                *(if success { &mut count.succeeded } else { &mut count.failed }) += 1;
            }
            Outcome::Error(class) => self.errors[class as usize] += 1,
        }
        let (count, times) = if success {
            (&mut self.succeeded, &mut self.succeeded_times)
        } else {
            (&mut self.failed, &mut self.failed_times)
        };
        *count += 1;
        times.record(sample);
    }

    /// Keeps an error's words if none of its class is kept yet. `text` is only called then.
    pub fn keep_example(&mut self, class: ErrorClass, at_ns: u64, text: impl FnOnce() -> String) {
        self.examples.entry(class).or_insert_with(|| {
            let mut text = text();
            text.truncate(text.floor_char_boundary(EXAMPLE_BYTES));
            Example { at_ns, text }
        });
    }

    /// Adds the accounts of `other`.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.started, other.started);
        add(&mut self.succeeded, other.succeeded);
        add(&mut self.failed, other.failed);
        add_each(&mut self.not_started, &other.not_started);
        add_each(&mut self.errors, &other.errors);
        for (code, theirs) in &other.statuses {
            let ours = self.statuses.entry(*code).or_default();
            add(&mut ours.succeeded, theirs.succeeded);
            add(&mut ours.failed, theirs.failed);
        }
        for (class, theirs) in &other.examples {
            let ours = self.examples.entry(*class).or_insert_with(|| theirs.clone());
            // The smallest, so that the order of addition does not matter.
            if *theirs < *ours {
                ours.clone_from(theirs);
            }
        }
        add(&mut self.bytes_out, other.bytes_out);
        add(&mut self.bytes_in, other.bytes_in);
        self.succeeded_times.add(&other.succeeded_times);
        self.failed_times.add(&other.failed_times);
    }

    fn clear(&mut self) {
        let mut succeeded_times = std::mem::take(&mut self.succeeded_times);
        let mut failed_times = std::mem::take(&mut self.failed_times);
        succeeded_times.clear();
        failed_times.clear();
        *self = Self { succeeded_times, failed_times, ..Self::default() };
    }
}

/// Numbers from an agent that lies may be of any size: they must not cost the coordinator more than its report's sense.
/// Saturated sums do not depend on the order either.
const fn add(ours: &mut u64, theirs: u64) {
    *ours = ours.saturating_add(theirs);
}

fn add_each<const N: usize>(ours: &mut [u64; N], theirs: &[u64; N]) {
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        add(ours, *theirs);
    }
}

/// The accounts of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections made.
    pub opened: u64,
    /// Connections that ended, by whichever side.
    pub closed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Connection slots that got their first working connection.
    pub established: u64,
    /// Most open at one instant. The one field that is not a sum over time: see [`Stats::add_interval`] and
    /// [`Stats::add_parallel`].
    pub peak: u64,
    /// Durations of the successful TCP connects.
    pub connect: Histogram,
    /// What was opened and what failed, by the target's address.
    pub addresses: AddressCounts,
}

/// The accounts of one phase of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseStats {
    /// One entry per request of the plan.
    pub requests: Vec<RequestStats>,
    /// Gaps between the actual starts of an open load, in billionths of the gap that was intended (uniform arrivals) or of
    /// the mean gap (Poisson arrivals): 1,000,000,000 is exactly as planned. Empty in the closed model.
    pub gaps: Histogram,
    /// The latest instant at which this phase was at work, in nanoseconds on the run's timeline; 0: never. Its end by the
    /// plan, or the end of its last request, whichever is later. Not a sum: the maximum counts.
    pub until_ns: u64,
}

impl PhaseStats {
    fn new(requests: usize) -> Self {
        Self { requests: vec![RequestStats::default(); requests], ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        if self.requests.len() < other.requests.len() {
            self.requests.resize_with(other.requests.len(), RequestStats::default);
        }
        for (ours, theirs) in self.requests.iter_mut().zip(&other.requests) {
            ours.add(theirs);
        }
        self.gaps.add(&other.gaps);
        self.until_ns = self.until_ns.max(other.until_ns);
    }

    fn clear(&mut self) {
        self.requests.iter_mut().for_each(RequestStats::clear);
        self.gaps.clear();
        self.until_ns = 0;
    }

    /// The sum over all requests.
    pub fn total(&self) -> RequestStats {
        sum(&self.requests)
    }
}

fn sum<'a>(requests: impl IntoIterator<Item = &'a RequestStats>) -> RequestStats {
    let mut total = RequestStats::default();
    for request in requests {
        total.add(request);
    }
    total
}

/// All accounts of one stretch of time, of one worker, one agent or the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// One entry per phase of the plan.
    pub phases: Vec<PhaseStats>,
    /// Connections.
    pub connections: ConnectionStats,
    /// How late the workers' periodic ticks ran: the generator's own slowness, whatever the target does.
    pub worker_lag: Histogram,
}

impl Stats {
    /// Empty accounts for a plan of `phases` phases and `requests` requests.
    pub fn new(phases: usize, requests: usize) -> Self {
        Self { phases: vec![PhaseStats::new(requests); phases], ..Self::default() }
    }

    /// Adds a later (or earlier) stretch of the same agent or worker: the peak is the higher of the two.
    pub fn add_interval(&mut self, other: &Self) {
        let peak = self.connections.peak.max(other.connections.peak);
        self.add_sums(other);
        self.connections.peak = peak;
    }

    /// Adds another worker's or agent's accounts: the peaks add up, an upper bound if they were not at one instant.
    pub fn add_parallel(&mut self, other: &Self) {
        let peak = self.connections.peak.saturating_add(other.connections.peak);
        self.add_sums(other);
        self.connections.peak = peak;
    }

    fn add_sums(&mut self, other: &Self) {
        if self.phases.len() < other.phases.len() {
            self.phases.resize_with(other.phases.len(), PhaseStats::default);
        }
        for (ours, theirs) in self.phases.iter_mut().zip(&other.phases) {
            ours.add(theirs);
        }
        add(&mut self.connections.opened, other.connections.opened);
        add(&mut self.connections.closed, other.connections.closed);
        add(&mut self.connections.failed, other.connections.failed);
        add(&mut self.connections.established, other.connections.established);
        self.connections.connect.add(&other.connections.connect);
        self.connections.addresses.add(&other.connections.addresses);
        self.worker_lag.add(&other.worker_lag);
    }

    /// Forgets everything and keeps the histograms' memory.
    pub fn clear(&mut self) {
        self.phases.iter_mut().for_each(PhaseStats::clear);
        let mut connect = std::mem::take(&mut self.connections.connect);
        connect.clear();
        self.connections = ConnectionStats { connect, ..ConnectionStats::default() };
        self.worker_lag.clear();
    }

    /// The sum over all requests of all phases.
    pub fn total(&self) -> RequestStats {
        sum(self.phases.iter().flat_map(|phase| &phase.requests))
    }
}
