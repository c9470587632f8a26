//! What the kernel says about local ports and the connections it tracks.

use std::{fs, net::IpAddr, time::Duration};

/// Ports where the range cannot be read: Linux's default range, 32768 to 60999, which is also within the IANA dynamic
/// range that other systems use for the most part.
pub(crate) const DEFAULT_PORTS: u64 = 28_232;

/// How long Linux keeps a connection that it closed first. A constant of the kernel.
const TIME_WAIT: Duration = Duration::from_secs(60);

/// After this long a waiting port may be used again where that is allowed; newer kernels say it themselves.
const REUSE_DELAY: Duration = Duration::from_secs(1);

fn read(path: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/net/{path}")).ok()
}

fn number(path: &str) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

/// Local ports per pair of a source and a target address.
pub(crate) fn local_ports() -> u64 {
    let range = read("ipv4/ip_local_port_range");
    range.and_then(|text| parse_port_range(&text)).unwrap_or(DEFAULT_PORTS)
}

fn parse_port_range(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first <= last).then(|| last - first + 1)
}

/// For how long a port of a closed connection to these targets cannot be used again for the same target.
pub fn port_hold(targets: &[IpAddr]) -> Duration {
    let reuse = Reuse {
        // Timestamps tell old packets from new ones: without them the kernel does not dare.
        timestamps: number("ipv4/tcp_timestamps").unwrap_or(1) != 0,
        setting: number("ipv4/tcp_tw_reuse").unwrap_or(0),
        delay: number("ipv4/tcp_tw_reuse_delay").map(Duration::from_millis),
    };
    reuse.hold(targets.iter().all(IpAddr::is_loopback))
}

/// When waiting ports may be used again.
#[derive(Debug, Clone, Copy)]
struct Reuse {
    timestamps: bool,
    /// 0: never, 1: always, 2: on loopback only.
    setting: u64,
    delay: Option<Duration>,
}

impl Reuse {
    fn hold(self, loopback: bool) -> Duration {
        let allowed = self.timestamps && (self.setting == 1 || (self.setting == 2 && loopback));
        if allowed { self.delay.unwrap_or(REUSE_DELAY).min(TIME_WAIT) } else { TIME_WAIT }
    }
}

/// The kernel's table of tracked connections, where it keeps one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracking {
    /// Entries there may be.
    pub most: u64,
    /// Entries there are.
    pub now: u64,
}

impl Tracking {
    /// `None`: nothing is tracked, or it cannot be seen. With no entry at all nothing is tracked: the agent's own
    /// connection to its coordinator would be one.
    pub fn read() -> Option<Self> {
        let most = number("netfilter/nf_conntrack_max")?;
        let now = number("netfilter/nf_conntrack_count")?;
        (now > 0).then_some(Self { most, now })
    }

    /// Entries left.
    pub const fn free(self) -> u64 {
        self.most.saturating_sub(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_range_gives_28232_ports() {
        assert_eq!(parse_port_range("32768\t60999\n"), Some(DEFAULT_PORTS));
        for bad in ["", "32768", "60999 32768", "a b"] {
            assert_eq!(parse_port_range(bad), None, "{bad:?}");
        }
        assert!(local_ports() > 1_000);
    }

    #[test]
    fn a_port_waits_a_minute_unless_the_kernel_may_reuse_it() {
        let reuse = |setting, timestamps| Reuse { timestamps, setting, delay: None };
        assert_eq!(reuse(2, true).hold(true), REUSE_DELAY);
        assert_eq!(reuse(2, true).hold(false), TIME_WAIT);
        assert_eq!(reuse(1, true).hold(false), REUSE_DELAY);
        assert_eq!(reuse(1, false).hold(true), TIME_WAIT);
        assert_eq!(reuse(0, true).hold(true), TIME_WAIT);
        let quick = Reuse { delay: Some(Duration::from_millis(50)), ..reuse(1, true) };
        assert_eq!(quick.hold(false), Duration::from_millis(50));
    }

    #[test]
    fn a_full_table_of_tracked_connections_has_nothing_left() {
        assert_eq!(Tracking { most: 10, now: 12 }.free(), 0);
        assert_eq!(Tracking { most: 10, now: 3 }.free(), 7);
    }
}
