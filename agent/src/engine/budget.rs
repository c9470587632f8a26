//! Which requests of a phase a worker may still begin. Exactly its share is begun: never more.

use inrush_common::{outcome::NotStarted, stats::PhaseStats};

/// What is left of a worker's share of a phase.
///
/// In the closed model a request is claimed before a connection is opened for it, so that no connection is opened for
/// nothing. It is counted as begun when it is sent (or when the connection for it cannot be made).
#[derive(Debug)]
pub(super) struct Budget {
    /// The whole share. `None`: as many as the time allows.
    planned: Option<u64>,
    /// Neither begun nor claimed.
    left: Option<u64>,
    ends_ns: u64,
    closed: bool,
    /// Those that had their turn: begun, or dropped.
    begun: u64,
    kinds: usize,
}

impl Budget {
    /// For `kinds` kinds of requests, which take turns until `ends_ns`.
    pub(super) fn new(requests: Option<u64>, ends_ns: u64, kinds: usize) -> Self {
        Self { planned: requests, left: requests, ends_ns, closed: false, begun: 0, kinds }
    }

    /// Takes the right to begin one request.
    pub(super) fn claim(&mut self, now_ns: u64) -> bool {
        if self.is_spent() || now_ns >= self.ends_ns {
            return false;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        true
    }

    /// Gives back a right that was not used.
    pub(super) fn release(&mut self) {
        if let Some(left) = &mut self.left {
            *left += 1;
        }
    }

    /// Counts a request as begun and says of which kind it is.
    pub(super) fn begin(&mut self, stats: &mut PhaseStats) -> usize {
        let kind = self.next_kind();
        self.begun += 1;
        stats.requests[kind].started += 1;
        kind
    }

    /// Counts the next request as dropped.
    pub(super) fn skip(&mut self, stats: &mut PhaseStats) {
        let kind = self.next_kind();
        self.begun += 1;
        stats.requests[kind].not_started[NotStarted::Dropped as usize] += 1;
    }

    /// The kind that the next request will have.
    pub(super) fn next_kind(&self) -> usize {
        usize::try_from(self.begun % self.kinds as u64).unwrap_or(0)
    }

    /// Nothing begins any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether nothing will begin any more, unless a claimed request is given back.
    pub(super) fn is_spent(&self) -> bool {
        self.closed || self.left == Some(0)
    }

    /// Whether the share has a number and all of it had its turn. One without a number ends by its time or a stop.
    pub(super) fn is_all_begun(&self) -> bool {
        self.planned == Some(self.begun)
    }

    /// Gives up all that was not begun; it comes back by kind.
    pub(super) fn forfeit(&mut self) -> Vec<u64> {
        let left = self.left_by_kind();
        self.planned = self.planned.map(|_| self.begun);
        self.left = self.left.map(|_| 0);
        left
    }

    /// What was not begun, by kind. A claim that came to nothing is among it, also when a panic kept it from being
    /// given back.
    fn left_by_kind(&self) -> Vec<u64> {
        let left = self.planned.unwrap_or(0).saturating_sub(self.begun);
        let kinds = self.kinds as u64;
        (0..kinds)
            .map(|kind| {
                let turn = (kind + kinds - self.begun % kinds) % kinds;
                left.saturating_sub(turn).div_ceil(kinds)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use inrush_common::stats::Stats;

    use super::*;

    fn accounts(kinds: usize) -> PhaseStats {
        Stats::new(1, kinds).phases.remove(0)
    }

    #[test]
    fn a_share_is_begun_to_the_last_and_no_further() {
        let mut stats = accounts(2);
        let mut budget = Budget::new(Some(5), u64::MAX, 2);
        assert!(budget.claim(0));
        budget.release();
        let mut begun = 0;
        while budget.claim(u64::MAX - 1) {
            assert_eq!(budget.begin(&mut stats), begun % 2);
            begun += 1;
            let left: u64 = budget.left_by_kind().iter().sum();
            assert_eq!(begun as u64 + left, 5);
        }
        assert_eq!(begun, 5);
        assert_eq!((stats.requests[0].started, stats.requests[1].started), (3, 2));
    }

    #[test]
    fn what_is_left_goes_on_with_the_turns() {
        let mut stats = accounts(3);
        let mut budget = Budget::new(Some(6), u64::MAX, 3);
        assert!(budget.claim(0));
        budget.begin(&mut stats);
        assert_eq!(budget.left_by_kind(), [1, 2, 2]);
    }

    #[test]
    fn a_claim_that_came_to_nothing_was_not_begun() {
        let mut stats = accounts(2);
        let mut budget = Budget::new(Some(5), u64::MAX, 2);
        assert!(budget.claim(0) && budget.claim(0));
        budget.begin(&mut stats);
        assert_eq!(budget.left_by_kind(), [2, 2]);
        assert!(!budget.is_all_begun());
    }

    #[test]
    fn a_share_without_a_number_is_never_all_begun() {
        let mut stats = accounts(1);
        let mut budget = Budget::new(None, 1_000, 1);
        assert!(!budget.is_all_begun());
        budget.begin(&mut stats);
        assert!(!budget.is_all_begun());
        assert!(Budget::new(Some(0), u64::MAX, 1).is_all_begun());
    }

    #[test]
    fn nothing_begins_after_the_end_or_a_close() {
        let mut budget = Budget::new(None, 10, 1);
        assert!(budget.claim(9) && !budget.claim(10));
        budget.close();
        assert!(!budget.claim(0) && budget.is_spent());
        assert_eq!(budget.left_by_kind(), [0]);
    }

    #[test]
    fn a_dropped_request_has_its_turn_and_is_not_started() {
        let mut stats = accounts(2);
        let mut budget = Budget::new(Some(3), u64::MAX, 2);
        assert_eq!(budget.begin(&mut stats), 0);
        budget.skip(&mut stats);
        assert_eq!(budget.left_by_kind(), [1, 0]);
        assert_eq!(budget.begin(&mut stats), 0);
        assert!(budget.is_all_begun());
        assert_eq!(stats.requests[1].not_started[NotStarted::Dropped as usize], 1);
    }
}
