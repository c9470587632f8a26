//! The control groups this process is in: how much CPU time and memory they leave it. Both versions, and both at once.
//!
//! A group's limit binds all groups below it, so every level up to the one that is mounted is looked at. What cannot be
//! read does not limit.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Memory limits above this stand for none: version 1 has a number there in any case.
const NO_LIMIT: u64 = 1 << 62;

/// The groups that limit this process, by what they limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// From its own up.
    cpu: Vec<Group>,
    memory: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    directory: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Groups {
    /// Those of this process, as they are now.
    pub fn of_this_process() -> Self {
        Self::under(Path::new("/"))
    }

    /// The same with `root` in place of `/`.
    pub(crate) fn under(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let (memberships, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let of = |controller: &str| {
            let paths = memberships.lines().filter_map(|line| membership(line, controller));
            let chains = paths.filter_map(|(version, path)| {
                let mount = mounts.lines().find_map(|line| Mount::of(line, controller, version));
                Some(mount?.chain(root, path, version))
            });
            chains.flatten().collect()
        };
        Self { cpu: of("cpu"), memory: of("memory") }
    }

    /// The CPU time that the strictest quota allows, in thousandths of a core; `None` without a quota.
    pub fn cpu_quota_millis(&self) -> Option<u64> {
        self.cpu.iter().filter_map(Group::cpu_quota_millis).min()
    }

    /// For how long the groups have been kept from running because a quota was used up, so far and over all cores.
    pub fn throttled_ns(&self) -> u64 {
        self.cpu.iter().filter_map(Group::throttled_ns).fold(0, u64::saturating_add)
    }

    /// The strictest limit on memory in bytes; `None` without a limit.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory.iter().filter_map(Group::memory_limit).min()
    }

    /// What is left below the limits on memory, in bytes; `None` without a limit.
    pub fn memory_left(&self) -> Option<u64> {
        self.memory.iter().filter_map(Group::memory_left).min()
    }
}

impl Group {
    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    fn cpu_quota_millis(&self) -> Option<u64> {
        let (quota, period): (u64, u64) = match self.version {
            // -1 is no quota, and no number of this type.
            Version::One => (self.number("cpu.cfs_quota_us")?, self.number("cpu.cfs_period_us")?),
            // "max" likewise.
            Version::Two => {
                let text = self.read("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        quota.saturating_mul(1_000).checked_div(period).map(|millis| millis.max(1))
    }

    fn throttled_ns(&self) -> Option<u64> {
        let text = self.read("cpu.stat")?;
        match self.version {
            Version::One => field(&text, "throttled_time"),
            Version::Two => Some(field(&text, "throttled_usec")?.saturating_mul(1_000)),
        }
    }

    fn memory_limit(&self) -> Option<u64> {
        let limit = self.number(match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        })?;
        (limit < NO_LIMIT).then_some(limit)
    }

    fn memory_left(&self) -> Option<u64> {
        let limit = self.memory_limit()?;
        let (usage, cache) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.current", "inactive_file"),
        };
        let stat = self.read("memory.stat").unwrap_or_default();
        // The kernel takes that back before it refuses anything.
        let cache = field(&stat, cache).unwrap_or(0);
        Some(limit.saturating_sub(self.number(usage)?.saturating_sub(cache)))
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The group's path, where a line of `/proc/self/cgroup` is about `controller`. That of version 2 is about all of them.
fn membership<'a>(line: &'a str, controller: &str) -> Option<(Version, &'a str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    if controllers.is_empty() {
        return Some((Version::Two, path));
    }
    controllers.split(',').any(|name| name == controller).then_some((Version::One, path))
}

/// Where a hierarchy can be seen.
#[derive(Debug)]
struct Mount {
    /// The group that is seen at the mount point: in a container often not the topmost one.
    top: String,
    point: PathBuf,
}

impl Mount {
    /// Of a line of `/proc/self/mountinfo`, if it is the mount of this hierarchy.
    fn of(line: &str, controller: &str, version: Version) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, point) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, options) = (file_system.next()?, file_system.nth(1)?);
        let is_it = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|name| name == controller),
            Version::Two => kind == "cgroup2",
        };
        is_it.then(|| Self { top: unescaped(top), point: unescaped(point).into() })
    }

    /// The group at `path` and those above it that can be seen here.
    fn chain(&self, root: &Path, path: &str, version: Version) -> Vec<Group> {
        let point = root.join(self.point.strip_prefix("/").unwrap_or(&self.point));
        let below = Path::new(path)
            .strip_prefix(&self.top)
            .ok()
            // From within a namespace, a group outside of it has such a path.
            .filter(|below| below.components().all(|part| part != std::path::Component::ParentDir))
            .unwrap_or(Path::new(""));
        let directories = below.ancestors().map(|below| point.join(below));
        directories
            .filter(|directory| is_there(directory))
            .map(|directory| Group { directory, version })
            .collect()
    }
}

