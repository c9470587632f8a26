//! Stop rules: a run whose target starts to fail ends by itself, soon, and says why everywhere.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use inrush_testkit::{Received, Step, Target};

use crate::{
    process::{SOON, start},
    support::{Coordinator, folder, json_report},
};

/// A target that answers in 5 ms, well until the switch is thrown and then with 503.
fn failing_target() -> (Target, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&broken);
    let target = Target::start(move |_: &Received| {
        let step = if seen.load(Ordering::Relaxed) { Step::status(503) } else { Step::hello() };
        vec![Step::Delay(Duration::from_millis(5)), step]
    });
    (target, broken)
}

fn plan(folder: &Path, url: &str, load: &str, abort: bool) {
    let text = format!(
        "url = \"{url}\"\n[load.closed]\nconnections = 4\n{load}\n[[stop_when]]\nthreshold = \"failed_ratio < \
         5%\"\nafter = \"2s\"\nabort = {abort}\n"
    );
    fs::write(folder.join("plan.toml"), text).unwrap();
}

/// In how many seconds of the run something failed.
fn seconds_of_failing(report: &serde_json::Value) -> usize {
    let rows = report["series"].as_array().unwrap().iter();
    rows.filter(|row| row["failed"].as_u64().unwrap() > 0).count()
}

#[tokio::test]
async fn a_target_that_starts_to_fail_ends_the_run_within_the_window_and_two_seconds() {
    let (folder, (target, broken)) = (folder(), failing_target());
    plan(folder.path(), &target.url("/"), "duration = \"5m\"", true);
    let run =
        ["run", "plan.toml", "--local-agents", "2", "--workers", "1", "--json", "report.json"];
    let run = start(&run, folder.path());
    target.until(SOON, |counts| counts.requests >= 500).await.unwrap();
    broken.store(true, Ordering::Relaxed);
    let ended = run.ended().await.with_code(3);
    ended.saying("`failed_ratio < 5%` was broken over the last 2.00 s (observed");
    let report = json_report(folder.path());
    assert_eq!(report["run"]["outcome"], "stopped_by_threshold");
    let detail = report["run"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("stopped: `failed_ratio < 5%` was broken over"), "{detail}");
    assert!(seconds_of_failing(&report) <= 4, "{}", report["series"]);
    assert!(report["ledger"]["succeeded"].as_u64().unwrap() >= 400);
}

#[tokio::test]
async fn a_rule_that_drains_lets_requests_finish_and_accounts_for_what_never_began() {
    let (folder, (target, broken)) = (folder(), failing_target());
    plan(folder.path(), &target.url("/"), "requests = 1_000_000", false);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    let at = ["--coordinator", &coordinator.address];
    let submit = [&["submit", "plan.toml", "--json", "report.json"], &at[..]].concat();
    let submit = start(&submit, folder.path());
    target.until(SOON, |counts| counts.requests >= 100).await.unwrap();
    let watch = start(&[&["watch"], &at[..]].concat(), folder.path());
    watch.says(" of 1,000,000 (").await;
    broken.store(true, Ordering::Relaxed);
    submit.ended().await.with_code(3);
    let watched = watch.ended().await.with_code(3);
    assert!(watched.out.contains("was broken over the last 2.00 s"), "{}", watched.out);
    let report = json_report(folder.path());
    let ledger = &report["ledger"];
    assert_eq!(ledger["in_flight_at_end"], 0, "{ledger}");
    let not_started = ledger["not_started"].as_u64().unwrap();
    assert_eq!(not_started + ledger["started"].as_u64().unwrap(), 1_000_000);
    assert_eq!(ledger["not_started_by_reason"]["threshold_broken"], not_started);
    assert_eq!(target.counts().requests, ledger["started"].as_u64().unwrap());
}

#[tokio::test]
async fn a_rule_that_holds_changes_nothing() {
    let (folder, (target, _)) = (folder(), failing_target());
    plan(folder.path(), &target.url("/"), "duration = \"4s\"", true);
    let run = ["run", "plan.toml", "--local-agents", "1", "--json", "report.json", "--quiet"];
    start(&run, folder.path()).ended().await.with_code(0);
    assert_eq!(json_report(folder.path())["run"]["outcome"], "finished");
}
