//! The closed model: every lane sends its next request when its last response has ended.
//!
//! A lane is one of the connections that the plan asks for. While it is on, it has a connection, and nobody else gets it.

use std::time::Duration;

use inrush_common::plan::ThinkTime;

use super::{
    alarms::Alarm,
    phase::{Model, Stage},
    slots::{Order, Purpose, State},
    traffic::Traffic,
};
use crate::clock;

/// After a failed attempt a lane waits so long, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Traffic {
    /// Sets an alarm for each lane's first turn.
    pub(super) fn begin_lanes(&mut self, phase: usize, now: u64) {
        let Model::Closed(lanes) = &self.phases[phase].model else { return };
        for lane in 0..lanes.lanes.len() {
            let lane = u32::try_from(lane).expect("a worker has fewer lanes than that");
            self.set_lane_alarm(phase, lane, now);
        }
    }

    /// Sets the alarm for the lane's next turn; one that has none leaves.
    fn set_lane_alarm(&mut self, phase: usize, lane: u32, now: u64) {
        let starts_ns = self.phases[phase].starts_ns;
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        // Late as the worker may be, a span that began meanwhile has begun.
        match lanes.next_turn(lane, now.max(starts_ns)) {
            Some(at) => self.alarms.set(at, Alarm::Lane { phase, lane }),
            None => lanes.alive -= 1,
        }
    }

    /// A lane turns on, or goes on after a pause.
    pub(super) fn wake_lane(&mut self, phase: usize, lane: u32, at: u64, now: u64) {
        let entry = &mut self.phases[phase];
        let Model::Closed(lanes) = &mut entry.model else { return };
        if entry.stage != Stage::On {
            return;
        }
        let mine = &mut lanes.lanes[lane as usize];
        let slot = mine.slot.take();
        if std::mem::take(&mut mine.thinks) {
            mine.intended_ns = Some(at);
        }
        if now >= mine.off_ns && lanes.next_turn(lane, now) != Some(now) {
            if let Some(index) = slot {
                self.close(index, State::Free);
            }
            self.set_lane_alarm(phase, lane, now);
            return self.look_through(phase, now);
        }
        if !self.phases[phase].budget.claim(now) {
            return self.leave(phase, slot, now);
        }
        match slot.or_else(|| self.take_idle()) {
            Some(index) => {
                self.slots.engage(index);
                // Many lanes may wake at once, and each is sent after the other.
                let now = self.timeline.now_ns();
                self.begin_of_lane(index, phase, lane, now);
                self.drive(index);
            }
            None => {
                let index = self.slots.take_free(&mut self.ready);
                self.enqueue(index, Purpose::Lane { phase, lane });
            }
        }
    }

    /// Begins the lane's next request on a connection; the claim on it is made.
    pub(super) fn begin_of_lane(&mut self, index: usize, phase: usize, lane: u32, now: u64) {
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        let mine = &mut lanes.lanes[lane as usize];
        mine.failures = 0;
        let intended_ns = mine.intended_ns.take().unwrap_or(now);
        self.begin(index, Order { phase, lane, intended_ns }, now);
    }

    /// The lane's request has ended, `since` so long. Its connection is good for another one if `reusable`.
    pub(super) fn lane_is_free(&mut self, index: usize, order: Order, since: u64, reusable: bool) {
        let Order { phase, lane, .. } = order;
        let now = self.timeline.now_ns();
        let entry = &mut self.phases[phase];
        let Model::Closed(lanes) = &mut entry.model else { return };
        if entry.stage != Stage::On {
            return self.leave_with(index, phase, reusable, now);
        }
        if now >= lanes.lanes[lane as usize].off_ns && lanes.next_turn(lane, now) != Some(now) {
            self.close(index, State::Free);
            self.set_lane_alarm(phase, lane, now);
            return self.look_through(phase, now);
        }
        if lanes.think_time != ThinkTime::None && !entry.budget.is_spent() {
            return self.think(index, phase, lane, since, reusable);
        }
        if !entry.budget.claim(now) {
            lanes.alive -= 1;
            return self.leave_with(index, phase, reusable, now);
        }
        lanes.lanes[lane as usize].intended_ns = Some(since);
        if reusable {
            self.begin_of_lane(index, phase, lane, now);
        } else {
            self.close(index, State::Queued(Purpose::Lane { phase, lane }));
            self.opening.enqueue(index);
        }
    }

    fn think(&mut self, index: usize, phase: usize, lane: u32, since: u64, reusable: bool) {
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        let wakes_ns = since.saturating_add(clock::nanos(lanes.pause(lane)));
        let mine = &mut lanes.lanes[lane as usize];
        mine.thinks = true;
        let at = wakes_ns.min(mine.off_ns);
        mine.slot = reusable.then_some(index);
        self.alarms.set(at, Alarm::Lane { phase, lane });
        if reusable {
            self.slots.rest(index, State::Thinking);
        } else {
            self.close(index, State::Free);
        }
    }

    /// The connection of a lane that thinks has ended.
    pub(super) fn lane_lost(&mut self, order: Order) {
        if let Model::Closed(lanes) = &mut self.phases[order.phase].model {
            lanes.lanes[order.lane as usize].slot = None;
        }
    }

    /// The lane's connection was gone before its request had begun: the claim goes on to the next one.
    pub(super) fn reconnect_lane(&mut self, index: usize, order: Order) {
        let Order { phase, lane, intended_ns } = order;
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        lanes.lanes[lane as usize].intended_ns = Some(intended_ns);
        self.close(index, State::Queued(Purpose::Lane { phase, lane }));
        self.opening.enqueue(index);
    }

    /// A connection attempt of the lane begins; when the request it is for was wanted.
    pub(super) fn lane_connects(&mut self, phase: usize, lane: u32, now: u64) {
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        let mine = &mut lanes.lanes[lane as usize];
        if mine.failures > 0 {
            // The pause before this attempt was ours, not the target's.
            mine.intended_ns = Some(now);
        }
    }

    /// A connection attempt of the lane has failed, and with it the request it was for. When that was wanted, if it was
    /// before the attempt.
    pub(super) fn lane_failed(&mut self, phase: usize, lane: u32, now: u64) -> Option<u64> {
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return None };
        let mine = &mut lanes.lanes[lane as usize];
        let pause = FIRST_PAUSE.saturating_mul(1 << mine.failures.min(16)).min(LONGEST_PAUSE);
        mine.failures += 1;
        let intended_ns = mine.intended_ns.take();
        self.alarms.set(now.saturating_add(clock::nanos(pause)), Alarm::Lane { phase, lane });
        intended_ns
    }

    /// The connections of lanes that think go to whoever needs them.
    pub(super) fn wake_thinkers(&mut self, phase: usize) {
        let Model::Closed(lanes) = &mut self.phases[phase].model else { return };
        lanes.alive = 0;
        let slots: Vec<usize> =
            lanes.lanes.iter_mut().filter_map(|lane| lane.slot.take()).collect();
        for index in slots {
            self.release(index);
            self.drive(index);
        }
    }

    /// The lane is done; its connection, if it has one, is for others.
    fn leave(&mut self, phase: usize, slot: Option<usize>, now: u64) {
        if let Model::Closed(lanes) = &mut self.phases[phase].model {
            lanes.alive -= 1;
        }
        if let Some(index) = slot {
            self.release(index);
            self.drive(index);
        }
        self.look_through(phase, now);
    }

    /// A request of a lane that is done has ended.
    fn leave_with(&mut self, index: usize, phase: usize, reusable: bool, now: u64) {
        if reusable {
            self.release(index);
        } else {
            self.close(index, State::Free);
        }
        self.look_through(phase, now);
    }
}
