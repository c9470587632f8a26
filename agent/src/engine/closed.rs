//! The closed model: every lane sends its next request when its last response has ended.
//!
//! A lane is one of the connections that the plan asks for. While it is on, it has a connection, and nobody else gets it.

use std::time::Duration;

use inrush_common::{
    plan::{ClosedLoad, ThinkTime},
    schedule::{ConnectionProfile, Interleave, Random},
};

use super::{
    alarms::Alarm,
    phase::{Model, Stage},
    share::Part,
    slots::{Order, Purpose, State},
    traffic::Traffic,
};
use crate::clock;

/// After a failed attempt a lane waits so long, then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A worker's lanes in one phase.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// How many have not left for good.
    alive: u64,
    profile: ConnectionProfile,
    starts_ns: u64,
    think_time: ThinkTime,
    /// What each lane's pauses are drawn from; empty where they are not left to chance.
    pauses: Vec<Random>,
}

#[derive(Debug, Clone)]
struct Lane {
    /// Among all lanes of the phase, over all agents.
    number: u64,
    /// When it goes off, if it is on.
    off_ns: u64,
    /// The slot with its connection, while it thinks.
    slot: Option<usize>,
    /// When its next request was wanted. `None`: as soon as there is a connection.
    intended_ns: Option<u64>,
    /// It waits for the end of its think time.
    thinks: bool,
    /// Connection attempts that failed since the last success.
    failures: u32,
}

impl Lanes {
    pub(super) fn new(
        load: &ClosedLoad,
        part: Part,
        (seed, phase): (u64, usize),
        starts_ns: u64,
    ) -> Self {
        let number = |place| lane_number(&load.lanes, place);
        let lanes: Vec<Lane> = part
            .lanes()
            .map(|place| Lane {
                number: number(place),
                off_ns: 0,
                slot: None,
                intended_ns: None,
                thinks: false,
                failures: 0,
            })
            .collect();
        let pauses = match load.think_time {
            ThinkTime::None | ThinkTime::Fixed(_) => Vec::new(),
            ThinkTime::Uniform(..) | ThinkTime::Exponential(_) => {
                let stream = |lane: &Lane| Random::stream(seed, &[phase as u64, lane.number]);
                lanes.iter().map(stream).collect()
            }
        };
        Self {
            alive: lanes.len() as u64,
            lanes,
            profile: load.profile.clone(),
            starts_ns,
            think_time: load.think_time,
            pauses,
        }
    }

    /// How many lanes have not left for good.
    pub(super) fn alive(&self) -> u64 {
        self.alive
    }

    /// Whether a lane sends its next request at once.
    pub(super) fn goes_straight_on(&self, lane: u32, now_ns: u64) -> bool {
        now_ns < self.lanes[lane as usize].off_ns && self.think_time == ThinkTime::None
    }

    /// When the lane has its next turn: now, when it is on, which is noted; later; or never again.
    fn next_turn(&mut self, lane: u32, now_ns: u64) -> Option<u64> {
        let lane = &mut self.lanes[lane as usize];
        let since_start = now_ns.saturating_sub(self.starts_ns);
        let span = self.profile.lane_from(lane.number, since_start)?;
        lane.off_ns = self.starts_ns.saturating_add(span.off_ns);
        Some(self.starts_ns.saturating_add(span.on_ns).max(now_ns))
    }

    /// The lane's next pause.
    fn pause(&mut self, lane: u32) -> Duration {
        let lane = lane as usize;
        match self.think_time {
            ThinkTime::None => Duration::ZERO,
            ThinkTime::Fixed(pause) => pause,
            ThinkTime::Uniform(from, to) => {
                from + to.saturating_sub(from).mul_f64(self.pauses[lane].uniform())
            }
            ThinkTime::Exponential(mean) => mean.mul_f64(self.pauses[lane].exponential()),
        }
    }
}

fn lane_number(lanes: &Interleave, place: u64) -> u64 {
    lanes.index(place).expect("a worker has no more lanes than its agent")
}

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use inrush_common::{
        assign::by_weight,
        plan::{ConnectionPolicy, Load, Phase, Workload},
    };

    use super::{super::share::Share, *};

    const LANES: u64 = 24;

    fn share(lanes: Interleave, think_time: ThinkTime) -> (ClosedLoad, Workload) {
        let second = Duration::from_secs(1);
        let load = ClosedLoad {
            profile: ConnectionProfile::constant(LANES, 0).unwrap(),
            lanes,
            requests: None,
            duration: Some(second),
            think_time,
        };
        let phase = Phase {
            name: "it".to_owned(),
            measure: true,
            starts_at: Duration::ZERO,
            load: Load::Closed(load.clone()),
        };
        let workload = Workload {
            requests: Vec::new(),
            phases: vec![phase],
            timeout: second,
            connect_timeout: second,
            grace: second,
            give_up_after: second,
            connections: ConnectionPolicy::default(),
            seed: 7,
        };
        (load, workload)
    }

    /// The first pauses of each lane.
    fn pauses(agents: usize, workers: usize, think: ThinkTime) -> BTreeMap<u64, Vec<Duration>> {
        let mut found = BTreeMap::new();
        let counts = by_weight(LANES, &vec![1; agents]);
        for lanes in Interleave::deal(&counts).unwrap() {
            let (load, workload) = share(lanes, think);
            for share in Share::split(&workload, workers) {
                let mut lanes = Lanes::new(&load, share.part(0), (workload.seed, 0), 0);
                for lane in 0..u32::try_from(lanes.lanes.len()).unwrap() {
                    let number = lanes.lanes[lane as usize].number;
                    let drawn = (0..5).map(|_| lanes.pause(lane)).collect();
                    assert_eq!(found.insert(number, drawn), None, "a lane is one worker's");
                }
            }
        }
        found
    }

    #[test]
    fn a_lane_has_the_same_pauses_whoever_has_the_lane() {
        let ms = Duration::from_millis;
        for think in [ThinkTime::Uniform(ms(10), ms(30)), ThinkTime::Exponential(ms(20))] {
            let alone = pauses(1, 1, think);
            assert_eq!(alone.len() as u64, LANES);
            assert_eq!(alone, pauses(1, 5, think));
            assert_eq!(alone, pauses(7, 2, think));
            let first: std::collections::BTreeSet<_> = alone.values().map(|it| it[0]).collect();
            assert_eq!(first.len() as u64, LANES, "each lane has its own");
            if let ThinkTime::Uniform(from, to) = think {
                assert!(alone.values().flatten().all(|pause| (from..=to).contains(pause)));
            }
        }
    }

    #[test]
    fn a_lane_is_on_when_its_profile_says_so() {
        use inrush_common::schedule::ConnectionStep;
        let step = |from, to| ConnectionStep { from, to, duration_ns: 100 };
        let (mut load, workload) = share(Interleave::whole(2), ThinkTime::None);
        load.profile = ConnectionProfile::steps(vec![step(2, 0), step(0, 0), step(1, 1)]).unwrap();
        let part = Share::split(&workload, 1)[0].part(0);
        let mut lanes = Lanes::new(&load, part, (0, 0), 1_000);
        assert_eq!(lanes.next_turn(1, 1_000), Some(1_000));
        assert!(lanes.goes_straight_on(1, 1_025) && !lanes.goes_straight_on(1, 1_026));
        assert_eq!(lanes.next_turn(1, 1_026), None);
        assert_eq!(lanes.next_turn(0, 1_000), Some(1_000));
        assert_eq!(lanes.next_turn(0, 1_080), Some(1_200));
        assert!(lanes.goes_straight_on(0, 9_999));
    }
}
