//! What this machine lets the agent do: files and local ports. Reading is apart from the arithmetic, which the
//! coordinator shares ([`inrush_common::capacity`]).

use std::{fs, io, net::IpAddr, num::NonZeroUsize};

use inrush_common::capacity::{Capacity, TooMany};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files the process needs for itself whatever the load is: the standard streams, the coordinator's stream, name
/// resolution, libraries.
const FILES_RESERVED: u64 = 64;

/// Files each worker needs beside its connections: its runtime's epoll, event and timer descriptors, and a connection
/// that is being replaced while the old one closes.
const FILES_PER_WORKER: u64 = 8;

/// Ports where the range cannot be read: Linux's default range, 32768 to 60999, which is also within the IANA dynamic
/// range that other systems use for the most part.
const DEFAULT_PORTS: u64 = 28_232;

/// The agent's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// As found on the machine.
    pub machine: Capacity,
    /// The operator's own limit on connections (`--max-connections`).
    pub ceiling: Option<u64>,
}

/// Why an assignment does not fit this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Above the operator's ceiling.
    #[error(
        "{wanted} connections are above this agent's --max-connections {ceiling}: raise it, add agents, or lower \
         `connections`"
    )]
    Ceiling {
        /// Asked for.
        wanted: u64,
        /// The limit.
        ceiling: u64,
    },
    /// Above a limit of the machine.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

impl Limits {
    /// Reads the limits of this machine, as they are for this process now: see [`raise_file_limit`].
    ///
    /// What cannot be read is logged and assumed.
    pub fn read(workers: NonZeroUsize, sources: &[IpAddr], ceiling: Option<u64>) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let ports = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
            .ok()
            .and_then(|text| parse_port_range(&text));
        let workers = u32::try_from(workers.get()).unwrap_or(u32::MAX);
        let machine = Capacity {
            workers,
            files: files_for_connections(files, workers),
            ports: ports.unwrap_or(DEFAULT_PORTS),
            sources: u32::try_from(sources.len().max(1)).unwrap_or(u32::MAX),
        };
        Self { machine, ceiling }
    }

    /// What is offered to the coordinator. The operator's ceiling goes out as a limit on files, since a connection
    /// is one.
    pub fn offer(&self) -> Capacity {
        let files =
            self.ceiling.map_or(self.machine.files, |ceiling| ceiling.min(self.machine.files));
        Capacity { files, ..self.machine }
    }

    /// Whether `wanted` connections fit, over `paths` pairs of a source and a target address.
    ///
    /// # Errors
    /// With the limit that is hit, and what it is made of.
    pub fn check(&self, wanted: u64, paths: u64) -> Result<(), Unfit> {
        if let Some(ceiling) = self.ceiling.filter(|ceiling| wanted > *ceiling) {
            return Err(Unfit::Ceiling { wanted, ceiling });
        }
        Ok(self.machine.check(wanted, paths)?)
    }
}

/// Pairs of a source and a target address that connections can be spread over: an address reaches only its own family.
/// Without sources the system picks one per target address.
pub fn paths(sources: &[IpAddr], targets: &[IpAddr]) -> u64 {
    let of_one = |target: &IpAddr| {
        if sources.is_empty() {
            1
        } else {
            sources.iter().filter(|source| source.is_ipv4() == target.is_ipv4()).count() as u64
        }
    };
    targets.iter().map(of_one).sum()
}

/// Memory that is free for use, in bytes; `None` where the system does not say.
pub fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Raises this process's soft file limit to the hard one. A program does it once, before it reads its [`Limits`] or
/// serves connections. When the system refuses, that is logged and the limit stays.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current, limit.maximum);
    if soft == hard {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }) {
        tracing::warn!("the file limit stays at {soft:?}, raising it to {hard:?} failed: {error}");
    }
}

fn files_for_connections(limit: u64, workers: u32) -> u64 {
    let own = FILES_RESERVED + u64::from(workers) * FILES_PER_WORKER;
    limit.saturating_sub(own)
}

fn parse_port_range(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first <= last).then(|| last - first + 1)
}

/// Checks that `source` is an address of this machine, by binding a socket to it.
///
/// # Errors
/// When it is not, or the check itself cannot be made.
pub fn check_source(source: IpAddr) -> Result<(), BadSource> {
    match std::net::UdpSocket::bind((source, 0)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            Err(BadSource::NotOurs(source))
        }
        Err(error) => Err(BadSource::Unusable { address: source, error }),
    }
}

/// Why a source address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadSource {
    /// No interface has it.
    #[error(
        "{0} is not an address of this machine (--source-ip): `ip address` lists those that are"
    )]
    NotOurs(IpAddr),
    /// Another failure.
    #[error("cannot bind to {address} (--source-ip): {error}")]
    Unusable {
        /// The address.
        address: IpAddr,
        /// The failure.
        error: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_default_port_range_gives_28232_ports() {
        assert_eq!(parse_port_range("32768\t60999\n"), Some(DEFAULT_PORTS));
        for bad in ["", "32768", "60999 32768", "a b"] {
            assert_eq!(parse_port_range(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_reserve_for_the_agent_itself_never_goes_below_nothing() {
        assert_eq!(files_for_connections(1_024, 2), 1_024 - 64 - 16);
        assert_eq!(files_for_connections(70, 2), 0);
    }

    #[test]
    fn a_source_address_only_reaches_targets_of_its_family() {
        let targets = [ip("127.0.0.1"), ip("127.0.0.2"), ip("::1")];
        assert_eq!(paths(&[], &targets), 3);
        assert_eq!(paths(&[ip("127.0.0.3"), ip("127.0.0.4")], &targets), 4);
        assert_eq!(paths(&[ip("::1")], &targets[..2]), 0);
    }

    #[test]
    fn the_operators_ceiling_lowers_the_offer_and_is_named_in_the_refusal() {
        let machine = Capacity { workers: 1, files: 1_000, ports: 28_232, sources: 1 };
        let limits = Limits { machine, ceiling: Some(10) };
        assert_eq!(limits.offer().max_connections(), 10);
        assert_eq!(limits.check(11, 1), Err(Unfit::Ceiling { wanted: 11, ceiling: 10 }));
        assert_eq!(limits.check(10, 1), Ok(()));
        let generous = Limits { machine, ceiling: Some(5_000) };
        assert_eq!(generous.offer().max_connections(), 1_000);
        assert!(matches!(generous.check(1_001, 1), Err(Unfit::TooMany(TooMany::Files { .. }))));
    }

    #[test]
    fn this_machine_has_some_of_everything() {
        let two = NonZeroUsize::new(2).unwrap();
        raise_file_limit();
        let limits = Limits::read(two, &[], None);
        assert!(limits.machine.files > 100 && limits.machine.ports > 1_000, "{limits:?}");
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum, "the soft limit is raised to the hard one");
        let files = limit.current.unwrap_or(u64::MAX);
        assert_eq!(limits.machine.files, files_for_connections(files, 2));
    }

    #[test]
    fn a_source_that_is_not_ours_is_named() {
        assert!(check_source(ip("127.0.0.7")).is_ok());
        let error = check_source(ip("203.0.113.9")).unwrap_err().to_string();
        assert!(error.starts_with("203.0.113.9 is not an address of this machine"), "{error}");
    }
}
