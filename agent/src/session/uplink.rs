//! The way of the results: numbered, kept until the coordinator has them on disk, sent again after a cut.
//!
//! Memory is bounded. A snapshot that was sent keeps its number and its contents, since the coordinator may have it. One
//! that was never sent is free to grow: when as much is kept as allowed, a new interval is merged into the newest unsent
//! one. Nothing is dropped; the series gets coarser.

use std::collections::VecDeque;

use inrush_common::{
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    stats::{Completion, Gauges, Interval, Snapshot, SnapshotKey, Stats},
};
use inrush_proto::v1;
use prost::Message as _;

/// Most snapshots kept in their encoded form: ten minutes without a coordinator.
const KEPT: usize = 600;

/// Most bytes kept in their encoded form. One interval is some tens of KB for a plan of a few requests.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// One run's results on their way.
#[derive(Debug)]
pub(super) struct Uplink {
    run: RunId,
    agent: AgentName,
    epoch: Epoch,
    next: SnapshotSeq,
    /// Encoded, in the order of their numbers; each with its size.
    kept: VecDeque<(v1::Snapshot, usize)>,
    kept_bytes: usize,
    /// How many of `kept`, from the front, went out on the present stream.
    sent: usize,
    /// The newest, after all of `kept`. Never sent in any stream, so it may still grow.
    newest: Option<Snapshot>,
    complete: bool,
    limit: Limit,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    snapshots: usize,
    bytes: usize,
}

impl Uplink {
    /// For the results of `run`.
    pub(super) fn new(run: RunId, agent: AgentName, epoch: Epoch) -> Self {
        Self {
            run,
            agent,
            epoch,
            next: SnapshotSeq::FIRST,
            kept: VecDeque::new(),
            kept_bytes: 0,
            sent: 0,
            newest: None,
            complete: false,
            limit: Limit { snapshots: KEPT, bytes: KEPT_BYTES },
        }
    }

    /// Takes an interval's results. After the one with a completion nothing more is taken.
    pub(super) fn push(
        &mut self,
        interval: Interval,
        stats: Stats,
        gauges: Gauges,
        completion: Option<Completion>,
    ) {
        if self.complete {
            tracing::error!(run = %self.run, "an interval after the last one is not counted");
            return;
        }
        self.complete = completion.is_some();
        let full = self.is_full();
        match &mut self.newest {
            Some(newest) if full => merge(newest, interval, &stats, gauges, completion),
            _ => {
                self.settle();
                let key =
                    SnapshotKey { agent: self.agent.clone(), epoch: self.epoch, seq: self.next };
                self.next = self.next.next();
                let run = self.run.clone();
                self.newest = Some(Snapshot { run, key, interval, stats, gauges, completion });
            }
        }
    }

    fn is_full(&self) -> bool {
        self.kept.len() >= self.limit.snapshots || self.kept_bytes >= self.limit.bytes
    }

    /// The newest gets its final contents.
    fn settle(&mut self) {
        if let Some(newest) = self.newest.take() {
            let encoded = v1::Snapshot::from(&newest);
            let size = encoded.encoded_len();
            self.kept_bytes += size;
            self.kept.push_back((encoded, size));
        }
    }

    /// Whether [`take_unsent`](Self::take_unsent) has something. While as much as allowed is out and not acknowledged,
    /// the newest waits.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.kept.len() || (self.newest.is_some() && !self.is_full())
    }

    /// The next snapshot that did not go out on the present stream; it is now taken for sent.
    pub(super) fn take_unsent(&mut self) -> Option<v1::Snapshot> {
        if self.sent == self.kept.len() && !self.is_full() {
            self.settle();
        }
        let (snapshot, _) = self.kept.get(self.sent)?;
        self.sent += 1;
        Some(snapshot.clone())
    }

    /// The stream is gone: what is not acknowledged goes out again, in order, on the next one.
    pub(super) fn stream_lost(&mut self) {
        self.sent = 0;
    }

    /// The coordinator has number `seq` on disk. An acknowledgement covers this one number.
    pub(super) fn ack(&mut self, seq: SnapshotSeq) {
        let Some(index) = self.kept.iter().position(|(snapshot, _)| snapshot.seq == seq.0) else {
            return;
        };
        if let Some((_, size)) = self.kept.remove(index) {
            self.kept_bytes -= size;
        }
        if index < self.sent {
            self.sent -= 1;
        }
    }

    /// Whether the last snapshot was taken, and all are on the coordinator's disk.
    pub(super) fn is_handed_in(&self) -> bool {
        self.complete && self.unacknowledged() == 0
    }

    /// Snapshots that the coordinator did not acknowledge.
    pub(super) fn unacknowledged(&self) -> usize {
        self.kept.len() + usize::from(self.newest.is_some())
    }

    /// The run.
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }
}

fn merge(
    into: &mut Snapshot,
    interval: Interval,
    stats: &Stats,
    gauges: Gauges,
    completion: Option<Completion>,
) {
    into.interval.from_ns = into.interval.from_ns.min(interval.from_ns);
    into.interval.to_ns = into.interval.to_ns.max(interval.to_ns);
    into.stats.add_interval(stats);
    into.gauges = Gauges {
        cpu_ns: into.gauges.cpu_ns + gauges.cpu_ns,
        cpu_capacity_ns: into.gauges.cpu_capacity_ns + gauges.cpu_capacity_ns,
        throttled_ns: into.gauges.throttled_ns + gauges.throttled_ns,
        ..gauges
    };
    into.completion = completion;
}

