//! What is known of a run while it runs: the figures of its progress.
//!
//! This is a view for people, made of what is already stored; the report is derived from the rows. It keeps one histogram
//! for the whole fleet, so its size does not grow with the number of agents' histograms.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use inrush_common::{
    id::{AgentName, RunId, SnapshotSeq},
    plan::{Load, Phase, Workload},
    stats::{Completion, Histogram, Interval, Snapshot},
    units::nanos,
    wire::encode_snapshot,
};
use inrush_proto::v1;

/// Shorter intervals (the last one of a run) say little about a rate.
const SHORTEST_FOR_A_RATE_NS: u64 = 500_000_000;

/// What progress needs of a snapshot. A decoded snapshot is about a megabyte of histograms, this is some kilobytes:
/// with a thousand agents that makes the difference for what may wait in a queue.
#[derive(Debug, Clone)]
pub struct Digest {
    /// The run.
    pub run: RunId,
    /// The agent.
    pub agent: AgentName,
    /// The snapshot's number.
    pub seq: SnapshotSeq,
    /// Of the agent's last one: why there are no more.
    pub last: Option<Completion>,
    interval: Interval,
    started: u64,
    completed: u64,
    failed: u64,
    open_connections: u64,
    /// The whole snapshot, as it is stored.
    pub encoded: Bytes,
    /// All response times, encoded, and those above the top of the shape.
    response_time: (Vec<u8>, u64),
}

impl From<&Snapshot> for Digest {
    fn from(snapshot: &Snapshot) -> Self {
        let (mut started, mut completed, mut failed) = (0, 0, 0);
        let mut response_time = Histogram::default();
        for request in snapshot.stats.phases.iter().flat_map(|phase| &phase.requests) {
            started += request.started;
            completed += request.completed();
            failed += request.failed;
            response_time.add(&request.succeeded_times.response_time);
            response_time.add(&request.failed_times.response_time);
        }
        Self {
            run: snapshot.run.clone(),
            agent: snapshot.key.agent.clone(),
            seq: snapshot.key.seq,
            last: snapshot.completion.clone(),
            interval: snapshot.interval,
            started,
            completed,
            failed,
            open_connections: snapshot.gauges.open_connections,
            encoded: encode_snapshot(snapshot).into(),
            response_time: (response_time.to_v2(), response_time.overflow()),
        }
    }
}

/// The figures of one run so far.
#[derive(Debug, Default)]
pub struct Live {
    started: u64,
    completed: u64,
    failed: u64,
    response_time: Histogram,
    agents: BTreeMap<AgentName, Latest>,
}

/// What an agent's newest snapshot says.
#[derive(Debug, Default)]
struct Latest {
    to_ns: u64,
    rate: f64,
    open_connections: u64,
}

/// What the figures are set beside.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Since the start.
    pub elapsed: Duration,
    /// What the plan wants.
    pub workload: &'a Workload,
    /// Agents with a share.
    pub agents: usize,
    /// Those of them that are lost.
    pub lost: usize,
}

impl Live {
    /// Counts a snapshot. The caller sees to it that each is given once.
    pub fn add(&mut self, digest: &Digest) {
        self.started += digest.started;
        self.completed += digest.completed;
        self.failed += digest.failed;
        let (encoded, overflow) = &digest.response_time;
        match Histogram::from_v2(encoded, *overflow) {
            Ok(response_time) => self.response_time.add(&response_time),
            Err(error) => {
                tracing::error!(%error, "progress lacks the response times of a snapshot")
            }
        }
        let latest = self.agents.entry(digest.agent.clone()).or_default();
        let Interval { from_ns, to_ns } = digest.interval;
        if to_ns < latest.to_ns {
            return;
        }
        latest.to_ns = to_ns;
        latest.open_connections = digest.open_connections;
        if digest.last.is_some() {
            latest.rate = 0.0;
        } else if to_ns - from_ns >= SHORTEST_FOR_A_RATE_NS {
            latest.rate = digest.completed as f64 * 1e9 / (to_ns - from_ns) as f64;
        }
    }

    /// An agent's part is over without its word: what it did stays, what it does is nothing.
    pub fn lose(&mut self, agent: &AgentName) {
        if let Some(latest) = self.agents.get_mut(agent) {
            (latest.rate, latest.open_connections) = (0.0, 0);
        }
    }

    /// The figures as they are sent to watchers.
    pub fn progress(&self, frame: Frame<'_>) -> v1::Progress {
        let workload = frame.workload;
        let now: Vec<&Phase> =
            workload.phases.iter().filter(|phase| phase.is_on_at(frame.elapsed)).collect();
        let several = workload.phases.len() > 1;
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        v1::Progress {
            elapsed_ns: nanos(frame.elapsed),
            planned: workload.planned_requests(),
            duration_ns: workload.ends_at().map(nanos),
            started: self.started,
            completed: self.completed,
            failed: self.failed,
            rate: self.agents.values().map(|agent| agent.rate).sum(),
            p50_ns: self.response_time.percentile(0.5),
            p99_ns: self.response_time.percentile(0.99),
            agents: small(frame.agents),
            agents_lost: small(frame.lost),
            open_connections: self.agents.values().map(|agent| agent.open_connections).sum(),
            phases: now.iter().filter(|_| several).map(|phase| phase.name.clone()).collect(),
            planned_rate: planned_rate(&now, frame.elapsed),
        }
    }
}

