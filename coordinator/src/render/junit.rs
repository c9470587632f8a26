//! The thresholds as JUnit XML, for build servers: a test suite named after the plan, a test case per threshold, and one
//! for the verdict.
//!
//! There are two widely used schemas, of Ant and of Jenkins. Both accept this: every attribute that one of them wants is
//! there, none that the other lacks, and times have three digits behind the point.

use std::fmt::Write as _;

use inrush_common::report::{Report, ThresholdRow, VerdictStatus};

use super::{cell, text};

/// The report's thresholds and verdict as JUnit XML, with a line end behind it.
pub fn junit(report: &Report) -> String {
    let plan = attribute(&report.plan.name);
    let failures = report.thresholds.iter().filter(|row| !row.passed).count();
    let errors = u8::from(report.verdict.status == VerdictStatus::Invalid);
    // An XML date without zone and fraction: the only form that both schemas take.
    let time = report.run.started_at.as_ref().unwrap_or(&report.run.submitted_at);
    let timestamp = attribute(time.get(..19).unwrap_or(time));
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    line(
        &mut xml,
        2,
        &format!(
            "<testsuite id=\"0\" package=\"inrush\" name=\"{plan}\" timestamp=\"{timestamp}\" hostname=\"localhost\" \
             tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{}\">",
            report.thresholds.len() + 1,
            seconds(report.duration_s),
        ),
    );
    line(&mut xml, 4, "<properties>");
    for (name, value) in [
        ("run", report.run.id.as_str()),
        ("outcome", report.run.outcome.name()),
        ("verdict", report.verdict.status.name()),
        ("url", &report.plan.url),
        ("version", &report.run.version),
    ] {
        line(&mut xml, 6, &format!("<property name=\"{name}\" value=\"{}\"/>", attribute(value)));
    }
    line(&mut xml, 4, "</properties>");
    for row in &report.thresholds {
        let found = (!row.passed).then(|| finding("failure", "threshold", &failure(row)));
        case(&mut xml, &plan, &row.expression, 0.0, found);
    }
    let found = (errors > 0).then(|| finding("error", "invalid", &reasons(report).join("; ")));
    case(&mut xml, &plan, "verdict", report.duration_s, found);
    let verdict = format!("verdict {}", report.verdict.status);
    let mut said = vec![verdict, text::headline(report)];
    said.extend(reasons(report));
    let said: Vec<String> = said.iter().map(|line| attribute(line)).collect();
    line(&mut xml, 4, &format!("<system-out>{}</system-out>", said.join("\n")));
    line(&mut xml, 4, "<system-err/>");
    line(&mut xml, 2, "</testsuite>");
    xml.push_str("</testsuites>\n");
    xml
}

fn line(xml: &mut String, indent: usize, text: &str) {
    // Writing to a string cannot fail.
    writeln!(xml, "{:indent$}{text}", "").ok();
}

/// A test case; `found` is what is wrong with it.
fn case(xml: &mut String, plan: &str, name: &str, time: f64, found: Option<String>) {
    let (name, time) = (attribute(name), seconds(time));
    let start = format!("<testcase classname=\"{plan}\" name=\"{name}\" time=\"{time}\"");
    match found {
        None => line(xml, 4, &format!("{start}/>")),
        Some(found) => {
            line(xml, 4, &format!("{start}>"));
            line(xml, 6, &found);
            line(xml, 4, "</testcase>");
        }
    }
}

fn finding(element: &str, kind: &str, message: &str) -> String {
    format!("<{element} type=\"{kind}\" message=\"{}\"/>", attribute(message))
}

fn failure(row: &ThresholdRow) -> String {
    match &row.detail {
        Some(detail) => format!("not known: {detail}"),
        None => {
            let (observed, limit) = cell::observed_and_limit(row);
            format!("observed {observed}, the limit is {limit}")
        }
    }
}

fn reasons(report: &Report) -> Vec<String> {
    let reasons = report.verdict.reasons.iter().map(|reason| {
        let who = reason.agent.as_deref().map_or_else(String::new, |agent| format!("{agent}: "));
        format!("{} {}: {who}{}", reason.status, reason.code, reason.text)
    });
    reasons.collect()
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3}")
}

/// A text as it may stand in an attribute, and so anywhere: on one line, without markup, and without the characters that
/// XML 1.0 cannot hold, not even escaped.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in cell::words(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "junit_tests.rs"]
mod tests;
