//! From the workers' parts to the engine's intervals.

use std::{
    future::poll_fn,
    mem,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use inrush_common::stats::{Completion, Interval, Stats};
use tokio::sync::mpsc;

use crate::clock;

/// Parts of one worker on their way. When they are this many, the worker keeps its accounts and hands in two seconds as
/// one later; one place is kept free for the end, which therefore always fits.
const QUEUE: usize = 4;

/// So long the first part of a second waits for those of slower workers, which then come with the next.
const WAIT_FOR_THE_SLOW: Duration = Duration::from_millis(200);

const SECOND_NS: u64 = 1_000_000_000;

/// One second (or what there was of it) of the agent's part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInterval {
    /// When. An interval begins where the one before has ended.
    pub interval: Interval,
    /// What happened, all workers together.
    pub stats: Stats,
    /// Connections open at its end.
    pub open_connections: u64,
    /// Requests started and not completed at its end. In the last: given up.
    pub in_flight: u64,
    /// In the last only: why it is the last.
    pub completion: Option<Completion>,
}

/// A worker's last words.
#[derive(Debug)]
pub(super) struct End {
    pub(super) at_ns: u64,
    pub(super) stats: Stats,
    pub(super) in_flight: u64,
    pub(super) completion: Completion,
}

#[derive(Debug)]
enum Report {
    Part { second: u64, stats: Stats, open: u64, in_flight: u64 },
    End(End),
}

/// A worker's end of its queue to the collector.
#[derive(Debug)]
pub(super) struct Reporter {
    reports: mpsc::Sender<Report>,
    emptied: mpsc::Receiver<Stats>,
}

/// The collector's end.
#[derive(Debug)]
pub(super) struct Link {
    reports: mpsc::Receiver<Report>,
    /// Accounts to be filled again. When it is full they are freed.
    emptied: mpsc::Sender<Stats>,
}

/// A worker's queue.
pub(super) fn link() -> (Reporter, Link) {
    let (reports, reported) = mpsc::channel(QUEUE);
    let (refills, emptied) = mpsc::channel(QUEUE);
    (Reporter { reports, emptied }, Link { reports: reported, emptied: refills })
}

impl Reporter {
    /// Hands in the accounts up to `second` and puts empty ones in their place. With a full queue nothing changes.
    pub(super) fn report(&mut self, second: u64, stats: &mut Stats, open: u64, in_flight: u64) {
        // This worker is the only sender: what is free stays free.
        if self.reports.capacity() <= 1 {
            return;
        }
        let phases = stats.phases.len();
        let requests = stats.phases.first().map_or(0, |phase| phase.requests.len());
        let empty = self.emptied.try_recv().unwrap_or_else(|_| Stats::new(phases, requests));
        let stats = mem::replace(stats, empty);
        // Fails only when nobody collects any more.
        drop(self.reports.try_send(Report::Part { second, stats, open, in_flight }));
    }

    /// Hands in the last accounts.
    pub(super) fn end(self, end: End) {
        drop(self.reports.try_send(Report::End(end)));
    }
}

/// Adds up what the workers hand in.
#[derive(Debug)]
pub(super) struct Collector {
    lanes: Vec<Lane>,
    /// Phases and requests of the plan.
    rows: (usize, usize),
    /// The sum for the interval to come.
    sum: Stats,
    /// Where that interval begins, in whole seconds of the run.
    from: u64,
    /// Since when a worker has waited for the others to be ready with the second after `from`.
    since: Option<Instant>,
    ended_ns: u64,
    completion: Option<Completion>,
    finished: bool,
}

/// What is known of one worker.
#[derive(Debug)]
struct Lane {
    link: Link,
    /// Up to which second its accounts are in.
    second: u64,
    /// The highest of its peaks in the interval to come.
    peak: u64,
    open: u64,
    in_flight: u64,
    ended: bool,
}

impl Collector {
    pub(super) fn new(links: Vec<Link>, rows: (usize, usize)) -> Self {
        let lane = |link| Lane { link, second: 0, peak: 0, open: 0, in_flight: 0, ended: false };
        Self {
            lanes: links.into_iter().map(lane).collect(),
            rows,
            sum: Stats::new(rows.0, rows.1),
            from: 0,
            since: None,
            ended_ns: 0,
            completion: None,
            finished: false,
        }
    }

