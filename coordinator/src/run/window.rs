//! The last seconds of a run, for the plan's stop rules: which seconds are complete, and what they add up to.
//!
//! Time is that of the run, second by second, as the agents hand it in; no clock is read. A second is complete when every
//! agent that is still at work has handed it in. So an agent whose results are late holds the window up and does not look
//! like one that does nothing, until it is lost; what comes later than that is in the report and in no window.

use std::collections::{BTreeMap, VecDeque};

use inrush_common::{
    id::AgentName,
    plan::{Plan, StopRule},
    report::ThresholdRow,
    stats::{Gauges, Interval, Snapshot, SnapshotKey, Stats},
    wire::{decode_snapshot, encode_snapshot},
};

use super::judge::{Scopes, judge};

const SECOND_NS: u64 = 1_000_000_000;

/// Seconds that are added up once, so that an hour is not decoded second by second every second.
const BLOCK: u64 = 60;

/// So far ahead of the slowest agent the others' seconds are kept. What is further ahead is left out, and the window
/// begins anew behind it.
const MOST_AHEAD: u64 = 120;

/// A stop rule that is broken.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    /// Which.
    pub rule: StopRule,
    /// The figure over the rule's window.
    pub row: ThresholdRow,
    /// Where the window ends, in seconds of the run.
    pub second: u64,
}

/// The last seconds of a run.
#[derive(Debug)]
pub struct Window {
    plan: Plan,
    scopes: Scopes,
    /// The agents that are at work, and up to which second each has handed in.
    working: BTreeMap<AgentName, u64>,
    /// Sums of seconds that are not complete.
    open: BTreeMap<u64, Stats>,
    /// Complete seconds up to `next`, as many as the longest rule looks at; encoded, for they are few KB then.
    seconds: VecDeque<Encoded>,
    /// Sums of whole blocks of them, by the second at which each begins.
    blocks: BTreeMap<u64, Encoded>,
    /// The second after the last complete one.
    next: u64,
    /// Seconds before this one are not all there.
    whole_from: u64,
}

impl Window {
    /// The window of a run of `plan` by `agents`; `None` where the plan has no stop rules.
    pub fn new(plan: &Plan, agents: impl IntoIterator<Item = AgentName>) -> Option<Self> {
        if plan.stop_when.is_empty() {
            return None;
        }
        Some(Self {
            plan: plan.clone(),
            scopes: Scopes::of(plan),
            working: agents.into_iter().map(|agent| (agent, 0)).collect(),
            open: BTreeMap::new(),
            seconds: VecDeque::new(),
            blocks: BTreeMap::new(),
            next: 0,
            whole_from: 0,
        })
    }

    /// Takes a snapshot, each once. Tells which rule is broken now.
    pub fn add(&mut self, snapshot: &Snapshot) -> Option<Broken> {
        let Interval { from_ns, to_ns } = snapshot.interval;
        let second = (from_ns + (to_ns - from_ns) / 2) / SECOND_NS;
        if second >= self.next.saturating_add(MOST_AHEAD) {
            self.whole_from = self.whole_from.max(second.saturating_add(1));
        } else if second >= self.next {
            self.open.entry(second).or_default().add_parallel(&snapshot.stats);
        }
        let agent = &snapshot.key.agent;
        if snapshot.completion.is_some() {
            self.working.remove(agent);
        } else if let Some(until) = self.working.get_mut(agent) {
            *until = (*until).max(to_ns / SECOND_NS);
        }
        self.advance()
    }

    /// An agent is lost: nobody waits for it. Tells which rule is broken now.
    pub fn lose(&mut self, agent: &AgentName) -> Option<Broken> {
        self.working.remove(agent);
        self.advance()
    }

    /// Something was not taken: what there is so far is not all.
    pub fn restart(&mut self) {
        let latest = self.open.last_key_value().map_or(self.next, |(second, _)| second + 1);
        self.whole_from = self.whole_from.max(latest).max(self.next + 1);
    }

