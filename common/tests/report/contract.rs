//! The published schema and the published reference say what reports are: no more, no less.

use std::{collections::BTreeSet, fs, path::Path};

use inrush_common::{
    outcome::{ErrorClass, NotStarted},
    report::{AgentState, Model, ReasonCode, RunOutcome, ThresholdUnit, VerdictStatus, rules},
};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::fixtures;

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema() -> Value {
    serde_json::from_str(&docs("report.schema.json")).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn reports() -> Vec<(&'static str, Value)> {
    let reports = fixtures::all().into_iter();
    reports.map(|(name, run)| (name, serde_json::to_value(run.report()).unwrap())).collect()
}

/// Every object of a value, by JSON pointer. Only the first rows of lists: they are all alike.
fn objects(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(pointer.to_owned());
            for (key, value) in fields {
                objects(value, &format!("{pointer}/{key}"), found);
            }
        }
        Value::Array(rows) => {
            if let Some(row) = rows.first() {
                objects(row, &format!("{pointer}/0"), found);
            }
        }
        _ => {}
    }
}

fn fields<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Map<String, Value> {
    value.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap()
}

#[test]
fn every_fixed_report_fits_the_schema() {
    let validator = validator();
    for (name, report) in reports() {
        let errors: Vec<_> = validator
            .iter_errors(&report)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

#[test]
fn the_schema_refuses_a_key_too_many_and_a_key_too_few_anywhere() {
    let validator = validator();
    for (name, report) in reports().into_iter().take(2) {
        let mut found = Vec::new();
        objects(&report, "", &mut found);
        assert!(found.len() > 60, "{name} {}", found.len());
        for pointer in found {
            let mut changed = report.clone();
            fields(&mut changed, &pointer).insert("surprise".to_owned(), json!(1));
            assert!(!validator.is_valid(&changed), "{name}{pointer}/surprise");
            if pointer.ends_with("not_started_by_reason") {
                continue;
            }
            let keys: Vec<String> = fields(&mut report.clone(), &pointer).keys().cloned().collect();
            for key in keys {
                let mut changed = report.clone();
                fields(&mut changed, &pointer).shift_remove(&key);
                assert!(!validator.is_valid(&changed), "{name}{pointer} without {key}");
            }
        }
    }
}

#[test]
fn the_schema_refuses_values_of_the_wrong_kind() {
    let validator = validator();
    let (_, report) = reports().remove(0);
    for (pointer, value) in [
        ("/schema", json!("inrush.report/v2")),
        ("/duration_s", json!(-1)),
        ("/duration_s", json!(null)),
        ("/ledger/started", json!(1.5)),
        ("/ledger/started", json!(null)),
        ("/response_time/all/p50_ns", json!("11 ms")),
        ("/response_time/all/histogram", json!("§")),
        ("/run/submitted_at", json!("yesterday")),
        ("/verdict/status", json!("fine")),
        ("/agents/0/state", json!("gone")),
        ("/status/0/code", json!(42)),
        ("/requests", json!([])),
        ("/thresholds/0/unit", json!("ms")),
        ("/thresholds/0/observed", json!(0.5)),
        ("/thresholds/0/passed", json!(null)),
    ] {
        let mut changed = report.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&changed), "{pointer}");
    }
}

fn listed(pointer: &str) -> BTreeSet<String> {
    let schema = schema();
    let list = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    let names: Vec<&str> = match list {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Object(names) => names.keys().map(String::as_str).collect(),
        _ => panic!("{pointer}"),
    };
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_schema_knows_exactly_the_names_that_the_code_has() {
    fn names<T: ToString>(all: &[T]) -> BTreeSet<String> {
        all.iter().map(ToString::to_string).collect()
    }
    let row = |def: &str, key: &str| listed(&format!("/$defs/{def}/properties/{key}/enum"));
    assert_eq!(row("verdict", "status"), names(VerdictStatus::ALL));
    assert_eq!(row("reason", "code"), names(ReasonCode::ALL));
    assert_eq!(row("run", "outcome"), names(RunOutcome::ALL));
    assert_eq!(row("agent_row", "state"), names(AgentState::ALL));
    assert_eq!(row("error_row", "class"), names(&ErrorClass::ALL));
    assert_eq!(row("threshold_row", "unit"), names(ThresholdUnit::ALL));
    assert_eq!(listed("/properties/model/enum"), names(Model::ALL));
    let mut reasons = names(&NotStarted::ALL);
    reasons.insert("pending".to_owned());
    assert_eq!(listed("/$defs/ledger/properties/not_started_by_reason/properties"), reasons);
}

#[test]
fn the_reference_explains_every_key() {
    let reference = docs("report-reference.md");
    let mut keys = BTreeSet::new();
    for (_, report) in reports() {
        let mut found = Vec::new();
        objects(&report, "", &mut found);
        for pointer in found {
            let object = report.pointer(&pointer).and_then(Value::as_object).unwrap();
            keys.extend(object.keys().cloned());
        }
    }
    assert!(keys.len() > 80, "{}", keys.len());
    let missing: Vec<_> =
        keys.iter().filter(|key| !reference.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "not in docs/report-reference.md: {missing:?}");
}

#[test]
fn the_reference_explains_every_name() {
    let reference = docs("report-reference.md");
    let names = VerdictStatus::ALL.iter().map(|name| name.name());
    let names = names.chain(RunOutcome::ALL.iter().map(|name| name.name()));
    let names = names.chain(AgentState::ALL.iter().map(|name| name.name()));
    let names = names.chain(ErrorClass::ALL.iter().map(|name| name.name()));
    let names = names.chain(NotStarted::ALL.iter().map(|name| name.name()));
    let names = names.chain(ThresholdUnit::ALL.iter().map(|name| name.name()));
    let missing: Vec<_> = names.filter(|name| !reference.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/report-reference.md: {missing:?}");
}

#[test]
fn the_rules_of_the_verdict_are_documented_as_they_are_applied() {
    let reference = docs("report-reference.md");
    let documented: Vec<&str> = reference
        .lines()
        .skip_while(|line| !line.starts_with("| code | makes the verdict"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let applied: Vec<String> = rules()
        .iter()
        .map(|rule| format!("| `{}` | {} | {} |", rule.code, rule.status, rule.when))
        .collect();
    assert_eq!(documented, applied);
}
