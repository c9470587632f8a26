//! A run as the driver has it: the state machine, and what it needs to carry out its actions.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use inrush_common::{
    id::{AgentName, RunId},
    plan::{Plan, Workload},
};
use inrush_proto::v1;
use tokio::sync::watch;

use super::watchdog::Watchdog;
use crate::{
    aggregate::{Frame, Live},
    clock,
    run::{Rules, Run, RunState},
};

pub(super) struct Entry {
    pub(super) id: RunId,
    pub(super) plan: Plan,
    pub(super) machine: Run,
    /// Each agent's share, once it is split.
    pub(super) shares: BTreeMap<AgentName, Workload>,
    pub(super) live: Live,
    /// Watches the plan's stop rules, once the shares are given out.
    pub(super) watchdog: Option<Watchdog>,
    /// Since when it is its turn and something is missing.
    pub(super) waits_since: Option<Instant>,
    pub(super) updates: watch::Sender<v1::RunUpdate>,
}

impl Entry {
    pub(super) fn new(id: RunId, plan: Plan, rules: Rules) -> Self {
        let machine = Run::new(rules);
        let (updates, _) = watch::channel(v1::RunUpdate::default());
        let entry = Self {
            id,
            plan,
            machine,
            shares: BTreeMap::new(),
            live: Live::default(),
            watchdog: None,
            waits_since: None,
            updates,
        };
        entry.publish(None);
        entry
    }

    /// Tells watchers how things stand. `detail` replaces the state machine's own.
    pub(super) fn publish(&self, detail: Option<String>) {
        self.updates.send_replace(self.update(detail));
    }

    pub(super) fn update(&self, detail: Option<String>) -> v1::RunUpdate {
        v1::RunUpdate {
            run: self.id.to_string(),
            state: v1::RunState::from(self.machine.state()).into(),
            detail: detail.unwrap_or_else(|| self.machine.detail()),
            progress: Some(self.live.progress(self.frame())),
            report_json: Default::default(),
        }
    }

    fn frame(&self) -> Frame<'_> {
        let started = self.machine.start();
        let elapsed =
            started.map_or(Duration::ZERO, |start| clock::now().saturating_duration_since(start));
        Frame {
            elapsed,
            workload: &self.plan.workload,
            agents: self.shares.len(),
            lost: self.machine.lost(),
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.machine.state() != RunState::Queued
    }
}
