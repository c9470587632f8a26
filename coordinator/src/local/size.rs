//! How many local agents a plan needs, and which addresses they send from. Pure arithmetic over what the machine has.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use inrush_common::{
    assign::by_weight,
    capacity::{CONNECTION_BYTES, Capacity},
    churn::{Churn, TooFast, Waiting},
    units::ByteCount,
};

/// The first source address given to an agent. 127.0.0.1 stays free for everything else.
const FIRST_SOURCE: u32 = u32::from_be_bytes([127, 0, 0, 2]);
/// An agent gets no more source addresses than this for connections that are not kept: what they carry, it cannot open.
const MOST_SOURCES: u64 = 64;
/// More agents than this on one machine is a mistake.
const MOST_AGENTS: u64 = 256;

/// What the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: u32,
    /// What one agent process may carry.
    pub process: Capacity,
    /// Memory that is free for use; `None`: the system does not say.
    pub memory_bytes: Option<u64>,
    /// For how long a port of a connection to the target that was closed is not free.
    pub port_hold: Duration,
}

/// What is wanted of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The plan's connections.
    pub connections: u64,
    /// New connections beyond those, if the plan does not keep them.
    pub churn: Option<Churn>,
    /// The plan's least number of agents.
    pub min_agents: u32,
    /// Agents, if the user says how many.
    pub agents: Option<u32>,
    /// Worker threads of each, if the user says how many.
    pub workers: Option<u32>,
    /// Where the target is.
    pub target: TargetReach,
}

/// Where the target is, as far as local ports are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetReach {
    /// At 127.0.0.0/8, which any address of that network can reach.
    Loopback,
    /// Elsewhere, at so many addresses.
    Addresses(u64),
}

impl TargetReach {
    /// Of a target with these addresses. One that did not resolve counts as one address: the agents will say more.
    pub fn of(addresses: &[IpAddr]) -> Self {
        let all_loopback = addresses.iter().all(IpAddr::is_loopback);
        if all_loopback && addresses.iter().any(IpAddr::is_ipv4) {
            return Self::Loopback;
        }
        let mut distinct = addresses.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Self::Addresses((distinct.len() as u64).max(1))
    }
}

/// The local agents to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// Worker threads of each.
    pub workers: u32,
    /// One entry per agent: the addresses it sends from; empty: whichever the system picks.
    pub sources: Vec<Vec<IpAddr>>,
}

/// The plan does not fit on this machine, or not with the agents asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The plan wants more agents.
    #[error(
        "the plan wants at least {min} agents (`agents.min`): use --local-agents {min}, or leave that option away"
    )]
    TooFewAgents {
        /// How many.
        min: u32,
    },
    /// Not with so many agents.
    #[error(
        "the plan wants {wanted} connections; {agents} local agent(s) may open {files} files each for them, {carried} \
         in all: use --local-agents {needed}, raise the hard file limit (ulimit -Hn), or lower `connections`"
    )]
    Files {
        /// Connections.
        wanted: u64,
        /// Agents.
        agents: u64,
        /// Files each.
        files: u64,
        /// Files in all.
        carried: u64,
        /// Agents that would do.
        needed: u64,
    },
    /// Not with any sensible number of agents.
    #[error(
        "the plan wants {wanted} connections; a process may open {files} files for them here, so that it would take \
         more than {MOST_AGENTS} local agents: raise the hard file limit (ulimit -Hn), or lower `connections`"
    )]
    FilesOfAll {
        /// Connections.
        wanted: u64,
        /// Files of a process.
        files: u64,
    },
    /// Not with this memory.
    #[error(
        "the plan wants {wanted} connections, which take about {needed} of memory ({CONNECTION_BYTES} bytes each); \
         {available} are available here: lower `connections`, or run agents on other machines too (inrush serve; \
         inrush agent; inrush submit)"
    )]
    Memory {
        /// Connections.
        wanted: u64,
        /// Memory for them.
        needed: ByteCount,
        /// Memory there is.
        available: ByteCount,
    },
    /// The plan's own least number is beyond what one machine should run.
    #[error(
        "the plan wants at least {min} agents; one machine runs at most {MOST_AGENTS}: lower agents.min, or run agents \
         on other machines too (inrush serve; inrush agent; inrush submit)"
    )]
    TooManyAgents {
        /// The plan's least number.
        min: u32,
    },
    /// Not from one address.
    #[error(
        "the plan wants {wanted} connections to a target with {addresses} address(es); this machine has {ports} local \
         ports for each (net.ipv4.ip_local_port_range), {carried} in all, whatever the number of agents: lower \
         `connections`, widen the range, or run agents with source addresses of their own, here or on other machines \
         (inrush serve; inrush agent --source-ip …; inrush submit)"
    )]
    Ports {
        /// Connections.
        wanted: u64,
        /// Addresses of the target.
        addresses: u64,
        /// Ports for each.
        ports: u64,
        /// Ports in all.
        carried: u64,
    },
    /// New connections use up the ports.
    #[error("{0}; local agents share the ports of this machine's address")]
    Churn(#[from] TooFast),
}

