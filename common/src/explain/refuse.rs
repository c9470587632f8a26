//! What would be refused, and how much more of what would do.

use super::{Machine, Question, Refusal, RefusalCode, Remedy};
use crate::{
    assign::Assignment,
    capacity::{CONNECTION_BYTES, Capacity},
    churn::Churn,
    units::{ByteCount, Count},
};

/// Fewer agents than the plan asks for.
pub(super) fn too_few_agents(min: u32, present: usize) -> Option<Refusal> {
    let wanted = u64::from(min.max(1));
    let present = present as u64;
    if present >= wanted {
        return None;
    }
    let have = if present == 0 {
        "there is none".to_owned()
    } else {
        format!("there are {}", Count(present))
    };
    Some(Refusal {
        code: RefusalCode::TooFewAgents,
        text: format!("the plan wants at least {} (agents.min), {have}", agents(wanted)),
        remedies: vec![Remedy { agents: Some(wanted), ..Remedy::new(agents(wanted)) }],
    })
}

/// More connections than the agents carry together.
pub(super) fn too_many_connections(wanted: u64, carried: u64, machines: &[Machine]) -> Refusal {
    let fleet = Fleet { wanted, machines };
    let mut remedies = Vec::new();
    remedies.extend(fleet.more_agents());
    remedies.extend(fleet.more_sources());
    remedies.extend(fleet.fewer_agents());
    remedies.extend(fleet.more_files());
    if remedies.iter().all(|remedy| remedy.sources.is_none() && remedy.files.is_none()) {
        remedies.extend(fleet.more_of_both());
    }
    if carried > 0 {
        let text = format!("at most {} in the plan", connections(carried));
        remedies.push(Remedy { connections: Some(carried), ..Remedy::new(text) });
    }
    let text = format!(
        "{} are more than the {} can carry: {} ({})",
        connections(wanted),
        agents(machines.len() as u64),
        Count(carried),
        fleet.what_each_carries()
    );
    Refusal { code: RefusalCode::TooManyConnections, text, remedies }
}

/// An agent that would refuse its share when it gets ready, for the ports that ended connections keep.
pub(super) fn too_fast(share: &Assignment, question: &Question<'_>) -> Option<Refusal> {
    let churn = Churn::of(&share.workload)?;
    let machine = question.agents.iter().find(|machine| machine.name == share.agent)?;
    let paths = u64::from(machine.capacity.sources.max(1));
    let open = share.workload.peak_connections();
    let error = churn.check(&machine.capacity, (open, paths), question.port_hold).err()?;
    let remedy = Remedy {
        sources: Some(error.pairs),
        ..Remedy::new(format!("{} source addresses for it (--source-ip)", Count(error.pairs)))
    };
    Some(Refusal {
        code: RefusalCode::PortsInTimeWait,
        text: format!("{}: {error}", machine.name),
        remedies: vec![remedy],
    })
}

impl Remedy {
    fn new(text: String) -> Self {
        Self { text, agents: None, sources: None, files: None, connections: None }
    }
}

/// Agents that are asked for more than they carry.
struct Fleet<'a> {
    wanted: u64,
    machines: &'a [Machine],
}

