//! The store: what is on disk, once, and for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use inrush_common::{
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    report::{ClockOffset, Loss, RunOutcome},
    stats::{Gauges, Interval, Snapshot, SnapshotKey, Stats},
};
use inrush_coordinator::{
    run::RunState,
    store::{Change, NewAgent, NewRun, Store, StoreError, Writer, Written},
};
use tempfile::TempDir;

const PLAN: &str = "url = 'http://127.0.0.1:9/'\nbody_file = 'body.bin'\n[load.closed]\nconnections = 1\nrequests = 9\n";

fn run(name: &str) -> RunId {
    name.parse().unwrap()
}

fn lab1() -> AgentName {
    "lab1".parse().unwrap()
}

fn new_run(name: &str) -> Change {
    Change::Run(Box::new(NewRun {
        run: run(name),
        plan: "plan".to_owned(),
        source_name: "plan.toml".to_owned(),
        source: PLAN.to_owned(),
        files: BTreeMap::from([("body.bin".to_owned(), vec![0, 255, 10].into())]),
        version: "0.1.0".to_owned(),
        submitted_at: SystemTime::UNIX_EPOCH,
    }))
}

fn agents(name: &str) -> Change {
    let agent = NewAgent {
        name: lab1(),
        epoch: Epoch(u64::MAX),
        version: "0.1.0".to_owned(),
        hostname: "lab".to_owned(),
        workers: 2,
        connections: 1,
        requested: 1,
        planned: vec![Some(9)],
    };
    Change::Agents { run: run(name), agents: vec![agent] }
}

fn snapshot(name: &str, epoch: u64, seq: u64) -> Snapshot {
    let mut stats = Stats::new(1, 1);
    stats.phases[0].requests[0].started = 3;
    Snapshot {
        run: run(name),
        key: SnapshotKey { agent: lab1(), epoch: Epoch(epoch), seq: SnapshotSeq(seq) },
        interval: Interval { from_ns: 0, to_ns: 1_000_000_000 },
        stats,
        gauges: Gauges { in_flight: 3, ..Gauges::default() },
        completion: None,
    }
}

async fn hand_in(store: &Store, snapshot: &Snapshot) -> Written {
    let (run, key) = (snapshot.run.clone(), snapshot.key.clone());
    let payload = inrush_common::wire::encode_snapshot(snapshot).into();
    store.write(Change::Snapshot { run, key, payload }).await.unwrap()
}

async fn close(writer: Writer) {
    tokio::task::spawn_blocking(move || writer.close()).await.unwrap();
}

fn open(path: &Path) -> (Store, Writer) {
    Store::open(path).unwrap()
}

#[tokio::test]
async fn a_snapshot_is_kept_once_and_only_from_the_process_that_has_the_share() {
    let data_dir = TempDir::new().unwrap();
    let (store, writer) = open(data_dir.path());
    store.write(new_run("r")).await.unwrap();
    assert_eq!(hand_in(&store, &snapshot("r", u64::MAX, 1)).await, Written::NotAssigned);
    store.write(agents("r")).await.unwrap();
    assert_eq!(hand_in(&store, &snapshot("r", u64::MAX, 1)).await, Written::New);
    assert_eq!(hand_in(&store, &snapshot("r", u64::MAX, 1)).await, Written::Duplicate);
    assert_eq!(hand_in(&store, &snapshot("r", u64::MAX, 2)).await, Written::New);
    assert_eq!(hand_in(&store, &snapshot("r", 1, 1)).await, Written::NotAssigned);
    assert_eq!(hand_in(&store, &snapshot("other", u64::MAX, 1)).await, Written::NotAssigned);
    assert!(store.is_assigned(&run("r"), &lab1(), Epoch(u64::MAX)).await.unwrap());
    assert!(!store.is_assigned(&run("r"), &lab1(), Epoch(1)).await.unwrap());
    let report = store.report(&run("r")).await.unwrap().unwrap();
    assert_eq!(report.ledger.started, 6);
    assert!(store.report(&run("other")).await.unwrap().is_none());
    close(writer).await;
    assert!(matches!(store.write(Change::Nothing).await, Err(StoreError::Closed)));
}

