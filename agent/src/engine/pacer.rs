//! A timer finer than the runtime's, which counts whole milliseconds.
//!
//! It is a file that the kernel makes readable at an instant to the nanosecond. It is never read: setting it anew takes
//! back what it had to say, and each time it goes off the runtime hears of it once.

use std::{
    io,
    os::fd::OwnedFd,
    task::{Context, Poll},
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::{Interest, unix::AsyncFd};

use crate::timeline::Timeline;

/// What is due within so short a time is waited for by looking at the sockets once more: to go to sleep and be woken takes
/// as long.
const NEAR_NS: u64 = 10_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Wakes a worker at an instant.
#[derive(Debug)]
pub(super) struct Pacer {
    timer: AsyncFd<OwnedFd>,
    timeline: Timeline,
    set_for_ns: Option<u64>,
}

/// How to wait for an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// It is too near to sleep until then.
    Awake,
    /// The pacer will wake the worker.
    Asleep,
}

impl Pacer {
    /// Within the runtime.
    ///
    /// # Errors
    /// When the system gives no timer.
    pub(super) fn new(timeline: Timeline) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "the new name is unsafe for files that can be closed behind tokio's back"
        )]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Self { timer, timeline, set_for_ns: None })
    }

    /// Sees to it that the worker is woken at `due_ns`, and not much later.
    ///
    /// The timer is set only where it is not set for an earlier instant: to be woken once too often costs less than to set it
    /// at every change of mind.
    ///
    /// # Errors
    /// When the timer cannot be set.
    pub(super) fn wait_for(
        &mut self,
        due_ns: u64,
        now_ns: u64,
        cx: &mut Context<'_>,
    ) -> io::Result<Wait> {
        if due_ns <= now_ns.saturating_add(NEAR_NS) {
            return Ok(Wait::Awake);
        }
        if self.set_for_ns.is_some_and(|set_for| now_ns < set_for && set_for <= due_ns) {
            return Ok(Wait::Asleep);
        }
        self.set(due_ns)?;
        // What it said before is not about this instant.
        while let Poll::Ready(said) = self.timer.poll_read_ready(cx) {
            said?.clear_ready();
        }
        self.set_for_ns = Some(due_ns);
        Ok(Wait::Asleep)
    }

    fn set(&self, due_ns: u64) -> io::Result<()> {
        // 0 would mean never.
        let wait_ns = due_ns.saturating_sub(self.timeline.now_ns()).max(1);
        let wait = Timespec {
            tv_sec: (wait_ns / SECOND_NS).try_into().unwrap_or(i64::MAX),
            tv_nsec: (wait_ns % SECOND_NS).try_into().unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: wait };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use super::*;
    use crate::clock;

    /// Waits as a worker does; how late each instant was noticed.
    async fn lateness(timeline: Timeline, instants: &[u64]) -> Vec<u64> {
        let mut pacer = Pacer::new(timeline).unwrap();
        let mut late = Vec::new();
        for due_ns in instants {
            poll_fn(|cx| {
                let now = timeline.now_ns();
                if now >= *due_ns {
                    late.push(now - due_ns);
                    return Poll::Ready(());
                }
                if pacer.wait_for(*due_ns, now, cx).unwrap() == Wait::Awake {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            })
            .await;
        }
        late
    }

    #[test]
    fn instants_less_than_a_millisecond_apart_are_all_met_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let timeline = Timeline::new(clock::now());
        let instants: Vec<u64> = (1..=200).map(|place| place * 300_000).collect();
        let mut late = runtime.block_on(lateness(timeline, &instants));
        late.sort_unstable();
        assert_eq!(late.len(), 200);
        // The runtime's own timer would be half a millisecond late as a rule.
        assert!(late[50] < 400_000, "{late:?}");
    }

    #[test]
    fn an_earlier_instant_replaces_a_later_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let timeline = Timeline::new(clock::now());
        let took = runtime.block_on(async {
            let mut pacer = Pacer::new(timeline).unwrap();
            let due = timeline.now_ns() + 5_000_000;
            poll_fn(|cx| {
                let now = timeline.now_ns();
                if now >= due {
                    return Poll::Ready(());
                }
                pacer.wait_for(due + 3_600 * SECOND_NS, now, cx).unwrap();
                pacer.wait_for(due, now, cx).unwrap();
                Poll::Pending
            })
            .await;
            timeline.now_ns()
        });
        assert!(Duration::from_nanos(took) < Duration::from_secs(10));
    }
}
