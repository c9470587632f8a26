//! The plan's URL, byte for byte on the wire; and what is none, refused with an arrow on the character.

use std::collections::BTreeMap;

use inrush_common::plan::{self, Problem, code};
use inrush_testkit::{Received, Target};

use crate::support::{job, run};

fn plan_for(url: &str) -> String {
    format!("url = \"{url}\"\n\n[load.closed]\nconnections = 1\nrequests = 2\n")
}

/// The second of two requests that a plan with this URL sends, wherever it points.
fn sent(url: &str) -> Received {
    let plan = plan::load("plan.toml", &plan_for(url), &BTreeMap::new());
    let plan = plan.unwrap_or_else(|problems| panic!("{url}: {problems:?}")).plan;
    let target = Target::hello();
    run(job(plan.workload, target.addr(), 1)).assert_all_succeeded(2);
    let mut requests = target.requests();
    let (second, first) = (requests.pop().unwrap(), requests.pop().unwrap());
    assert_eq!(first.head, second.head);
    second
}

#[track_caller]
fn assert_sent(url: &str, target: &str, host: &str) {
    let head = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    assert_eq!(String::from_utf8(sent(url).head).unwrap(), head, "{url}");
}

#[test]
fn path_and_query_go_out_as_written_and_what_is_not_ascii_is_encoded_once() {
    for (typed, target) in [
        ("/", "/"),
        ("", "/"),
        ("?q=1", "/?q=1"),
        ("/?", "/?"),
        ("#frag", "/"),
        ("/x?q=1#frag?r=2", "/x?q=1"),
        ("/münchen", "/m%C3%BCnchen"),
        ("/m%C3%BCnchen", "/m%C3%BCnchen"),
        ("/m%c3%bcnchen/ü", "/m%c3%bcnchen/%C3%BC"),
        ("/日本?名=値", "/%E6%97%A5%E6%9C%AC?%E5%90%8D=%E5%80%A4"),
        ("/🦀", "/%F0%9F%A6%80"),
        ("/%2F%27'x'", "/%2F%27'x'"),
        ("/%2f%00%25", "/%2f%00%25"),
        ("/x?q=a%20b&r=c+d&e=", "/x?q=a%20b&r=c+d&e="),
        ("/x?a=b?c=d&&=", "/x?a=b?c=d&&="),
        ("//double//", "//double//"),
        ("/../up", "/../up"),
        ("/./a/../b/.", "/./a/../b/."),
        ("/a[0];v=1,2:3@4!$&'()*", "/a[0];v=1,2:3@4!$&'()*"),
    ] {
        assert_sent(&format!("http://example.test:8080{typed}"), target, "example.test:8080");
    }
}

#[test]
fn a_long_url_is_sent_whole() {
    let path = format!("/{}?{}", "a/".repeat(2_500), "q=1&".repeat(1_250));
    assert!(path.len() > 10_000);
    assert_sent(&format!("http://example.test{path}"), &path, "example.test");
}

#[test]
fn the_host_is_as_written() {
    for (url, host) in [
        ("http://Example.Test/", "Example.Test"),
        ("HTTP://example.test:80/", "example.test:80"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::1]/", "[::1]"),
    ] {
        assert_sent(url, "/", host);
    }
}

/// The problems of a plan with this URL.
fn refused(source: &str) -> Vec<Problem> {
    plan::load("plan.toml", source, &BTreeMap::new()).expect_err("it is no URL")
}

#[test]
fn what_cannot_stand_in_a_url_is_refused_with_the_arrow_on_the_character() {
    for (typed, character, remedy) in [
        ("http://example.test/a b", " ", "write it as %20"),
        ("http://example.test/?q=ü b", " ", "write it as %20"),
        ("http://example.test/\\u00fc<x", "<", "write it as %3C"),
        ("http://example.test/100%", "%", "write it as %25"),
        ("http://example.test/100%2", "%", "write it as %25"),
        ("http://example.test/%zz", "%", "write it as %25"),
        ("http://example.test/a|b", "|", "write it as %7C"),
        ("http://example.test/{id}", "{", "write it as %7B; 2 characters of this URL need it"),
        ("http://example.test/^", "^", "write it as %5E"),
        ("http://exa mple.test/", " ", "a host has letters, digits, points and hyphens"),
        ("http://münchen.test/", "ü", "write an international host name in its ASCII form"),
    ] {
        let source = plan_for(typed);
        let problems = refused(&source);
        let [problem] = problems.as_slice() else { panic!("{typed}: {problems:?}") };
        assert_eq!(problem.code, code::BAD_URL_CHARACTER, "{typed}");
        assert_eq!(source.get(problem.span.clone()), Some(character), "{typed}");
        assert!(problem.help.starts_with(remedy), "{typed}: {}", problem.help);
        let shown = plan::render("plan.toml", &source, &problems, false);
        assert_eq!(under_the_arrow(&shown), Some(character), "{typed}:\n{shown}");
    }
}

/// The character above the arrow.
fn under_the_arrow(shown: &str) -> Option<&str> {
    let lines: Vec<&str> = shown.lines().collect();
    let arrow = lines.iter().position(|line| line.contains('┬'))?;
    let column = lines[arrow].chars().position(|c| c == '┬')?;
    let (start, character) = lines.get(arrow.checked_sub(1)?)?.char_indices().nth(column)?;
    lines[arrow - 1].get(start..start + character.len_utf8())
}