#[tokio::test]
async fn all_facts_of_a_run_outlive_the_process() {
    let data_dir = TempDir::new().unwrap();
    let (store, writer) = open(data_dir.path());
    let r = run("r");
    let loss = Loss { at_ns: 1_500_000_000, evidence: "nothing heard".to_owned() };
    let clock = ClockOffset { offset_ns: i64::MIN, bound_ns: 7 };
    let detail = Some("lab1 was lost".to_owned());
    for change in [
        new_run("r"),
        agents("r"),
        Change::Started { run: r.clone(), at: SystemTime::UNIX_EPOCH },
        Change::Clock { run: r.clone(), agent: lab1(), clock },
        Change::StartedAfter { run: r.clone(), agent: lab1(), after_ns: -9 },
        Change::Lost { run: r.clone(), agent: lab1(), loss },
        Change::State {
            run: r.clone(),
            state: RunState::Failed,
            outcome: RunOutcome::Aborted,
            detail: detail.clone(),
        },
    ] {
        store.write(change).await.unwrap();
    }
    hand_in(&store, &snapshot("r", u64::MAX, 1)).await;
    let before = store.report(&r).await.unwrap().unwrap();
    close(writer).await;
    drop(store);

    let (store, writer) = open(data_dir.path());
    let after = store.report(&r).await.unwrap().unwrap();
    assert_eq!(after, before);
    assert_eq!((after.run.outcome, &after.run.detail), (RunOutcome::Aborted, &detail));
    assert!(after.run.started_at.as_ref().unwrap().starts_with("1970-01-01T00:00:00"));
    let agent = &after.agents[0];
    assert_eq!((agent.clock_offset_ns, agent.clock_bound_ns), (Some(i64::MIN), Some(7)));
    assert_eq!((agent.lost_at_s, agent.workers), (Some(1.5), 2));
    let row = store.run(&r).await.unwrap().unwrap();
    assert_eq!((row.state, row.detail), (RunState::Failed, detail));
    close(writer).await;
}

#[tokio::test]
async fn runs_that_a_coordinator_left_under_way_are_failed_at_the_next_start() {
    let data_dir = TempDir::new().unwrap();
    let (store, writer) = open(data_dir.path());
    for (name, state) in
        [("a", RunState::Queued), ("b", RunState::Running), ("c", RunState::Finished)]
    {
        store.write(new_run(name)).await.unwrap();
        let outcome = RunOutcome::Running;
        let change = Change::State { run: run(name), state, outcome, detail: None };
        store.write(change).await.unwrap();
        if state != RunState::Queued {
            let at = SystemTime::UNIX_EPOCH;
            store.write(Change::Started { run: run(name), at }).await.unwrap();
        }
    }
    close(writer).await;
    drop(store);
    let (store, writer) = open(data_dir.path());
    let rows = store.runs(10).await.unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.run.as_str(), row.state, row.detail.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        ("c", RunState::Finished, ""),
        ("b", RunState::Failed, "the coordinator stopped during this run"),
        ("a", RunState::Failed, "the coordinator stopped before this run started"),
    ];
    assert_eq!(rows, expected);
    close(writer).await;
}

#[tokio::test]
async fn a_change_that_fails_alone_does_not_take_its_batch_with_it() {
    let data_dir = TempDir::new().unwrap();
    let (store, writer) = open(data_dir.path());
    let first = store.begin(new_run("r")).await.unwrap();
    let again = store.begin(new_run("r")).await.unwrap();
    let nobodys = store.begin(agents("unknown")).await.unwrap();
    let other = store.begin(new_run("other")).await.unwrap();
    assert!(first.await.unwrap().is_ok());
    assert_eq!(again.await.unwrap().unwrap(), Written::Duplicate, "the id is taken");
    assert!(matches!(nobodys.await.unwrap(), Err(StoreError::Sqlite(_))));
    assert!(other.await.unwrap().is_ok());
    assert_eq!(store.runs(10).await.unwrap().len(), 2);
    close(writer).await;
}

#[tokio::test]
async fn one_process_has_the_directory_until_it_lets_go() {
    let data_dir = TempDir::new().unwrap();
    let (_store, writer) = open(data_dir.path());
    let refused = Store::open(data_dir.path()).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    close(writer).await;
    let (_store, writer) = open(data_dir.path());
    close(writer).await;
}

#[test]
fn a_database_of_a_newer_format_or_of_none_is_refused_in_words() {
    let data_dir = TempDir::new().unwrap();
    let path = data_dir.path().join("inrush.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let words = Store::open(data_dir.path()).unwrap_err().to_string();
    assert!(words.contains("newer Inrush") && words.contains("99"), "{words}");

    std::fs::write(&path, "this is no database, and long enough to show it ".repeat(100)).unwrap();
    let words = Store::open(data_dir.path()).unwrap_err().to_string();
    assert!(words.contains("not a database"), "{words}");

    let file = data_dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let words = Store::open(&file).unwrap_err().to_string();
    assert!(words.contains("cannot be used") && words.contains("file"), "{words}");
}