    fn advance(&mut self) -> Option<Broken> {
        // With nobody at work the run ends by itself.
        let complete = *self.working.values().min()?;
        if complete <= self.next {
            return None;
        }
        let longest = self.scopes.longest_s();
        // What no window will reach back to need not be gone through.
        let skipped = complete.saturating_sub(longest + BLOCK);
        if skipped > self.next {
            self.seconds.clear();
            self.blocks.clear();
            self.open = self.open.split_off(&skipped);
            self.next = skipped;
            self.whole_from = self.whole_from.max(skipped);
        }
        while self.next < complete {
            self.close_second(longest);
        }
        self.broken()
    }

    fn close_second(&mut self, longest: u64) {
        let stats = self.open.remove(&self.next).unwrap_or_default();
        self.seconds.push_back(Encoded::new(&stats));
        self.next += 1;
        let (next, oldest) = (self.next, self.oldest());
        if next.is_multiple_of(BLOCK) && next - oldest >= BLOCK {
            let begin = next - BLOCK;
            let sum = self.sum(begin, next);
            self.blocks.insert(begin, Encoded::new(&sum));
        }
        // A block more than is looked at, so that the block just begun can be added up.
        while self.seconds.len() as u64 > longest + BLOCK {
            self.seconds.pop_front();
        }
        let oldest = self.oldest();
        self.blocks = self.blocks.split_off(&oldest);
    }

    /// The first of `seconds`.
    fn oldest(&self) -> u64 {
        self.next - self.seconds.len() as u64
    }

    /// The sum over the complete seconds from `from` on and before `to`.
    fn sum(&self, from: u64, to: u64) -> Stats {
        let mut sum = Stats::default();
        let mut at = from;
        while at < to {
            let block = self.blocks.get(&at).filter(|_| at + BLOCK <= to);
            let (part, length) = match block {
                Some(block) => (Some(block), BLOCK),
                None => (self.seconds.get((at - self.oldest()) as usize), 1),
            };
            if let Some(stats) = part.and_then(Encoded::decode) {
                sum.add_interval(&stats);
            }
            at += length;
        }
        sum
    }

    fn broken(&self) -> Option<Broken> {
        let end = self.next;
        let due = self.scopes.due(end, self.whole_from);
        let lengths: std::collections::BTreeSet<u64> =
            due.iter().map(|(_, length)| *length).collect();
        for length in lengths {
            let rules: Vec<&StopRule> =
                due.iter().filter(|(_, its)| *its == length).map(|(rule, _)| *rule).collect();
            let from = end - length;
            let rows = judge(&self.plan, &rules, self.sum(from, end), from, end);
            let broken = rules.iter().zip(rows).find(|(_, row)| row.is_broken());
            if let Some((rule, row)) = broken {
                return Some(Broken { rule: (*rule).clone(), row, second: end });
            }
        }
        None
    }
}

/// The fleet's accounts of a second, or of a block of them, as few bytes.
#[derive(Debug)]
struct Encoded(Box<[u8]>);

impl Encoded {
    fn new(stats: &Stats) -> Self {
        if *stats == Stats::default() {
            return Self(Box::default());
        }
        let snapshot = Snapshot {
            run: "window".parse().expect("letters"),
            key: SnapshotKey {
                agent: "fleet".parse().expect("letters"),
                epoch: inrush_common::id::Epoch(0),
                seq: inrush_common::id::SnapshotSeq::FIRST,
            },
            interval: Interval { from_ns: 0, to_ns: 0 },
            stats: stats.clone(),
            gauges: Gauges::default(),
            completion: None,
        };
        Self(encode_snapshot(&snapshot).into())
    }

    fn decode(&self) -> Option<Stats> {
        if self.0.is_empty() {
            return None;
        }
        match decode_snapshot(&self.0) {
            Ok(snapshot) => Some(snapshot.stats),
            Err(error) => {
                tracing::error!(%error, "a second of the stop rules' window cannot be read back");
                None
            }
        }
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
