//! How the requests of a timeline, or the connections of a load, are dealt to agents.

use std::sync::Arc;

use super::Worker;

/// One agent's part of the indices `0..total`, dealt so that all agents' parts together are every index once, and each
/// agent's are spread evenly.
///
/// Agents with the same count form a group, and a group deals its indices round its agents in turn. The groups are
/// interleaved by the middles of their slots: slot `s` of the `m` of a group stands at `(2s+1)/2m` of the way, and of two
/// at the same place the one of the earlier group comes first. The rank in that order is the global index. An agent
/// finds it by counting, for every other group, the slots before its own: no list, and no more than the distinct counts.
///
/// In any prefix of the order an agent whose group has `c` agents and the share `f` of the whole, of `g` groups that get anything, is at most
/// `1 - 1/2c + f(g-2)/2c` away from its proportion: less than 1 with up to three distinct counts, which includes any
/// even split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interleave {
    groups: Arc<[Group]>,
    place: u32,
    /// The group of this agent, and its place in it.
    group: usize,
    seat: u32,
}

/// Agents that get the same count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// How many indices each of them gets.
    pub each: u64,
    /// How many agents; at least one.
    pub agents: u32,
}

/// Why something is no interleave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InterleaveError {
    /// A group of nobody.
    #[error("group {0} has no agent: expected at least one")]
    EmptyGroup(usize),
    /// Two groups that should be one.
    #[error("groups {0} and {1} have the same count: expected one group for each count")]
    SameCount(usize, usize),
    /// More than [`Interleave::MAX_TOTAL`], or more agents than can be numbered.
    #[error("the counts add up to too much: expected at most {max} in all", max = Interleave::MAX_TOTAL)]
    TooLarge,
    /// An agent beyond the last.
    #[error("agent {place} of {agents}: expected a place from 0 to {last}", last = agents.saturating_sub(1))]
    NoSuchPlace {
        /// The place given.
        place: u32,
        /// How many places there are.
        agents: u32,
    },
}

impl Interleave {
    /// The most indices that are dealt.
    pub const MAX_TOTAL: u64 = 1 << 62;

    /// The indices `0..count` in one hand.
    ///
    /// # Panics
    /// When `count` is more than [`Self::MAX_TOTAL`].
    pub fn whole(count: u64) -> Self {
        let groups = [Group { each: count, agents: 1 }];
        Self::seat(groups.into(), 0).expect("at most the largest total")
    }

    /// Deals the indices `0..(sum of counts)`: agent `i` gets `counts[i]` of them. In the order of `counts`.
    ///
    /// # Errors
    /// When the counts add up to more than [`Self::MAX_TOTAL`].
    pub fn deal(counts: &[u64]) -> Result<Vec<Self>, InterleaveError> {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|agent| std::cmp::Reverse(counts[*agent]));
        let mut groups: Vec<Group> = Vec::new();
        for agent in &order {
            match groups.last_mut() {
                Some(group) if group.each == counts[*agent] => group.agents += 1,
                _ => groups.push(Group { each: counts[*agent], agents: 1 }),
            }
        }
        let groups: Arc<[Group]> = groups.into();
        let mut places = vec![0; counts.len()];
        for (agent, place) in order.into_iter().zip(0_u32..) {
            places[agent] = place;
        }
        places.into_iter().map(|place| Self::seat(Arc::clone(&groups), place)).collect()
    }

    /// The part of the agent with this place, of groups as [`groups`](Self::groups) gives them.
    ///
    /// # Errors
    /// When a group is empty, two have the same count, they add up to too much, or there is no such place.
    pub fn from_parts(groups: Vec<Group>, place: u32) -> Result<Self, InterleaveError> {
        let mut counts: Vec<(u64, usize)> =
            groups.iter().map(|group| group.each).zip(0..).collect();
        counts.sort_unstable();
        if let Some([a, b]) = counts.array_windows().find(|[a, b]| a.0 == b.0) {
            return Err(InterleaveError::SameCount(a.1, b.1));
        }
        if let Some(empty) = groups.iter().position(|group| group.agents == 0) {
            return Err(InterleaveError::EmptyGroup(empty));
        }
        Self::seat(groups.into(), place)
    }

    fn seat(groups: Arc<[Group]>, place: u32) -> Result<Self, InterleaveError> {
        let total: u128 = groups.iter().map(|group| group.slots()).sum();
        let agents: u64 = groups.iter().map(|group| u64::from(group.agents)).sum();
        let agents = u32::try_from(agents).map_err(|_| InterleaveError::TooLarge)?;
        if total > u128::from(Self::MAX_TOTAL) {
            return Err(InterleaveError::TooLarge);
        }
        let mut seat = place;
        for (index, group) in groups.iter().enumerate() {
            if seat < group.agents {
                return Ok(Self { groups, place, group: index, seat });
            }
            seat -= group.agents;
        }
        Err(InterleaveError::NoSuchPlace { place, agents })
    }

    /// The counts of all agents, in the order of their places: how many agents get each.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// This agent's place among all.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// How many indices this agent gets.
    pub fn count(&self) -> u64 {
        self.groups[self.group].each
    }

    /// How many indices all agents get.
    pub fn total(&self) -> u64 {
        let total: u128 = self.groups.iter().map(Group::slots).sum();
        u64::try_from(total).expect("checked when it was made")
    }

    /// This agent's `j`-th index, counted from 0; rising with `j`. `None` when it has not so many.
    pub fn index(&self, j: u64) -> Option<u64> {
        let own = self.groups[self.group];
        if j >= own.each {
            return None;
        }
        let slot = u128::from(j) * u128::from(own.agents) + u128::from(self.seat);
        let before: u128 = self
            .groups
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != self.group)
            .map(|(index, other)| other.slots_before(slot, own.slots(), index < self.group))
            .sum();
        Some(u64::try_from(slot + before).expect("less than the total"))
    }

    /// The indices that a worker of this agent takes: every so many-th, beginning with its number.
    pub fn worker(&self, worker: Worker) -> impl Iterator<Item = u64> + use<> {
        let part = self.clone();
        (0..part.worker_count(worker)).map_while(move |i| part.index(worker.takes(i)))
    }

    /// How many indices a worker of this agent takes; a worker beyond the last takes none.
    pub fn worker_count(&self, worker: Worker) -> u64 {
        if worker.number >= worker.of {
            return 0;
        }
        self.count().saturating_sub(u64::from(worker.number)).div_ceil(u64::from(worker.of))
    }
}

impl Group {
    fn slots(&self) -> u128 {
        u128::from(self.each) * u128::from(self.agents)
    }

    /// How many of this group's slots stand before slot `slot` of a group of `slots`; at the same place counts as before
    /// when `first`.
    fn slots_before(&self, slot: u128, slots: u128, first: bool) -> u128 {
        // (2s+1)/2m < (2·slot+1)/2·slots: the odd numbers 2s+1 below (2·slot+1)·m/slots.
        let product = (2 * slot + 1) * self.slots();
        let (whole, rest) = (product / slots, product % slots);
        if rest > 0 {
            return whole.div_ceil(2);
        }
        if first { whole.div_ceil(2) } else { whole / 2 }
    }
}
