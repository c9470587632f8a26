//! `inrush explain`: arithmetic before a run, held against runs.

use std::{fs, path::Path};

use inrush_testkit::Target as Scripted;
use jsonschema::Validator;
use serde_json::Value;

use crate::{
    process::{Ended, inrush},
    support::{Coordinator, Target, folder, json_report},
};

const MILLION: &str = include_str!("../../../examples/plans/million.toml");

fn write(folder: &Path, plan: &str) {
    fs::write(folder.join("plan.toml"), plan).unwrap();
}

async fn explain(folder: &Path, options: &[&str]) -> Ended {
    inrush(&[&["explain", "plan.toml"], options].concat(), folder).await
}

/// The JSON form, which keeps to the published schema.
#[track_caller]
fn json(ended: &Ended) -> Value {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/explain.schema.json")).unwrap();
    let schema: Validator = jsonschema::draft202012::new(&schema).unwrap();
    let explanation = serde_json::from_str(&ended.out).unwrap();
    let breaches: Vec<String> =
        schema.iter_errors(&explanation).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(breaches.is_empty(), "{breaches:#?}");
    explanation
}

#[tokio::test]
async fn a_hundred_thousand_connections_need_four_agents_of_28232_ports_or_more_addresses() {
    let folder = folder();
    write(folder.path(), MILLION);
    let of = |agents| ["--agents", agents, "--ports", "28232", "--files", "1000000"];
    let refused = explain(folder.path(), &of("3")).await.with_code(2);
    for words in [
        "CANNOT RUN",
        "100,000 connections are more than the 3 agents can carry: 84,696",
        "4 agents of 28,232 connections each",
        "2 source addresses for each of the 3 agents",
        "1 agent with 4 source addresses",
    ] {
        assert!(refused.out.contains(words), "no {words:?} in {}", refused.out);
    }
    let accepted = explain(folder.path(), &of("8")).await.with_code(0);
    assert!(accepted.out.starts_with("CAN RUN\n"), "{}", accepted.out);
    // What it says would do does.
    for would_do in [&of("4")[..], &[&of("3")[..], &["--sources", "2"]].concat()] {
        explain(folder.path(), would_do).await.with_code(0);
    }
    let json_of = |agents| [&of(agents)[..], &["--json", "-"]].concat();
    let refused = json(&explain(folder.path(), &json_of("3")).await.with_code(2));
    assert_eq!(refused["can_run"], false);
    assert_eq!(refused["refusals"][0]["remedies"][0]["agents"], 4);
    let accepted = json(&explain(folder.path(), &json_of("8")).await.with_code(0));
    let share = &accepted["agents"][7]["share"];
    assert_eq!((&share["connections"], &share["requests"]), (&12_500.into(), &125_000.into()));
}

#[tokio::test]
async fn nothing_reaches_the_target() {
    let (folder, target) = (folder(), Scripted::hello());
    let url = target.url("/");
    write(folder.path(), &format!("url = \"{url}\"\n[load.open]\nrate = 10\nduration = \"10s\"\n"));
    for options in [&[][..], &["--agents", "3"], &["--json", "-"]] {
        explain(folder.path(), options).await.with_code(0);
    }
    let counts = target.counts();
    assert_eq!((counts.connections, counts.requests), (0, 0));
}

#[tokio::test]
async fn a_run_over_a_coordinators_agents_is_what_was_explained() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let at = ["--coordinator", &coordinator.address];
    let url = format!("http://{}/echo?a=b", target.address);
    let plan = format!(
        "url = \"{url}\"\nmethod = \"POST\"\nheaders = {{ X-Test = \"é\" }}\nbody = 'some words'\n[load.closed]\nconnections \
         = 7\nrequests = 1_001\n[agents]\nmin = 2\n"
    );
    write(folder.path(), &plan);
    let nobody = explain(folder.path(), &at).await.with_code(2);
    assert!(nobody.out.contains("the plan wants at least 2 agents"), "{}", nobody.out);
    let _lab1 = coordinator.agent(folder.path(), "lab1", &[]).await;
    let _lab2 = coordinator.agent(folder.path(), "lab2", &[]).await;
    let explained =
        json(&explain(folder.path(), &[&at[..], &["--json", "-"]].concat()).await.with_code(0));
    assert_eq!(target.requests().await, 0);

    let submit = [&["submit", "plan.toml", "--json", "report.json"], &at[..]].concat();
    inrush(&submit, folder.path()).await.with_code(0);
    let report = json_report(folder.path());
    for (agent, row) in [0, 1].map(|n| (&explained["agents"][n], &report["agents"][n])) {
        assert_eq!(agent["name"], row["name"]);
        assert_eq!(agent["share"]["requests"], row["ledger"]["planned"]);
        assert_eq!(agent["share"]["bytes_out"], row["bytes"]["out"], "to the byte");
    }
    assert_eq!(explained["run"]["bytes_out"], report["bytes"]["out"]);
}

#[tokio::test]
async fn a_plan_with_mistakes_is_not_explained() {
    let folder = folder();
    write(folder.path(), "ulr = \"http://127.0.0.1/\"\n");
    let ended = explain(folder.path(), &["--agents", "2"]).await.with_code(2);
    assert!(ended.out.is_empty(), "{}", ended.out);
    ended.saying("nothing was sent");
}
