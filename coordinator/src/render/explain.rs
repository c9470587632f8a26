//! An explanation as text: whether the run would be taken, what it would do, and who would do what.

use inrush_common::{
    explain::{AgentRow, Explanation, FleetSource, OpenRow, PhaseRow, PhaseShare, Refusal},
    units::{ByteCount, Count, Nanos},
};

use super::{
    cell,
    table::{Lean, Table},
};

/// The explanation for a person. `loads` are its phases in words.
pub(crate) fn explain(explanation: &Explanation, loads: &[String], color: bool) -> String {
    let bold = |text: &str| {
        if color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let mut lines = head(explanation, &bold);
    let sections = [
        sends(explanation),
        phases(explanation, loads),
        whole(explanation),
        conditions(explanation),
        agents(explanation),
        shares(explanation),
        warnings(explanation),
    ];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        lines.push(String::new());
        let mut section = section.into_iter();
        lines.extend(section.next().map(|heading| bold(&heading)));
        lines.extend(section);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn head(explanation: &Explanation, bold: &impl Fn(&str) -> String) -> Vec<String> {
    let verdict = if explanation.can_run { "CAN RUN" } else { "CANNOT RUN" };
    let requests = match explanation.run.requests {
        Some(requests) => format!("{} requests", Count(requests)),
        None => "as many requests as its time allows".to_owned(),
    };
    let agents = explanation.agents.len() as u64;
    let agents = match (explanation.fleet, agents) {
        (_, 0) => "with no agent".to_owned(),
        (FleetSource::Assumed, count) => format!("over {}", plural(count, "agent")),
        (FleetSource::Coordinator, count) => format!("over {}", plural(count, "connected agent")),
        (FleetSource::Local, count) => format!("over {}", plural(count, "local agent")),
    };
    let mut lines = vec![
        bold(verdict),
        format!(
            "{}: {requests}, up to {} at a time, {agents}; nothing was sent",
            cell::words(&explanation.plan),
            plural(explanation.run.connections, "connection"),
        ),
    ];
    lines.extend(explanation.refusals.iter().flat_map(refusal));
    lines
}

fn refusal(refusal: &Refusal) -> Vec<String> {
    let mut lines = vec![format!("- {}", refusal.text)];
    let remedies = refusal.remedies.iter().enumerate();
    lines.extend(remedies.map(|(index, remedy)| {
        format!("  {} {}", if index == 0 { "would do:" } else { "      or:" }, remedy.text)
    }));
    lines
}

fn sends(explanation: &Explanation) -> Vec<String> {
    let mut lines = vec!["SENDS".to_owned()];
    lines.extend(explanation.requests.iter().map(|request| {
        let (method, url) = (cell::words(&request.method), cell::words(&request.url));
        format!("{method} {url}  {} each, head and body", ByteCount(request.bytes))
    }));
    lines
}

fn phases(explanation: &Explanation, loads: &[String]) -> Vec<String> {
    let mut lines = vec!["PHASES".to_owned()];
    for (phase, load) in explanation.phases.iter().zip(loads) {
        let measured = if phase.measure { "" } else { " (not measured)" };
        lines.push(format!(
            "{} from {}{measured}: {load}",
            cell::words(&phase.name),
            instant(phase.starts_ns)
        ));
        lines.extend(phase_facts(phase, explanation).into_iter().map(|line| format!("  {line}")));
    }
    lines
}

fn phase_facts(phase: &PhaseRow, explanation: &Explanation) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(open) = &phase.open {
        lines.extend(arrivals(open));
        lines.push(littles_law(open, explanation.timeout_ns));
    }
    if let Some(closed) = &phase.closed {
        if let Some(each) = closed.requests_per_connection {
            let pause = match closed.think_time_ns {
                0 => String::new(),
                pause => format!(" and pauses of {} in between", Nanos(pause)),
            };
            lines.push(format!(
                "{} on each connection, one after the other: takes about {} × the response time{pause}",
                plural(each, "request"),
                Count(each)
            ));
        }
        if closed.at_least_ns > 0 {
            lines.push(format!("takes at least {} for its pauses", Nanos(closed.at_least_ns)));
        }
        if let Some(opening) = closed.opening_ns {
            lines.push(format!("its connections take {} to open at connect_rate", Nanos(opening)));
        }
    }
    lines
}

fn arrivals(open: &OpenRow) -> Option<String> {
    let (first, last) = open.first_due_ns.zip(open.last_due_ns)?;
    let (first, last) = (instant(first), instant(last));
    Some(format!("first request due {first} after its start, last {last} after"))
}

fn littles_law(open: &OpenRow, timeout_ns: u64) -> String {
    let end = match open.full_from_ns {
        None => "which is enough".to_owned(),
        Some(from) => {
            let then = if open.on_overflow == "drop" { "are dropped" } else { "wait" };
            format!("from a response time of {} on requests {then}", Nanos(from))
        }
    };
    format!(
        "{} × timeout {} = {} in flight if the target is that slow; max_in_flight allows {}: {end}",
        rate(open.peak_per_s),
        Nanos(timeout_ns),
        Count(open.in_flight_at_timeout),
        Count(open.max_in_flight)
    )
}

fn whole(explanation: &Explanation) -> Vec<String> {
    let run = &explanation.run;
    let mut rows = Vec::new();
    let lasts = match run.duration_ns {
        Some(duration) => Nanos(duration).to_string(),
        None => "as long as its responses take".to_owned(),
    };
    let grace = Nanos(explanation.grace_ns);
    rows.push(("lasts", format!("{lasts}, and up to {grace} for what is under way then")));
    let mut out = Vec::new();
    out.extend(run.bytes_out.map(|bytes| format!("{} in all", ByteCount(bytes))));
    out.extend(run.peak_bytes_out_per_s.map(|bytes| format!("{} at the peak rate", bits(bytes))));
    if !out.is_empty() {
        rows.push(("sends", out.join(", ")));
    }
    let mut received = Vec::new();
    received.extend(run.bytes_in.map(|bytes| format!("{} in all", ByteCount(bytes))));
    received
        .extend(run.peak_bytes_in_per_s.map(|bytes| format!("{} at the peak rate", bits(bytes))));
    rows.push((
        "receives",
        if received.is_empty() {
            "not known: --response-size gives an estimate".to_owned()
        } else {
            received.join(", ")
        },
    ));
    if run.held > 0 {
        rows.push(("holds", format!("{} open and idle", plural(run.held, "connection"))));
    }
    if let Some(reuse) = &explanation.reuse {
        let mut text = format!("after {}", plural(reuse.requests_per_connection, "request"));
        if let Some(opened) = reuse.opened {
            text.push_str(&format!("; up to {} opened in all", Count(opened)));
        }
        if let Some(peak) = reuse.peak_per_s {
            text.push_str(&format!("; up to {} opened", rate(peak)));
        }
        let hold = Nanos(reuse.port_hold_ns);
        text.push_str(&format!("; the local port of each is free {hold} after its end"));
        rows.push(("closes", text));
    }
    let loss = match explanation.on_loss.as_str() {
        "continue" => "if one is lost, the others finish their shares",
        _ => "if one is lost, the run stops",
    };
    rows.push(("agents", format!("at least {}; {loss}", Count(u64::from(explanation.agents_min)))));
    let mut lines = vec!["RUN".to_owned()];
    lines.extend(rows.into_iter().map(|(what, text)| format!("{what:<9} {text}")));
    lines
}

fn conditions(explanation: &Explanation) -> Vec<String> {
    let thresholds = explanation.thresholds.iter().map(|it| format!("must hold at the end: {it}"));
    let rules = explanation.stop_when.iter().map(|rule| {
        let how = if rule.abort { "at once" } else { "and lets requests under way finish" };
        let after = Nanos(rule.after_ns);
        format!("stops the run {how}: {} not held over the last {after}", rule.threshold)
    });
    let lines: Vec<String> = thresholds.chain(rules).collect();
    if lines.is_empty() {
        return lines;
    }
    std::iter::once("THRESHOLDS".to_owned()).chain(lines).collect()
}

fn agents(explanation: &Explanation) -> Vec<String> {
    if explanation.agents.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        (Lean::Left, "AGENTS"),
        (Lean::Right, "workers"),
        (Lean::Right, "connections"),
        (Lean::Right, "can carry"),
        (Lean::Right, "open files"),
        (Lean::Right, "local ports"),
        (Lean::Right, "of them needed"),
        (Lean::Right, "memory needed"),
        (Lean::Right, "requests"),
        (Lean::Right, "peak rate"),
        (Lean::Right, "sends"),
    ]);
    for (name, agent) in
        grouped(&explanation.agents, |agent| AgentRow { name: String::new(), ..agent.clone() })
    {
        let share = agent.share.as_ref();
        let ports = match agent.sources {
            0 | 1 => count(agent.ports),
            sources => format!("{} × {}", count(agent.ports), Count(u64::from(sources))),
        };
        table.row([
            name,
            agent.workers.to_string(),
            cell::maybe_count(share.map(|share| share.connections)),
            count(agent.max_connections),
            count(agent.files),
            ports,
            cell::maybe_count(share.and_then(|share| share.ports_needed)),
            cell::maybe_bytes(share.map(|share| share.memory_bytes)),
            cell::maybe_count(share.and_then(|share| share.requests)),
            maybe(share.and_then(|share| share.peak_rate_per_s), rate),
            maybe(share.and_then(|share| share.peak_bytes_out_per_s), bits),
        ]);
    }
    table.lines()
}

