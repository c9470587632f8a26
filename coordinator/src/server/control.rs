//! The service that clients ask: submit, watch, cancel, list, report. It only translates; a client that goes away
//! changes nothing.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use inrush_common::{
    id::RunId,
    report::{Report, RunOutcome},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{self, control_server::Control},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status};

use super::{
    Refusal, VERSION,
    event::{Event, Events, ask},
};
use crate::{
    clock,
    run::{RunState, StopMode, compile, new_id},
    store::{Change, NewRun, RunRow, Store, Written},
};

/// How long a client waits for its run to be on disk.
const STORED_WITHIN: Duration = Duration::from_secs(10);

/// Runs in a list; older ones are left out.
const LISTED_RUNS: u32 = 1_000;

/// Updates waiting for one watcher. When full, it misses those that newer ones replace.
const WATCHER_QUEUE: usize = 2;

/// What handlers need.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    events: Events,
    store: Store,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Clients {
    pub(super) const fn new(
        events: Events,
        store: Store,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        Self { events, store, stop, tasks }
    }

    /// Stores a new run. The driver has no part in it: a disk that hangs keeps nobody waiting but this client.
    async fn keep(&self, mut new: NewRun) -> Result<RunId, Refusal> {
        loop {
            let run = new.run.clone();
            let change = Change::Run(Box::new(new.clone()));
            match self.store.write_within(change, STORED_WITHIN).await {
                Ok(Written::Duplicate) => new.run = new_id(new.submitted_at),
                Ok(Written::New | Written::NotAssigned) => return Ok(run),
                Err(error) => {
                    let refusal = Refusal::from(error);
                    self.disown(run, &refusal).await;
                    return Err(refusal);
                }
            }
        }
    }

    /// A run that is stored, or may be in a while, and yet is not queued, is over.
    async fn disown(&self, run: RunId, refusal: &Refusal) {
        let change = Change::State {
            run: run.clone(),
            state: RunState::Failed,
            outcome: RunOutcome::Failed,
            detail: Some(format!("was not queued: {refusal}")),
        };
        if timeout(STORED_WITHIN, self.store.begin(change)).await.is_err() {
            tracing::error!(%run, "the store does not take that the run was refused");
        }
    }

    /// The run of that name, or the newest.
    async fn find(&self, run: &str) -> Result<RunRow, Refusal> {
        if run.is_empty() {
            return self.store.runs(1).await?.pop().ok_or(Refusal::NoRuns);
        }
        let found = match run.parse::<RunId>() {
            Ok(id) => self.store.run(&id).await?,
            Err(_) => None,
        };
        match found {
            Some(row) => Ok(row),
            None => Err(self.unknown(run).await?),
        }
    }

    async fn unknown(&self, run: &str) -> Result<Refusal, Refusal> {
        let rows = self.store.runs(LISTED_RUNS).await?;
        if rows.is_empty() {
            return Ok(Refusal::NoRuns);
        }
        let run: String = run.chars().take(80).collect();
        let nearest = nearest(&run, rows.iter().map(|row| row.run.as_str()));
        Ok(Refusal::UnknownRun { run, nearest })
    }

    /// The one update of a run that is over.
    async fn last_update(&self, row: RunRow) -> Result<v1::RunUpdate, Refusal> {
        Ok(v1::RunUpdate {
            run: row.run.to_string(),
            state: v1::RunState::from(row.state).into(),
            report_json: self.report_json(&row.run).await?.into(),
            detail: row.detail.unwrap_or_default(),
            progress: None,
        })
    }

    async fn report_json(&self, run: &RunId) -> Result<Vec<u8>, Refusal> {
        match self.store.report(run).await? {
            Some(report) => to_json(&report),
            None => Err(self.unknown(run.as_str()).await?),
        }
    }
}

/// The report as it travels: the bytes are the same whenever the rows are.
pub(super) fn to_json(report: &Report) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(report).map_err(|error| Refusal::Json(error.to_string()))
}

#[tonic::async_trait]
impl Control for Clients {
    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitReply>, Status> {
        let v1::SubmitRequest { protocol, source_name, source, files } = request.into_inner();
        if protocol != PROTOCOL_VERSION {
            return Err(
                Refusal::Protocol { peer: "the client".to_owned(), theirs: protocol }.into()
            );
        }
        let files = files.into_iter().collect();
        let plan = compile(&source_name, &source, &files).map_err(Refusal::Plan)?;
        let plan = Arc::new(plan);
        let asked = Arc::clone(&plan);
        // First, for most of what is refused is refused here, and a refused run is not to be listed.
        ask(&self.events, |reply| Event::Check { plan: asked, reply }).await??;
        let submitted_at = clock::wall();
        let new = NewRun {
            run: new_id(submitted_at),
            plan: plan.name.clone(),
            source_name,
            source,
            files,
            version: VERSION.to_owned(),
            submitted_at,
        };
        let run = self.keep(new).await?;
        let (id, plan) = (run.clone(), Box::new(Arc::unwrap_or_clone(plan)));
        let queued = ask(&self.events, |reply| Event::Submit { run: id, plan, reply }).await;
        if let Err(refusal) = queued.and_then(|queued| queued) {
            self.disown(run, &refusal).await;
            return Err(refusal.into());
        }
        Ok(Response::new(v1::SubmitReply { run: run.to_string() }))
    }

