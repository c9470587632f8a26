//! The sections of the text report. The first line of each is its heading.

use inrush_common::report::{
    AgentRow, AgentState, Distribution, Ledger, Report, RunOutcome, SplitByOutcome, StatusRow,
};

use super::{
    cell,
    table::{
        Lean::{Left, Right},
        Table,
    },
};

/// The accounts of the run, and why anything planned was not started.
pub(super) fn ledger(report: &Report) -> Vec<String> {
    let mut table = Table::new([
        (Left, "LEDGER"),
        (Right, "planned"),
        (Right, "started"),
        (Right, "completed"),
        (Right, "succeeded"),
        (Right, "failed"),
        (Right, "not_started"),
        (Right, "in_flight_at_end"),
    ]);
    let all_measured = report.phases.iter().all(|row| row.measured);
    table.row(ledger_row(if all_measured { "total" } else { "measured" }, &report.ledger));
    if !all_measured {
        table.row(ledger_row("all phases", &report.total_ledger));
    }
    let mut lines = table.lines();
    lines.extend(not_started("not started", &report.ledger));
    if !all_measured {
        lines.extend(not_started("not started in all phases", &report.total_ledger));
    }
    lines
}

fn not_started(what: &str, ledger: &Ledger) -> Option<String> {
    let reasons = ledger.not_started_by_reason.iter();
    let reasons: Vec<String> = reasons
        .map(|(reason, count)| format!("{} {}", cell::words(reason), cell::count(*count)))
        .collect();
    (!reasons.is_empty()).then(|| format!("{what}: {}", reasons.join(", ")))
}

fn ledger_row(name: &str, ledger: &Ledger) -> [String; 8] {
    [
        name.to_owned(),
        cell::maybe_count(ledger.planned),
        cell::count(ledger.started),
        cell::count(ledger.completed),
        cell::count(ledger.succeeded),
        cell::count(ledger.failed),
        cell::maybe_count(ledger.not_started),
        cell::count(ledger.in_flight_at_end),
    ]
}

/// All distributions, each with its population.
pub(super) fn times(report: &Report) -> Vec<String> {
    if report.response_time.all.count + report.connect.count + report.worker_lag.count == 0 {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "TIMES"),
        (Right, "min"),
        (Right, "mean"),
        (Right, "p50"),
        (Right, "p90"),
        (Right, "p95"),
        (Right, "p99"),
        (Right, "p99.9"),
        (Right, "p99.99"),
        (Right, "max"),
    ]);
    split(&mut table, "response time", &report.response_time);
    split(&mut table, "service time", &report.service_time);
    for (name, of) in [
        ("schedule lag, all", &report.schedule_lag.all),
        ("ttfb, all", &report.ttfb.all),
        ("connect", &report.connect),
        ("tls", &report.tls),
        ("worker lag", &report.worker_lag),
    ] {
        // Plain HTTP has no handshakes to be silent about.
        if name != "tls" || of.count > 0 {
            table.row(distribution(name, of));
        }
    }
    table.lines()
}

fn split(table: &mut Table, name: &str, split: &SplitByOutcome) {
    table.row(distribution(&format!("{name}, all"), &split.all));
    table.row(distribution(&format!("{name}, succeeded"), &split.succeeded));
    table.row(distribution(&format!("{name}, failed"), &split.failed));
}

fn distribution(name: &str, of: &Distribution) -> [String; 10] {
    [
        format!("{name} ({})", cell::count(of.count)),
        cell::maybe_time(of.min_ns),
        cell::maybe_time(of.mean_ns),
        cell::maybe_time(of.p50_ns),
        cell::maybe_time(of.p90_ns),
        cell::maybe_time(of.p95_ns),
        cell::maybe_time(of.p99_ns),
        cell::maybe_time(of.p99_9_ns),
        cell::maybe_time(of.p99_99_ns),
        cell::maybe_time(of.max_ns),
    ]
}

/// Responses by status code.
pub(super) fn status(report: &Report) -> Vec<String> {
    if report.status.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "STATUS"),
        (Right, "responses"),
        (Right, "of completed"),
        (Left, "counted as"),
    ]);
    for row in &report.status {
        table.row([
            row.code.to_string(),
            cell::count(row.count),
            cell::percent(row.count, report.ledger.completed),
            counted_as(row),
        ]);
    }
    table.lines()
}