#[cfg(test)]
mod tests {
    use inrush_common::outcome::Outcome;
    use inrush_common::stats::{Sample, Totals};
    use proptest::prelude::*;

    use super::*;

    fn uplink(snapshots: usize) -> Uplink {
        let mut uplink = Uplink::new("r1".parse().unwrap(), "lab1".parse().unwrap(), Epoch(7));
        uplink.limit.snapshots = snapshots;
        uplink
    }

    /// Interval `second`, in which one request of `second` + 1 ms succeeded.
    fn push(uplink: &mut Uplink, second: u64, completion: Option<Completion>) {
        let mut stats = Stats::new(1, 1);
        stats.phases[0].requests[0].started = 1;
        stats.phases[0].requests[0].record(&Sample {
            outcome: Outcome::Response { status: 200, success: true },
            response_time: (second + 1) * 1_000_000,
            service_time: None,
            schedule_lag: None,
            ttfb: None,
            bytes_out: 1,
            bytes_in: 2,
        });
        let interval =
            Interval { from_ns: second * 1_000_000_000, to_ns: (second + 1) * 1_000_000_000 };
        let gauges = Gauges { cpu_ns: 10, cpu_capacity_ns: 100, ..Gauges::default() };
        uplink.push(interval, stats, gauges, completion);
    }

    fn drain(uplink: &mut Uplink) -> Vec<u64> {
        std::iter::from_fn(|| uplink.take_unsent()).map(|snapshot| snapshot.seq).collect()
    }

    #[test]
    fn numbers_rise_by_one_and_what_is_not_acknowledged_goes_out_again_in_order() {
        let mut uplink = uplink(100);
        for second in 0..4 {
            push(&mut uplink, second, None);
        }
        assert_eq!(drain(&mut uplink), [1, 2, 3, 4]);
        assert!(!uplink.has_unsent());
        uplink.ack(SnapshotSeq(1));
        uplink.ack(SnapshotSeq(3));
        push(&mut uplink, 4, None);
        assert_eq!(drain(&mut uplink), [5]);
        uplink.stream_lost();
        assert!(uplink.has_unsent());
        assert_eq!(drain(&mut uplink), [2, 4, 5]);
    }

    #[test]
    fn when_full_the_newest_unsent_grows_and_what_was_sent_stays_as_it_was() {
        let mut uplink = uplink(2);
        push(&mut uplink, 0, None);
        push(&mut uplink, 1, None);
        assert_eq!(drain(&mut uplink), [1, 2]);
        uplink.stream_lost();
        for second in 2..6 {
            push(&mut uplink, second, None);
        }
        push(&mut uplink, 6, Some(Completion::Finished));
        assert_eq!(uplink.unacknowledged(), 3);
        assert_eq!(drain(&mut uplink), [1, 2]);
        uplink.ack(SnapshotSeq(1));
        let last = uplink.take_unsent().unwrap();
        assert_eq!((last.seq, last.from_ns, last.to_ns), (3, 2_000_000_000, 7_000_000_000));
        assert_eq!(last.gauges.unwrap().cpu_ns, 50);
        assert!(last.completion.is_some());
        assert_eq!(uplink.take_unsent(), None);
    }

    #[test]
    fn it_is_handed_in_when_the_last_one_is_acknowledged_too() {
        let mut uplink = uplink(100);
        push(&mut uplink, 0, None);
        drain(&mut uplink);
        uplink.ack(SnapshotSeq(1));
        assert!(!uplink.is_handed_in(), "there is more to come");
        push(&mut uplink, 1, Some(Completion::Finished));
        assert!(!uplink.is_handed_in());
        drain(&mut uplink);
        uplink.ack(SnapshotSeq(2));
        assert!(uplink.is_handed_in());
        push(&mut uplink, 2, None);
        assert!(uplink.is_handed_in(), "nothing comes after the last");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Send,
        Ack(u64),
        Cut,
    }

    proptest! {
        #[test]
        fn whatever_happens_on_the_way_the_coordinator_gets_every_request_once(
            steps in prop::collection::vec(prop_oneof![
                4 => Just(Step::Push),
                3 => Just(Step::Send),
                2 => (1_u64..20).prop_map(Step::Ack),
                1 => Just(Step::Cut),
            ], 1..80),
            limit in 1_usize..6,
        ) {
            let mut uplink = uplink(limit);
            let mut stored = Totals::default();
            let mut on_disk = std::collections::BTreeSet::new();
            let mut pushed = 0;
            for step in steps {
                match step {
                    Step::Push => {
                        push(&mut uplink, pushed, None);
                        pushed += 1;
                    }
                    Step::Send => if let Some(sent) = uplink.take_unsent() {
                        on_disk.insert(sent.seq);
                        stored.add(&Snapshot::try_from(sent).unwrap());
                    },
                    Step::Ack(seq) if on_disk.contains(&seq) => uplink.ack(SnapshotSeq(seq)),
                    Step::Ack(_) => {}
                    Step::Cut => uplink.stream_lost(),
                }
                prop_assert!(uplink.unacknowledged() <= limit + 1);
            }
            push(&mut uplink, pushed, Some(Completion::Finished));
            pushed += 1;
            uplink.stream_lost();
            while let Some(sent) = uplink.take_unsent() {
                uplink.ack(SnapshotSeq(sent.seq));
                stored.add(&Snapshot::try_from(sent).unwrap());
            }
            prop_assert!(uplink.is_handed_in());
            let fleet = stored.fleet();
            prop_assert_eq!(fleet.phases[0].requests[0].started, pushed);
            prop_assert_eq!(fleet.phases[0].requests[0].succeeded_times.response_time.count(), pushed);
        }
    }
}
