//! What becomes of runs: queued, split, carried out, ended.

use std::{collections::BTreeMap, time::Duration};

use inrush_common::{
    assign::{Offer, split},
    id::{AgentName, RunId},
    plan::{Load, Plan, Workload},
    report::{Loss, RunOutcome},
};
use inrush_proto::v1::{self, coordinator_message::Kind};
use tokio::sync::watch;

use super::{Driver, Entry, MOST_QUEUED};
use crate::{
    clock,
    registry::{Registry, Work},
    run::{Action, Event, Phase, Rules, RunState, StopMode, new_id},
    server::{Refusal, VERSION, control::to_json, event::Submission},
    store::{Change, NewAgent, NewRun},
};

impl Driver {
    pub(super) async fn submit(&mut self, submission: Submission) -> Result<RunId, Refusal> {
        let Submission { plan, source_name, source, files } = submission;
        let waiting = self.runs.iter().filter(|entry| !entry.is_under_way()).count();
        if waiting >= MOST_QUEUED {
            return Err(Refusal::QueueFull(waiting));
        }
        self.fits(&plan, &self.offers(false))?;
        let submitted_at = clock::wall();
        let mut run = new_id(submitted_at);
        while self.store.run(&run).await?.is_some() {
            run = new_id(submitted_at);
        }
        let new = NewRun {
            run: run.clone(),
            plan: plan.name.clone(),
            source_name,
            source,
            files,
            version: VERSION.to_owned(),
            submitted_at,
        };
        self.store.write(Change::Run(Box::new(new))).await?;
        tracing::info!(%run, plan = plan.name, "a run was submitted");
        let rules = Rules::of(&plan, self.config.ready_within, self.config.lease);
        self.runs.push_back(Entry::new(run.clone(), plan, rules));
        Ok(run)
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

    async fn prepare(&mut self, shares: BTreeMap<AgentName, Workload>) {
        let Some(front) = self.runs.front_mut() else { return };
        let run = front.id.clone();
        let agents: Vec<NewAgent> = shares
            .iter()
            .filter_map(|(name, share)| new_agent(&self.registry, name, share))
            .collect();
        let names: Vec<AgentName> = shares.keys().cloned().collect();
        front.shares = shares;
        for name in &names {
            self.registry.occupy(name, Work::Busy(run.clone()));
        }
        self.store.note(Change::Agents { run, agents }).await;
        self.step_front(Event::Prepare { now: clock::now(), agents: names }).await;
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
        // Stored before anybody is told of it.
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
        }
        if self.registry.get(&agent).is_some_and(crate::registry::Known::is_connected) {
            self.let_hand_in(&agent, run.clone(), clock::now());
        }
        let loss = Loss { at_ns: clock::nanos(after_start), evidence };
        self.store.note(Change::Lost { run: run.clone(), agent, loss }).await;
    }

    /// Takes the ended run out, and has its report derived for its watchers.
    async fn finish(&mut self) {
        let Some(entry) = self.runs.pop_front() else { return };
        let (run, updates) = (entry.id.clone(), entry.updates.subscribe());
        self.finishing.push((run, updates));
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let report = store.report(&entry.id).await.map_err(Refusal::from);
            let found = report
                .and_then(|report| report.as_ref().map_or_else(|| Err(Refusal::NoRuns), to_json));
            let mut last = entry.update(None);
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
            let detail = if entry.is_under_way() {
                "the coordinator stopped during this run"
            } else {
                "the coordinator stopped before this run started"
            };
            let state = RunState::Failed;
            let mut last = entry.update(Some(detail.to_owned()));
            last.state = v1::RunState::from(state).into();
            entry.updates.send_replace(last);
            let (run, detail) = (entry.id, Some(detail.to_owned()));
            self.store
                .note(Change::State { run, state, outcome: RunOutcome::Failed, detail })
                .await;
        }
    }
}

fn new_agent(registry: &Registry, name: &AgentName, share: &Workload) -> Option<NewAgent> {
    let identity = &registry.get(name)?.identity;
    let Load::Closed(load) = &share.load;
    Some(NewAgent {
        name: name.clone(),
        epoch: identity.epoch,
        version: identity.version.clone(),
        hostname: identity.hostname.clone(),
        workers: identity.capacity.workers,
        connections: load.connections,
        requests: load.requests,
    })
}
