//! The service that agents dial: opens a session for each stream.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use inrush_proto::v1::{AgentMessage, CoordinatorMessage, fleet_server::Fleet};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Request, Response, Status, Streaming};

use super::{
    event::Events,
    peer::Peer,
    session::{OUTGOING, Session},
};
use crate::store::Store;

/// Sessions that may be at their hello at a time. More wait, unread; who waits too long is asked to try again.
const STRANGERS: usize = 256;

/// What sessions need.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    events: Events,
    store: Store,
    stop: CancellationToken,
    tasks: TaskTracker,
    strangers: Arc<Semaphore>,
    next_link: Arc<AtomicU64>,
}

impl Sessions {
    pub(super) fn new(
        events: Events,
        store: Store,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        Self { events, store, stop, tasks, strangers, next_link: Arc::default() }
    }
}

#[tonic::async_trait]
impl Fleet for Sessions {
    type SessionStream = ReceiverStream<Result<CoordinatorMessage, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (out, messages) = mpsc::channel(OUTGOING);
        let peer = Peer::of(&request)?.clone();
        let session = Session {
            peer: Some(peer.address),
            standing: peer.standing().cloned(),
            strangers: Arc::clone(&self.strangers),
            link: self.next_link.fetch_add(1, Ordering::Relaxed),
            out,
            events: self.events.clone(),
            store: self.store.clone(),
            stop: self.stop.clone(),
            end: CancellationToken::new(),
        };
        // The answer opens at once; what is refused is refused on it.
        self.tasks.spawn(session.run(request.into_inner()));
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}
