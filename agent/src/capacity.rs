//! What this machine lets the agent do: CPU, files, local ports, memory. Reading is apart from the arithmetic, which the
//! coordinator shares ([`inrush_common::capacity`]).

use std::{io, net::IpAddr, num::NonZeroUsize, thread, time::Duration};

use inrush_common::{
    capacity::{Capacity, TooMany},
    churn::{Churn, TooFast, Waiting, sustained},
    units::{Count, Nanos},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    cgroup::{Groups, available_memory, total_memory},
    engine::MOST_LINGERING,
    kernel::{self, Tracking, local_ports},
};

/// Files the process needs for itself whatever the load is: the standard streams, the coordinator's stream, name
/// resolution, libraries.
const FILES_RESERVED: u64 = 64;

/// Files each worker needs beside its connections: its runtime's epoll, event and timer descriptors, and a connection
/// that is being replaced while the old one closes.
const FILES_PER_WORKER: u64 = 8;

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
    /// New connections use up the ports.
    #[error(transparent)]
    TooFast(#[from] TooFast),
    /// The kernel tracks connections and drops what is beyond its table.
    #[error(
        "{} connections are more than the kernel can track: {} of its {} entries are free \
         (net.netfilter.nf_conntrack_max, _count): raise nf_conntrack_max, exempt the load from tracking, or lower \
         `connections`",
        Count(*.wanted),
        Count(.table.free()),
        Count(.table.most)
    )]
    Tracked {
        /// Asked for.
        wanted: u64,
        /// The table.
        table: Tracking,
    },
}

/// What an assignment needs of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// Connections open at one instant.
    pub connections: u64,
    /// New connections beyond those, if they are not kept.
    pub churn: Option<Churn>,
    /// Where to.
    pub targets: &'a [IpAddr],
    /// Where from; empty: where the system picks.
    pub sources: &'a [IpAddr],
}

