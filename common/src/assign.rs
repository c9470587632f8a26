//! Splitting a plan over agents. The one place that divides work.
//!
//! Connections (of the closed model: its connections; of the open model: its requests in flight) are split by weight
//! within what each agent can carry; requests follow the connections. Both are exact: the shares sum to the plan for
//! any number of agents, also when there are more agents than connections.

use crate::{
    id::AgentName,
    plan::{ClosedLoad, ConnectionPolicy, Load, OpenLoad, Phase, Workload},
    schedule::{Interleave, Rate},
};

/// What an agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Who.
    pub agent: AgentName,
    /// Its weight: a machine with twice the workers gets twice the share. At least 1.
    pub workers: u32,
    /// More connections than this it cannot carry (files, local ports).
    pub max_connections: u64,
}

/// What an agent is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Who.
    pub agent: AgentName,
    /// Its share of the work.
    pub workload: Workload,
}

/// Why a plan cannot be split over these agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// Nobody to give work to.
    #[error("no agent to split the plan over")]
    NoAgents,
    /// Together the agents cannot carry the connections.
    #[error(
        "the plan wants {wanted} connections, but {agents} agent(s) can carry {carried} ({detail}): add agents, give \
         agents more source addresses (--source-ip), raise their file limits, or lower `connections`"
    )]
    TooManyConnections {
        /// Asked for.
        wanted: u64,
        /// Possible.
        carried: u64,
        /// How many agents.
        agents: usize,
        /// The sum, agent by agent.
        detail: String,
    },
}

/// Splits `workload` over `offers`, which are taken in the order of their names, whatever order they come in.
///
/// # Errors
/// When there are no agents, or too many connections for them.
pub fn split(workload: &Workload, offers: &[Offer]) -> Result<Vec<Assignment>, SplitError> {
    let mut offers: Vec<&Offer> = offers.iter().collect();
    offers.sort_by(|a, b| a.agent.cmp(&b.agent));
    if offers.is_empty() {
        return Err(SplitError::NoAgents);
    }
    let weights: Vec<u64> = offers.iter().map(|offer| u64::from(offer.workers.max(1))).collect();
    let limits: Vec<u64> = offers.iter().map(|offer| offer.max_connections).collect();
    let wanted = workload.peak_connections();
    // What each agent may have open at one instant, in any phase. All else follows it.
    let carried =
        within_limits(wanted, &weights, &limits).ok_or_else(|| too_many(wanted, &offers))?;
    let held = by_weight(workload.connections.hold, &carried);
    let phases = split_phases(workload, &carried, &held);
    let rates = workload.connections.connect_rate.map(|rate| by_weight(rate.micro(), &carried));
    let assignments = offers.iter().enumerate().map(|(index, offer)| Assignment {
        agent: offer.agent.clone(),
        workload: Workload {
            phases: phases.iter().map(|shares| shares[index].clone()).collect(),
            connections: ConnectionPolicy {
                hold: held[index],
                connect_rate: rates.as_ref().map(|rates| rate_of(rates[index])),
                ..workload.connections.clone()
            },
            ..workload.clone()
        },
    });
    Ok(assignments.collect())
}

/// A share of a rate; never 0, which would be no connection for ever.
fn rate_of(micro: u64) -> Rate {
    Rate::from_micro(micro.max(1)).expect("a share of a rate is at most the rate")
}

/// The shares of every phase, agent by agent. Phases that are at work together keep within `carried` together.
fn split_phases(workload: &Workload, carried: &[u64], held: &[u64]) -> Vec<Vec<Phase>> {
    let phases = &workload.phases;
    let mut order: Vec<usize> = (0..phases.len()).collect();
    order.sort_by_key(|index| phases[*index].starts_at);
    let mut connections: Vec<Vec<u64>> = vec![vec![0; carried.len()]; phases.len()];
    for (place, index) in order.iter().enumerate() {
        let phase = &phases[*index];
        let mut free: Vec<u64> =
            carried.iter().zip(held).map(|(carried, held)| carried - held).collect();
        for earlier in &order[..place] {
            if phases[*earlier].is_on_at(phase.starts_at) {
                for (free, taken) in free.iter_mut().zip(&connections[*earlier]) {
                    *free -= taken;
                }
            }
        }
        connections[*index] = within_limits(phase.load.connections(), &free, &free)
            .expect("the connections of phases that are at work together were counted together");
    }
    phases.iter().zip(connections).map(|(phase, shares)| split_phase(phase, &shares)).collect()
}

