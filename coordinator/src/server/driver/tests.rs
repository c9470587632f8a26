//! What cannot be brought about from outside: the store's and the clock's misfortunes.

use std::collections::BTreeMap;

use inrush_common::{
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    plan::OnLoss,
    stats::{Completion, Gauges, Interval, Snapshot, SnapshotKey, Stats},
};
use tempfile::TempDir;

use super::*;
use crate::{
    aggregate::Digest,
    clock,
    run::{Event as RunEvent, Rules, RunState, compile},
    store::{Writer, Written},
};

const PLAN: &str = "url = 'http://127.0.0.1:9/'\n[load.closed]\nconnections = 1\nrequests = 9\n";

struct Bench {
    driver: Driver,
    writer: Writer,
    _data_dir: TempDir,
}

impl Bench {
    /// With a run of the agent lab1 that is under way.
    async fn running() -> Self {
        let data_dir = TempDir::new().unwrap();
        let path = data_dir.path().to_owned();
        let opened = tokio::task::spawn_blocking(move || Store::open(&path));
        let (store, writer) = opened.await.unwrap().unwrap();
        let address = "127.0.0.1:7070".parse().unwrap();
        let config = Config::new(data_dir.path());
        let mut driver = Driver::new(config, address, store, TaskTracker::new());
        let plan = compile("plan.toml", PLAN, &BTreeMap::new()).unwrap();
        let second = Duration::from_secs(1);
        let rules = Rules {
            on_loss: OnLoss::Abort,
            ready_within: 30 * second,
            grace: second,
            ends_within: None,
        };
        driver.runs.push_back(Entry::new(run(), plan, rules));
        let now = clock::now();
        for event in [
            RunEvent::Prepare { now, agents: vec![lab1()] },
            RunEvent::Ready { now, agent: lab1(), round_trip: Duration::ZERO },
            RunEvent::Tick { now: now + second },
        ] {
            driver.step_front(event).await;
        }
        let bench = Self { driver, writer, _data_dir: data_dir };
        assert_eq!(bench.state(), Some(RunState::Running));
        bench
    }

    fn state(&self) -> Option<RunState> {
        self.driver.runs.front().map(|entry| entry.machine.state())
    }

    async fn close(self) {
        drop(self.driver);
        tokio::task::spawn_blocking(move || self.writer.close()).await.unwrap();
    }
}

fn run() -> RunId {
    "r".parse().unwrap()
}

fn lab1() -> AgentName {
    "lab1".parse().unwrap()
}

fn last_snapshot() -> Digest {
    Digest::from(&Snapshot {
        run: run(),
        key: SnapshotKey { agent: lab1(), epoch: Epoch(1), seq: SnapshotSeq(1) },
        interval: Interval { from_ns: 0, to_ns: 1 },
        stats: Stats::new(1, 1),
        gauges: Gauges::default(),
        completion: Some(Completion::Finished),
    })
}

#[tokio::test]
async fn a_snapshot_that_was_not_kept_moves_no_run() {
    let mut bench = Bench::running().await;
    bench.driver.stored(&last_snapshot(), Written::NotAssigned).await;
    assert_eq!(bench.state(), Some(RunState::Running));
    bench.driver.stored(&last_snapshot(), Written::New).await;
    assert_eq!(bench.state(), None, "one that was kept ends it");
    bench.close().await;
}
