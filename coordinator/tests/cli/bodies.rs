//! A body that a file holds, from the one who submits to the target, by way of agents that never see the file.

use std::fs;

use inrush_testkit::{LONG, Options, Received, Step, Target};

use crate::{
    process::inrush,
    support::{Coordinator, folder, json_report},
};

const CONNECTIONS: u64 = 6;
const REQUESTS: u64 = 60;

#[tokio::test]
async fn agents_send_the_bytes_that_were_submitted_wherever_they_run_and_whatever_becomes_of_the_file()
 {
    let submitter = folder();
    let body: Vec<u8> = (0..3_u32 << 20).map(|at| (at * 31 % 251) as u8).collect();
    fs::create_dir(submitter.path().join("plans")).unwrap();
    let file = submitter.path().join("plans/body.bin");
    fs::write(&file, &body).unwrap();
    let wanted = body.clone();
    let target =
        Target::with(Options { keep: 0, ..Options::default() }, move |request: &Received| {
            let status = if request.body == wanted { 204 } else { 409 };
            vec![Step::Pause, Step::status(status)]
        });
    let plan = format!(
        "url = \"{}\"\nmethod = \"PUT\"\nbody_file = \"body.bin\"\n\n[load.closed]\n\
         connections = {CONNECTIONS}\nrequests = {REQUESTS}\n\n[agents]\nmin = 3\n",
        target.url("/")
    );
    fs::write(submitter.path().join("plans/plan.toml"), plan).unwrap();

    let home = folder();
    let coordinator = Coordinator::start(home.path()).await;
    let mut agents = Vec::new();
    for name in ["lab1", "lab2", "lab3"] {
        let place = folder();
        // A file of that name where the agent runs is another file.
        fs::write(place.path().join("body.bin"), "not this").unwrap();
        agents.push((coordinator.agent(place.path(), name, &[]).await, place));
    }
    let at = ["--coordinator", &coordinator.address];
    let submit = [&["submit", "plans/plan.toml", "--detach"], &at[..]].concat();
    let run = inrush(&submit, submitter.path()).await.with_code(0).out;
    fs::write(&file, "changed").unwrap();
    target.until(LONG, |counts| counts.in_flight == CONNECTIONS).await.unwrap();
    fs::remove_file(&file).unwrap();
    target.release_all();

    let watch = [&["watch", run.trim()], &at[..]].concat();
    inrush(&watch, submitter.path()).await.with_code(0);
    let seen = target.until(LONG, |counts| counts.open == 0).await.unwrap();
    assert_eq!(seen.requests, REQUESTS);
    let report = [&["report", run.trim(), "--json", "report.json"], &at[..]].concat();
    inrush(&report, submitter.path()).await.with_code(0);
    let report = json_report(submitter.path());
    assert_eq!(report["ledger"]["succeeded"], REQUESTS);
    assert_eq!(report["status"][0]["code"], 204, "every body arrived as it was submitted");
    assert_eq!(report["bytes"]["out"], seen.bytes_in);
}
