//! The built `inrush` as a gate: what a plan asks of its target decides the exit code, the same in every form of the
//! report and at any later time.

use std::{fs, path::Path};

use inrush_testkit::{Received, Step, Target};
use roxmltree::Document;
use serde_json::{Value, json};

use crate::{
    process::{Ended, inrush},
    support::{folder, json_report},
};

fn plan(folder: &Path, url: &str, thresholds: &Value, requests: u64) {
    let text = format!(
        "name = \"gate\"\nurl = \"{url}\"\nthresholds = {thresholds}\n[load.closed]\nconnections = 4\nrequests = \
         {requests}\n"
    );
    fs::write(folder.join("plan.toml"), text).unwrap();
}

/// Runs the plan and keeps everything: text, JSON, JUnit and data.
async fn run(folder: &Path) -> Ended {
    let run = ["run", "plan.toml", "--local-agents", "2", "--workers", "1", "--quiet"];
    let kept = ["--json", "report.json", "--junit", "junit.xml", "--data-dir", "data"];
    inrush(&[&run[..], &kept].concat(), folder).await
}

/// Which rows of the JSON passed.
fn passed(folder: &Path) -> Vec<bool> {
    let report = json_report(folder);
    let rows = report["thresholds"].as_array().unwrap().iter();
    rows.map(|row| row["passed"].as_bool().unwrap()).collect()
}

/// Which test cases of the XML passed, that of the verdict last.
fn cases(xml: &str) -> Vec<(String, bool)> {
    let document = Document::parse(xml).unwrap();
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let passed = |case: roxmltree::Node<'_, '_>| !case.has_children();
    cases.map(|case| (case.attribute("name").unwrap().to_owned(), passed(case))).collect()
}

#[tokio::test]
async fn a_target_that_only_fails_fails_the_gate_in_every_form_and_later_too() {
    let folder = folder();
    let target = Target::status(404);
    let thresholds = json!(["failed_ratio < 1%", "count(status.404) == 400", "p50(ttfb) < 1h"]);
    plan(folder.path(), &target.url("/"), &thresholds, 400);
    let ended = run(folder.path()).await.with_code(3);
    assert!(ended.out.contains("EVERY REQUEST FAILED"), "{}", ended.out);
    assert!(ended.out.contains("1 of 3 thresholds failed"), "{}", ended.out);
    assert!(ended.out.contains("failed_ratio < 1%  "), "{}", ended.out);
    assert_eq!(passed(folder.path()), [false, true, true]);
    let report = json_report(folder.path());
    assert_eq!(report["verdict"]["status"], "valid");
    assert_eq!(report["thresholds"][0]["observed"], 1.0);
    assert_eq!(report["rates"]["throughput"], 0.0);

    let xml = fs::read_to_string(folder.path().join("junit.xml")).unwrap();
    let names = ["failed_ratio < 1%", "count(status.404) == 400", "p50(ttfb) < 1h", "verdict"];
    let expected = names.map(str::to_owned).into_iter().zip([false, true, true, true]);
    assert_eq!(cases(&xml), expected.collect::<Vec<_>>());

    let again = ["report", "--data-dir", "data", "--junit", "-"];
    let again = inrush(&again, folder.path()).await.with_code(3);
    assert_eq!(again.out, xml);
}

#[tokio::test]
async fn the_share_that_fails_is_what_decides() {
    let folder = folder();
    for (one_in, status, code) in [(2_u32, 502, 3), (1_000, 503, 0)] {
        let target = Target::start(move |request: &Received| {
            let fails = request.number.is_multiple_of(u64::from(one_in));
            vec![if fails { Step::status(status) } else { Step::hello() }]
        });
        plan(folder.path(), &target.url("/"), &json!(["failed_ratio < 1%"]), 2_000);
        let ended = run(folder.path()).await.with_code(code);
        assert_eq!(passed(folder.path()), [code == 0], "{}", ended.out);
        let observed = json_report(folder.path())["thresholds"][0]["observed"].as_f64().unwrap();
        assert!((observed - 1.0 / f64::from(one_in)).abs() < 1e-12, "{observed}");
        fs::remove_dir_all(folder.path().join("data")).unwrap();
    }
}

#[tokio::test]
async fn a_percentile_without_its_samples_fails_the_gate_and_says_so() {
    let folder = folder();
    let target = Target::hello();
    plan(folder.path(), &target.url("/"), &json!(["p99(response_time) < 1h"]), 999);
    let ended = run(folder.path()).await.with_code(3);
    assert!(ended.out.contains("FAILED: needs 1,000 samples, has 999"), "{}", ended.out);
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    plan(folder.path(), &target.url("/"), &json!(["p99(response_time) < 1h"]), 1_000);
    run(folder.path()).await.with_code(0);
}

#[tokio::test]
async fn an_unwritable_junit_file_and_a_wrong_threshold_are_refused_before_anything_is_sent() {
    let folder = folder();
    let target = Target::hello();
    plan(folder.path(), &target.url("/"), &json!([]), 10);
    let junit = ["run", "plan.toml", "--junit", "missing/junit.xml"];
    inrush(&junit, folder.path()).await.with_code(2).saying("--junit missing/junit.xml");
    let both = ["run", "plan.toml", "--junit", "-", "--json", "-"];
    inrush(&both, folder.path()).await.with_code(2).saying("name two places");
    plan(folder.path(), &target.url("/"), &json!(["p99(respons_time) < 1s"]), 10);
    let ended = inrush(&["run", "plan.toml"], folder.path()).await.with_code(2);
    ended.saying("did you mean `response_time`?");
    assert_eq!(target.counts().connections, 0);
}