/// Requests per second that the phases at work want begun now; `None` when one of them has no schedule, or none is.
fn planned_rate(now: &[&Phase], elapsed: Duration) -> Option<f64> {
    let rates = now.iter().map(|phase| match &phase.load {
        Load::Open(open) => {
            Some(open.profile.rate_at(nanos(elapsed.saturating_sub(phase.starts_at))).as_f64())
        }
        Load::Closed(_) => None,
    });
    rates.sum::<Option<f64>>().filter(|_| !now.is_empty())
}

#[cfg(test)]
mod tests {
    use inrush_common::{
        id::Epoch,
        outcome::Outcome,
        plan,
        stats::{Gauges, Sample, SnapshotKey, Stats},
    };

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn snapshot(agent: &str, seq: u64, requests: u64, completion: Option<Completion>) -> Digest {
        let mut stats = Stats::new(1, 1);
        for _ in 0..requests {
            stats.phases[0].requests[0].started += 1;
            stats.phases[0].requests[0].record(&Sample {
                outcome: Outcome::Response { status: 200, success: true },
                response_time: 5_000_000,
                service_time: Some(5_000_000),
                schedule_lag: Some(0),
                ttfb: Some(4_000_000),
                bytes_out: 10,
                bytes_in: 10,
            });
        }
        let snapshot = Snapshot {
            run: "r".parse().unwrap(),
            key: SnapshotKey {
                agent: agent.parse().unwrap(),
                epoch: Epoch(1),
                seq: SnapshotSeq(seq),
            },
            interval: Interval { from_ns: (seq - 1) * SECOND, to_ns: seq * SECOND },
            stats,
            gauges: Gauges { open_connections: 7, ..Gauges::default() },
            completion,
        };
        Digest::from(&snapshot)
    }

    fn workload(load: &str) -> Workload {
        let source = format!("url = 'http://127.0.0.1:9/'\n{load}");
        plan::load("plan.toml", &source, &BTreeMap::new()).unwrap().plan.workload
    }

    /// The figures two seconds after the start of a plan of 100 requests.
    fn progress_of(live: &Live) -> v1::Progress {
        let workload = workload("[load.closed]\nconnections = 10\nrequests = 100");
        let elapsed = Duration::from_secs(2);
        live.progress(Frame { elapsed, workload: &workload, agents: 2, lost: 0 })
    }

    #[test]
    fn the_phases_at_work_are_named_and_their_planned_rate_is_that_of_the_moment() {
        let workload = workload(
            "[[phases]]\nname = 'warm-up'\nmeasure = false\nload.closed = { connections = 5, duration = '2s' }\n\
             [[phases]]\nname = 'ramp'\nload.open = { rate = { from = 100, to = 300 }, duration = '4s', max_in_flight = 9 }",
        );
        let at = |millis| {
            let elapsed = Duration::from_millis(millis);
            let progress = Live::default().progress(Frame {
                elapsed,
                workload: &workload,
                agents: 1,
                lost: 0,
            });
            (progress.phases.join(", "), progress.planned_rate)
        };
        assert_eq!(at(0), ("warm-up".to_owned(), None));
        assert_eq!(at(2_000), ("ramp".to_owned(), Some(100.0)));
        assert_eq!(at(5_000), ("ramp".to_owned(), Some(250.0)));
        assert_eq!(at(6_000), (String::new(), None));
        assert_eq!(progress_of(&Live::default()).phases, [""; 0], "the only one needs no name");
    }

    #[test]
    fn the_rate_is_that_of_each_agents_latest_interval_and_ends_with_its_part() {
        let mut live = Live::default();
        live.add(&snapshot("a", 1, 10, None));
        live.add(&snapshot("b", 1, 20, None));
        let progress = progress_of(&live);
        assert_eq!((progress.started, progress.completed), (30, 30));
        assert_eq!(progress.rate, 30.0);
        assert_eq!(progress.open_connections, 14);
        live.add(&snapshot("a", 2, 5, Some(Completion::Finished)));
        live.lose(&"b".parse().unwrap());
        let progress = progress_of(&live);
        assert_eq!((progress.completed, progress.rate, progress.open_connections), (35, 0.0, 7));
    }

    #[test]
    fn a_late_snapshot_of_an_earlier_interval_counts_but_is_not_the_latest() {
        let mut live = Live::default();
        live.add(&snapshot("a", 2, 10, None));
        live.add(&snapshot("a", 1, 90, None));
        let progress = progress_of(&live);
        assert_eq!((progress.completed, progress.rate), (100, 10.0));
    }

    #[test]
    fn a_high_percentile_needs_ten_samples_beyond_it() {
        let known = |requests| {
            let mut live = Live::default();
            live.add(&snapshot("a", 1, requests, None));
            let progress = progress_of(&live);
            (progress.p50_ns.is_some(), progress.p99_ns.is_some())
        };
        assert_eq!(
            [0, 1, 999, 1_000].map(known),
            [(false, false), (true, false), (true, false), (true, true)]
        );
    }

    #[test]
    fn without_samples_there_are_no_percentiles() {
        let progress = progress_of(&Live::default());
        assert_eq!((progress.p50_ns, progress.p99_ns, progress.rate), (None, None, 0.0));
    }
}
