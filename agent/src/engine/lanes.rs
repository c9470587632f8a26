//! The lanes of the closed model: when each is on, and how long it thinks.

use std::time::Duration;

use inrush_common::{
    plan::{ClosedLoad, ThinkTime},
    schedule::{ConnectionProfile, Interleave, Random},
};

use super::share::Part;

/// A worker's lanes in one phase.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    /// How many have not left for good.
    pub(super) alive: u64,
    profile: ConnectionProfile,
    starts_ns: u64,
    pub(super) think_time: ThinkTime,
    /// What each lane's pauses are drawn from; empty where they are not left to chance.
    pauses: Vec<Random>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// Among all lanes of the phase, over all agents.
    number: u64,
    /// When it goes off, if it is on.
    pub(super) off_ns: u64,
    /// The slot with its connection, while it thinks.
    pub(super) slot: Option<usize>,
    /// When its next request was wanted. `None`: as soon as there is a connection.
    pub(super) intended_ns: Option<u64>,
    /// It waits for the end of its think time.
    pub(super) thinks: bool,
    /// Connection attempts that failed since the last success.
    pub(super) failures: u32,
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

    /// Whether a lane sends its next request at once.
    pub(super) fn goes_straight_on(&self, lane: u32, now_ns: u64) -> bool {
        now_ns < self.lanes[lane as usize].off_ns && self.think_time == ThinkTime::None
    }

    /// When the lane has its next turn: now, when it is on, which is noted; later; or never again.
    pub(super) fn next_turn(&mut self, lane: u32, now_ns: u64) -> Option<u64> {
        let lane = &mut self.lanes[lane as usize];
        let since_start = now_ns.saturating_sub(self.starts_ns);
        let span = self.profile.lane_from(lane.number, since_start)?;
        lane.off_ns = self.starts_ns.saturating_add(span.off_ns);
        Some(self.starts_ns.saturating_add(span.on_ns).max(now_ns))
    }

    /// The lane's next pause.
    pub(super) fn pause(&mut self, lane: u32) -> Duration {
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