    /// The next interval. Cancel safe: what was taken from the queues is kept.
    pub(super) async fn next(&mut self) -> Option<EngineInterval> {
        if self.finished {
            return None;
        }
        loop {
            let since = self.since;
            let patience = async {
                match since {
                    Some(since) => {
                        tokio::time::sleep_until((since + WAIT_FOR_THE_SLOW).into()).await;
                    }
                    None => std::future::pending().await,
                }
            };
            let patient = tokio::select! {
                biased;
                () = poll_fn(|cx| self.poll_progress(cx)) => true,
                () = patience => false,
            };
            if self.lanes.iter().all(|lane| lane.ended) {
                self.finished = true;
                return Some(self.deliver(None));
            }
            if !patient || self.is_complete() {
                let slowest = self.working().map(|lane| lane.second).min();
                return Some(self.deliver(Some(slowest.unwrap_or(0).max(self.from + 1))));
            }
            if self.since.is_none() && self.working().any(|lane| lane.second > self.from) {
                self.since = Some(clock::now());
            }
        }
    }

    fn working(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| !lane.ended)
    }

    fn is_complete(&self) -> bool {
        self.working().all(|lane| lane.second > self.from)
    }

    /// Takes what the workers have handed in, from each up to its first part beyond `from`. Ready when there was
    /// anything.
    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut progress = Poll::Pending;
        for lane in &mut self.lanes {
            while !lane.ended && lane.second <= self.from {
                let Poll::Ready(report) = lane.link.reports.poll_recv(cx) else { break };
                progress = Poll::Ready(());
                let mut stats = match report {
                    Some(Report::Part { second, stats, open, in_flight }) => {
                        (lane.second, lane.open, lane.in_flight) = (second, open, in_flight);
                        stats
                    }
                    Some(Report::End(end)) => {
                        (lane.open, lane.in_flight, lane.ended) = (0, end.in_flight, true);
                        self.ended_ns = self.ended_ns.max(end.at_ns);
                        worst(&mut self.completion, end.completion);
                        end.stats
                    }
                    None => {
                        lane.ended = true;
                        let text = "a worker ended without a report".to_owned();
                        worst(&mut self.completion, Completion::Internal(text));
                        break;
                    }
                };
                lane.peak = lane.peak.max(stats.connections.peak);
                self.sum.add_parallel(&stats);
                stats.clear();
                drop(lane.link.emptied.try_send(stats));
            }
        }
        progress
    }

    /// The interval up to second `to`, or up to the end of the run.
    fn deliver(&mut self, to: Option<u64>) -> EngineInterval {
        let from_ns = self.from * SECOND_NS;
        let to_ns = to.map_or(self.ended_ns.max(from_ns), |second| second * SECOND_NS);
        let mut stats = mem::replace(&mut self.sum, Stats::new(self.rows.0, self.rows.1));
        stats.connections.peak = self.lanes.iter().map(|lane| lane.peak).sum();
        for lane in &mut self.lanes {
            // What is open now is the least that the next interval's peak can be.
            lane.peak = lane.open;
        }
        self.since = None;
        self.from = to.unwrap_or(self.from);
        EngineInterval {
            interval: Interval { from_ns, to_ns },
            stats,
            open_connections: self.lanes.iter().map(|lane| lane.open).sum(),
            in_flight: self.lanes.iter().map(|lane| lane.in_flight).sum(),
            completion: if to.is_none() { self.completion.take() } else { None },
        }
    }
}