/// The agents for `wanted` on `machine`: one for every two cores, at least as many as the plan asks for, and more where
/// its connections need more files than a process may open.
///
/// Local ports are shared by all agents of a machine that send from one address. A loopback target can be reached from
/// any address of 127.0.0.0/8, so each agent gets its own as soon as one address is not enough.
///
/// # Errors
/// When the connections do not fit, with the arithmetic.
pub fn size(machine: Machine, wanted: Wanted) -> Result<Fleet, SizeError> {
    let agents = agents(machine, wanted)?;
    let needed = wanted.connections.saturating_mul(CONNECTION_BYTES);
    if let Some(available) = machine.memory_bytes.filter(|available| *available < needed) {
        let (needed, available) = (ByteCount(needed), ByteCount(available));
        return Err(SizeError::Memory { wanted: wanted.connections, needed, available });
    }
    let shares = by_weight(wanted.connections, &vec![1; agents]);
    let sources = sources(machine, wanted, &shares)?;
    let per_agent = machine.cores / u32::try_from(agents).unwrap_or(u32::MAX);
    Ok(Fleet { workers: wanted.workers.unwrap_or(per_agent).max(1), sources })
}

fn agents(machine: Machine, wanted: Wanted) -> Result<usize, SizeError> {
    if let (Some(agents), min) = (wanted.agents, wanted.min_agents)
        && agents < min
    {
        return Err(SizeError::TooFewAgents { min });
    }
    if u64::from(wanted.min_agents) > MOST_AGENTS {
        return Err(SizeError::TooManyAgents { min: wanted.min_agents });
    }
    let files = machine.process.files;
    let connections = wanted.connections;
    let needed = connections.checked_div(files).map_or(u64::MAX, |_| connections.div_ceil(files));
    let agents = match wanted.agents {
        Some(agents) if u64::from(agents) < needed && needed <= MOST_AGENTS => {
            let agents = u64::from(agents);
            let carried = agents * files;
            return Err(SizeError::Files { wanted: connections, agents, files, carried, needed });
        }
        Some(agents) => u64::from(agents),
        None => needed.max(u64::from(machine.cores / 2)).max(u64::from(wanted.min_agents)),
    };
    if needed > MOST_AGENTS {
        return Err(SizeError::FilesOfAll { wanted: connections, files });
    }
    Ok(usize::try_from(agents.clamp(1, MOST_AGENTS)).expect("at most 256"))
}

