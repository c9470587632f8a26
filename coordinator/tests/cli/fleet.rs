//! `inrush serve` with agents and clients.

use hdrhistogram::Histogram;

use crate::{
    process::{inrush, start},
    support::{
        Coordinator, Target, assert_balanced, folder, histogram, json_report, plan, sum_of_agents,
    },
};

#[tokio::test]
async fn three_agents_with_addresses_of_their_own_split_a_plan_exactly() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let mut agents = Vec::new();
    for (name, source) in [("lab1", "127.0.0.2"), ("lab2", "127.0.0.3"), ("lab3", "127.0.0.4")] {
        agents.push(coordinator.agent(folder.path(), name, &["--source-ip", source]).await);
    }
    plan(folder.path(), &format!("http://{}/", target.address), 100, 10_000, "min = 3");
    let submit =
        ["submit", "plan.toml", "--json", "report.json", "--coordinator", &coordinator.address];
    inrush(&submit, folder.path()).await.with_code(0).saying("to come back to it: inrush watch");
    let report = json_report(folder.path());
    assert_balanced(&report);
    let planned = |row: usize| report["agents"][row]["ledger"]["planned"].as_u64().unwrap();
    assert_eq!([planned(0), planned(1), planned(2)], [3_400, 3_300, 3_300]);
    assert_eq!(sum_of_agents(&report, "completed"), 10_000);
    assert_eq!(target.requests().await, 10_000);
    for distribution in ["all", "succeeded"] {
        let merged = histogram(&report["response_time"][distribution]);
        let mut sum = Histogram::<u64>::new_from(&merged);
        for agent in report["agents"].as_array().unwrap() {
            sum.add(histogram(&agent["response_time"][distribution])).unwrap();
        }
        assert_eq!(merged.len(), 10_000);
        assert_eq!(merged, sum);
    }

    let at = ["--coordinator", &coordinator.address];
    let agents_list = inrush(&[&["agents"], &at[..]].concat(), folder.path()).await.with_code(0);
    assert_eq!(agents_list.out.lines().count(), 4, "{}", agents_list.out);
    let runs = inrush(&[&["runs"], &at[..]].concat(), folder.path()).await.with_code(0);
    assert!(runs.out.lines().nth(1).unwrap().contains(" finished "), "{}", runs.out);
}

#[tokio::test]
async fn a_second_agent_of_one_name_is_refused_with_the_remedy() {
    let folder = folder();
    let coordinator = Coordinator::start(folder.path()).await;
    let _first = coordinator.agent(folder.path(), "lab1", &[]).await;
    let second = ["agent", "--coordinator", &coordinator.address, "--name", "lab1"];
    inrush(&second, folder.path()).await.with_code(7).saying("lab1").saying("--name");
}

#[tokio::test]
async fn too_few_agents_are_refused_in_words() {
    let folder = folder();
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    plan(folder.path(), "http://127.0.0.1:9/", 1, 1, "min = 2");
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator.address];
    let ended = inrush(&submit, folder.path()).await;
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("inrush agent"), "{said}");
    assert!(matches!(ended.status.code(), Some(2 | 7)), "{:?}", ended.status);
}

#[tokio::test]
async fn a_detached_run_is_cancelled_by_its_id() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &[]).await;
    plan(folder.path(), &format!("http://{}/delay/50", target.address), 10, 12_000, "");
    let at = ["--coordinator", &coordinator.address];
    let submit = [&["submit", "plan.toml", "--detach"], &at[..]].concat();
    let run = inrush(&submit, folder.path()).await.with_code(0).out;
    let run = run.trim();
    target.has_counted(50).await;
    let watch = start(&[&["watch", run], &at[..]].concat(), folder.path());
    watch.says(" of 12,000 (").await;
    inrush(&[&["cancel", run], &at[..]].concat(), folder.path()).await.with_code(0);
    watch.ended().await.with_code(6);
    inrush(&[&["report", run], &at[..]].concat(), folder.path()).await.with_code(6);
    // It is over: there is nothing left to cancel, and no such thing as another run.
    for run in [run, "no-such-run"] {
        inrush(&[&["cancel", run], &at[..]].concat(), folder.path()).await.with_code(2);
    }
}
