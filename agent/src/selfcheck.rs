//! The agent looks at itself: the CPU time it used, how long a quota kept it from using more, and the memory it holds. Too
//! much of the first two makes its numbers doubtful.

use std::fs;

use inrush_common::stats::{Gauges, Interval};
use rustix::time::{ClockId, clock_gettime};

use crate::cgroup::Groups;

/// Measures the process from interval to interval.
#[derive(Debug)]
pub struct SelfCheck {
    workers: u64,
    groups: Groups,
    cpu_before_ns: u64,
    throttled_before_ns: u64,
}

impl SelfCheck {
    /// Begins to measure now.
    pub fn start(workers: usize) -> Self {
        Self::within(Groups::of_this_process(), workers)
    }

    fn within(groups: Groups, workers: usize) -> Self {
        Self {
            workers: workers as u64,
            cpu_before_ns: cpu_time_ns(),
            throttled_before_ns: groups.throttled_ns(),
            groups,
        }
    }

    /// What was used since the last call is not the coming interval's.
    pub fn restart(&mut self) {
        self.cpu_before_ns = cpu_time_ns();
        self.throttled_before_ns = self.groups.throttled_ns();
    }

    /// The gauges of an interval that has just ended.
    pub fn gauges(&mut self, interval: Interval, open_connections: u64, in_flight: u64) -> Gauges {
        let cpu = cpu_time_ns();
        let cpu_ns = cpu.saturating_sub(self.cpu_before_ns);
        self.cpu_before_ns = cpu;
        let throttled = self.groups.throttled_ns();
        let throttled_ns = throttled.saturating_sub(self.throttled_before_ns);
        self.throttled_before_ns = throttled;
        let length = interval.to_ns.saturating_sub(interval.from_ns);
        Gauges {
            open_connections,
            in_flight,
            cpu_ns,
            cpu_capacity_ns: self.capacity_ns(length),
            throttled_ns,
            resident_bytes: resident_bytes(),
        }
    }

    /// What the workers could use in this time. A quota can change at any time.
    fn capacity_ns(&self, length_ns: u64) -> u64 {
        let workers = self.workers.saturating_mul(1_000);
        let millis = self.groups.cpu_quota_millis().map_or(workers, |quota| quota.min(workers));
        u64::try_from(u128::from(millis) * u128::from(length_ns) / 1_000).unwrap_or(u64::MAX)
    }
}

fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// 0 where it cannot be read.
fn resident_bytes() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|text| parse_resident(&text)).unwrap_or(0)
}

// `status` has the unit in the line; `statm` would need the page size as well.
fn parse_resident(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_with_its_unit() {
        assert_eq!(parse_resident("VmSize:\t 9 kB\nVmRSS:\t    1234 kB\n"), Some(1234 * 1024));
        assert_eq!(parse_resident("VmSize:\t 9 kB\n"), None);
        assert!(resident_bytes() > 100_000);
    }

    #[test]
    fn work_done_in_an_interval_is_counted_once() {
        let mut check = SelfCheck::within(Groups::default(), 2);
        let mut sum = 0_u64;
        // Burn until the process clock has moved, however coarse it is.
        while cpu_time_ns() <= check.cpu_before_ns + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let second = Interval { from_ns: 0, to_ns: 1_000_000_000 };
        let gauges = check.gauges(second, 3, 1);
        assert!(gauges.cpu_ns >= 1_000_000, "{gauges:?}");
        assert_eq!(gauges.cpu_capacity_ns, 2_000_000_000);
        assert_eq!((gauges.open_connections, gauges.in_flight), (3, 1));
    }
    #[test]
    fn a_quota_is_the_capacity_and_what_it_takes_is_counted_by_interval() {
        let root = tempfile::TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "0::/\n");
        write("proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
        write("cg/cpu.max", "50000 100000\n");
        write("cg/cpu.stat", "throttled_usec 100\n");
        let mut check = SelfCheck::within(Groups::under(root.path()), 2);
        write("cg/cpu.stat", "throttled_usec 130\n");
        let second = Interval { from_ns: 0, to_ns: 1_000_000_000 };
        let gauges = check.gauges(second, 0, 0);
        assert_eq!((gauges.cpu_capacity_ns, gauges.throttled_ns), (500_000_000, 30_000));
        write("cg/cpu.max", "300000 100000\n");
        let gauges = check.gauges(second, 0, 0);
        assert_eq!((gauges.cpu_capacity_ns, gauges.throttled_ns), (2_000_000_000, 0));
    }
}