/// With one closed phase the agents' table says all.
fn shares(explanation: &Explanation) -> Vec<String> {
    let open = explanation.phases.iter().any(|phase| phase.open.is_some());
    if explanation.phases.len() == 1 && !open {
        return Vec::new();
    }
    let mut table = Table::new([
        (Lean::Left, "SHARES"),
        (Lean::Left, "agents"),
        (Lean::Right, "connections"),
        (Lean::Right, "requests"),
        (Lean::Right, "peak rate"),
        (Lean::Right, "full from a response time of"),
    ]);
    let mut any = false;
    for (index, phase) in explanation.phases.iter().enumerate() {
        let of = |agent: &AgentRow| -> Option<PhaseShare> {
            agent.share.as_ref().and_then(|share| share.phases.get(index)).cloned()
        };
        for (name, agent) in grouped(&explanation.agents, of) {
            let Some(share) = of(agent) else { continue };
            any = true;
            table.row([
                cell::words(&phase.name),
                name,
                count(share.connections),
                cell::maybe_count(share.requests),
                maybe(share.peak_rate_per_s, rate),
                maybe(share.full_from_ns, |from| Nanos(from).to_string()),
            ]);
        }
    }
    if any { table.lines() } else { Vec::new() }
}

fn warnings(explanation: &Explanation) -> Vec<String> {
    if explanation.warnings.is_empty() {
        return Vec::new();
    }
    let lines = explanation.warnings.iter().map(|warning| format!("- {}", warning.text));
    std::iter::once("WARNINGS".to_owned()).chain(lines).collect()
}