fn counted_as(row: &StatusRow) -> String {
    if row.failed == 0 {
        "success".to_owned()
    } else if row.failed == row.count {
        "failure".to_owned()
    } else {
        format!("success, {} as failure", cell::count(row.failed))
    }
}

/// Failures without a response, with an example each.
pub(super) fn errors(report: &Report) -> Vec<String> {
    if report.errors.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "ERRORS"),
        (Right, "requests"),
        (Right, "of completed"),
        (Left, "for example"),
    ]);
    for row in &report.errors {
        table.row([
            cell::words(&row.class),
            cell::count(row.count),
            cell::percent(row.count, report.ledger.completed),
            row.example.as_deref().map_or_else(|| cell::NONE.to_owned(), cell::words),
        ]);
    }
    table.lines()
}

/// One line per request of the plan.
pub(super) fn requests(report: &Report) -> Vec<String> {
    if report.ledger.started == 0 {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "REQUESTS (response time, all)"),
        (Right, "completed"),
        (Right, "failed"),
        (Right, "throughput /s"),
        (Right, "p50"),
        (Right, "p90"),
        (Right, "p99"),
        (Right, "max"),
    ]);
    for row in &report.requests {
        let all = &row.response_time.all;
        table.row([
            cell::words(&row.name),
            cell::count(row.ledger.completed),
            cell::count(row.ledger.failed),
            cell::rate(row.rates.throughput),
            cell::maybe_time(all.p50_ns),
            cell::maybe_time(all.p90_ns),
            cell::maybe_time(all.p99_ns),
            cell::maybe_time(all.max_ns),
        ]);
    }
    table.lines()
}

/// One line per agent, lost ones included.
pub(super) fn agents(report: &Report) -> Vec<String> {
    if report.agents.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "AGENTS (response time, all)"),
        (Right, "share"),
        (Right, "started"),
        (Right, "p50"),
        (Right, "p99"),
        (Right, "schedule lag p99"),
        (Right, "worker lag p99"),
        (Right, "peak CPU"),
        (Right, "peak memory"),
        (Right, "clock offset"),
        (Left, "state"),
    ]);
    for row in &report.agents {
        let cpu = row.cpu_peak.map(|peak| format!("{:.0} %", peak * 100.0));
        table.row([
            cell::words(&row.name),
            format!("{:.1} %", row.share * 100.0),
            cell::count(row.ledger.started),
            cell::maybe_time(row.response_time.all.p50_ns),
            cell::maybe_time(row.response_time.all.p99_ns),
            cell::maybe_time(row.schedule_lag.p99_ns),
            cell::maybe_time(row.worker_lag.p99_ns),
            cpu.unwrap_or_else(|| cell::NONE.to_owned()),
            cell::maybe_bytes(row.resident_peak_bytes),
            cell::clock(row.clock_offset_ns, row.clock_bound_ns),
            state(row),
        ]);
    }
    table.lines()
}

fn state(row: &AgentRow) -> String {
    let state = match row.lost_at_s {
        Some(at) if row.state == AgentState::Lost => format!("lost at {}", cell::seconds(at)),
        _ => row.state.name().to_owned(),
    };
    match &row.detail {
        Some(detail) => format!("{state}: {}", cell::words(detail)),
        None => state,
    }
}

/// One line per threshold of the plan.
pub(super) fn thresholds(report: &Report) -> Vec<String> {
    if report.thresholds.is_empty() {
        return Vec::new();
    }
    let so_far = report.run.outcome == RunOutcome::Running;
    let heading = if so_far { "THRESHOLDS (so far)" } else { "THRESHOLDS" };
    let mut table = Table::new([(Left, heading), (Right, "observed"), (Left, "result")]);
    for row in &report.thresholds {
        let (observed, _) = cell::observed_and_limit(row);
        let result = match (row.passed, &row.detail) {
            (true, _) => "passed".to_owned(),
            (false, None) => "FAILED".to_owned(),
            (false, Some(why)) => format!("FAILED: {}", cell::words(why)),
        };
        table.row([cell::words(&row.expression), observed, result]);
    }
    table.lines()
}
