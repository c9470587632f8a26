//! What holds for all deals.

use inrush_common::schedule::{Group, Interleave, InterleaveError};
use proptest::prelude::*;

use crate::strategies::counts;

/// How far `taken` of a prefix is from this agent's proportion of it, and how far it may be.
fn deviation(part: &Interleave, prefix: u64, taken: u64) -> (f64, f64) {
    let total = part.total() as f64;
    let group = part.groups().iter().find(|group| group.each == part.count()).unwrap();
    let agents = f64::from(group.agents);
    let busy = part.groups().iter().filter(|group| group.each > 0).count() as f64;
    let share = part.count() as f64 * agents / total;
    let found = taken as f64 - prefix as f64 * part.count() as f64 / total;
    (found.abs(), 1.0 - 0.5 / agents + share * (busy - 2.0) / (2.0 * agents))
}

/// The global index by its definition: over all other groups, the slots before this one, each found by halving.
fn rank(groups: &[Group], mut place: u32, j: u64) -> u128 {
    let slots = |group: &Group| u128::from(group.each) * u128::from(group.agents);
    let mut own = 0;
    while place >= groups[own].agents {
        place -= groups[own].agents;
        own += 1;
    }
    let slot = u128::from(j) * u128::from(groups[own].agents) + u128::from(place);
    let before = |other: usize| {
        let is_before = |s: u128| {
            let (left, right) =
                ((2 * s + 1) * slots(&groups[own]), (2 * slot + 1) * slots(&groups[other]));
            left < right || (left == right && other < own)
        };
        let (mut low, mut high) = (0, slots(&groups[other]));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    };
    slot + (0..groups.len()).filter(|other| *other != own).map(before).sum::<u128>()
}

proptest! {
    #[test]
    fn every_index_is_dealt_once_in_order_and_evenly(counts in counts(1_000, 3_000)) {
        let parts = Interleave::deal(&counts).unwrap();
        prop_assert_eq!(parts.len(), counts.len());
        let total = counts.iter().sum::<u64>();
        let mut owner = vec![None; usize::try_from(total).unwrap()];
        for (agent, part) in parts.iter().enumerate() {
            prop_assert_eq!((part.count(), part.total()), (counts[agent], total));
            let indices: Vec<u64> = (0..).map_while(|j| part.index(j)).collect();
            prop_assert_eq!(indices.len() as u64, counts[agent]);
            prop_assert!(indices.is_sorted());
            for index in indices {
                let slot = &mut owner[usize::try_from(index).unwrap()];
                prop_assert_eq!(slot.replace(agent), None);
            }
        }
        let mut taken = vec![0; counts.len()];
        for (agent, prefix) in owner.into_iter().zip(1..) {
            let agent = agent.unwrap();
            // An agent is furthest from its proportion just before and just after it takes one.
            for (prefix, more) in [(prefix - 1, 0), (prefix, 1)] {
                let (found, most) = deviation(&parts[agent], prefix, taken[agent] + more);
                prop_assert!(found <= most + 1e-9, "{found} of {most}");
            }
            taken[agent] += 1;
        }
    }

    #[test]
    fn huge_counts_are_ranked_by_the_definition(
        counts in counts(1_000, 1_000_000_000_000_000),
        choices in proptest::collection::vec((any::<prop::sample::Index>(), 0.0..=1.0), 20),
    ) {
        let parts = Interleave::deal(&counts).unwrap();
        let total = counts.iter().sum::<u64>();
        for (agent, share) in choices {
            let part = agent.get(&parts);
            prop_assert_eq!(part.index(part.count()), None);
            let Some(last) = part.count().checked_sub(1) else { continue };
            let j = ((last as f64 * share) as u64).min(last);
            let index = part.index(j).unwrap();
            prop_assert_eq!(u128::from(index), rank(part.groups(), part.place(), j));
            prop_assert!(part.index(j + 1).is_none_or(|next| next > index));
        }
        let ends = |end: fn(&Interleave) -> Option<u64>| parts.iter().filter_map(end).collect();
        let first: Vec<u64> = ends(|part| part.index(0));
        let last: Vec<u64> = ends(|part| part.index(part.count().checked_sub(1)?));
        if total > 0 {
            prop_assert_eq!(first.into_iter().min(), Some(0));
            prop_assert_eq!(last.into_iter().max(), Some(total - 1));
        }
    }

    #[test]
    fn a_part_goes_over_the_wire_and_back(counts in counts(50, 1 << 62)) {
        for part in Interleave::deal(&counts).unwrap() {
            let again = Interleave::from_parts(part.groups().to_vec(), part.place());
            prop_assert_eq!(again, Ok(part));
        }
    }
}

#[test]
fn equal_agents_take_turns_and_a_smaller_one_stands_in_the_middle() {
    let indices = |counts: &[u64]| -> Vec<Vec<u64>> {
        let parts = Interleave::deal(counts).unwrap();
        parts.iter().map(|part| (0..).map_while(|j| part.index(j)).collect()).collect()
    };
    assert_eq!(indices(&[2, 2, 2]), [[0, 3], [1, 4], [2, 5]]);
    assert_eq!(indices(&[1, 4]), [vec![2], vec![0, 1, 3, 4]]);
    // Three requests over eight agents: the five others have nothing to do.
    let eight = indices(&[1, 0, 0, 1, 0, 1, 0, 0]);
    assert_eq!(eight.concat(), [0, 1, 2]);
    assert_eq!(indices(&[0, 0]), [const { Vec::<u64>::new() }; 2]);
    assert_eq!(indices(&[]), Vec::<Vec<u64>>::new());
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let group = |each, agents| Group { each, agents };
    for (groups, place, error) in [
        (vec![group(3, 2), group(1, 0)], 0, InterleaveError::EmptyGroup(1)),
        (vec![group(3, 2), group(1, 1), group(3, 1)], 0, InterleaveError::SameCount(0, 2)),
        (vec![group(3, 2)], 2, InterleaveError::NoSuchPlace { place: 2, agents: 2 }),
        (vec![], 0, InterleaveError::NoSuchPlace { place: 0, agents: 0 }),
        (vec![group(u64::MAX, u32::MAX)], 0, InterleaveError::TooLarge),
        (vec![group(0, u32::MAX), group(1, 1)], 0, InterleaveError::TooLarge),
    ] {
        assert_eq!(Interleave::from_parts(groups, place), Err(error));
    }
    assert_eq!(Interleave::deal(&[1 << 62, 1]), Err(InterleaveError::TooLarge));
}