/// Neighbours that are alike become one row, named by the first and the last.
fn grouped<T: PartialEq>(
    agents: &[AgentRow],
    what: impl Fn(&AgentRow) -> T,
) -> Vec<(String, &AgentRow)> {
    agents
        .chunk_by(|a, b| what(a) == what(b))
        .filter_map(|alike| {
            let (first, last) = (alike.first()?, alike.last()?);
            let name = match alike.len() {
                1 => first.name.clone(),
                2 => format!("{}, {}", first.name, last.name),
                many => format!("{} … {} ({many})", first.name, last.name),
            };
            Some((name, first))
        })
        .collect()
}

fn maybe<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or_else(|| cell::NONE.to_owned(), shown)
}

/// A limit that is none is said so.
fn count(count: u64) -> String {
    if count == u64::MAX { "no limit".to_owned() } else { cell::count(count) }
}

fn instant(nanos: u64) -> String {
    if nanos == 0 { "0 s".to_owned() } else { Nanos(nanos).to_string() }
}

/// Rates below a hundredth have digits too.
fn rate(per_second: f64) -> String {
    let digits = if per_second < 10.0 { 6 } else { 1 };
    let text = if per_second < 1_000.0 {
        let text = format!("{per_second:.digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        cell::rate(per_second)
    };
    format!("{text}/s")
}

/// Bytes per second as networks count.
fn bits(bytes_per_second: f64) -> String {
    const UNITS: [&str; 5] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let (mut value, mut unit) = (bytes_per_second * 8.0, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

fn plural(count: u64, one: &str) -> String {
    format!("{} {one}{}", Count(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
