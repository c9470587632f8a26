//! The run state machine: one pure function from state and event to state and actions.
//!
//! It knows no clock, no socket and no store: time comes with the events, and what is to be done comes out as
//! [`Action`]s. An event that means nothing in a state changes nothing.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use inrush_common::{
    id::AgentName, outcome::NotStarted, plan::OnLoss, report::RunOutcome, stats::Completion,
    units::Nanos,
};

use super::{
    Action, Cause, Ending, Event, NotReadyKind, Phase, Rules, RunState, StopMode,
    rules::HAND_IN_MARGIN,
    words::{list, missing},
};

/// At least so far ahead lies the start when the last agent is ready: the message has to reach all of them.
const START_LEAD: Duration = Duration::from_millis(300);
/// Or so many round trips of the farthest agent.
const START_LEAD_ROUND_TRIPS: u32 = 4;
/// But no farther: round trips that long are no clock comparison, whatever an agent says of it.
const LONGEST_LEAD: Duration = Duration::from_secs(10);
/// An agent that is heard of and hands in nothing, not even an empty snapshot, is of no more use than a silent one.
const NOTHING_HANDED_IN: Duration = Duration::from_secs(60);

/// An agent's part in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Has its share, has not answered.
    Assigned,
    /// Is ready, or makes load. `heard` is when it last handed in anything.
    Ready { heard: Instant, round_trip: Duration },
    /// Handed in its last snapshot.
    Done,
    /// Handed in its last snapshot in mid-run, unasked.
    Left,
    /// Cannot take part.
    NotReady,
    /// Is lost.
    Lost,
}

/// A run and its agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    rules: Rules,
    phase: Phase,
    agents: BTreeMap<AgentName, Part>,
}

impl Run {
    /// A run that waits for its turn.
    pub const fn new(rules: Rules) -> Self {
        Self { rules, phase: Phase::Queued, agents: BTreeMap::new() }
    }

    /// [`step`](Self::step) in place.
    pub fn advance(&mut self, event: Event) -> Vec<Action> {
        let run = std::mem::replace(self, Self::new(self.rules));
        let (run, actions) = run.step(event);
        *self = run;
        actions
    }

    /// Where it stands.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Where it stands, as it is told to people.
    pub const fn state(&self) -> RunState {
        self.phase.state()
    }

    /// The agreed start, once there is one.
    pub const fn start(&self) -> Option<Instant> {
        match self.phase {
            Phase::Ready { start } | Phase::Running { start } | Phase::Draining { start, .. } => {
                Some(start)
            }
            Phase::Queued | Phase::Preparing { .. } | Phase::Ended(_) => None,
        }
    }

    /// How many of its agents are lost.
    pub fn lost(&self) -> usize {
        self.agents.values().filter(|part| **part == Part::Lost).count()
    }

    /// Whether something is still expected of this agent.
    pub fn awaits(&self, agent: &AgentName) -> bool {
        let part = self.agents.get(agent);
        !self.state().is_ended() && matches!(part, Some(Part::Assigned | Part::Ready { .. }))
    }

    /// One line for people: what the run waits for, or why it ended.
    pub fn detail(&self) -> String {
        match &self.phase {
            Phase::Queued => "waits for its turn".to_owned(),
            Phase::Preparing { .. } => {
                format!("waits for {} to get ready", list(self.with(is_assigned)))
            }
            Phase::Ready { .. } => "all agents are ready, about to start".to_owned(),
            Phase::Running { .. } => String::new(),
            Phase::Draining { cause, .. } => {
                let why = match cause {
                    Cause::Cancelled => "cancelled",
                    Cause::Broken(words) | Cause::Aborted(words) => words,
                };
                format!("{why}; waits for the last numbers of {}", list(self.with(is_ready)))
            }
            Phase::Ended(ending) => ending.detail.clone().unwrap_or_default(),
        }
    }

    /// Whether this agent handed in its last snapshot.
    pub fn is_done(&self, agent: &AgentName) -> bool {
        matches!(self.agents.get(agent), Some(Part::Done | Part::Left))
    }

    /// What an agent has to be told again when it comes back on a new stream: anything sent on the old one may be
    /// lost. `holds` tells whether it still has its share; `None`: it cannot go on without.
    pub fn again(&self, agent: &AgentName, holds: bool) -> Option<Vec<Action>> {
        let part = self.agents.get(agent).filter(|_| self.awaits(agent));
        let Some(part) = part else { return Some(Vec::new()) };
        let agent = agent.clone();
        match &self.phase {
            Phase::Preparing { .. } if is_assigned(part) => Some(vec![Action::Assign { agent }]),
            _ if !holds => None,
            Phase::Ready { start } | Phase::Running { start } => {
                Some(vec![Action::Start { agent, at: *start }])
            }
            Phase::Draining { cause, mode, .. } => {
                Some(vec![Action::Stop { agent, mode: *mode, reason: reason(cause) }])
            }
            Phase::Queued | Phase::Preparing { .. } | Phase::Ended(_) => Some(Vec::new()),
        }
    }

