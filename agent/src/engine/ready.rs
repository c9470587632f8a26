//! Which connections want to be polled: one bit each.
//!
//! A worker polls its connections itself, in one future, so that they need no task, no queue and no lock of their own:
//! a wake-up sets a bit, and a turn of the worker polls whatever has its bit set.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{AcqRel, Acquire, SeqCst},
        },
    },
    task::{Wake, Waker},
};

const BITS: usize = u64::BITS as usize;

/// The bits of one worker's connections.
#[derive(Debug)]
pub(super) struct Ready {
    words: Box<[AtomicU64]>,
    /// The worker is looking at the bits now, or was told to: a wake-up needs only set its bit.
    attended: AtomicBool,
    worker: Mutex<Waker>,
}

impl Ready {
    pub(super) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self {
            words: (0..connections.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect(),
            attended: AtomicBool::new(false),
            worker: Mutex::new(Waker::noop().clone()),
        })
    }

    /// The waker of connection `index`.
    pub(super) fn waker(self: &Arc<Self>, index: usize) -> Waker {
        Waker::from(Arc::new(ConnectionWaker { index, ready: Arc::clone(self) }))
    }

    /// The worker's turn begins. `worker` is woken by whatever comes after the turn.
    pub(super) fn begin_turn(&self, worker: &Waker) {
        self.attended.store(true, SeqCst);
        let mut kept = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone_from(worker);
    }

    /// The worker's turn ends. True: something came up meanwhile, and the worker must take another turn.
    pub(super) fn end_turn(&self) -> bool {
        self.attended.store(false, SeqCst);
        self.words.iter().any(|word| word.load(SeqCst) != 0)
    }

    /// Clears the bit of connection `index`.
    pub(super) fn clear(&self, index: usize) {
        self.words[index / BITS].fetch_and(!(1 << (index % BITS)), AcqRel);
    }

    /// Calls `poll` for each connection whose bit is set, and clears it first.
    pub(super) fn drain(&self, mut poll: impl FnMut(usize)) {
        for (place, word) in self.words.iter().enumerate() {
            if word.load(Acquire) == 0 {
                continue;
            }
            let mut bits = word.swap(0, AcqRel);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                poll(place * BITS + bit);
            }
        }
    }

    fn wake(&self, index: usize) {
        self.words[index / BITS].fetch_or(1 << (index % BITS), SeqCst);
        // Mostly it is attended already, and looking is cheaper than setting.
        if !self.attended.load(SeqCst) && !self.attended.swap(true, SeqCst) {
            self.worker.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

struct ConnectionWaker {
    index: usize,
    ready: Arc<Ready>,
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.ready.wake(self.index);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.wake(self.index);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn each_woken_connection_is_polled_once_and_the_worker_is_woken_once() {
        let ready = Ready::new(130);
        let wakers: Vec<Waker> = (0..130).map(|index| ready.waker(index)).collect();
        let count = Arc::new(Count::default());
        let worker = Waker::from(Arc::clone(&count));
        ready.begin_turn(&worker);
        assert!(!ready.end_turn());
        for index in [129, 0, 64, 0] {
            wakers[index].wake_by_ref();
        }
        assert_eq!(count.0.load(SeqCst), 1);
        ready.begin_turn(&worker);
        let mut polled = Vec::new();
        ready.drain(|index| polled.push(index));
        assert_eq!(polled, [0, 64, 129]);
        assert!(!ready.end_turn());
    }

    #[test]
    fn a_wake_up_within_the_turn_is_not_lost_and_does_not_wake_the_worker() {
        let ready = Ready::new(2);
        let (first, second) = (ready.waker(0), ready.waker(1));
        let count = Arc::new(Count::default());
        let worker = Waker::from(Arc::clone(&count));
        ready.begin_turn(&worker);
        first.wake_by_ref();
        second.wake_by_ref();
        ready.clear(0);
        assert!(ready.end_turn());
        assert_eq!(count.0.load(SeqCst), 0);
        let mut polled = Vec::new();
        ready.drain(|index| polled.push(index));
        assert_eq!(polled, [1]);
    }
}
