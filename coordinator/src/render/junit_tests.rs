//! The XML is read by a parser and held against what the schemas of Ant (`JUnit.xsd`) and Jenkins (`junit-10.xsd`) say.

use proptest::prelude::*;
use roxmltree::{Document, Node};

use super::*;
use crate::render::text::tests::{REPORTS, report};

fn is_decimal(text: &str) -> bool {
    // Jenkins: at most three digits behind the point; Ant: an XML decimal.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && fraction.len() <= 3
}

fn is_integer(text: &str) -> bool {
    text.parse::<i32>().is_ok()
}

fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00"
}

fn is_text(text: &str) -> bool {
    !text.is_empty()
}

type Check = fn(&str) -> bool;

/// An element's attributes, all of them required, and its children by name, in order; `*` for any number.
fn rule(element: &str) -> (&'static [(&'static str, Check)], &'static [&'static str]) {
    match element {
        "testsuites" => (&[], &["testsuite*"]),
        "testsuite" => (
            &[
                ("id", is_integer),
                ("package", is_text),
                ("name", is_text),
                ("timestamp", is_time),
                ("hostname", is_text),
                ("tests", is_integer),
                ("failures", is_integer),
                ("errors", is_integer),
                ("time", is_decimal),
            ],
            &["properties", "testcase*", "system-out", "system-err"],
        ),
        "properties" => (&[], &["property*"]),
        "property" => (&[("name", is_text), ("value", |_| true)], &[]),
        "testcase" => {
            (&[("classname", is_text), ("name", is_text), ("time", is_decimal)], &["finding"])
        }
        "failure" | "error" => (&[("type", is_text), ("message", |_| true)], &[]),
        "system-out" | "system-err" => (&[], &[]),
        other => panic!("no schema knows <{other}>"),
    }
}

fn elements<'a>(node: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(Node::is_element)
}

#[track_caller]
fn keeps_the_rules(node: Node<'_, '_>) {
    let name = node.tag_name().name();
    let (attributes, children) = rule(name);
    assert_eq!(node.attributes().len(), attributes.len(), "{node:?}");
    for (attribute, check) in attributes {
        let value = node.attribute(*attribute);
        assert!(value.is_some_and(check), "{name} {attribute}: {value:?}");
    }
    let mut found = elements(node).map(|child| child.tag_name().name()).peekable();
    for child in children {
        if *child == "finding" {
            found.next_if(|name| ["failure", "error"].contains(name));
        } else if let Some(child) = child.strip_suffix('*') {
            while found.next_if_eq(&child).is_some() {}
        } else {
            assert_eq!(found.next(), Some(*child), "in <{name}>");
        }
    }
    assert_eq!(found.next(), None, "in <{name}>");
    let holds_text = ["system-out", "system-err"].contains(&name);
    let text = node.children().filter(Node::is_text).filter_map(|text| text.text());
    assert!(holds_text || text.map(str::trim).all(str::is_empty), "text in <{name}>");
    for child in elements(node) {
        match child.tag_name().name() {
            "failure" | "error" | "system-out" | "system-err" | "property" | "properties"
            | "testcase" | "testsuite" => keeps_the_rules(child),
            other => panic!("<{other}> in <{name}>"),
        }
    }
}

/// Checks the form, and the counts against what they count.
#[track_caller]
fn check(report: &Report) -> String {
    let xml = junit(report);
    let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    keeps_the_rules(root);
    let suite = elements(root).next().unwrap();
    let number = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
    let count = |name: &str| suite.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!(number("tests"), count("testcase"));
    assert_eq!(number("failures"), count("failure"));
    assert_eq!(number("errors"), count("error"));
    let time = |node: Node<'_, '_>| node.attribute("time").unwrap().parse::<f64>().unwrap();
    let cases = suite.descendants().filter(|node| node.has_tag_name("testcase")).map(time);
    assert!((cases.sum::<f64>() - time(suite)).abs() < 0.000_5);
    assert_eq!(count("testcase"), report.thresholds.len() + 1);
    xml
}

#[test]
fn every_fixed_report_is_junit_xml_and_reads_as_it_always_did() {
    for (name, _) in REPORTS {
        let xml = check(&report(name));
        if ["normal", "lost_agent", "empty"].contains(&name) {
            insta::assert_snapshot!(format!("junit_{name}"), xml);
        }
    }
}

#[test]
fn each_failed_threshold_is_a_failure_and_an_invalid_run_an_error() {
    let report = report("empty");
    let xml = check(&report);
    let document = Document::parse(&xml).unwrap();
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let found: Vec<(&str, Option<&str>)> = cases
        .map(|case| {
            let finding = elements(case).next();
            (case.attribute("name").unwrap(), finding.map(|node| node.tag_name().name()))
        })
        .collect();
    let expected = [
        ("p50(response_time) < 1s", Some("failure")),
        ("failed_ratio < 1%", Some("failure")),
        ("verdict", Some("error")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_figure_just_beyond_its_limit_does_not_read_as_its_limit() {
    let mut report = report("normal");
    let row = &mut report.thresholds[1];
    row.observed = Some(inrush_common::report::Amount::Whole(25_000_191));
    assert_eq!(failure(row), "observed 25,000,191 ns, the limit is 25,000,000 ns");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_names_and_words_are_in_it_the_xml_is_well_formed(
        name in "\\PC{1,5}|.{1,20}|[<>&\"'\\]\u{0}-\u{1f}\u{fffe}\u{ffff}\u{7f}-\u{9f}]{1,20}",
        words in any::<String>(),
    ) {
        let (mut report, normal) = (report("lost_agent"), report("normal"));
        report.plan.name.clone_from(&name);
        report.plan.url.clone_from(&words);
        report.verdict.reasons[0].text.clone_from(&words);
        report.thresholds = normal.thresholds;
        report.thresholds[0].expression.clone_from(&words);
        report.thresholds[0].passed = false;
        report.thresholds[0].detail = Some(name);
        if words.trim().is_empty() {
            report.thresholds[0].expression = "x".to_owned();
        }
        check(&report);
    }
}
