//! `inrush explain`: what a run would be, before it runs. Reads the plan and this machine's limits, and asks a coordinator
//! for its agents; sends nothing to the target.

use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZeroUsize,
    time::Duration,
};

use inrush_agent::{
    capacity::{Limits, raise_file_limit, usable_cpus},
    kernel::port_hold,
    request_bytes,
};
use inrush_common::{
    capacity::Capacity,
    explain::{
        Explanation, FleetSource, Machine, Question, Refusal, RefusalCode, explain as work_out,
    },
    plan::Plan,
    units::Count,
};
use inrush_proto::v1::AgentInfo;

use super::{
    args::ExplainArgs, console::Console, describe, error::CliError, plan::PlanFile, run, sink::Sink,
};
use crate::{client::Client, exit::ExitStatus, local::Fleet, render};

/// `inrush explain`
///
/// # Errors
/// When the plan is wrong, or the coordinator cannot be asked.
pub(super) async fn explain(
    args: &ExplainArgs,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    let plan = PlanFile::read(&args.plan, console)?.plan;
    let sink = Sink::prepare("--json", args.json.as_deref())?;
    let agents = agents(args, &plan, console).await?;
    let explanation = answer(args, &plan, &agents);
    let json = || {
        let mut json = serde_json::to_string_pretty(&explanation).expect("only text keys");
        json.push('\n');
        json
    };
    if sink.is_stdout() {
        console.print(&json())?;
    } else {
        let loads: Vec<String> =
            plan.workload.phases.iter().map(|phase| describe::load(&phase.load)).collect();
        console.print(&render::explain(&explanation, &loads, console.color_out()))?;
        sink.write(&json())?;
    }
    Ok(if explanation.can_run { ExitStatus::Passed } else { ExitStatus::Usage })
}

/// Who would take part.
struct Agents {
    source: FleetSource,
    machines: Vec<Machine>,
    /// Why there are none, where this machine cannot have them.
    refused: Option<String>,
}

async fn agents(
    args: &ExplainArgs,
    plan: &Plan,
    console: &mut Console<'_>,
) -> Result<Agents, CliError> {
    if let Some(address) = &args.coordinator {
        let listed = Client::connect(address).await?.agents().await?;
        let busy = listed.iter().filter(|agent| agent.connected && !agent.run.is_empty()).count();
        if busy > 0 {
            let busy = Count(busy as u64);
            console.say(&format!(
                "{busy} of the agents are busy: a run submitted now waits for its turn"
            ));
        }
        let machines = connected(&listed)?;
        return Ok(Agents { source: FleetSource::Coordinator, machines, refused: None });
    }
    if let Some(count) = args.agents {
        raise_file_limit();
        let machines = assumed(count, described(args));
        return Ok(Agents { source: FleetSource::Assumed, machines, refused: None });
    }
    let source = FleetSource::Local;
    match run::fleet(plan, None, None).await {
        Ok(fleet) => Ok(Agents { source, machines: local(&fleet), refused: None }),
        Err(CliError::Local(error)) => {
            Ok(Agents { source, machines: Vec::new(), refused: Some(error.to_string()) })
        }
        Err(error) => Err(error),
    }
}

/// Those that have a stream: a run would be split over them.
fn connected(listed: &[AgentInfo]) -> Result<Vec<Machine>, CliError> {
    let connected = listed.iter().filter(|agent| agent.connected);
    let machine = |agent: &AgentInfo| {
        let name = agent.name.parse().map_err(|error| {
            CliError::internal("the coordinator lists an agent that cannot be", error)
        })?;
        let AgentInfo { workers, files, ports, sources, memory_bytes, cpu_quota_millis, .. } =
            *agent;
        let memory = memory_bytes;
        let capacity = Capacity { workers, files, ports, sources, memory, cpu_quota_millis };
        Ok(Machine { name, capacity })
    };
    connected.map(machine).collect()
}

/// What the command line says of an agent, and for the rest what this machine has.
fn described(args: &ExplainArgs) -> Capacity {
    let workers = args.workers.and_then(|workers| NonZeroUsize::new(workers as usize));
    let here = Limits::read(workers.unwrap_or_else(usable_cpus), &[], None).offer();
    Capacity {
        files: args.files.unwrap_or(here.files),
        ports: args.ports.unwrap_or(here.ports),
        sources: args.sources.unwrap_or(1),
        ..here
    }
}

fn assumed(count: u32, capacity: Capacity) -> Vec<Machine> {
    let width = count.to_string().len();
    let name = |number: u32| format!("agent-{number:0width$}").parse().expect("letters and digits");
    (1..=count).map(|number| Machine { name: name(number), capacity }).collect()
}

/// The agents of this fleet as they would present themselves.
fn local(fleet: &Fleet) -> Vec<Machine> {
    let workers = NonZeroUsize::new(fleet.workers as usize).unwrap_or(NonZeroUsize::MIN);
    let machine = |(sources, number): (&Vec<_>, u32)| Machine {
        name: format!("local-{number}").parse().expect("letters and digits"),
        capacity: Limits::read(workers, sources, None).offer(),
    };
    fleet.sources.iter().zip(1_u32..).map(machine).collect()
}

fn answer(args: &ExplainArgs, plan: &Plan, agents: &Agents) -> Explanation {
    let request_bytes: Vec<u64> = plan.workload.requests.iter().map(request_bytes).collect();
    let mut explanation = work_out(&Question {
        plan,
        agents: &agents.machines,
        fleet: agents.source,
        request_bytes: &request_bytes,
        response_bytes: args.response_size,
        port_hold: hold(plan),
    });
    if let Some(text) = &agents.refused {
        // It is why there are no agents: that there are none says nothing more.
        let (code, text) = (RefusalCode::LocalFleet, text.clone());
        explanation.refusals = vec![Refusal { code, text, remedies: Vec::new() }];
    }
    explanation
}

/// For how long this system keeps the ports of closed connections to the plan's targets. Names are not looked up: a target
/// that is not plainly on loopback counts as elsewhere.
fn hold(plan: &Plan) -> Duration {
    let connections = &plan.workload.connections;
    let urls = plan.workload.requests.iter().map(|request| request.url.host().unwrap_or_default());
    let places = connections
        .connect_to
        .iter()
        .map(|to| to.rsplit_once(':').map_or(to.as_str(), |(host, _)| host));
    let hosts: Vec<&str> =
        if connections.connect_to.is_empty() { urls.collect() } else { places.collect() };
    let address = |host: &str| match host.trim_start_matches('[').trim_end_matches(']') {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
    };
    port_hold(&hosts.into_iter().map(address).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumed_agents_stand_in_the_order_of_their_numbers() {
        let capacity = Capacity {
            workers: 2,
            files: 9,
            ports: 9,
            sources: 1,
            memory: None,
            cpu_quota_millis: None,
        };
        let names: Vec<String> =
            assumed(12, capacity).iter().map(|machine| machine.name.to_string()).collect();
        assert_eq!((names[0].as_str(), names[11].as_str()), ("agent-01", "agent-12"));
        assert!(names.is_sorted());
    }

    #[test]
    fn agents_without_a_stream_take_no_part() {
        let agent = |name: &str, connected| AgentInfo {
            name: name.to_owned(),
            connected,
            workers: 2,
            files: 100,
            ports: 50,
            sources: 3,
            ..AgentInfo::default()
        };
        let machines = connected(&[agent("lab1", true), agent("lab2", false)]).unwrap();
        assert_eq!(machines.len(), 1);
        assert_eq!(machines[0].capacity.max_connections(), 100);
        assert!(connected(&[agent("no/name", true)]).is_err());
    }
}
