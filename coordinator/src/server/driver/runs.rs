//! What becomes of runs: queued, split, carried out, ended.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use inrush_common::{
    assign::{Offer, split},
    id::{AgentName, RunId},
    plan::{Plan, Workload},
    report::{Loss, RunOutcome},
    units::Nanos,
};
use inrush_proto::v1::{self, coordinator_message::Kind};
use tokio::sync::watch;

use super::{Driver, Entry, MOST_QUEUED, watchdog::Watchdog};
use crate::{
    clock,
    registry::{Registry, Work},
    render::observed_and_limit,
    run::{Action, Broken, Event, Phase, Rules, RunState, StopMode},
    server::{Refusal, control::to_json},
    store::{Change, NewAgent, orphaned},
};

/// How long the driver waits for the shares of a run to be on disk. Shorter than any sensible lease: it does nothing
/// else meanwhile, so a disk that hangs must not keep it from the other agents.
const SHARES_WITHIN: Duration = Duration::from_secs(3);

impl Driver {
    /// Whether a run of this plan would be taken now.
    pub(super) fn would_take(&self, plan: &Plan) -> Result<(), Refusal> {
        let waiting = self.runs.iter().filter(|entry| !entry.is_under_way()).count();
        if waiting >= MOST_QUEUED {
            return Err(Refusal::QueueFull(waiting));
        }
        self.fits(plan, &self.offers(false)).map(drop)
    }

    /// Queues a run that is stored. Agents and queue may have changed since it was looked whether it would be taken.
    pub(super) fn queue(&mut self, run: RunId, plan: Plan) -> Result<(), Refusal> {
        self.would_take(&plan)?;
        tracing::info!(%run, plan = plan.name, "a run was submitted");
        let rules = Rules::of(&plan, self.config.ready_within, self.config.lease);
        self.runs.push_back(Entry::new(run, plan, rules));
        Ok(())
    }

    /// What the connected agents offer; only the `idle` ones, or all.
    fn offers(&self, idle: bool) -> Vec<Offer> {
        let agents = self.registry.connected();
        let agents = agents.filter(|known| !idle || known.work == Work::Idle);
        agents.map(|known| known.offer()).collect()
    }

    fn fits(
        &self,
        plan: &Plan,
        offers: &[Offer],
    ) -> Result<BTreeMap<AgentName, Workload>, Refusal> {
        let wanted = plan.agents.min.max(1);
        if offers.len() < usize::try_from(wanted).unwrap_or(usize::MAX) {
            return Err(Refusal::TooFewAgents {
                wanted,
                connected: self.registry.connected().count(),
                names: Registry::names(self.registry.connected()),
                address: self.address.to_string(),
            });
        }
        let shares = split(&plan.workload, offers)?;
        Ok(shares.into_iter().map(|share| (share.agent, share.workload)).collect())
    }

    /// Gives the first waiting run to all idle agents, if none is under way.
    pub(super) async fn start_next(&mut self) {
        // Agents that still hand in old results will be idle soon, or are let go.
        if !self.registry.leftovers().is_empty() {
            return;
        }
        let Some(front) = self.runs.front().filter(|entry| !entry.is_under_way()) else { return };
        let now = clock::now();
        match self.fits(&front.plan, &self.offers(true)) {
            Ok(shares) => self.prepare(shares).await,
            Err(refusal) => {
                let front = self.runs.front_mut().expect("it was there a moment ago");
                let since = *front.waits_since.get_or_insert(now);
                if now.saturating_duration_since(since) >= self.config.ready_within {
                    let detail = format!("when its turn came: {refusal}");
                    self.step_front(Event::GiveUp { detail }).await;
                } else if since == now {
                    front.publish(Some(refusal.to_string()));
                }
            }
        }
    }

    /// Hands out the shares, once they are on disk: a snapshot of an agent whose share is not known is not kept.
    async fn prepare(&mut self, shares: BTreeMap<AgentName, Workload>) {
        let Some(front) = self.runs.front() else { return };
        let run = front.id.clone();
        let agents: Vec<NewAgent> = shares
            .iter()
            .filter_map(|(name, share)| new_agent(&self.registry, name, share))
            .collect();
        let change = Change::Agents { run: run.clone(), agents };
        if let Err(error) = self.store.write_within(change, SHARES_WITHIN).await {
            tracing::error!(%run, "the shares could not be stored: {error}");
            let detail = format!("the agents' shares could not be stored: {error}");
            return self.step_front(Event::GiveUp { detail }).await;
        }
        let names: Vec<AgentName> = shares.keys().cloned().collect();
        for name in &names {
            self.registry.occupy(name, Work::Busy(run.clone()));
        }
        if let Some(front) = self.runs.front_mut() {
            front.watchdog =
                Watchdog::start(&front.id, &front.plan, names.iter().cloned(), &self.tasks);
            front.shares = shares;
        }
        self.step_front(Event::Prepare { now: clock::now(), agents: names }).await;
    }

