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

const WORD: usize = u64::BITS as usize;
const WORDS: usize = 64;
const BLOCK: usize = WORD * WORDS;

/// The bits of one worker's connections, in blocks, so that there can always be more of them.
#[derive(Debug)]
pub(super) struct Ready {
    blocks: Vec<Arc<Block>>,
    attention: Arc<Attention>,
    connections: usize,
}

#[derive(Debug)]
struct Block {
    words: [AtomicU64; WORDS],
    attention: Arc<Attention>,
}

/// Whether the worker has to be woken, and how.
#[derive(Debug)]
struct Attention {
    /// The worker is looking at the bits now, or was told to: a wake-up needs only set its bit.
    attended: AtomicBool,
    worker: Mutex<Waker>,
}

impl Ready {
    pub(super) fn new() -> Self {
        let worker = Mutex::new(Waker::noop().clone());
        let attention = Arc::new(Attention { attended: AtomicBool::new(false), worker });
        Self { blocks: Vec::new(), attention, connections: 0 }
    }

    /// The waker of one connection more. They are numbered from 0.
    pub(super) fn add(&mut self) -> Waker {
        let index = self.connections;
        self.connections += 1;
        if index / BLOCK == self.blocks.len() {
            let words = std::array::from_fn(|_| AtomicU64::new(0));
            self.blocks.push(Arc::new(Block { words, attention: Arc::clone(&self.attention) }));
        }
        let block = Arc::clone(&self.blocks[index / BLOCK]);
        Waker::from(Arc::new(ConnectionWaker { bit: index % BLOCK, block }))
    }

    /// The worker's turn begins. `worker` is woken by whatever comes after the turn.
    pub(super) fn begin_turn(&self, worker: &Waker) {
        self.attention.attended.store(true, SeqCst);
        let mut kept = self.attention.worker.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone_from(worker);
    }

    /// The worker's turn ends. True: something came up meanwhile, and the worker must take another turn.
    pub(super) fn end_turn(&self) -> bool {
        self.attention.attended.store(false, SeqCst);
        let mut words = (0..).map_while(|block| self.words(block)).flatten();
        words.any(|word| word.load(SeqCst) != 0)
    }

    /// Clears the bit of connection `index`.
    pub(super) fn clear(&self, index: usize) {
        let (word, bit) = (index % BLOCK / WORD, index % WORD);
        self.blocks[index / BLOCK].words[word].fetch_and(!(1 << bit), AcqRel);
    }

    /// The first connections from word `from` on whose bits are set, which are cleared; and where to go on. `None` when
    /// there are none.
    pub(super) fn take(&self, from: usize) -> Option<Taken> {
        let mut place = from;
        while let Some(words) = self.words(place / WORDS) {
            let rest = words.get(place % WORDS..).unwrap_or_default();
            match rest.iter().position(|word| word.load(Acquire) != 0) {
                Some(found) => {
                    let bits = rest[found].swap(0, AcqRel);
                    return Some(Taken { word: place + found, bits });
                }
                None => place = (place / WORDS + 1) * WORDS,
            }
        }
        None
    }

    /// The words of a block that are in use.
    fn words(&self, block: usize) -> Option<&[AtomicU64]> {
        let used = self.connections.div_ceil(WORD).saturating_sub(block * WORDS);
        self.blocks.get(block).map(|block| &block.words[..used.min(WORDS)])
    }
}

/// Connections that want to be polled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    word: usize,
    bits: u64,
}

impl Taken {
    /// The word to go on with.
    pub(super) fn next_word(self) -> usize {
        self.word + 1
    }
}

impl Iterator for Taken {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.bits == 0 {
            return None;
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(self.word * WORD + bit)
    }
}

struct ConnectionWaker {
    bit: usize,
    block: Arc<Block>,
}

impl ConnectionWaker {
    fn set(&self) {
        self.block.words[self.bit / WORD].fetch_or(1 << (self.bit % WORD), SeqCst);
        let attention = &self.block.attention;
        // Mostly it is attended already, and looking is cheaper than setting.
        if !attention.attended.load(SeqCst) && !attention.attended.swap(true, SeqCst) {
            attention.worker.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.set();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
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

    fn drain(ready: &Ready) -> Vec<usize> {
        let mut polled = Vec::new();
        let mut from = 0;
        while let Some(taken) = ready.take(from) {
            from = taken.next_word();
            polled.extend(taken);
        }
        polled
    }

    #[test]
    fn each_woken_connection_is_polled_once_and_the_worker_is_woken_once() {
        let mut ready = Ready::new();
        let wakers: Vec<Waker> = (0..2 * BLOCK + 130).map(|_| ready.add()).collect();
        let count = Arc::new(Count::default());
        let worker = Waker::from(Arc::clone(&count));
        ready.begin_turn(&worker);
        assert!(!ready.end_turn());
        for index in [2 * BLOCK + 129, 0, 64, BLOCK, 0] {
            wakers[index].wake_by_ref();
        }
        assert_eq!(count.0.load(SeqCst), 1);
        ready.begin_turn(&worker);
        assert_eq!(drain(&ready), [0, 64, BLOCK, 2 * BLOCK + 129]);
        assert!(!ready.end_turn());
    }

    #[test]
    fn a_wake_up_within_the_turn_is_not_lost_and_does_not_wake_the_worker() {
        let mut ready = Ready::new();
        let (first, second) = (ready.add(), ready.add());
        let count = Arc::new(Count::default());
        let worker = Waker::from(Arc::clone(&count));
        ready.begin_turn(&worker);
        first.wake_by_ref();
        second.wake_by_ref();
        ready.clear(0);
        assert!(ready.end_turn());
        assert_eq!(count.0.load(SeqCst), 0);
        assert_eq!(drain(&ready), [1]);
    }
}