fn is_there(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|found| found.is_dir())
}

/// The kernel writes a space within a path as `\040`.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ")
}

/// Memory that is free for use, in bytes: on the machine, and below the limits of this process's groups; `None` where
/// the system does not say.
pub fn available_memory() -> Option<u64> {
    smaller(meminfo("MemAvailable:"), Groups::of_this_process().memory_left())
}

/// The most memory that this process could ever have.
pub fn total_memory() -> Option<u64> {
    smaller(meminfo("MemTotal:"), Groups::of_this_process().memory_limit())
}

fn smaller(machine: Option<u64>, group: Option<u64>) -> Option<u64> {
    machine.into_iter().chain(group).min()
}

fn meminfo(name: &str) -> Option<u64> {
    let text: io::Result<String> = fs::read_to_string("/proc/meminfo");
    let text = text.ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A directory that looks like `/`.
    fn root(files: &[(&str, &str)]) -> TempDir {
        let root = TempDir::new().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn in_version_2_the_strictest_limit_up_the_tree_counts_and_throttling_adds_up() {
        let root = root(&[
            ("proc/self/cgroup", "0::/lab/inrush/agent\n"),
            (
                "proc/self/mountinfo",
                "24 1 0:22 / /proc rw - proc proc rw\n\
                 35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
            ("sys/fs/cgroup/lab/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/lab/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 40\n"),
            ("sys/fs/cgroup/lab/memory.max", "3000000\n"),
            ("sys/fs/cgroup/lab/memory.current", "1000000\n"),
            ("sys/fs/cgroup/lab/memory.stat", "anon 1\ninactive_file 400000\n"),
            ("sys/fs/cgroup/lab/inrush/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/lab/inrush/memory.max", "max\n"),
            ("sys/fs/cgroup/lab/inrush/agent/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/lab/inrush/agent/cpu.stat", "throttled_usec 2\n"),
            ("sys/fs/cgroup/elsewhere/cpu.max", "1000 100000\n"),
        ]);
        let groups = Groups::under(root.path());
        assert_eq!(groups.cpu_quota_millis(), Some(1_500));
        assert_eq!(groups.throttled_ns(), 42_000);
        assert_eq!(groups.memory_limit(), Some(3_000_000));
        assert_eq!(groups.memory_left(), Some(2_400_000));
    }

    #[test]
    fn in_version_1_each_controller_has_its_own_tree() {
        let root = root(&[
            ("proc/self/cgroup", "4:memory:/a\n2:cpuacct,cpu:/a/b\n1:cpuset:/\n0::/\n"),
            (
                "proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu\\040time rw - cgroup cgroup rw,cpu,cpuacct\n\
                 33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/unified/cpu.stat", "usage_usec 9\n"),
            ("sys/fs/cgroup/cpu time/a/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu time/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu time/a/cpu.stat", "nr_throttled 3\nthrottled_time 77\n"),
            ("sys/fs/cgroup/cpu time/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu time/a/b/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "6000\n"),
        ]);
        let groups = Groups::under(root.path());
        assert_eq!(groups.cpu_quota_millis(), Some(500));
        assert_eq!(groups.throttled_ns(), 77);
        assert_eq!((groups.memory_limit(), groups.memory_left()), (Some(5_000), Some(0)));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount_point() {
        let root = root(&[
            ("proc/self/cgroup", "2:cpu:/docker/42/inner\n0::/../other\n"),
            (
                "proc/self/mountinfo",
                "32 31 0:29 /docker/42 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n\
                 34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "30000\n"),
            ("sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/unified/cpu.max", "90000 100000\n"),
        ]);
        assert_eq!(Groups::under(root.path()).cpu_quota_millis(), Some(250));
    }

    #[test]
    fn without_groups_nothing_is_limited() {
        let root = root(&[]);
        let groups = Groups::under(root.path());
        assert_eq!(groups, Groups::default());
        assert_eq!((groups.cpu_quota_millis(), groups.throttled_ns()), (None, 0));
        assert_eq!(groups.memory_left(), None);
    }

    #[test]
    fn this_machine_says_how_much_memory_it_has() {
        let (available, total) = (available_memory().unwrap(), total_memory().unwrap());
        assert!(available > 1_000_000 && available <= total, "{available} of {total}");
    }
}