impl Fleet<'_> {
    fn present(&self) -> u64 {
        self.machines.len() as u64
    }

    fn carried(&self, of: impl Fn(Capacity) -> Capacity) -> u64 {
        let each = self.machines.iter().map(|machine| of(machine.capacity).max_connections());
        each.fold(0, u64::saturating_add)
    }

    /// The agent that carries most, the first of several: what one more is supposed to be like.
    fn best(&self) -> Option<&Machine> {
        let carries = |machine: &&Machine| machine.capacity.max_connections();
        self.machines.iter().rev().max_by_key(carries).filter(|machine| carries(machine) > 0)
    }

    fn alike(&self) -> bool {
        let limits = |it: &Machine| {
            let Capacity { files, ports, sources, memory, .. } = it.capacity;
            (files, ports, sources, memory)
        };
        self.machines.windows(2).all(|pair| limits(&pair[0]) == limits(&pair[1]))
    }

    fn what_each_carries(&self) -> String {
        const SHOWN: usize = 6;
        if self.alike() {
            return self
                .machines
                .first()
                .map_or_else(String::new, |machine| each(machine.capacity));
        }
        let shown = self.machines.iter().take(SHOWN);
        let mut parts: Vec<String> =
            shown.map(|machine| format!("{} {}", machine.name, each(machine.capacity))).collect();
        if self.machines.len() > SHOWN {
            parts.push(format!("and {} more", self.machines.len() - SHOWN));
        }
        parts.join(", ")
    }

    fn more_agents(&self) -> Option<Remedy> {
        let best = self.best()?;
        let each_carries = best.capacity.max_connections();
        let missing = self.wanted.saturating_sub(self.carried(|it| it));
        let more = missing.div_ceil(each_carries);
        let total = self.present().saturating_add(more);
        let text = if self.alike() {
            format!("{} of {} each", agents(total), connections(each_carries))
        } else {
            format!(
                "{} more like {}, which carries {}",
                agents(more),
                best.name,
                Count(each_carries)
            )
        };
        Some(Remedy { agents: Some(total), ..Remedy::new(text) })
    }

    /// As many source addresses for each as it takes.
    fn more_sources(&self) -> Option<Remedy> {
        let sources = least(self.wanted, |sources| self.carried(|it| with_sources(it, sources)))?;
        let text = format!(
            "{} source address{} for each of the {} (--source-ip)",
            Count(sources),
            if sources == 1 { "" } else { "es" },
            agents(self.present())
        );
        let agents = Some(self.present());
        Some(Remedy { agents, sources: Some(sources), ..Remedy::new(text) })
    }

    /// A single one of them, with as many source addresses as it takes.
    fn fewer_agents(&self) -> Option<Remedy> {
        let best = self.best().filter(|_| self.present() > 1)?.capacity;
        let sources = least(self.wanted, |sources| with_sources(best, sources).max_connections())?;
        let text = format!("1 agent with {} source addresses", Count(sources));
        Some(Remedy { agents: Some(1), sources: Some(sources), ..Remedy::new(text) })
    }

    fn more_files(&self) -> Option<Remedy> {
        let files = least(self.wanted, |files| self.carried(|it| with_files(it, files)))?;
        let text = format!(
            "{} open files for the connections of each of the {} (ulimit -n, LimitNOFILE=)",
            Count(files),
            agents(self.present())
        );
        Some(Remedy { agents: Some(self.present()), files: Some(files), ..Remedy::new(text) })
    }

    /// Where neither files nor source addresses are enough by themselves.
    fn more_of_both(&self) -> Option<Remedy> {
        let each = self.wanted.checked_div(self.present())?.saturating_add(1);
        let most = |it| with_files(it, each);
        let sources =
            least(self.wanted, |sources| self.carried(|it| with_sources(most(it), sources)))?;
        let files = least(self.wanted, |files| {
            self.carried(|it| with_sources(with_files(it, files), sources))
        })?;
        let text = format!(
            "{} open files and {} source addresses for each of the {}",
            Count(files),
            Count(sources),
            agents(self.present())
        );
        let agents = Some(self.present());
        Some(Remedy { agents, sources: Some(sources), files: Some(files), ..Remedy::new(text) })
    }
}

/// At least so many source addresses.
fn with_sources(capacity: Capacity, sources: u64) -> Capacity {
    let sources = u32::try_from(sources).unwrap_or(u32::MAX);
    Capacity { sources: capacity.sources.max(sources), ..capacity }
}

/// At least so many files.
fn with_files(capacity: Capacity, files: u64) -> Capacity {
    Capacity { files: capacity.files.max(files), ..capacity }
}

/// The least number with which so many are carried; `carried` does not fall. `None` when no number is enough.
fn least(wanted: u64, carried: impl Fn(u64) -> u64) -> Option<u64> {
    let (mut low, mut high) = (1, wanted.max(1));
    if carried(high) < wanted {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if carried(middle) < wanted { low = middle + 1 } else { high = middle }
    }
    Some(low)
}

/// What limits the connections of an agent, in words.
fn each(capacity: Capacity) -> String {
    let sources = u64::from(capacity.sources.max(1));
    let ports = capacity.ports.saturating_mul(sources);
    if let Some(memory) = capacity.memory
        && memory / CONNECTION_BYTES < ports.min(capacity.files)
    {
        return format!(
            "{} of memory each, at {CONNECTION_BYTES} bytes a connection",
            ByteCount(memory)
        );
    }
    if capacity.files <= ports {
        return format!("{} open files each", Count(capacity.files));
    }
    match sources {
        1 => format!("{} local ports each", Count(ports)),
        _ => format!("{} local ports × {sources} source addresses each", Count(capacity.ports)),
    }
}

fn agents(count: u64) -> String {
    if count == 1 { "1 agent".to_owned() } else { format!("{} agents", Count(count)) }
}

fn connections(count: u64) -> String {
    if count == 1 { "1 connection".to_owned() } else { format!("{} connections", Count(count)) }
}