    /// What becomes of the run when `event` happens, and what is to be done.
    pub fn step(mut self, event: Event) -> (Self, Vec<Action>) {
        let mut actions = Vec::new();
        match event {
            Event::Prepare { now, agents } => self.prepare(now, agents, &mut actions),
            Event::GiveUp { detail } => {
                if self.phase == Phase::Queued {
                    self.end(RunOutcome::Failed, Some(detail), &mut actions);
                }
            }
            Event::Ready { now, agent, round_trip } => {
                self.ready(now, &agent, round_trip, &mut actions);
            }
            Event::NotReady { agent, kind, detail } => {
                self.not_ready(agent, kind, &detail, &mut actions);
            }
            Event::Stored { now, agent, last } => {
                self.stored(now, &agent, last.as_ref(), &mut actions);
            }
            Event::Lost { now, heard, agent, evidence } => {
                self.agent_lost(now, heard, agent, evidence, &mut actions);
            }
            Event::Broken { now, mode, evidence } => {
                self.broken(now, mode, evidence, &mut actions);
            }
            Event::Cancel { now, mode } => self.cancel(now, mode, &mut actions),
            Event::Tick { now } => self.tick(now, &mut actions),
        }
        (self, actions)
    }

    fn prepare(&mut self, now: Instant, agents: Vec<AgentName>, actions: &mut Vec<Action>) {
        if self.phase != Phase::Queued {
            return;
        }
        if agents.is_empty() {
            let detail = Some("no agent to give a share to".to_owned());
            return self.end(RunOutcome::Failed, detail, actions);
        }
        self.phase = Phase::Preparing { until: now + self.rules.ready_within };
        actions.extend(agents.iter().map(|agent| Action::Assign { agent: agent.clone() }));
        self.agents = agents.into_iter().map(|agent| (agent, Part::Assigned)).collect();
    }

    fn ready(
        &mut self,
        now: Instant,
        agent: &AgentName,
        round_trip: Duration,
        actions: &mut Vec<Action>,
    ) {
        let Phase::Preparing { .. } = self.phase else { return };
        let Some(part @ Part::Assigned) = self.agents.get_mut(agent) else { return };
        if round_trip.saturating_mul(START_LEAD_ROUND_TRIPS) > LONGEST_LEAD {
            *part = Part::NotReady;
            let known = Nanos::from(round_trip / 2);
            let detail = format!("its clock is only known to ±{known}");
            let words = format!("the clock of {agent} is only known to ±{known}");
            actions.push(Action::NoteNotReady { agent: agent.clone(), detail });
            return self.end(RunOutcome::Failed, Some(words), actions);
        }
        *part = Part::Ready { heard: now, round_trip };
        if self.agents.values().any(is_assigned) {
            return;
        }
        let farthest = self.agents.values().filter_map(|part| match part {
            Part::Ready { round_trip, .. } => Some(*round_trip),
            _ => None,
        });
        let farthest = farthest.max().unwrap_or_default();
        let lead = START_LEAD.max(farthest.saturating_mul(START_LEAD_ROUND_TRIPS));
        let start = now + lead;
        self.phase = Phase::Ready { start };
        actions.extend(
            self.agents.keys().map(|agent| Action::Start { agent: agent.clone(), at: start }),
        );
    }

    fn not_ready(
        &mut self,
        agent: AgentName,
        kind: NotReadyKind,
        detail: &str,
        actions: &mut Vec<Action>,
    ) {
        let Phase::Preparing { .. } = self.phase else { return };
        let Some(part) = self.agents.get_mut(&agent) else { return };
        *part = Part::NotReady;
        actions.push(Action::NoteNotReady { agent: agent.clone(), detail: detail.to_owned() });
        let (outcome, words) = match kind {
            NotReadyKind::TargetUnreachable => (
                RunOutcome::TargetUnreachable,
                format!("{agent} could not reach the target: {detail}"),
            ),
            NotReadyKind::Forbidden => {
                (RunOutcome::Forbidden, format!("{agent} may not take part: {detail}"))
            }
            NotReadyKind::Other => (RunOutcome::Failed, format!("{agent} is not ready: {detail}")),
        };
        self.end(outcome, Some(words), actions);
    }

