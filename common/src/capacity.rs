//! How many connections an agent can carry. The one place that does this sum: the agent for what it refuses, the
//! coordinator for how it splits.

use crate::units::{ByteCount, Count};

/// Memory of an agent for each of its open connections, at most: one whose response comes in pieces takes about 20 KB while
/// it comes, any other about 2 KB.
pub const CONNECTION_BYTES: u64 = 20_000;

/// What limits an agent's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Worker threads.
    pub workers: u32,
    /// Files it may open for connections.
    pub files: u64,
    /// Local ports per pair of source address and target address.
    pub ports: u64,
    /// Source addresses; at least 1.
    pub sources: u32,
    /// Memory in bytes that it may use; `None`: unknown.
    pub memory: Option<u64>,
    /// CPU time that a quota allows it, in thousandths of a core; `None`: no quota.
    pub cpu_quota_millis: Option<u64>,
}

/// An agent is asked for more connections than it can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// Each connection is an open file.
    #[error(
        "{wanted} connections need as many open files, and this agent may open {files} for them: raise its limit \
         (ulimit -n, LimitNOFILE=), add agents, or lower `connections`"
    )]
    Files {
        /// Asked for.
        wanted: u64,
        /// Possible.
        files: u64,
    },
    /// Each connection between two addresses needs a local port of its own.
    #[error(
        "{wanted} connections need as many local ports, and this agent has {carried} ({ports} ports × {paths} pairs \
         of source and target address): give it more source addresses (--source-ip), widen \
         net.ipv4.ip_local_port_range, add agents, or lower `connections`"
    )]
    Ports {
        /// Asked for.
        wanted: u64,
        /// Possible.
        carried: u64,
        /// Ports per pair.
        ports: u64,
        /// Pairs of a source and a target address.
        paths: u64,
    },
    /// Each connection takes memory.
    #[error(
        "{} connections take about {} of memory ({CONNECTION_BYTES} bytes each), and {} are available: add agents on \
         other machines, or lower `connections`",
        Count(*.wanted),
        ByteCount(.wanted.saturating_mul(CONNECTION_BYTES)),
        ByteCount(*.available)
    )]
    Memory {
        /// Asked for.
        wanted: u64,
        /// Bytes there are.
        available: u64,
    },
}

impl Capacity {
    /// Most connections to a target of one address: what can be promised before the target is known.
    pub fn max_connections(&self) -> u64 {
        self.max_over(u64::from(self.sources.max(1)))
    }

    /// Most connections over `paths` pairs of a source and a target address.
    pub fn max_over(&self, paths: u64) -> u64 {
        self.files.min(self.ports.saturating_mul(paths)).min(self.max_in_memory())
    }

    fn max_in_memory(&self) -> u64 {
        self.memory.map_or(u64::MAX, |bytes| bytes / CONNECTION_BYTES)
    }

    /// Whether `wanted` connections fit, over `paths` pairs of a source and a target address.
    ///
    /// # Errors
    /// With the limit that is hit first.
    pub fn check(&self, wanted: u64, paths: u64) -> Result<(), TooMany> {
        let carried = self.ports.saturating_mul(paths);
        if wanted <= self.max_over(paths) {
            Ok(())
        } else if self.max_in_memory() < self.files.min(carried) {
            Err(TooMany::Memory { wanted, available: self.memory.unwrap_or(u64::MAX) })
        } else if self.files <= carried {
            Err(TooMany::Files { wanted, files: self.files })
        } else {
            Err(TooMany::Ports { wanted, carried, ports: self.ports, paths })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: Capacity = Capacity {
        workers: 2,
        files: 20_000,
        ports: 28_232,
        sources: 1,
        memory: None,
        cpu_quota_millis: None,
    };

    #[test]
    fn the_smaller_of_files_and_ports_limits_and_is_named() {
        assert_eq!(LAB.max_connections(), 20_000);
        assert_eq!(LAB.check(20_000, 1), Ok(()));
        assert_eq!(LAB.check(20_001, 9), Err(TooMany::Files { wanted: 20_001, files: 20_000 }));
        let wide = Capacity { files: 1_000_000, ..LAB };
        assert_eq!(wide.max_connections(), 28_232);
        assert_eq!(wide.check(56_464, 2), Ok(()));
        let refused = wide.check(56_465, 2);
        assert!(
            matches!(refused, Err(TooMany::Ports { carried: 56_464, ports: 28_232, .. })),
            "{refused:?}"
        );
    }

    #[test]
    fn memory_limits_too_and_is_named_with_the_arithmetic() {
        let small = Capacity { memory: Some(20_000_000), ..LAB };
        assert_eq!(small.max_connections(), 1_000);
        assert_eq!(small.check(1_000, 1), Ok(()));
        let text = small.check(1_001, 1).unwrap_err().to_string();
        assert!(
            text.starts_with("1,001 connections take about 20.0 MB of memory (20000 bytes each)"),
            "{text}"
        );
        assert!(text.contains("20.0 MB are available"), "{text}");
    }

    #[test]
    fn each_source_address_brings_its_own_ports() {
        let sources = Capacity { files: 1_000_000, sources: 3, ..LAB };
        assert_eq!(sources.max_connections(), 3 * 28_232);
    }
}