/// Keeps the graver of two completions; of two equally grave ones the first.
fn worst(kept: &mut Option<Completion>, new: Completion) {
    let gravity = |completion: &Completion| match completion {
        Completion::Finished => 0,
        Completion::Stopped => 1,
        Completion::LeaseExpired => 2,
        Completion::TargetUnreachable(_) => 3,
        Completion::Internal(_) => 4,
    };
    if kept.as_ref().is_none_or(|kept| gravity(kept) < gravity(&new)) {
        *kept = Some(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(started: u64, peak: u64) -> Stats {
        let mut stats = Stats::new(1, 1);
        stats.phases[0].requests[0].started = started;
        stats.connections.peak = peak;
        stats
    }

    fn end(at_ns: u64, started: u64, completion: Completion) -> End {
        End { at_ns, stats: stats(started, 0), in_flight: 0, completion }
    }

    fn collector(workers: usize) -> (Vec<Reporter>, Collector) {
        let (reporters, links) = (0..workers).map(|_| link()).unzip();
        (reporters, Collector::new(links, (1, 1)))
    }

    fn seconds(interval: &EngineInterval) -> (u64, u64) {
        (interval.interval.from_ns / SECOND_NS, interval.interval.to_ns / SECOND_NS)
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_is_complete_when_all_workers_have_handed_in_theirs() {
        let (mut workers, mut collector) = collector(2);
        workers[0].report(1, &mut stats(5, 3), 2, 1);
        workers[1].report(1, &mut stats(7, 4), 4, 2);
        let interval = collector.next().await.unwrap();
        assert_eq!(seconds(&interval), (0, 1));
        assert_eq!(interval.stats.phases[0].requests[0].started, 12);
        assert_eq!(interval.stats.connections.peak, 7);
        assert_eq!((interval.open_connections, interval.in_flight), (6, 3));
        let mut workers = workers.into_iter();
        workers.next().unwrap().end(end(1_500_000_000, 1, Completion::Finished));
        workers.next().unwrap().end(end(1_700_000_000, 2, Completion::Stopped));
        let last = collector.next().await.unwrap();
        assert_eq!(last.interval, Interval { from_ns: SECOND_NS, to_ns: 1_700_000_000 });
        assert_eq!((last.stats.phases[0].requests[0].started, last.open_connections), (3, 0));
        assert_eq!(last.completion, Some(Completion::Stopped));
        assert_eq!(collector.next().await, None);
    }

    #[expect(clippy::disallowed_methods, reason = "the paused clock of the test")]
    #[tokio::test(start_paused = true)]
    async fn a_slow_worker_is_not_waited_for_and_nothing_of_it_is_lost() {
        let (mut workers, mut collector) = collector(2);
        workers[0].report(1, &mut stats(5, 1), 1, 0);
        let began = tokio::time::Instant::now();
        let first = collector.next().await.unwrap();
        assert_eq!((seconds(&first), first.stats.phases[0].requests[0].started), ((0, 1), 5));
        assert!(began.elapsed() <= WAIT_FOR_THE_SLOW * 2);
        workers[1].report(1, &mut stats(7, 9), 1, 0);
        workers[1].report(2, &mut stats(1, 8), 1, 0);
        workers[0].report(2, &mut stats(1, 1), 1, 0);
        let second = collector.next().await.unwrap();
        assert_eq!((seconds(&second), second.stats.phases[0].requests[0].started), ((1, 2), 9));
        assert_eq!(second.stats.connections.peak, 10, "the higher of two parts of one worker");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_with_a_full_queue_keeps_its_accounts_and_its_end_still_fits() {
        let (mut workers, mut collector) = collector(1);
        let mut worker = workers.pop().unwrap();
        let mut kept = Stats::new(1, 1);
        for second in 1..=10 {
            kept.phases[0].requests[0].started += 1;
            worker.report(second, &mut kept, 0, 0);
        }
        assert_eq!(
            kept.phases[0].requests[0].started, 7,
            "three fit, and one place is for the end"
        );
        worker.end(End {
            at_ns: 10 * SECOND_NS,
            stats: kept,
            in_flight: 0,
            completion: Completion::Finished,
        });
        let mut started = 0;
        let mut to = 0;
        while let Some(interval) = collector.next().await {
            assert_eq!(interval.interval.from_ns, to);
            to = interval.interval.to_ns;
            started += interval.stats.phases[0].requests[0].started;
        }
        assert_eq!((started, to), (10, 10 * SECOND_NS));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_vanishes_is_named_and_the_others_are_counted() {
        let (mut workers, mut collector) = collector(2);
        drop(workers.pop());
        workers.pop().unwrap().end(end(10, 3, Completion::Finished));
        let last = collector.next().await.unwrap();
        assert!(matches!(last.completion, Some(Completion::Internal(_))));
        assert_eq!(last.stats.phases[0].requests[0].started, 3);
    }
}
