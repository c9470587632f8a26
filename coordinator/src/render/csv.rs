//! The figures as one CSV table: the run, its phases, its requests, its seconds.
//!
//! Every row has every column, whatever happened, so that a program can rely on them; failures stand in it by class.

use inrush_common::{
    outcome::ErrorClass,
    report::{ErrorRow, Ledger, Report, SplitByOutcome, StatusRow},
};

/// The columns before those of the error classes.
const COLUMNS: [&str; 15] = [
    "kind",
    "name",
    "from_s",
    "to_s",
    "planned",
    "started",
    "succeeded",
    "failed",
    "not_started",
    "in_flight_at_end",
    "throughput",
    "response_time_p50_ns",
    "response_time_p99_ns",
    "response_time_max_ns",
    "failed_by_status",
];

/// The report as CSV after RFC 4180, its header first.
pub fn csv(report: &Report) -> String {
    let mut rows = vec![header()];
    rows.push(
        Row {
            kind: "run",
            name: &report.plan.name,
            from_s: None,
            to_s: None,
            ledger: &report.ledger,
            throughput: report.rates.throughput,
            response_time: &report.response_time,
            status: &report.status,
            errors: &report.errors,
        }
        .cells(),
    );
    rows.extend(report.phases.iter().map(|phase| {
        Row {
            kind: "phase",
            name: &phase.name,
            from_s: Some(phase.starts_at_s),
            to_s: Some(phase.starts_at_s + phase.duration_s),
            ledger: &phase.ledger,
            throughput: phase.rates.throughput,
            response_time: &phase.response_time,
            status: &phase.status,
            errors: &phase.errors,
        }
        .cells()
    }));
    rows.extend(report.requests.iter().map(|request| {
        Row {
            kind: "request",
            name: &request.name,
            from_s: None,
            to_s: None,
            ledger: &request.ledger,
            throughput: request.rates.throughput,
            response_time: &request.response_time,
            status: &request.status,
            errors: &request.errors,
        }
        .cells()
    }));
    rows.extend(seconds(report));
    let mut table =
        ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        table.write_record(row).expect("every row has every column, and memory takes it");
    }
    let bytes = table.into_inner().expect("memory takes it");
    String::from_utf8(bytes).expect("cells are text")
}

fn header() -> Vec<String> {
    let classes = ErrorClass::ALL.into_iter().map(ErrorClass::name);
    COLUMNS.into_iter().chain(classes).map(str::to_owned).collect()
}

/// A row that has accounts by outcome and class.
struct Row<'a> {
    kind: &'static str,
    name: &'a str,
    from_s: Option<f64>,
    to_s: Option<f64>,
    ledger: &'a Ledger,
    throughput: f64,
    response_time: &'a SplitByOutcome,
    status: &'a [StatusRow],
    errors: &'a [ErrorRow],
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        let (ledger, all) = (self.ledger, &self.response_time.all);
        let by_status = self.status.iter().fold(0_u64, |sum, row| sum.saturating_add(row.failed));
        let mut cells = vec![
            self.kind.to_owned(),
            harmless(self.name),
            maybe(self.from_s),
            maybe(self.to_s),
            maybe(ledger.planned),
            ledger.started.to_string(),
            ledger.succeeded.to_string(),
            ledger.failed.to_string(),
            maybe(ledger.not_started),
            ledger.in_flight_at_end.to_string(),
            self.throughput.to_string(),
            maybe(all.p50_ns),
            maybe(all.p99_ns),
            maybe(all.max_ns),
            by_status.to_string(),
        ];
        cells.extend(ErrorClass::ALL.into_iter().map(|class| {
            let row = self.errors.iter().find(|row| row.class == class.name());
            row.map_or(0, |row| row.count).to_string()
        }));
        cells
    }
}

fn seconds(report: &Report) -> impl Iterator<Item = Vec<String>> {
    report.series.iter().map(|row| {
        let width = row.to_s - row.from_s;
        let throughput = if width > 0.0 { row.succeeded as f64 / width } else { 0.0 };
        let mut cells = vec![
            "second".to_owned(),
            harmless(&row.phases.join(" + ")),
            row.from_s.to_string(),
            row.to_s.to_string(),
            maybe(row.planned),
            row.started.to_string(),
            row.succeeded.to_string(),
            row.failed.to_string(),
            String::new(),
            String::new(),
            throughput.to_string(),
            maybe(row.p50_ns),
            maybe(row.p99_ns),
        ];
        cells.resize(COLUMNS.len() + ErrorClass::ALL.len(), String::new());
        cells
    })
}

fn maybe(figure: Option<impl ToString>) -> String {
    figure.map(|figure| figure.to_string()).unwrap_or_default()
}

/// A text that no spreadsheet takes for a formula.
fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str) -> Report {
        let path =
            format!("{}/../common/tests/report/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn table(text: &str) -> Vec<Vec<String>> {
        let mut reader =
            ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        // The reader itself refuses a row with another number of columns.
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    fn sum(table: &[Vec<String>], kind: &str, column: &str) -> u64 {
        let place = table[0].iter().position(|name| name == column).unwrap();
        let rows = table.iter().filter(|row| row[0] == kind);
        rows.map(|row| row[place].parse::<u64>().unwrap()).sum()
    }

    #[test]
    fn rows_add_up_to_the_ledger_with_their_failures_by_class() {
        let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../common/tests/report/golden");
        let mut seen = 0;
        for entry in std::fs::read_dir(goldens).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let report = report(path.file_stem().unwrap().to_str().unwrap());
            let table = table(&csv(&report));
            let total = &report.total_ledger;
            for kind in ["phase", "second"] {
                assert_eq!(sum(&table, kind, "started"), total.started, "{path:?}");
                assert_eq!(sum(&table, kind, "succeeded"), total.succeeded, "{path:?}");
                assert_eq!(sum(&table, kind, "failed"), total.failed, "{path:?}");
            }
            for kind in ["run", "phase", "request"] {
                let classes = ErrorClass::ALL.map(|class| sum(&table, kind, class.name()));
                let failed = classes.iter().sum::<u64>() + sum(&table, kind, "failed_by_status");
                assert_eq!(failed, sum(&table, kind, "failed"), "{path:?}");
            }
            seen += 1;
        }
        assert!(seen > 5, "{seen} reports");
    }

    #[test]
    fn names_with_quotes_lines_and_formulas_do_no_harm() {
        let mut report = report("normal");
        report.plan.name = "=1+1".to_owned();
        report.phases[0].name = "a,\"b\"\nü=1+1".to_owned();
        let text = csv(&report);
        assert!(text.contains("\r\nrun,'=1+1,"), "{text}");
        assert!(text.contains("\r\nphase,\"a,\"\"b\"\"\nü=1+1\","), "{text}");
        assert_eq!(table(&text)[2][1], report.phases[0].name);
    }

    #[test]
    fn figures_that_are_not_there_are_empty_cells() {
        let text = csv(&report("empty"));
        for word in ["inf", "NaN", "null", "-0", "e+"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