    /// Ends the run that is under way when one of its stop rules is broken.
    pub(super) async fn look_at_the_rules(&mut self, now: Instant) {
        let Some(front) = self.runs.front_mut() else { return };
        let Some(broken) = front.watchdog.as_mut().and_then(Watchdog::broken) else { return };
        let evidence = evidence(&broken);
        tracing::warn!(run = %front.id, until_s = broken.second, "a stop rule is broken: {evidence}");
        let mode = if broken.rule.abort { StopMode::Abort } else { StopMode::Drain };
        self.step_front(Event::Broken { now, mode, evidence }).await;
    }

    /// Moves the run that is under way, if it is this one.
    pub(super) async fn step(&mut self, run: &RunId, event: Event) {
        if self.runs.front().is_some_and(|entry| entry.id == *run) {
            self.step_front(event).await;
        }
    }

    /// Moves the first run, and carries out what follows.
    pub(super) async fn step_front(&mut self, event: Event) {
        let Some(front) = self.runs.front_mut() else { return };
        let before = front.machine.state();
        let actions = front.machine.advance(event);
        let moved = front.machine.state() != before;
        // Handed to the store before anybody is told of it. Nobody waits until it is on disk, but changes get there in
        // order: where a snapshot of the run is kept, so is its start.
        if moved {
            self.note_state().await;
        }
        self.carry_out(actions).await;
        let Some(front) = self.runs.front() else { return };
        if front.machine.state().is_ended() {
            self.finish().await;
        } else if moved {
            front.publish(None);
        }
    }

    async fn note_state(&mut self) {
        let Some(front) = self.runs.front() else { return };
        let (run, state) = (front.id.clone(), front.machine.state());
        tracing::info!(%run, %state, detail = front.machine.detail(), "a run moved on");
        let (outcome, detail) = match front.machine.phase() {
            Phase::Ended(ending) => (ending.outcome, ending.detail.clone()),
            _ => (RunOutcome::Running, None),
        };
        let agents: Vec<AgentName> = front.shares.keys().cloned().collect();
        if let Phase::Ready { start } = front.machine.phase() {
            let at = clock::wall() + start.saturating_duration_since(clock::now());
            self.store.note(Change::Started { run: run.clone(), at }).await;
        }
        // Once for the case that we do not live to see the end, and once more with the best comparison.
        if state == RunState::Ready || state.is_ended() {
            for agent in agents {
                let clock = self.registry.get(&agent).and_then(|known| known.vitals.clock());
                if let Some(clock) = clock {
                    self.store.note(Change::Clock { run: run.clone(), agent, clock }).await;
                }
            }
        }
        self.store.note(Change::State { run, state, outcome, detail }).await;
    }

    pub(super) async fn carry_out(&mut self, actions: Vec<Action>) {
        let Some(run) = self.runs.front().map(|entry| entry.id.clone()) else { return };
        for action in actions {
            match action {
                Action::Assign { agent } => self.assign(&agent),
                Action::Start { agent, at } => {
                    let start = v1::Start { run: run.to_string(), at_ns: clock::ns_at(at) };
                    self.registry.send(&agent, Kind::Start(start));
                }
                Action::Stop { agent, mode, reason } => {
                    let stop = v1::Stop {
                        run: run.to_string(),
                        mode: Self::wire_mode(mode).into(),
                        reason: reason.name().to_owned(),
                    };
                    self.registry.send(&agent, Kind::Stop(stop));
                }
                Action::Release { agent } => self.release(&agent, &run),
                Action::NoteNotReady { agent, detail } => {
                    self.store.note(Change::NotReady { run: run.clone(), agent, detail }).await;
                }
                Action::NoteLost { agent, after_start, evidence } => {
                    self.note_lost(&run, agent, after_start, evidence).await;
                }
            }
        }
    }

    fn assign(&mut self, agent: &AgentName) {
        let Some(front) = self.runs.front() else { return };
        let Some(share) = front.shares.get(agent) else { return };
        let assign = v1::Assign {
            run: front.id.to_string(),
            workload: Some(share.into()),
            ready_within_ns: clock::nanos(self.config.ready_within),
        };
        self.registry.send(agent, Kind::Assign(assign));
    }

