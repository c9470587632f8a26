//! What this agent's operator lets it do, whatever a plan says: where it sends load, and how fast.
//!
//! Addresses are checked after they were resolved and before a packet leaves: a name may lead anywhere.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use inrush_common::{
    plan::{ClosedLoad, Load, Phase, ThinkTime, Workload},
    schedule::Rate,
};

/// The operator's limits. None by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Where load may go (`--allow-target`); empty: anywhere.
    pub targets: Vec<Allowed>,
    /// The most requests per second (`--max-rate`).
    pub max_rate: Option<Rate>,
}

/// A target that is allowed: addresses, or a name and whatever it resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    who: Who,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Network {
        address: IpAddr,
        prefix: u8,
    },
    /// In lower case.
    Name(String),
}

/// Not allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Forbidden {
    /// The target.
    #[error(
        "this agent may not send load to {address}{}: its operator allows only {allowed} (--allow-target)",
        host.as_ref().map_or_else(String::new, |host| format!(", where {host} resolves to"))
    )]
    Target {
        /// Where the load would have gone.
        address: SocketAddr,
        /// The name that led there.
        host: Option<String>,
        /// The allowed ones.
        allowed: String,
    },
    /// The rate of an open load, or of a closed one whose pauses bound it.
    #[error(
        "this agent's share may reach {wanted:.1} requests per second, and its operator allows {limit} (--max-rate): \
         lower the plan's rate, or add agents"
    )]
    Rate {
        /// The share's peak.
        wanted: f64,
        /// The limit.
        limit: Rate,
    },
    /// The rate of a closed load without pauses.
    #[error(
        "phase {phase:?} sends as fast as the target answers, and this agent's operator allows {limit} (--max-rate): \
         give the plan an open load with a rate, or a think_time that is never shorter than a given time"
    )]
    Unbounded {
        /// The phase.
        phase: String,
        /// The limit.
        limit: Rate,
    },
}

impl Bounds {
    /// Whether load may go to these addresses. `host` is what was resolved to them: the name that is connected to, which
    /// with `connect_to` is not that of the URL. It may be an address.
    ///
    /// # Errors
    /// With the first address that is not allowed: one is enough to refuse, for connections are spread over all.
    pub fn permit(&self, host: &str, addresses: &[SocketAddr]) -> Result<(), Forbidden> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let allowed =
            |address: &SocketAddr| self.targets.iter().any(|target| target.covers(host, *address));
        match addresses.iter().find(|address| !allowed(address)) {
            None => Ok(()),
            Some(address) => Err(Forbidden::Target {
                address: *address,
                host: Some(host.to_owned()).filter(|host| host.parse::<IpAddr>().is_err()),
                allowed: self.targets.iter().map(Allowed::to_string).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Whether a share keeps to the rate, however fast the target answers.
    ///
    /// # Errors
    /// When it may exceed it, or nothing bounds it.
    pub fn permit_rate(&self, workload: &Workload) -> Result<(), Forbidden> {
        let Some(limit) = self.max_rate else { return Ok(()) };
        let mut peaks = Vec::with_capacity(workload.phases.len());
        for phase in &workload.phases {
            let peak = peak(&phase.load)
                .ok_or_else(|| Forbidden::Unbounded { phase: phase.name.clone(), limit })?;
            peaks.push((phase, peak));
        }
        // The sum changes only where a phase begins or ends, and grows only where one begins.
        let at = |start: Duration| -> f64 {
            let on = peaks.iter().filter(|(phase, _): &&(&Phase, f64)| phase.is_on_at(start));
            on.map(|(_, peak)| peak).sum()
        };
        let wanted = workload.phases.iter().map(|phase| at(phase.starts_at)).fold(0.0, f64::max);
        if wanted > limit.as_f64() { Err(Forbidden::Rate { wanted, limit }) } else { Ok(()) }
    }
}

/// The most requests per second that a share can reach; `None`: nothing bounds it.
fn peak(load: &Load) -> Option<f64> {
    match load {
        Load::Closed(closed) => peak_of_closed(closed),
        Load::Open(open) => {
            let total = open.slots.total().max(1);
            let share = open.slots.count() as f64 / total as f64;
            Some(open.profile.peak().as_f64() * share)
        }
    }
}

fn peak_of_closed(load: &ClosedLoad) -> Option<f64> {
    if load.lanes.count() == 0 {
        return Some(0.0);
    }
    let pause = match load.think_time {
        ThinkTime::Fixed(pause) | ThinkTime::Uniform(pause, _) => pause,
        ThinkTime::None | ThinkTime::Exponential(_) => Duration::ZERO,
    };
    (!pause.is_zero()).then(|| load.lanes.count() as f64 / pause.as_secs_f64())
}

impl Allowed {
    fn covers(&self, host: &str, address: SocketAddr) -> bool {
        let here = match &self.who {
            Who::Network { address: network, prefix } => contains(*network, *prefix, address.ip()),
            Who::Name(name) => is_named(host, name),
        };
        here && self.port.is_none_or(|port| port == address.port())
    }
}

/// A trailing dot only says that a name is whole.
fn is_named(host: &str, name: &str) -> bool {
    host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(name)
}

/// Whether a network contains an address. An IPv4 address written as an IPv6 one is the IPv4 address.
fn contains(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    match (network, address.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let rest = 32 - u32::from(prefix);
            (network.to_bits() ^ address.to_bits()).checked_shr(rest).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let rest = 128 - u32::from(prefix);
            (network.to_bits() ^ address.to_bits()).checked_shr(rest).unwrap_or(0) == 0
        }
        _ => false,
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a network such as 10.0.0.0/8, or an address or a name with or without a port, such as \
                 shop.example.test:443, got {text:?}"
            )
        };
        if let Some((address, prefix)) = text.split_once('/') {
            let address = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
            let most = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse::<u8>().ok().filter(|prefix| *prefix <= most);
            return Ok(Self {
                who: Who::Network { address, prefix: prefix.ok_or_else(wrong)? },
                port: None,
            });
        }
        let of_address = |address: IpAddr, port| {
            let address = address.to_canonical();
            let prefix = if address.is_ipv4() { 32 } else { 128 };
            Self { who: Who::Network { address, prefix }, port }
        };
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(of_address(address, None));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(of_address(address.ip(), Some(address.port())));
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse::<u16>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        // Digits and dots alone are an address gone wrong.
        let digits = name.chars().all(|c| c.is_ascii_digit() || c == '.');
        if name.is_empty() || digits || !name.chars().all(plain) {
            return Err(wrong());
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        Ok(Self { who: Who::Name(name), port })
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.who, self.port) {
            (Who::Name(name), None) => write!(f, "{name}"),
            (Who::Name(name), Some(port)) => write!(f, "{name}:{port}"),
            (Who::Network { address, .. }, Some(port)) => SocketAddr::new(*address, port).fmt(f),
            (Who::Network { address, prefix }, None) => write!(f, "{address}/{prefix}"),
        }
    }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