impl Limits {
    /// Reads the limits of this machine, as they are for this process now: see [`raise_file_limit`].
    ///
    /// What cannot be read is logged and assumed.
    pub fn read(workers: NonZeroUsize, sources: &[IpAddr], ceiling: Option<u64>) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let workers = u32::try_from(workers.get()).unwrap_or(u32::MAX);
        let machine = Capacity {
            workers,
            files: files_for_connections(files, workers),
            ports: local_ports(),
            sources: u32::try_from(sources.len().max(1)).unwrap_or(u32::MAX),
            memory: total_memory(),
            cpu_quota_millis: Groups::of_this_process().cpu_quota_millis(),
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

    /// Whether this machine has what is needed, as it is now.
    ///
    /// # Errors
    /// With the limit that is hit, and what it is made of.
    pub fn check(&self, needs: Needs<'_>) -> Result<(), Unfit> {
        let machine = Capacity { memory: available_memory(), ..self.machine };
        Self { machine, ..*self }.check_with(
            needs,
            Tracking::read(),
            kernel::port_hold(needs.targets),
        )
    }

    fn check_with(
        &self,
        needs: Needs<'_>,
        table: Option<Tracking>,
        hold: Duration,
    ) -> Result<(), Unfit> {
        let wanted = needs.connections;
        if let Some(ceiling) = self.ceiling.filter(|ceiling| wanted > *ceiling) {
            return Err(Unfit::Ceiling { wanted, ceiling });
        }
        let paths = paths(needs.sources, needs.targets);
        // Connections that have carried their last request stay open for a moment, and the next ones are opened already.
        let ending = u64::from(self.machine.workers) * MOST_LINGERING as u64;
        let files = self.machine.files.saturating_sub(needs.churn.map_or(0, |_| ending));
        Capacity { files, ..self.machine }.check(wanted, paths)?;
        if let Some(table) = table.filter(|table| wanted > table.free()) {
            return Err(Unfit::Tracked { wanted, table });
        }
        let Some(churn) = needs.churn else { return Ok(()) };
        churn.check(&self.machine, (wanted, paths), hold)?;
        if churn.waiting(hold) == Waiting::Unknown {
            tracing::warn!(
                "connections are not kept, and a port is in use for {} after one: more than {} new connections per \
                 second will run out of ports",
                Nanos::from(hold),
                Count(sustained(self.machine.ports.saturating_mul(paths), hold))
            );
        }
        Ok(())
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

/// The CPUs that this process may use: those it is confined to (`taskset`, CPU sets), and no more than a quota of its control
/// groups allows; at least one. A thread more than the quota has CPUs would only be throttled.
pub fn usable_cpus() -> NonZeroUsize {
    let cpus = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cpus.min(within(Groups::of_this_process().cpu_quota_millis()))
}

fn within(quota_millis: Option<u64>) -> NonZeroUsize {
    let whole = quota_millis.map(|millis| usize::try_from(millis / 1_000).unwrap_or(usize::MAX));
    NonZeroUsize::new(whole.unwrap_or(usize::MAX)).unwrap_or(NonZeroUsize::MIN)
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

    const LAB: Capacity = Capacity {
        workers: 1,
        files: 1_000,
        ports: 28_232,
        sources: 1,
        memory: None,
        cpu_quota_millis: None,
    };
    const MINUTE: Duration = Duration::from_secs(60);

    fn needs(connections: u64, churn: Option<Churn>, targets: &[IpAddr]) -> Needs<'_> {
        Needs { connections, churn, targets, sources: &[] }
    }

    #[test]
    fn the_operators_ceiling_lowers_the_offer_and_is_named_in_the_refusal() {
        let limits = Limits { machine: LAB, ceiling: Some(10) };
        let target = [ip("127.0.0.1")];
        let check = |wanted| limits.check_with(needs(wanted, None, &target), None, MINUTE);
        assert_eq!(limits.offer().max_connections(), 10);
        assert_eq!(check(11), Err(Unfit::Ceiling { wanted: 11, ceiling: 10 }));
        assert_eq!(check(10), Ok(()));
    }

    #[test]
    fn connections_the_kernel_could_not_track_are_refused_with_its_table() {
        let limits = Limits { machine: LAB, ceiling: None };
        let target = [ip("127.0.0.1")];
        let check = |now| {
            let table = Tracking { most: 262_144, now };
            limits.check_with(needs(1_000, None, &target), Some(table), MINUTE)
        };
        assert_eq!(check(261_144), Ok(()));
        let text = check(262_000).unwrap_err().to_string();
        assert!(text.starts_with("1,000 connections are more than the kernel can track"), "{text}");
        assert!(text.contains("144 of its 262,144 entries are free"), "{text}");
    }

    #[test]
    fn a_connection_for_every_request_needs_the_ports_that_wait() {
        let limits = Limits { machine: LAB, ceiling: None };
        let churn = Some(Churn { total: Some(200_000), rate_micro: None });
        let one = [ip("192.0.2.1")];
        let refused = limits.check_with(needs(64, churn, &one), None, MINUTE).unwrap_err();
        assert!(matches!(refused, Unfit::TooFast(TooFast { paths: 1, pairs: 8, .. })), "{refused}");
        let (eight, target): (Vec<_>, _) =
            ((1..=8).map(|n| ip(&format!("192.0.2.{n}"))).collect(), one);
        let spread = Needs { sources: &eight, ..needs(64, churn, &target) };
        assert_eq!(limits.check_with(spread, None, MINUTE), Ok(()));
        let unknown = Some(Churn { total: None, rate_micro: None });
        assert_eq!(limits.check_with(needs(64, unknown, &target), None, MINUTE), Ok(()));
    }

    #[test]
    fn half_a_cpu_is_one_worker_and_a_quota_never_adds_any() {
        for (quota, most) in
            [(Some(500), 1), (Some(1_999), 1), (Some(2_000), 2), (None, usize::MAX)]
        {
            assert_eq!(within(quota).get(), most, "{quota:?}");
        }
        assert!(usable_cpus() <= thread::available_parallelism().unwrap());
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