    fn stored(
        &mut self,
        now: Instant,
        agent: &AgentName,
        last: Option<&Completion>,
        actions: &mut Vec<Action>,
    ) {
        if !self.awaits(agent) {
            return;
        }
        if let (Phase::Preparing { .. }, Some(_)) = (&self.phase, last) {
            return self.left_before_the_start(agent, actions);
        }
        // An agent's clock may be a little ahead of ours: its first snapshot shows that the load runs.
        if let Phase::Ready { start } = self.phase {
            self.phase = Phase::Running { start };
        }
        let (Phase::Running { .. } | Phase::Draining { .. }) = self.phase else { return };
        let Some(part @ Part::Ready { .. }) = self.agents.get_mut(agent) else { return };
        let Some(completion) = last else {
            if let Part::Ready { heard, .. } = part {
                *heard = now;
            }
            return;
        };
        let left = why_it_left(completion).filter(|_| matches!(self.phase, Phase::Running { .. }));
        *part = if left.is_some() { Part::Left } else { Part::Done };
        match (left, self.rules.on_loss) {
            (Some(why), OnLoss::Abort) => {
                let words = format!("{agent} left in mid-run: {why}");
                self.cut_short(now, Cause::Aborted(words), StopMode::Abort, actions);
            }
            _ => self.end_if_all_over(actions),
        }
    }

    fn left_before_the_start(&mut self, agent: &AgentName, actions: &mut Vec<Action>) {
        self.agents.insert(agent.clone(), Part::NotReady);
        let detail = "left before the start".to_owned();
        let words = format!("{agent} {detail}");
        actions.push(Action::NoteNotReady { agent: agent.clone(), detail });
        self.end(RunOutcome::Failed, Some(words), actions);
    }

    fn agent_lost(
        &mut self,
        now: Instant,
        heard: Instant,
        agent: AgentName,
        evidence: String,
        actions: &mut Vec<Action>,
    ) {
        if !self.awaits(&agent) {
            return;
        }
        let words = format!("{agent} was lost: {evidence}");
        self.note_lost(heard, agent, evidence, actions);
        match (&self.phase, self.rules.on_loss) {
            (Phase::Preparing { .. }, _) => self.end(RunOutcome::Failed, Some(words), actions),
            (Phase::Ready { .. } | Phase::Running { .. }, OnLoss::Abort) => {
                self.cut_short(now, Cause::Aborted(words), StopMode::Abort, actions);
            }
            _ => self.end_if_all_over(actions),
        }
    }

    /// A run that is being stopped already goes on being stopped for its first reason.
    fn broken(
        &mut self,
        now: Instant,
        mode: StopMode,
        evidence: String,
        actions: &mut Vec<Action>,
    ) {
        if let Phase::Running { .. } = self.phase {
            self.cut_short(now, Cause::Broken(evidence), mode, actions);
        }
    }

    fn cancel(&mut self, now: Instant, mode: StopMode, actions: &mut Vec<Action>) {
        match &self.phase {
            Phase::Queued | Phase::Preparing { .. } => {
                let detail = Some("cancelled before the load started".to_owned());
                self.end(RunOutcome::Cancelled, detail, actions);
            }
            Phase::Ready { .. } | Phase::Running { .. } => {
                self.cut_short(now, Cause::Cancelled, mode, actions);
            }
            Phase::Draining { cause, mode: StopMode::Drain, .. } if mode == StopMode::Abort => {
                self.cut_short(now, cause.clone(), mode, actions);
            }
            Phase::Draining { .. } | Phase::Ended(_) => {}
        }
    }

    fn tick(&mut self, now: Instant, actions: &mut Vec<Action>) {
        match &self.phase {
            Phase::Preparing { until } if now >= *until => self.ready_is_overdue(actions),
            Phase::Ready { start } if now >= *start => {
                self.phase = Phase::Running { start: *start };
            }
            Phase::Running { start } => {
                let due = self.rules.ends_within.and_then(|within| start.checked_add(within));
                if due.is_some_and(|due| now >= due) {
                    let late = list(self.with(is_ready));
                    let words = format!("{late} went on beyond the end of the plan's duration");
                    self.cut_short(now, Cause::Aborted(words), StopMode::Abort, actions);
                } else {
                    self.lose_the_useless(now, actions);
                }
            }
            Phase::Draining { mode: StopMode::Drain, cause, until, .. } if now >= *until => {
                self.cut_short(now, cause.clone(), StopMode::Abort, actions);
            }
            Phase::Draining { until, .. } if now >= *until => {
                let within = Nanos::from(HAND_IN_MARGIN);
                for agent in self.with(is_ready) {
                    let evidence =
                        format!("did not hand in its last numbers within {within} of the stop");
                    self.note_lost(now, agent, evidence, actions);
                }
                self.end_if_all_over(actions);
            }
            _ => {}
        }
    }

