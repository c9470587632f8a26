//! The plan reference against the code, both ways.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::collections::BTreeMap;

use bytes::Bytes;
use inrush_common::plan::{
    self, Loaded, Plan, code,
    keys::{Default, KEYS, Key},
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

/// A plan with the table of `key` in it, and in that the line, if any, in place of what the plan else has there.
fn plan_with(key: &Key, line: Option<&str>) -> String {
    let mut source = String::new();
    for table in tables_with(key.table()) {
        let base: Vec<&str> = base(table).into_iter().filter(|line| stays(key, line)).collect();
        let lines = line.filter(|_| table == key.table()).into_iter().chain(base);
        let heading = match table {
            "" => String::new(),
            // Two phases before it, so that it can start after the one or the other.
            "phases" => format!("{}{}[[phases]]\n", a_phase("warm-up"), a_phase("middle")),
            "stop_when" => "[[stop_when]]\n".to_owned(),
            table => match table.strip_suffix(".steps") {
                Some(load) => {
                    let step: Vec<&str> = lines.collect();
                    source.push_str(&format!("[{load}]\nsteps = [{{ {} }}]\n", step.join(", ")));
                    continue;
                }
                None => format!("[{table}]\n"),
            },
        };
        source.push_str(&heading);
        lines.for_each(|line| source.push_str(&format!("{line}\n")));
    }
    source
}

fn a_phase(name: &str) -> String {
    format!("[[phases]]\nname = \"{name}\"\nload.open = {{ rate = 5, duration = \"5s\" }}\n")
}

/// The tables of a plan with this one: there is always a load.
fn tables_with(table: &str) -> Vec<&str> {
    match table {
        "" => vec!["", "load.closed"],
        "expect" | "agents" | "stop_when" => vec!["", "load.closed", table],
        table => vec!["", table],
    }
}

/// What stands in a table where a test says nothing else.
fn base(table: &str) -> Vec<&'static str> {
    match table {
        "" => vec![r#"url = "http://127.0.0.1:8080/""#],
        "load.closed" => vec!["connections = 10", "requests = 1_000"],
        "load.closed.steps" => vec!["connections = 5", r#"duration = "10s""#],
        "load.open" => vec!["rate = 1_000", r#"duration = "10s""#],
        "load.open.steps" => vec!["rate = 5", r#"duration = "10s""#],
        "phases" => vec![r#"name = "base""#, r#"load.open = { rate = 9, duration = "9s" }"#],
        "stop_when" => vec![r#"threshold = "failed_ratio < 6%""#],
        _ => vec![],
    }
}

/// Whether a line of [`base`] can stand beside this key.
fn stays(key: &Key, line: &str) -> bool {
    let not_with = match key.path {
        "load.closed.steps" => ["connections", "connections"],
        "load.open.steps" => ["rate", "duration"],
        "load.open.requests" => ["duration", "duration"],
        _ => [key.name(), key.name()],
    };
    let same_table = base(key.table()).contains(&line);
    !same_table || !not_with.iter().any(|name| starts(line, name))
}

/// Whether a line sets a key.
fn starts(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '.']))
}

/// The plan that has all but this key.
fn plain(key: &Key) -> Plan {
    let line = base(key.table()).into_iter().find(|line| starts(line, key.name()));
    let other = KEYS.iter().find(|other| other.table() == key.table() && base_has(other));
    match (line, other) {
        (None, Some(other)) => plain(other),
        (line, _) => load(&plan_with(key, line)).plan,
    }
}

fn base_has(key: &Key) -> bool {
    base(key.table()).iter().any(|line| starts(line, key.name()))
}

#[test]
fn every_example_loads_and_differs_from_the_default() {
    for key in KEYS {
        let loaded = load(&plan_with(key, Some(key.example)));
        assert_eq!(loaded.warnings, [], "{}", key.path);
        assert!(key.path == "url" || loaded.plan != plain(key), "{}: {}", key.path, key.example);
    }
}

#[test]
fn spelling_out_a_default_changes_nothing() {
    let mut spelt = 0;
    for key in KEYS {
        if let Default::Value(value) = key.default {
            let line = format!("{} = {value}", key.name());
            assert_eq!(load(&plan_with(key, Some(&line))).plan, plain(key), "{}", key.path);
            spelt += 1;
        }
    }
    assert_eq!(spelt, 18);
}

#[test]
fn every_key_of_a_load_works_the_same_in_a_phase() {
    for key in KEYS.iter().filter(|key| key.path.starts_with("load.")) {
        let alone = plan_with(key, Some(key.example));
        let phase = alone.replace("[load.", "[[phases]]\nname = \"main\"\n[phases.load.");
        assert_eq!(load(&phase).plan, load(&alone).plan, "{}", key.path);
    }
}
