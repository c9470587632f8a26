//! The report as text, in a fixed order: what was done and whether to believe it, then the accounts, then the times.

use inrush_common::{
    report::{AddressRow, Reason, Report, RunOutcome, Verdict, VerdictStatus},
    units::ByteCount,
};

use super::{cell, load, section};

/// The report for a person. With `color`, headings and the verdict carry ANSI colours.
pub fn text(report: &Report, color: bool) -> String {
    let paint = Paint(color);
    let mut lines = head(report, paint);
    let sections = [
        section::ledger(report),
        accounts(report),
        section::times(report),
        section::status(report),
        section::errors(report),
        section::requests(report),
        load::phases(report),
        section::agents(report),
        section::thresholds(report),
    ];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        lines.push(String::new());
        let mut section = section.into_iter();
        lines.extend(section.next().map(|heading| paint.bold(&heading)));
        lines.extend(section);
    }
    lines.push(String::new());
    lines.join("\n")
}

/// In a large fleet one cause may make a hundred reasons.
const REASONS_SHOWN: usize = 3;

/// ANSI colours, or none.
#[derive(Debug, Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn verdict(self, status: VerdictStatus, text: &str) -> String {
        let code = match status {
            VerdictStatus::Valid => "1;32",
            VerdictStatus::Degraded => "1;33",
            VerdictStatus::Invalid => "1;31",
        };
        self.wrap(code, text)
    }
}

fn head(report: &Report, paint: Paint) -> Vec<String> {
    let verdict = &report.verdict;
    let status = paint.verdict(verdict.status, &verdict.status.name().to_uppercase());
    let mut lines = vec![
        format!("VERDICT {status}"),
        paint.bold(&headline(report)),
        format!(
            "run {}, plan {}, {}, {}",
            cell::words(&report.run.id),
            cell::words(&report.plan.name),
            cell::words(&report.plan.url),
            began(report),
        ),
    ];
    if let Some(detail) = &report.run.detail {
        lines.push(format!("{}: {}", report.run.outcome.name(), cell::words(detail)));
    } else if report.run.outcome != RunOutcome::Finished {
        lines.push(format!("outcome: {}", report.run.outcome.name()));
    }
    lines.extend(reasons(verdict, paint));
    let thresholds = report.thresholds.len();
    let failed = report.thresholds.iter().filter(|row| !row.passed).count();
    if failed > 0 {
        let so_far = if report.run.outcome == RunOutcome::Running { " so far" } else { "" };
        let text = format!("{failed} of {thresholds} thresholds failed{so_far}");
        lines.push(paint.verdict(VerdictStatus::Invalid, &text));
    }
    lines
}

/// One line per reason; of one kind of reason in many agents the first few, and how many more.
fn reasons(verdict: &Verdict, paint: Paint) -> Vec<String> {
    let alike = |a: &Reason, b: &Reason| (a.status, a.code) == (b.status, b.code);
    let mut lines = Vec::new();
    for group in verdict.reasons.chunk_by(alike) {
        for reason in group.iter().take(REASONS_SHOWN) {
            let who =
                reason.agent.as_deref().map_or_else(String::new, |agent| format!("{agent}: "));
            lines.push(format!(
                "  {} {}: {}{}",
                paint.verdict(reason.status, reason.status.name()),
                reason.code,
                cell::words(&who),
                cell::words(&reason.text),
            ));
        }
        if group.len() > REASONS_SHOWN {
            let more = group.len() - REASONS_SHOWN;
            lines.push(format!("    and {more} more of the kind, all in the JSON report"));
        }
    }
    lines
}

fn began(report: &Report) -> String {
    match &report.run.started_at {
        Some(at) => format!("started {at}"),
        None => format!("submitted {}, never started", report.run.submitted_at),
    }
}

/// The one line that is quoted. It names the model, and when much failed it does not read like a result.
pub(super) fn headline(report: &Report) -> String {
    let (ledger, what) = (&report.ledger, load::headline(report));
    let so_far = if report.run.outcome == RunOutcome::Running { " so far" } else { "" };
    let failed = cell::count(ledger.failed);
    let completed = cell::count(ledger.completed);
    let duration = cell::seconds(report.duration_s);
    if ledger.completed == 0 {
        return format!("{what}: NOTHING WAS MEASURED{so_far}, no request completed");
    }
    if ledger.succeeded == 0 {
        return format!(
            "{what}: EVERY REQUEST FAILED{so_far}, {failed} of {completed} in {duration}"
        );
    }
    let rate = cell::rate(report.rates.throughput);
    let failed = if ledger.failed == 0 {
        "none failed".to_owned()
    } else {
        let share = cell::percent(ledger.failed, ledger.completed);
        format!("{share} failed ({failed} of {completed})")
    };
    // What an open load was to do and did not, for want of answers. Without it the rate reads like that of the plan.
    let missing =
        ["dropped", "still_queued"].map(|reason| ledger.not_started_by_reason.get(reason));
    let missing: u64 = missing.into_iter().flatten().sum();
    let missing = match missing {
        0 => String::new(),
        missing => {
            let planned = ledger
                .planned
                .map_or_else(String::new, |planned| format!(" of {}", cell::count(planned)));
            format!(", {}{planned} planned not started", cell::count(missing))
        }
    };
    format!("{what}: {rate} successful requests/s over {duration}{so_far}, {failed}{missing}")
}

