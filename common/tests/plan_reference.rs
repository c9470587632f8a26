//! The plan reference against the code, both ways.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::collections::BTreeMap;

use bytes::Bytes;
use inrush_common::plan::{
    self, Loaded, code,
    keys::{Default, KEYS, Key, REPEATED},
};

const REFERENCE: &str = include_str!("../../docs/plan-reference.md");

fn load(source: &str) -> Loaded {
    let files = BTreeMap::from([("body.json".to_owned(), Bytes::from_static(b"{}"))]);
    plan::load("plan.toml", source, &files).unwrap_or_else(|problems| {
        panic!("{source}\n{}", plan::render("plan.toml", source, &problems, false))
    })
}

/// The cells of all table rows whose first cell is in code quotes.
fn rows() -> Vec<Vec<&'static str>> {
    REFERENCE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

fn default(key: &Key) -> String {
    match key.default {
        Default::Required => "required".to_owned(),
        Default::Value(value) => format!("`{value}`"),
        Default::Words(words) => words.to_owned(),
    }
}

#[test]
fn the_key_tables_are_those_of_the_code_in_the_same_order() {
    let written: Vec<_> = rows().into_iter().filter(|row| row.len() == 5).collect();
    let coded: Vec<Vec<String>> = KEYS
        .iter()
        .map(|key| {
            vec![
                format!("`{}`", key.path),
                key.type_name().to_owned(),
                default(key),
                key.limits(),
                format!("`{}`", key.example),
            ]
        })
        .collect();
    assert_eq!(written, coded);
}

#[test]
fn the_codes_are_those_of_the_code_in_the_same_order() {
    let written: Vec<_> = rows().into_iter().filter(|row| row.len() == 2).collect();
    let coded: Vec<Vec<String>> = code::ALL
        .iter()
        .map(|(code, meaning)| vec![format!("`{code}`"), (*meaning).into()])
        .collect();
    assert_eq!(written, coded);
}

#[test]
fn every_plan_in_the_reference_loads_without_a_warning() {
    let plans: Vec<&str> = REFERENCE
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").expect("the block ends").0)
        .collect();
    assert!(plans.len() >= 3);
    for plan in plans {
        assert_eq!(load(plan).warnings, []);
    }
}

/// A plan with one line set, in its table.
fn with(key: &Key, line: &str) -> String {
    let mut lines = BTreeMap::from([
        ("url", r#"url = "http://127.0.0.1:8080/""#),
        ("load.closed.connections", "connections = 10"),
        ("load.closed.requests", "requests = 1_000"),
    ]);
    if REPEATED.contains(&key.table()) {
        lines.insert("stop_when.threshold", r#"threshold = "failed_ratio < 5%""#);
    }
    lines.insert(key.path, line);
    let mut source = String::new();
    for table in ["", "expect", "load.closed", "agents", "stop_when"] {
        if !REPEATED.contains(&table) && !table.is_empty() {
            source.push_str(&format!("[{table}]\n"));
        } else if table == key.table() && !table.is_empty() {
            source.push_str(&format!("[[{table}]]\n"));
        }
        for key in KEYS.iter().filter(|key| key.table() == table) {
            if let Some(line) = lines.get(key.path) {
                source.push_str(&format!("{line}\n"));
            }
        }
    }
    source
}

#[test]
fn every_example_loads_and_differs_from_the_default() {
    let plain = load(&with(&KEYS[1], KEYS[1].example)).plan;
    for key in KEYS {
        let loaded = load(&with(key, key.example));
        assert_eq!(loaded.warnings, [], "{}", key.path);
        assert!(key.path == "url" || loaded.plan != plain, "{}: {}", key.path, key.example);
    }
}

#[test]
fn spelling_out_a_default_changes_nothing() {
    let url = load(&with(&KEYS[1], KEYS[1].example)).plan;
    let rule = KEYS.iter().find(|key| key.path == "stop_when.threshold").unwrap();
    let rule = load(&with(rule, rule.example)).plan;
    let mut spelt = 0;
    for key in KEYS {
        if let Default::Value(value) = key.default {
            let plain = if REPEATED.contains(&key.table()) { &rule } else { &url };
            let line = format!("{} = {value}", key.name());
            assert_eq!(load(&with(key, &line)).plan, *plain, "{line}");
            spelt += 1;
        }
    }
    assert_eq!(spelt, 10);
}