    type WatchStream = ReceiverStream<Result<v1::RunUpdate, Status>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let row = self.find(&request.into_inner().run).await?;
        let run = row.run.clone();
        let live = ask(&self.events, |reply| Event::Watch { run, reply }).await?;
        let (out, updates) = mpsc::channel(WATCHER_QUEUE);
        match live {
            Some(live) => drop(self.tasks.spawn(follow(live, out, self.stop.clone()))),
            None => {
                // It may have ended since it was looked up.
                let row = self.store.run(&row.run).await.map_err(Refusal::from)?.unwrap_or(row);
                let last = self.last_update(row).await?;
                out.try_send(Ok(last)).expect("a new queue has room");
            }
        }
        Ok(Response::new(ReceiverStream::new(updates)))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        let request = request.into_inner();
        let mode = match request.mode() {
            v1::cancel_request::Mode::Drain => StopMode::Drain,
            v1::cancel_request::Mode::Abort => StopMode::Abort,
            v1::cancel_request::Mode::Unspecified => {
                return Err(Refusal::Mode(request.mode).into());
            }
        };
        let row = self.find(&request.run).await?;
        let run = row.run.clone();
        let state = ask(&self.events, |reply| Event::Cancel { run, mode, reply }).await?;
        let state = state.ok_or(Refusal::Ended { run: row.run, state: row.state.name() })?;
        Ok(Response::new(v1::CancelReply { state: v1::RunState::from(state).into() }))
    }

    async fn list_agents(
        &self,
        _request: Request<v1::ListAgentsRequest>,
    ) -> Result<Response<v1::ListAgentsReply>, Status> {
        let agents = ask(&self.events, |reply| Event::Agents { reply }).await?;
        Ok(Response::new(v1::ListAgentsReply { agents }))
    }

    async fn list_runs(
        &self,
        _request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsReply>, Status> {
        let rows = self.store.runs(LISTED_RUNS).await.map_err(Refusal::from)?;
        let runs = rows.into_iter().map(run_info).collect();
        Ok(Response::new(v1::ListRunsReply { runs }))
    }

    async fn get_report(
        &self,
        request: Request<v1::GetReportRequest>,
    ) -> Result<Response<v1::GetReportReply>, Status> {
        let row = self.find(&request.into_inner().run).await?;
        let report_json = self.report_json(&row.run).await?.into();
        Ok(Response::new(v1::GetReportReply { report_json }))
    }
}

/// Passes a run's updates on until the last one, or until nobody reads them.
async fn follow(
    mut live: watch::Receiver<v1::RunUpdate>,
    out: mpsc::Sender<Result<v1::RunUpdate, Status>>,
    stop: CancellationToken,
) {
    loop {
        let update = live.borrow_and_update().clone();
        tokio::select! {
            // The last update has its place even when the coordinator stops; only who does not read is left.
            biased;
            sent = out.send(Ok(update)) => if sent.is_err() { return },
            () = stop.cancelled() => return,
        }
        tokio::select! {
            // The sender is dropped after the last update.
            changed = live.changed() => if changed.is_err() { return },
            () = out.closed() => return,
        }
    }
}

fn run_info(row: RunRow) -> v1::RunInfo {
    let since = row.submitted_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    v1::RunInfo {
        run: row.run.to_string(),
        plan: row.plan,
        state: v1::RunState::from(row.state).into(),
        submitted_at_s: since.as_secs(),
        detail: row.detail.unwrap_or_default(),
    }
}

/// Up to three ids that agree longest with what was typed, from either end (people type the random digits alone).
fn nearest<'a>(typed: &str, ids: impl Iterator<Item = &'a str>) -> String {
    let likeness = |id: &str| {
        let head = id.bytes().zip(typed.bytes()).take_while(|(a, b)| a == b).count();
        let tail = id.bytes().rev().zip(typed.bytes().rev()).take_while(|(a, b)| a == b).count();
        head.max(tail)
    };
    let mut ids: Vec<(usize, &str)> = ids.map(|id| (likeness(id), id)).collect();
    // Stable: of equally near ones the newer, which come first.
    ids.sort_by_key(|(likeness, _)| std::cmp::Reverse(*likeness));
    let nearest: Vec<&str> = ids.into_iter().take(3).map(|(_, id)| id).collect();
    nearest.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_ids_agree_at_the_begin_or_at_the_end() {
        let ids = ["20250103-120000-aaaa", "20250102-120000-bbbb", "20250101-120000-cccc"];
        assert!(nearest("cccc", ids.into_iter()).starts_with("20250101-120000-cccc"));
        assert!(nearest("20250102", ids.into_iter()).starts_with("20250102-120000-bbbb"));
        assert!(nearest("x", ids.into_iter()).starts_with("20250103-120000-aaaa"));
    }
}