    async fn note_lost(
        &mut self,
        run: &RunId,
        agent: AgentName,
        after_start: Duration,
        evidence: String,
    ) {
        tracing::warn!(%run, %agent, "the run lost an agent: {evidence}");
        if let Some(front) = self.runs.front_mut() {
            front.live.lose(&agent);
            if let Some(watchdog) = &front.watchdog {
                watchdog.lost(agent.clone());
            }
        }
        if self.registry.get(&agent).is_some_and(crate::registry::Known::is_connected) {
            self.let_hand_in(&agent, run.clone(), clock::now());
        }
        let loss = Loss { at_ns: clock::nanos(after_start), evidence };
        self.store.note(Change::Lost { run: run.clone(), agent, loss }).await;
    }

    /// Takes the ended run out.
    async fn finish(&mut self) {
        if let Some(entry) = self.runs.pop_front() {
            let last = entry.update(None);
            self.report_on(entry, last);
        }
    }

    /// Has the report of a run derived, which is over for us, and makes it part of the `last` update.
    fn report_on(&mut self, entry: Entry, mut last: v1::RunUpdate) {
        self.finishing.push((entry.id.clone(), entry.updates.subscribe()));
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let report = store.report(&entry.id).await.map_err(Refusal::from);
            let found = report
                .and_then(|report| report.as_ref().map_or_else(|| Err(Refusal::NoRuns), to_json));
            match found {
                Ok(json) => last.report_json = json.into(),
                Err(refusal) => {
                    tracing::error!(run = %entry.id, "no report: {refusal}");
                    last.detail = format!("{}; no report: {refusal}", last.detail);
                }
            }
            entry.updates.send_replace(last);
        });
    }

    /// The updates of a run that is not over; the first one is of this moment.
    pub(super) fn watch(&self, run: &RunId) -> Option<watch::Receiver<v1::RunUpdate>> {
        self.publish_progress();
        let live = self.runs.iter().map(|entry| (&entry.id, entry.updates.subscribe()));
        let finishing = self.finishing.iter().map(|(id, updates)| (id, updates.clone()));
        finishing.chain(live).find(|(id, _)| *id == run).map(|(_, updates)| updates)
    }

    pub(super) async fn cancel(&mut self, run: &RunId, mode: StopMode) -> Option<RunState> {
        let place = self.runs.iter().position(|entry| entry.id == *run)?;
        tracing::info!(%run, ?mode, "a run is cancelled");
        // Only the first one moves: a waiting run is ended by taking it to the front for a moment.
        let entry = self.runs.remove(place)?;
        self.runs.push_front(entry);
        self.step_front(Event::Cancel { now: clock::now(), mode }).await;
        let state = self.runs.front().filter(|entry| entry.id == *run);
        Some(state.map_or(RunState::Cancelled, |entry| entry.machine.state()))
    }

    pub(super) fn publish_progress(&self) {
        if let Some(front) = self.runs.front().filter(|entry| entry.is_under_way()) {
            front.publish(None);
        }
    }

    /// The coordinator stops: load ends at once, and the runs are ended as they would be by the next start.
    pub(super) async fn stop(mut self) {
        while let Some(entry) = self.runs.pop_front() {
            let agents: Vec<&AgentName> =
                entry.shares.keys().filter(|agent| entry.machine.awaits(agent)).collect();
            for agent in agents {
                self.let_hand_in(agent, entry.id.clone(), clock::now());
            }
            let (outcome, detail) = orphaned(entry.machine.start().is_some());
            let mut last = entry.update(Some(detail.to_owned()));
            let state = RunState::Failed;
            last.state = v1::RunState::from(state).into();
            let (run, detail) = (entry.id.clone(), Some(detail.to_owned()));
            self.store.note(Change::State { run, state, outcome, detail }).await;
            self.report_on(entry, last);
        }
    }
}

/// "`failed_ratio < 5%` was broken over the last 10.0 s (observed 40.00 %)".
fn evidence(broken: &Broken) -> String {
    let (observed, _) = observed_and_limit(&broken.row);
    let (expression, after) = (&broken.row.expression, Nanos::from(broken.rule.after));
    format!("`{expression}` was broken over the last {after} (observed {observed})")
}

fn new_agent(registry: &Registry, name: &AgentName, share: &Workload) -> Option<NewAgent> {
    let identity = &registry.get(name)?.identity;
    Some(NewAgent {
        name: name.clone(),
        epoch: identity.epoch,
        version: identity.version.clone(),
        hostname: identity.hostname.clone(),
        workers: identity.capacity.workers,
        connections: share.peak_connections(),
        requested: share.requested_connections(),
        planned: share.phases.iter().map(|phase| phase.load.planned()).collect(),
    })
}
