//! What a run was to do: models, rates and phases, and how the arrivals of its open loads came out.

use inrush_common::report::{Arrivals, Model, PhaseRow, PlannedRate, Report};

use super::{
    cell,
    table::{
        Lean::{Left, Right},
        Table,
    },
};

/// The load of the measured phases, for the headline: the model first, then how much.
pub(super) fn headline(report: &Report) -> String {
    let measured: Vec<&PhaseRow> = report.phases.iter().filter(|row| row.measured).collect();
    if let [row] = measured[..] {
        let load = amount(row);
        let duration = row.planned_duration_s.filter(|_| row.model == Model::Open);
        let duration = duration.map_or_else(String::new, |s| format!(" for {}", cell::seconds(s)));
        return format!("{} model, {load}{duration}", row.model);
    }
    let most = |model| measured.iter().filter(move |row| row.model == model);
    let connections = most(Model::Closed).map(|row| row.connections).max();
    let arrivals = most(Model::Open).filter_map(|row| row.arrivals.as_ref());
    let rate = arrivals.map(|arrivals| arrivals.rate.peak).max_by(f64::total_cmp);
    let amounts = [connections.map(connections_of), rate.map(cell::planned_rate)];
    let amounts: Vec<String> = amounts.into_iter().flatten().collect();
    let models = if report.model == Model::Mixed { "models" } else { "model" };
    let count = measured.len();
    format!("{} {models}, {count} measured phases, up to {}", report.model, amounts.join(" and "))
}

fn connections_of(count: u64) -> String {
    match count {
        1 => "1 connection".to_owned(),
        count => format!("{} connections", cell::count(count)),
    }
}

fn amount(row: &PhaseRow) -> String {
    match &row.arrivals {
        Some(arrivals) => rate_of(&arrivals.rate),
        None => connections_of(row.connections),
    }
}

fn rate_of(rate: &PlannedRate) -> String {
    let [from, to, peak] = [rate.from, rate.to, rate.peak].map(cell::planned_rate);
    if from == to && to == peak {
        peak
    } else if from == peak || to == peak {
        format!("{from} to {to}")
    } else {
        format!("up to {peak}")
    }
}

/// One line per phase, and one per open one with its arrivals.
pub(super) fn phases(report: &Report) -> Vec<String> {
    if report.total_ledger.started == 0 {
        return Vec::new();
    }
    let mut table = Table::new([
        (Left, "PHASES (response time, all)"),
        (Left, "measured"),
        (Left, "load"),
        (Right, "starts at"),
        (Right, "duration"),
        (Right, "started"),
        (Right, "failed"),
        (Right, "throughput /s"),
        (Right, "p50"),
        (Right, "p99"),
        (Right, "schedule lag p99"),
    ]);
    for row in &report.phases {
        table.row([
            cell::words(&row.name),
            if row.measured { "yes" } else { "no" }.to_owned(),
            format!("{}, {}", row.model, amount(row)),
            cell::seconds(row.starts_at_s),
            cell::seconds(row.duration_s),
            cell::count(row.ledger.started),
            cell::count(row.ledger.failed),
            cell::rate(row.rates.throughput),
            cell::maybe_time(row.response_time.all.p50_ns),
            cell::maybe_time(row.response_time.all.p99_ns),
            cell::maybe_time(row.schedule_lag.all.p99_ns),
        ]);
    }
    let mut lines = table.lines();
    let arrivals = report.phases.iter().filter_map(|row| Some((row, row.arrivals.as_ref()?)));
    lines.extend(arrivals.map(|(row, arrivals)| arrived(&row.name, arrivals)));
    lines
}

fn arrived(phase: &str, arrivals: &Arrivals) -> String {
    let poisson = arrivals.ks.is_some() || arrivals.process == "poisson";
    let mut parts = vec![format!(
        "arrivals of {}: {}, {} of {} planned started",
        cell::words(phase),
        cell::words(&arrivals.process),
        cell::count(arrivals.started),
        cell::count(arrivals.planned)
    )];
    if let Some(error) = arrivals.rate_error {
        parts.push(format!("worst second {:.2} % off the plan", error * 100.0));
    }
    let gaps = &arrivals.gaps;
    if gaps.count > 0 {
        let [p50, p99, max] = [gaps.p50, gaps.p99, gaps.max].map(cell::multiple);
        let gap = if poisson { "mean" } else { "intended" };
        let count = cell::count(gaps.count);
        parts.push(format!("gaps by the {gap} one ({count}): p50 {p50}, p99 {p99}, max {max}"));
    }
    if let Some(ks) = &arrivals.ks {
        let passed = if ks.passed { "like" } else { "unlike" };
        parts.push(format!(
            "distance to exponential gaps {:.4}, critical {:.4}: {passed} a Poisson process",
            ks.statistic, ks.critical
        ));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::tests::report;

    #[test]
    fn the_headline_says_what_each_model_was_to_do() {
        for (name, words) in [
            ("normal", "closed model, 100 connections"),
            ("open_valid", "open model, 2,000/s for 6.00 s"),
            ("poisson", "open model, 100/s to 300/s for 8.00 s"),
            ("warm_up", "closed model, 40 connections"),
            ("mixed", "mixed models, 2 measured phases, up to 10 connections and 1,000/s"),
        ] {
            assert_eq!(headline(&report(name)), words);
        }
        let mut steps = report("open_valid");
        let row = &mut steps.phases[0];
        row.arrivals.as_mut().unwrap().rate.peak = 9_000.0;
        assert_eq!(headline(&steps), "open model, up to 9,000/s for 6.00 s");
        let second = steps.phases[0].clone();
        steps.phases.push(second);
        assert_eq!(headline(&steps), "open model, 2 measured phases, up to 9,000/s");
    }
}
