//! What an agent can carry.

use inrush_proto::v1;

use crate::capacity::Capacity;

impl From<v1::Capacity> for Capacity {
    fn from(wire: v1::Capacity) -> Self {
        let v1::Capacity { workers, files, ports, sources, memory_bytes, cpu_quota_millis } = wire;
        Self {
            workers,
            files,
            ports,
            sources: sources.max(1),
            memory: memory_bytes,
            cpu_quota_millis,
        }
    }
}

impl From<Capacity> for v1::Capacity {
    fn from(capacity: Capacity) -> Self {
        let Capacity { workers, files, ports, sources, memory, cpu_quota_millis } = capacity;
        Self { workers, files, ports, sources, memory_bytes: memory, cpu_quota_millis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_wire() {
        let lab = Capacity {
            workers: 2,
            files: 20_000,
            ports: 28_232,
            sources: 1,
            memory: Some(4_000_000_000),
            cpu_quota_millis: Some(500),
        };
        assert_eq!(Capacity::from(v1::Capacity::from(lab)), lab);
        let unset = Capacity::from(v1::Capacity { sources: 0, ..v1::Capacity::from(lab) });
        assert_eq!(unset.sources, 1);
    }
}