    fn ready_is_overdue(&mut self, actions: &mut Vec<Action>) {
        let within = Nanos::from(self.rules.ready_within);
        let detail = format!("did not report ready within {within}");
        let late = self.with(is_assigned);
        for agent in &late {
            self.agents.insert(agent.clone(), Part::NotReady);
            actions.push(Action::NoteNotReady { agent: agent.clone(), detail: detail.clone() });
        }
        self.end(RunOutcome::Failed, Some(format!("{} {detail}", list(late))), actions);
    }

    fn lose_the_useless(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let useless = self.with(|part| {
            matches!(part, Part::Ready { heard, .. }
                if now.saturating_duration_since(*heard) >= NOTHING_HANDED_IN)
        });
        for agent in useless {
            let evidence = format!(
                "it is connected, but handed in nothing for {}",
                Nanos::from(NOTHING_HANDED_IN)
            );
            self.agent_lost(now, now, agent, evidence, actions);
        }
    }

    /// Tells the agents that still make load to stop.
    fn cut_short(&mut self, now: Instant, cause: Cause, mode: StopMode, actions: &mut Vec<Action>) {
        let Some(start) = self.start() else { return };
        let reason = reason(&cause);
        let busy = self.with(is_ready);
        actions.extend(busy.into_iter().map(|agent| Action::Stop { agent, mode, reason }));
        let wait = match mode {
            StopMode::Drain => self.rules.grace.saturating_add(HAND_IN_MARGIN),
            StopMode::Abort => HAND_IN_MARGIN,
        };
        self.phase = Phase::Draining { start, cause, mode, until: now + wait };
        self.end_if_all_over(actions);
    }

    fn end_if_all_over(&mut self, actions: &mut Vec<Action>) {
        if self.agents.values().any(|part| is_ready(part) || is_assigned(part)) {
            return;
        }
        let lost = self.with(|part| *part == Part::Lost);
        let left = self.with(|part| *part == Part::Left);
        let all_gone = lost.len() + left.len() == self.agents.len();
        let (outcome, words) = match &self.phase {
            Phase::Draining { cause: Cause::Cancelled, .. } => {
                (RunOutcome::Cancelled, Some("cancelled by the user".to_owned()))
            }
            Phase::Draining { cause: Cause::Broken(words), .. } => {
                (RunOutcome::StoppedByThreshold, Some(format!("stopped: {words}")))
            }
            Phase::Draining { cause: Cause::Aborted(words), .. } => {
                (RunOutcome::Aborted, Some(words.clone()))
            }
            _ if all_gone => {
                let how = if left.is_empty() { "was lost" } else { "was lost or left" };
                (RunOutcome::Aborted, Some(format!("every agent {how}")))
            }
            _ => (RunOutcome::Finished, missing(lost, left)),
        };
        self.end(outcome, words, actions);
    }

    fn note_lost(
        &mut self,
        at: Instant,
        agent: AgentName,
        evidence: String,
        actions: &mut Vec<Action>,
    ) {
        let after_start =
            self.start().map_or(Duration::ZERO, |start| at.saturating_duration_since(start));
        self.agents.insert(agent.clone(), Part::Lost);
        actions.push(Action::NoteLost { agent, after_start, evidence });
    }

    /// The end: everybody who is not lost is free again.
    fn end(&mut self, outcome: RunOutcome, detail: Option<String>, actions: &mut Vec<Action>) {
        let present = self.with(|part| *part != Part::Lost);
        actions.extend(present.into_iter().map(|agent| Action::Release { agent }));
        self.phase = Phase::Ended(Ending { outcome, detail });
    }

    fn with(&self, wanted: impl Fn(&Part) -> bool) -> Vec<AgentName> {
        let agents = self.agents.iter().filter(|(_, part)| wanted(part));
        agents.map(|(agent, _)| agent.clone()).collect()
    }
}

const fn is_assigned(part: &Part) -> bool {
    matches!(part, Part::Assigned)
}

const fn is_ready(part: &Part) -> bool {
    matches!(part, Part::Ready { .. })
}

/// An end that nobody asked the agent for; `None`: its part is done.
const fn why_it_left(completion: &Completion) -> Option<&str> {
    match completion {
        Completion::Finished | Completion::TargetUnreachable(_) => None,
        Completion::Stopped => Some("it was stopped on its own machine"),
        Completion::LeaseExpired => Some("it did not hear of the coordinator for its lease"),
        Completion::Internal(words) => Some(words.as_str()),
    }
}

const fn reason(cause: &Cause) -> NotStarted {
    match cause {
        Cause::Cancelled => NotStarted::Cancelled,
        Cause::Broken(_) => NotStarted::ThresholdBroken,
        Cause::Aborted(_) => NotStarted::Aborted,
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
