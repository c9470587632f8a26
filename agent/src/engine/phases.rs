//! When phases come and go, and what a stop does to them.
//!
//! A worker knows the instants from the plan and its own clock. Nobody tells it.

use inrush_common::outcome::NotStarted;

use super::{
    alarms::Alarm,
    phase::{Model, Phase, Stage},
    traffic::Traffic,
};

/// The most connections that the phases which have not begun will need at one instant, together with those that are on
/// then, by how many of them have begun.
pub(super) fn needed_later(phases: &[Phase]) -> Vec<u64> {
    let ahead = |phase: &&Phase| phase.stage == Stage::Ahead;
    let mut starts: Vec<&Phase> = phases.iter().filter(ahead).collect();
    starts.sort_by_key(|phase| phase.starts_ns);
    let at_start = |start: &Phase| -> u64 {
        let at = start.starts_ns;
        let on = phases.iter().filter(|it| it.starts_ns <= at && at < it.ends_ns);
        on.map(Phase::connections).fold(0, u64::saturating_add)
    };
    let mut needed = vec![0; starts.len() + 1];
    for (place, start) in starts.iter().enumerate().rev() {
        needed[place] = needed[place + 1].max(at_start(start));
    }
    needed
}

impl Traffic {
    pub(super) fn begin_phase(&mut self, index: usize, now: u64) {
        if self.phases.iter().all(|phase| phase.stage != Stage::On) {
            // Since when nobody has answered counts from here: nobody has asked meanwhile.
            self.shared.reach.begin_anew();
        }
        let phase = &mut self.phases[index];
        if phase.stage != Stage::Ahead {
            return;
        }
        phase.stage = Stage::On;
        self.begun += 1;
        let phase = &self.phases[index];
        if phase.ends_ns < u64::MAX {
            self.alarms.set(phase.ends_ns, Alarm::PhaseEnds(index));
        }
        match &phase.model {
            Model::Open(_) => self.open_on.push(index),
            Model::Closed(_) => {
                self.begin_lanes(index, now);
                self.look_through(index, now);
            }
        }
    }

    /// The phase's time is over: nothing of it comes up any more, and what is in flight has its grace.
    pub(super) fn end_phase(&mut self, index: usize, now: u64) {
        if self.phases[index].stage != Stage::On {
            return;
        }
        // A worker that was held up finds the end and the last requests due at once.
        self.take_due(now);
        let ends_ns = self.phases[index].ends_ns;
        self.phases[index].stage = Stage::Ending;
        if let Model::Closed(_) = self.phases[index].model {
            self.phases[index].budget.close();
            self.stop_opening_for(index);
            self.wake_thinkers(index);
            self.settle(index, NotStarted::DurationEnded);
        }
        self.alarms.set(ends_ns.saturating_add(self.grace_ns), Alarm::GraceEnds(index));
        self.look_through(index, ends_ns);
    }

    /// The phase's grace is over: what is in flight stays so in the accounts.
    pub(super) fn give_up(&mut self, index: usize, at: u64) {
        if self.phases[index].stage == Stage::Ending {
            self.phases[index].stage = Stage::Over;
            self.close_busy(index);
            self.conclude(index, NotStarted::StillQueued, at);
        }
    }

    /// Closes the phase if nothing more will come of it. Its last request, or its time, has ended `at` this instant.
    pub(super) fn look_through(&mut self, index: usize, at: u64) {
        if self.phases[index].is_through() {
            self.phases[index].stage = Stage::Over;
            self.conclude(index, NotStarted::DurationEnded, at);
        }
    }

    /// The phase is over.
    fn conclude(&mut self, index: usize, reason: NotStarted, at: u64) {
        self.stop_opening_for(index);
        self.wake_thinkers(index);
        self.settle(index, reason);
        let until_ns = &mut self.stats.phases[index].until_ns;
        *until_ns = at.max(*until_ns);
        self.open_on.retain(|open| *open != index);
        if at < self.phases[index].ends_ns {
            // It would have had the time to be on together with later ones.
            (self.needed_later, self.begun) = (needed_later(&self.phases), 0);
        }
        self.close_surplus();
    }

    /// Puts what of the phase was not begun, and never will be, into the accounts.
    fn settle(&mut self, index: usize, reason: NotStarted) {
        let left = self.phases[index].budget.forfeit();
        for (stats, left) in self.stats.phases[index].requests.iter_mut().zip(left) {
            stats.not_started[reason as usize] += left;
        }
    }

    /// No request of any phase begins any more; those on their way go on.
    pub(super) fn stop(&mut self, reason: NotStarted, now: u64) {
        self.begun = self.needed_later.len() - 1;
        for index in 0..self.phases.len() {
            let phase = &mut self.phases[index];
            let waits = match &mut phase.model {
                Model::Closed(_) => false,
                Model::Open(open) => open.waits(),
            };
            match phase.stage {
                Stage::Over => continue,
                Stage::Ending if !waits => continue,
                Stage::Ahead => {
                    phase.stage = Stage::Over;
                    self.interrupted = true;
                    self.settle(index, reason);
                    continue;
                }
                Stage::On | Stage::Ending => {
                    self.interrupted |= !phase.budget.is_all_begun();
                    phase.stopped = true;
                    phase.stage = Stage::Ending;
                }
            }
            if let Model::Open(open) = &mut phase.model {
                open.clear_waiting();
            }
            phase.budget.close();
            self.stop_opening_for(index);
            self.wake_thinkers(index);
            self.settle(index, reason);
            self.open_on.retain(|open| *open != index);
            self.look_through(index, now);
        }
    }

    /// Gives up what is on its way: it stays in the accounts as in flight.
    pub(super) fn abandon(&mut self, now: u64) {
        for index in 0..self.phases.len() {
            let phase = &mut self.phases[index];
            if phase.stage != Stage::Over {
                self.interrupted |= phase.stopped && phase.in_flight > 0;
                phase.stage = Stage::Over;
                self.close_busy(index);
                self.conclude(index, NotStarted::Aborted, now);
            }
        }
    }

    /// Says of every phase at work that it is.
    pub(super) fn mark_time(&mut self, now: u64) {
        for (phase, stats) in self.phases.iter().zip(&mut self.stats.phases) {
            let until_ns = match phase.stage {
                Stage::Ahead | Stage::Over => continue,
                // Its end may have come, and the worker has not seen to it yet.
                Stage::On => now.min(phase.ends_ns),
                Stage::Ending => now,
            };
            stats.until_ns = stats.until_ns.max(until_ns);
        }
    }
}
