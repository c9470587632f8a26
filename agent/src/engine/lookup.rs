//! Looking up the target's name for each connection, beside the workers: the system's resolver blocks its caller.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    thread,
};

use tokio::sync::{mpsc, oneshot};

use crate::{bounds::Bounds, resolve::Place};

/// So many names are looked up at one instant. A resolver that is slow keeps others waiting; their deadline runs.
const THREADS: usize = 8;

/// So many questions may wait. A worker has no more of them than attempts to connect under way, so that only questions whose
/// askers have given up can fill it; then a lookup fails at once.
const WAITING: usize = 4_096;

/// All addresses that a name has now, or why there is none, in words.
type Answer = Result<Vec<SocketAddr>, String>;

/// How a place is looked up.
type Resolver = dyn Fn(&Place) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The resolver threads of an engine. They end when it is dropped; one that the system holds up ends later, by itself.
#[derive(Debug)]
pub(super) struct Lookups {
    places: Vec<Place>,
    turn: AtomicUsize,
    questions: mpsc::Sender<Question>,
}

#[derive(Debug)]
struct Question {
    place: Place,
    answer: oneshot::Sender<Answer>,
}

/// A lookup under way.
#[derive(Debug)]
pub(super) struct Lookup {
    host: String,
    answer: oneshot::Receiver<Answer>,
}

impl Lookups {
    /// Asks the system's resolver about `places`, in turn, and fails where it leads out of `bounds`. `None` when none of
    /// them is a name.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn of(places: Vec<Place>, bounds: Bounds) -> io::Result<Option<Self>> {
        if places.iter().all(|place| place.literal().is_some()) {
            return Ok(None);
        }
        let system = move |place: &Place| {
            let addresses =
                (place.host.as_str(), place.port).to_socket_addrs()?.collect::<Vec<_>>();
            bounds.permit(&place.host, &addresses).map_err(io::Error::other)?;
            Ok(addresses)
        };
        Self::with(places, Arc::new(system), (THREADS, WAITING)).map(Some)
    }

    fn with(
        places: Vec<Place>,
        resolver: Arc<Resolver>,
        (threads, waiting): (usize, usize),
    ) -> io::Result<Self> {
        let (questions, asked) = mpsc::channel(waiting);
        let asked = Arc::new(Mutex::new(asked));
        for number in 0..threads {
            let (asked, resolver) = (Arc::clone(&asked), Arc::clone(&resolver));
            thread::Builder::new()
                .name(format!("resolver-{number}"))
                .spawn(move || answer_all(&asked, &*resolver))?;
        }
        Ok(Self { places, turn: AtomicUsize::new(0), questions })
    }

    /// Begins to look up the place whose turn it is.
    ///
    /// # Errors
    /// In words, when too many are under way.
    pub(super) fn begin(&self) -> Result<Lookup, String> {
        let turn = self.turn.fetch_add(1, Relaxed);
        let place = &self.places[turn % self.places.len()];
        let (to, answer) = oneshot::channel();
        match self.questions.try_send(Question { place: place.clone(), answer: to }) {
            Ok(()) => Ok(Lookup { host: place.host.clone(), answer }),
            Err(_) => Err(format!("{}: too many names are being looked up", place.host)),
        }
    }
}

impl Lookup {
    /// What is looked up.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The answer, when it is there.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        std::pin::Pin::new(&mut self.answer)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(|_| Err("the resolver has ended".to_owned())))
    }
}

fn answer_all(asked: &Mutex<mpsc::Receiver<Question>>, resolver: &Resolver) {
    loop {
        // One thread waits for the next question, the others for their turn to wait.
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(Question { place, answer }) = next else { return };
        if answer.is_closed() {
            continue;
        }
        let found = match resolver(&place) {
            Ok(found) if found.is_empty() => Err("it has no address".to_owned()),
            Ok(found) => Ok(found),
            Err(error) => Err(error.to_string()),
        };
        // Who has asked may have given up meanwhile.
        drop(answer.send(found));
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use tokio::time::timeout;

    use super::*;

    fn places(texts: &[&str]) -> Vec<Place> {
        texts.iter().map(|text| Place::parse(text).unwrap()).collect()
    }

    async fn answer(lookups: &Lookups) -> Answer {
        let mut lookup = lookups.begin().unwrap();
        let answer = poll_fn(|cx| lookup.poll(cx));
        timeout(Duration::from_secs(30), answer).await.expect("an answer in time")
    }

    #[tokio::test]
    async fn places_are_looked_up_in_turn_and_each_time_anew() {
        let asked = AtomicUsize::new(0);
        let resolver = move |place: &Place| {
            let number = u8::try_from(asked.fetch_add(1, Relaxed)).unwrap();
            match place.host.as_str() {
                "a.test" => Ok(vec![SocketAddr::from(([127, 0, 0, number], place.port))]),
                "none.test" => Ok(Vec::new()),
                _ => Err(io::Error::other("not known")),
            }
        };
        let places = places(&["a.test:1", "b.test:2", "none.test:3"]);
        let lookups = Lookups::with(places, Arc::new(resolver), (1, 4)).unwrap();
        assert_eq!(answer(&lookups).await, Ok(vec!["127.0.0.0:1".parse().unwrap()]));
        assert_eq!(answer(&lookups).await, Err("not known".to_owned()));
        assert_eq!(answer(&lookups).await, Err("it has no address".to_owned()));
        assert_eq!(answer(&lookups).await, Ok(vec!["127.0.0.3:1".parse().unwrap()]));
    }

    #[tokio::test]
    async fn a_resolver_that_hangs_fills_the_queue_and_then_lookups_fail_at_once() {
        let (release, hold) = std::sync::mpsc::sync_channel::<()>(0);
        let hold = Mutex::new(hold);
        let resolver = move |_: &Place| {
            // Until the sender is dropped.
            hold.lock().unwrap().recv().unwrap_err();
            Err(io::Error::other("too late"))
        };
        let lookups = Lookups::with(places(&["a.test:1"]), Arc::new(resolver), (1, 2)).unwrap();
        // Two wait, and at most one is with the thread.
        let begun: Vec<_> = (0..4).map(|_| lookups.begin()).collect();
        let refused = begun.iter().filter_map(|it| it.as_ref().err()).next().unwrap();
        assert_eq!(refused, "a.test: too many names are being looked up");
        drop(release);
    }

    #[test]
    fn addresses_need_no_lookup() {
        let addresses = places(&["127.0.0.1:80", "[::1]:80"]);
        assert!(Lookups::of(addresses, Bounds::default()).unwrap().is_none());
    }

    #[tokio::test]
    async fn the_systems_resolver_is_asked() {
        let lookups = Lookups::of(places(&["localhost:80"]), Bounds::default()).unwrap().unwrap();
        assert!(answer(&lookups).await.unwrap().iter().all(|found| found.ip().is_loopback()));
    }

    #[tokio::test]
    async fn a_name_that_leads_out_of_bounds_has_no_address() {
        let targets = vec!["127.0.0.2".parse().unwrap()];
        let bounds = Bounds { targets, max_rate: None };
        let lookups = Lookups::of(places(&["localhost:80"]), bounds).unwrap().unwrap();
        let error = answer(&lookups).await.unwrap_err();
        assert!(error.contains("may not send load to") && error.contains("localhost"), "{error}");
    }
}
