//! The report as JSON, `inrush.report/v1`.

use inrush_common::report::Report;

/// The report as indented JSON with a line end behind it.
///
/// Counts and times are integers and stand as such, whatever their size; the few other numbers are finite.
pub fn json(report: &Report) -> String {
    let mut json = serde_json::to_string_pretty(report).expect("a report has only text keys");
    json.push('\n');
    json
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::render::text::tests::{REPORTS, report};

    fn numbers(value: &Value, path: &str, found: &mut Vec<(String, serde_json::Number)>) {
        match value {
            Value::Number(number) => found.push((path.to_owned(), number.clone())),
            Value::Array(values) => values.iter().for_each(|value| numbers(value, path, found)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    numbers(value, &format!("{path}.{key}"), found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_report() {
        for (name, _) in REPORTS {
            let report = report(name);
            let back: Report = serde_json::from_str(&json(&report)).unwrap();
            assert_eq!(back, report, "{name}");
        }
    }

    #[test]
    fn counts_and_times_are_integers_however_large() {
        let mut report = report("normal");
        report.ledger.started = u64::MAX;
        report.response_time.all.max_ns = Some(3_600_000_000_000);
        let text = json(&report);
        assert!(text.contains("\"started\": 18446744073709551615,"));
        assert!(text.contains("\"max_ns\": 3600000000000,"));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn every_number_is_finite_and_times_and_counts_have_no_fraction() {
        for (name, _) in REPORTS {
            let value: Value = serde_json::from_str(&json(&report(name))).unwrap();
            let mut found = Vec::new();
            numbers(&value, "", &mut found);
            assert!(found.len() > 50, "{name}");
            for (path, number) in found {
                assert!(number.as_f64().is_some_and(f64::is_finite), "{name}{path}");
                if path.ends_with("_ns") || path.contains(".ledger.") || path.ends_with(".count") {
                    assert!(number.is_u64() || number.is_i64(), "{name}{path} {number}");
                }
            }
        }
    }
}