fn split_phase(phase: &Phase, connections: &[u64]) -> Vec<Phase> {
    // An agent without connections can make no request; one with twice the connections makes twice as many.
    let loads: Vec<Load> = match &phase.load {
        Load::Closed(closed) => {
            let requests = closed.requests.map(|total| by_weight(total, connections));
            let lanes = deal(connections).into_iter().enumerate();
            let load = |(index, lanes)| ClosedLoad {
                lanes,
                requests: requests.as_ref().map(|requests| requests[index]),
                ..closed.clone()
            };
            lanes.map(load).map(Load::Closed).collect()
        }
        Load::Open(open) => {
            let slots = deal(&by_weight(open.slots.count(), connections)).into_iter();
            let load = |(slots, max_in_flight): (_, &u64)| OpenLoad {
                slots,
                max_in_flight: *max_in_flight,
                ..open.clone()
            };
            slots.zip(connections).map(load).map(Load::Open).collect()
        }
    };
    loads.into_iter().map(|load| Phase { load, ..phase.clone() }).collect()
}

fn deal(counts: &[u64]) -> Vec<Interleave> {
    Interleave::deal(counts).expect("a plan's counts are below the most that can be dealt")
}

fn too_many(wanted: u64, offers: &[&Offer]) -> SplitError {
    const SHOWN: usize = 6;
    let carried = offers.iter().fold(0_u64, |sum, offer| sum.saturating_add(offer.max_connections));
    let mut parts: Vec<String> = offers
        .iter()
        .take(SHOWN)
        .map(|offer| format!("{} {}", offer.agent, offer.max_connections))
        .collect();
    if offers.len() > SHOWN {
        parts.push(format!("and {} more", offers.len() - SHOWN));
    }
    SplitError::TooManyConnections {
        wanted,
        carried,
        agents: offers.len(),
        detail: parts.join(", "),
    }
}

/// Splits `total` in proportion to `weights`, exactly: each gets its quota rounded down, and what is left goes one by
/// one to the largest remainders (the earlier of two equal ones). A weight of 0 gets 0, unless all are 0, when
/// nobody gets anything.
pub fn by_weight(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let product = |weight: &u64| u128::from(total) * u128::from(*weight);
    let mut shares: Vec<u64> = weights
        .iter()
        .map(|weight| u64::try_from(product(weight) / sum).expect("a share is at most the total"))
        .collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(product(&weights[*index]) % sum));
    let left = total - shares.iter().sum::<u64>();
    for index in order.into_iter().take(usize::try_from(left).expect("fewer left than agents")) {
        shares[index] += 1;
    }
    shares
}

/// [`by_weight`] with an upper limit for each. What a limit cuts off is split again over the others. `None` when the
/// limits sum to less than `total`.
pub fn within_limits(total: u64, weights: &[u64], limits: &[u64]) -> Option<Vec<u64>> {
    let mut shares = vec![0; weights.len()];
    let mut weights = weights.to_vec();
    let mut left = total;
    while left > 0 {
        if weights.iter().all(|weight| *weight == 0) {
            return None;
        }
        for (index, more) in by_weight(left, &weights).into_iter().enumerate() {
            let more = more.min(limits[index] - shares[index]);
            shares[index] += more;
            left -= more;
            if shares[index] == limits[index] {
                weights[index] = 0;
            }
        }
    }
    Some(shares)
}