fn accounts(report: &Report) -> Vec<String> {
    let rates = &report.rates;
    let connections = &report.connections;
    let target = rates.target.map_or_else(|| cell::NONE.to_owned(), cell::rate);
    let mut lines = vec![
        format!(
            "RATES /s     target {target}, started {}, completed {}, throughput {} (succeeded), over {}",
            cell::rate(rates.started),
            cell::rate(rates.completed),
            cell::rate(rates.throughput),
            cell::seconds(report.duration_s),
        ),
        format!(
            "BYTES        out {}, in {}",
            ByteCount(report.bytes.out),
            ByteCount(report.bytes.received)
        ),
        format!(
            "CONNECTIONS  requested {}, established {}, opened {}, failed {}, peak {}",
            cell::count(connections.requested),
            cell::count(connections.established),
            cell::count(connections.opened),
            cell::count(connections.failed),
            cell::count(connections.peak),
        ),
    ];
    lines.extend(addresses(&connections.addresses));
    let skew = report.start_skew.map_or_else(
        || cell::NONE.to_owned(),
        |skew| format!("{} ±{}", cell::time(skew.skew_ns), cell::time(skew.bound_ns)),
    );
    lines.push(format!("START SKEW   {skew}"));
    lines
}

/// Where there is more than one address, what became of the connections to each.
fn addresses(rows: &[AddressRow]) -> Vec<String> {
    if rows.len() < 2 {
        return Vec::new();
    }
    let row = |row: &AddressRow| {
        let (opened, failed) = (cell::count(row.opened), cell::count(row.failed));
        format!("  to {}: opened {opened}, failed {failed}", row.address)
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use inrush_common::report::ReasonCode;

    pub(in crate::render) const REPORTS: [(&str, &str); 13] = [
        ("normal", include_str!("../../../common/tests/report/golden/normal.json")),
        ("lost_agent", include_str!("../../../common/tests/report/golden/lost_agent.json")),
        ("empty", include_str!("../../../common/tests/report/golden/empty.json")),
        ("one_request", include_str!("../../../common/tests/report/golden/one_request.json")),
        ("running", include_str!("../../../common/tests/report/golden/running.json")),
        ("cancelled", include_str!("../../../common/tests/report/golden/cancelled.json")),
        ("all_failed", include_str!("../../../common/tests/report/golden/all_failed.json")),
        ("open_valid", include_str!("../../../common/tests/report/golden/open_valid.json")),
        ("overload_drop", include_str!("../../../common/tests/report/golden/overload_drop.json")),
        ("overload_queue", include_str!("../../../common/tests/report/golden/overload_queue.json")),
        ("warm_up", include_str!("../../../common/tests/report/golden/warm_up.json")),
        ("poisson", include_str!("../../../common/tests/report/golden/poisson.json")),
        ("mixed", include_str!("../../../common/tests/report/golden/mixed.json")),
    ];

    pub(in crate::render) fn report(name: &str) -> Report {
        let (_, json) = REPORTS.iter().find(|(report, _)| *report == name).unwrap();
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_fixed_reports_read_as_they_always_did() {
        for (name, _) in REPORTS {
            insta::assert_snapshot!(name, text(&report(name), false));
        }
    }

    #[test]
    fn colour_changes_no_letter() {
        for (name, _) in REPORTS {
            let colored = text(&report(name), true);
            assert!(colored.contains("\u{1b}[1;3"), "{name}");
            let codes = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[1;31m", "\u{1b}[1;32m", "\u{1b}[1;33m"];
            let stripped = codes.iter().fold(colored, |text, code| text.replace(code, ""));
            assert_eq!(stripped, text(&report(name), false));
        }
    }

    #[test]
    fn when_everything_failed_the_headline_names_no_rate() {
        let headline = headline(&report("all_failed"));
        assert_eq!(
            headline,
            "closed model, 10 connections: EVERY REQUEST FAILED, 1,500 of 1,500 in 1.00 s"
        );
    }

    #[test]
    fn reasons_of_one_kind_in_many_agents_are_counted_and_not_all_listed() {
        let mut report = report("normal");
        report.verdict.reasons = (1..=9)
            .map(|number| Reason {
                code: ReasonCode::WorkerLag,
                status: VerdictStatus::Degraded,
                agent: Some(format!("lab{number}")),
                text: "its workers ran late".to_owned(),
            })
            .collect();
        let lines = reasons(&report.verdict, Paint(false));
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2], "  degraded worker_lag: lab3: its workers ran late");
        assert_eq!(lines[3], "    and 6 more of the kind, all in the JSON report");
    }

    #[test]
    fn one_failure_in_a_million_is_in_the_headline() {
        let mut report = report("normal");
        report.ledger.completed = 1_000_000;
        report.ledger.succeeded = 999_999;
        report.ledger.failed = 1;
        assert!(headline(&report).ends_with("<0.01 % failed (1 of 1,000,000)"));
    }

    #[test]
    fn an_answer_from_the_target_cannot_command_the_terminal() {
        let text = text(&report("lost_agent"), false);
        assert!(text.contains("too many open files\\u{1b}[31m"));
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn every_section_is_in_the_reference() {
        let reference = include_str!("../../../docs/report-reference.md");
        let mut headings = 0;
        for (name, _) in REPORTS {
            let text = text(&report(name), false);
            for line in text.lines() {
                let upper = |word: &&str| word.chars().all(|char| char.is_ascii_uppercase());
                let heading: Vec<&str> = line.split(' ').take_while(upper).collect();
                let heading = heading.join(" ");
                if heading.trim().is_empty() {
                    continue;
                }
                headings += 1;
                let heading =
                    heading.strip_prefix("VERDICT ").map_or(heading.trim(), |_| "VERDICT");
                assert!(reference.contains(&format!("| `{heading}` |")), "{heading:?}");
            }
        }
        assert!(headings > 60, "{headings}");
    }

    #[test]
    fn no_line_ends_in_spaces_and_the_text_ends_with_one_line_end() {
        for (name, _) in REPORTS {
            let text = text(&report(name), false);
            assert!(text.lines().all(|line| line.trim_end() == line), "{name}");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}");
        }
    }
}