fn sources(
    machine: Machine,
    wanted: Wanted,
    shares: &[u64],
) -> Result<Vec<Vec<IpAddr>>, SizeError> {
    let ports = machine.process.ports;
    let addresses = match wanted.target {
        TargetReach::Loopback => 1,
        TargetReach::Addresses(addresses) => addresses,
    };
    let carried = ports.saturating_mul(addresses);
    if wanted.target != TargetReach::Loopback || ports == 0 {
        if wanted.connections > carried {
            let wanted = wanted.connections;
            return Err(SizeError::Ports { wanted, addresses, ports, carried });
        }
        if let Some(churn) = wanted.churn {
            churn.check(&machine.process, (wanted.connections, addresses), machine.port_hold)?;
        }
        return Ok(vec![Vec::new(); shares.len()]);
    }
    // Addresses of 127.0.0.0/8 cost nothing. Where nobody knows how many ports will wait, every agent gets its own.
    let waiting = wanted.churn.map_or(0, |churn| match churn.waiting(machine.port_hold) {
        Waiting::AtMost(0) | Waiting::Unknown => churn.total.unwrap_or(u64::MAX).min(carried),
        Waiting::AtMost(waiting) => waiting,
    });
    if wanted.connections.saturating_add(waiting) <= carried {
        return Ok(vec![Vec::new(); shares.len()]);
    }
    let agents = shares.len() as u64;
    let waiting = waiting.div_ceil(agents.max(1)).div_ceil(ports).min(MOST_SOURCES);
    let mut next = FIRST_SOURCE;
    let mut take = || {
        let source = IpAddr::V4(Ipv4Addr::from_bits(next));
        next += 1;
        source
    };
    let of_agent = |share: &u64| share.div_ceil(ports).saturating_add(waiting).max(1);
    Ok(shares.iter().map(|share| (0..of_agent(share)).map(|_| take()).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: u32, files: u64) -> Machine {
        let process = Capacity {
            workers: cores,
            files,
            ports: 28_232,
            sources: 1,
            memory: None,
            cpu_quota_millis: None,
        };
        Machine { cores, process, memory_bytes: None, port_hold: Duration::from_secs(60) }
    }

    fn wanted(connections: u64) -> Wanted {
        let target = TargetReach::Loopback;
        Wanted { connections, churn: None, min_agents: 1, agents: None, workers: None, target }
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn there_is_one_agent_for_every_two_cores_and_at_least_one() {
        for (cores, agents, workers) in [(1, 1, 1), (2, 1, 2), (3, 1, 3), (8, 4, 2), (64, 32, 2)] {
            let fleet = size(machine(cores, 19_000), wanted(100)).unwrap();
            assert_eq!((fleet.sources.len(), fleet.workers), (agents, workers), "{cores} cores");
            assert!(fleet.sources.iter().all(Vec::is_empty));
        }
    }

    #[test]
    fn connections_beyond_a_process_file_limit_take_more_agents() {
        let fleet = size(machine(2, 19_900), wanted(25_000)).unwrap();
        assert_eq!((fleet.sources.len(), fleet.workers), (2, 1));
    }

    #[test]
    fn the_plans_least_number_of_agents_is_met() {
        let fleet = size(machine(2, 19_900), Wanted { min_agents: 3, ..wanted(100) }).unwrap();
        assert_eq!(fleet.sources.len(), 3);
        let two = Wanted { min_agents: 3, agents: Some(2), ..wanted(100) };
        assert_eq!(size(machine(2, 19_900), two), Err(SizeError::TooFewAgents { min: 3 }));
    }

    #[test]
    fn beyond_the_ports_of_one_address_each_agent_has_its_own() {
        let fleet = size(machine(2, 19_900), wanted(100_000)).unwrap();
        assert_eq!(fleet.sources.len(), 6);
        assert_eq!(fleet.sources[0], ips(&["127.0.0.2"]));
        assert_eq!(fleet.sources[5], ips(&["127.0.0.7"]));
    }

    #[test]
    fn an_agent_with_many_files_gets_as_many_addresses_as_it_needs() {
        let two = Wanted { agents: Some(2), ..wanted(100_000) };
        let fleet = size(machine(2, 1_000_000), two).unwrap();
        assert_eq!(
            fleet.sources,
            [ips(&["127.0.0.2", "127.0.0.3"]), ips(&["127.0.0.4", "127.0.0.5"])]
        );
    }

    #[test]
    fn connections_beyond_the_memory_are_refused_with_the_arithmetic() {
        let small = Machine { memory_bytes: Some(24_000_000_000), ..machine(2, 19_900) };
        let text = size(small, wanted(5_000_000)).unwrap_err().to_string();
        assert!(text.contains("5000000 connections, which take about 100.0 GB"), "{text}");
        assert!(text.contains("24.0 GB are available"), "{text}");
        assert!(size(small, wanted(1_000_000)).is_ok());
    }

    #[test]
    fn more_agents_than_a_machine_should_run_are_refused() {
        let many = Wanted { min_agents: 257, ..wanted(1_000) };
        assert_eq!(size(machine(2, 19_900), many), Err(SizeError::TooManyAgents { min: 257 }));
    }

    #[test]
    fn another_target_is_refused_with_the_arithmetic() {
        let far = Wanted { target: TargetReach::Addresses(2), ..wanted(100_000) };
        let text = size(machine(2, 1_000_000), far).unwrap_err().to_string();
        assert!(text.contains("100000 connections to a target with 2 address(es)"), "{text}");
        assert!(text.contains("28232 local ports for each"), "{text}");
        assert!(text.contains("56464 in all"), "{text}");
        assert!(size(machine(2, 1_000_000), Wanted { connections: 56_464, ..far }).is_ok());
    }

    #[test]
    fn connections_that_are_not_kept_get_addresses_of_loopback_for_the_ports_that_wait() {
        let churn = |total| Some(Churn { total: Some(total), rate_micro: None });
        let sources = |machine, total, connections| {
            let wanted = Wanted { churn: churn(total), ..wanted(connections) };
            size(machine, wanted).unwrap().sources
        };
        let minute = machine(2, 19_900);
        assert_eq!(sources(minute, 28_000, 64), [ips(&[])]);
        assert_eq!(sources(minute, 200_000, 64)[0].len(), 9, "one for those open, eight that wait");
        let second = Machine { port_hold: Duration::from_secs(1), ..minute };
        assert_eq!(sources(second, 28_000, 64), [ips(&[])]);
        assert_eq!(sources(second, 200_000, 64)[0].len(), 2, "ports that wait are soon free again");
    }

    #[test]
    fn connections_that_are_not_kept_are_refused_where_ports_would_run_out() {
        let churn = Some(Churn { total: Some(200_000), rate_micro: None });
        let far = Wanted { churn, target: TargetReach::Addresses(1), ..wanted(64) };
        let text = size(machine(2, 19_900), far).unwrap_err().to_string();
        assert!(text.contains("200,000 new connections"), "{text}");
        assert!(text.contains("469 new connections per second"), "{text}");
        let slow = Some(Churn { total: Some(200_000), rate_micro: Some(400_000_000) });
        assert!(size(machine(2, 19_900), Wanted { churn: slow, ..far }).is_ok());
    }

    #[test]
    fn too_few_agents_for_the_files_are_refused_with_the_number_that_would_do() {
        let one = Wanted { agents: Some(1), ..wanted(25_000) };
        let text = size(machine(2, 19_900), one).unwrap_err().to_string();
        assert!(text.contains("--local-agents 2"), "{text}");
        let none = size(machine(2, 0), wanted(1));
        assert_eq!(none, Err(SizeError::FilesOfAll { wanted: 1, files: 0 }));
    }

    #[test]
    fn a_name_for_both_loopback_addresses_can_be_reached_from_127() {
        assert_eq!(TargetReach::of(&ips(&["::1", "127.0.0.1"])), TargetReach::Loopback);
        assert_eq!(TargetReach::of(&ips(&["::1"])), TargetReach::Addresses(1));
        let twice = ips(&["192.0.2.1", "192.0.2.1", "192.0.2.2"]);
        assert_eq!(TargetReach::of(&twice), TargetReach::Addresses(2));
        assert_eq!(TargetReach::of(&[]), TargetReach::Addresses(1));
    }
}
