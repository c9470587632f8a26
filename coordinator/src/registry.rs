//! The agents that are known, and who may have which name.
//!
//! An agent is connected while it has a stream. A stream that breaks is no loss: the agent is *away* and may come back.
//! It is *gone* when nothing was heard of it for the length of a lease, or when there is better evidence; the
//! driver decides that, in one place.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use inrush_common::{
    assign::Offer,
    capacity::Capacity,
    id::{AgentName, Epoch, RunId},
    report::ClockOffset,
    units::Nanos,
};
use inrush_proto::v1::{self, CoordinatorMessage, coordinator_message::Kind};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// What an agent says about itself.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name.
    pub name: AgentName,
    /// Its process.
    pub epoch: Epoch,
    /// Its version.
    pub version: String,
    /// Its machine.
    pub hostname: String,
    /// Labels given at its start.
    pub labels: BTreeMap<String, String>,
    /// What it can carry.
    pub capacity: Capacity,
    /// Where it dialled from.
    pub peer: Option<SocketAddr>,
}

/// What a session notes at every message, without a detour through the driver: a busy driver or a slow disk must not
/// make a living agent look silent.
#[derive(Debug)]
pub struct Vitals {
    heard_ns: AtomicU64,
    clock: Mutex<Option<ClockOffset>>,
}

impl Vitals {
    /// Heard for the first time at `now_ns`.
    pub const fn new(now_ns: u64) -> Self {
        Self { heard_ns: AtomicU64::new(now_ns), clock: Mutex::new(None) }
    }

    /// A message came.
    pub fn hear(&self, now_ns: u64) {
        self.heard_ns.fetch_max(now_ns, Ordering::Relaxed);
    }

    /// Time since the last message.
    pub fn silent(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.heard_ns.load(Ordering::Relaxed)))
    }

    /// Notes the agent's newest estimate of the clocks' offset.
    pub fn set_clock(&self, clock: ClockOffset) {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
    }

    /// The newest estimate.
    pub fn clock(&self) -> Option<ClockOffset> {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to an agent: its present stream.
#[derive(Debug)]
pub struct Link {
    /// Tells this stream from earlier and later ones of the same agent.
    pub id: u64,
    /// Bounded. When it is full the agent does not read: the stream is ended, and the agent dials anew.
    pub out: mpsc::Sender<Result<CoordinatorMessage, Status>>,
    /// Ends the stream.
    pub end: CancellationToken,
}

#[derive(Debug)]
enum Presence {
    Connected(Link),
    Away,
    Gone,
}

/// What an agent is occupied with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Idle,
    /// It has a share of the run that is under way.
    Busy(RunId),
    /// It still holds results of a run that went on, or ended, without it: it may hand them in.
    Leftover {
        /// The run.
        run: RunId,
        /// Then it is told to drop them.
        until: Instant,
    },
}

/// A known agent.
#[derive(Debug)]
pub struct Known {
    /// What it says about itself.
    pub identity: Identity,
    /// When and what was last heard of it.
    pub vitals: Arc<Vitals>,
    /// What it is occupied with.
    pub work: Work,
    presence: Presence,
    since: Instant,
}

impl Known {
    /// Whether it has a stream.
    pub const fn is_connected(&self) -> bool {
        matches!(self.presence, Presence::Connected(_))
    }

    /// Whether it is neither connected nor expected back.
    pub const fn is_gone(&self) -> bool {
        matches!(self.presence, Presence::Gone)
    }

    fn end_stream(&mut self, presence: Presence) {
        if let Presence::Connected(link) = std::mem::replace(&mut self.presence, presence) {
            link.end.cancel();
        }
    }

    fn peer(&self) -> String {
        self.identity.peer.map_or_else(|| "an unknown address".to_owned(), |peer| peer.to_string())
    }
}

/// Why an agent is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Another process has the name.
    #[error(
        "the name {name} is held by another agent at {peer} on {hostname}, known for {age}, last heard {silent} ago: \
         give this one another name with --name, or stop that one"
    )]
    NameHeld {
        /// The name.
        name: AgentName,
        /// The holder's address.
        peer: String,
        /// The holder's machine.
        hostname: String,
        /// Since its hello.
        age: Nanos,
        /// Since its last message.
        silent: Nanos,
    },
    /// There is no room.
    #[error("{limit} agents are connected, and this coordinator takes no more")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// All known agents, by name.
#[derive(Debug)]
pub struct Registry {
    agents: BTreeMap<AgentName, Known>,
    limit: usize,
}

impl Registry {
    /// Room for `limit` agents.
    pub const fn new(limit: usize) -> Self {
        Self { agents: BTreeMap::new(), limit }
    }

    /// Takes an agent that says hello.
    ///
    /// The same process comes back to what it was occupied with. Another process gets the name only when the holder
    /// is gone, or away with nothing to do.
    ///
    /// # Errors
    /// When the name is held, or there is no room.
    pub fn admit(
        &mut self,
        identity: Identity,
        vitals: Arc<Vitals>,
        link: Link,
        now: Instant,
        now_ns: u64,
    ) -> Result<&mut Known, NotTaken> {
        let name = identity.name.clone();
        let (work, since) = match self.agents.get_mut(&name) {
            Some(holder) if holder.identity.epoch == identity.epoch => {
                holder.end_stream(Presence::Away);
                (holder.work.clone(), holder.since)
            }
            Some(holder) if holder.is_connected() || holder.holds_its_name() => {
                return Err(NotTaken::NameHeld {
                    name,
                    peer: holder.peer(),
                    hostname: holder.identity.hostname.clone(),
                    age: now.saturating_duration_since(holder.since).into(),
                    silent: holder.vitals.silent(now_ns).into(),
                });
            }
            Some(_) => (Work::Idle, now),
            None => {
                self.make_room()?;
                (Work::Idle, now)
            }
        };
        let presence = Presence::Connected(link);
        let known = Known { identity, vitals, work, presence, since };
        self.agents.insert(name.clone(), known);
        Ok(self.agents.get_mut(&name).expect("just inserted"))
    }

    /// Those that are gone are only remembered for lists.
    fn make_room(&mut self) -> Result<(), NotTaken> {
        if self.agents.len() < self.limit {
            return Ok(());
        }
        let gone = self.agents.iter().find(|(_, known)| known.is_gone());
        let gone = gone.map(|(name, _)| name.clone());
        let gone = gone.ok_or(NotTaken::TooMany { limit: self.limit })?;
        self.agents.remove(&gone);
        Ok(())
    }

    /// A known agent.
    pub fn get(&self, name: &AgentName) -> Option<&Known> {
        self.agents.get(name)
    }

    /// A stream ended. Nothing, if the agent has a newer one.
    pub fn disconnect(&mut self, name: &AgentName, link: u64) {
        if let Some(known) = self.agents.get_mut(name)
            && matches!(&known.presence, Presence::Connected(present) if present.id == link)
        {
            known.end_stream(Presence::Away);
        }
    }

    /// An agent is gone: its name is free.
    pub fn remove(&mut self, name: &AgentName) {
        if let Some(known) = self.agents.get_mut(name) {
            known.end_stream(Presence::Gone);
            known.work = Work::Idle;
        }
    }

    /// Agents not heard of for `lease` or longer that are not known to be gone.
    pub fn silent(&self, now_ns: u64, lease: Duration) -> Vec<(AgentName, Duration)> {
        let present = self.agents.iter().filter(|(_, known)| !known.is_gone());
        let silent = present.map(|(name, known)| (name.clone(), known.vitals.silent(now_ns)));
        silent.filter(|(_, silent)| *silent >= lease).collect()
    }

    /// Notes what an agent is occupied with.
    pub fn occupy(&mut self, name: &AgentName, work: Work) {
        if let Some(known) = self.agents.get_mut(name) {
            known.work = work;
        }
    }

    /// Agents with results of an earlier run, and until when they may hand them in.
    pub fn leftovers(&self) -> Vec<(AgentName, RunId, Instant)> {
        let leftovers = self.agents.iter().filter_map(|(name, known)| match &known.work {
            Work::Leftover { run, until } => Some((name.clone(), run.clone(), *until)),
            Work::Idle | Work::Busy(_) => None,
        });
        leftovers.collect()
    }

    /// Connected agents, by name.
    pub fn connected(&self) -> impl Iterator<Item = &Known> {
        self.agents.values().filter(|known| known.is_connected())
    }

    /// Sends to an agent, if it has a stream. A stream whose queue is full is ended.
    pub fn send(&mut self, name: &AgentName, kind: Kind) {
        let Some(known) = self.agents.get_mut(name) else { return };
        let Presence::Connected(link) = &known.presence else { return };
        let message = CoordinatorMessage { kind: Some(kind) };
        if let Err(error) = link.out.try_send(Ok(message)) {
            tracing::warn!(agent = %name, %error, "an agent does not take its messages: ending its stream");
            known.end_stream(Presence::Away);
        }
    }

    /// All known agents as they are listed.
    pub fn list(&self, now_ns: u64) -> Vec<v1::AgentInfo> {
        self.agents.values().map(|known| known.info(now_ns)).collect()
    }

    /// Names for a sentence.
    pub fn names<'a>(agents: impl Iterator<Item = &'a Known>) -> String {
        let names: BTreeSet<&str> = agents.map(|known| known.identity.name.as_str()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }
}

impl Known {
    fn holds_its_name(&self) -> bool {
        matches!(self.presence, Presence::Away) && self.work != Work::Idle
    }

    /// What it offers to a split.
    pub fn offer(&self) -> Offer {
        Offer {
            agent: self.identity.name.clone(),
            workers: self.identity.capacity.workers,
            max_connections: self.identity.capacity.max_connections(),
        }
    }

    fn info(&self, now_ns: u64) -> v1::AgentInfo {
        let Identity { name, version, hostname, labels, capacity, peer, .. } = &self.identity;
        let clock = self.vitals.clock();
        v1::AgentInfo {
            name: name.to_string(),
            version: version.clone(),
            hostname: hostname.clone(),
            peer: peer.map(|peer| peer.to_string()).unwrap_or_default(),
            workers: capacity.workers,
            max_connections: capacity.max_connections(),
            cpu_quota_millis: capacity.cpu_quota_millis,
            labels: labels.clone().into_iter().collect(),
            connected: self.is_connected(),
            run: match &self.work {
                Work::Idle => String::new(),
                Work::Busy(run) | Work::Leftover { run, .. } => run.to_string(),
            },
            silent_ns: crate::clock::nanos(self.vitals.silent(now_ns)),
            offset_ns: clock.map(|clock| clock.offset_ns),
            offset_bound_ns: clock.map_or(0, |clock| clock.bound_ns),
            files: capacity.files,
            ports: capacity.ports,
            sources: capacity.sources,
            memory_bytes: capacity.memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str, epoch: u64) -> Identity {
        Identity {
            name: name.parse().unwrap(),
            epoch: Epoch(epoch),
            version: "0.1.0".to_owned(),
            hostname: "lab".to_owned(),
            labels: BTreeMap::new(),
            capacity: Capacity {
                workers: 1,
                files: 100,
                ports: 100,
                sources: 1,
                memory: None,
                cpu_quota_millis: None,
            },
            peer: None,
        }
    }

    struct Bench {
        registry: Registry,
        now: Instant,
        links: u64,
    }

    impl Bench {
        fn new(limit: usize) -> Self {
            Self { registry: Registry::new(limit), now: crate::clock::now(), links: 0 }
        }

        /// Says hello; gives the stream's id and what is sent on it, of which two messages find room.
        fn hello(
            &mut self,
            name: &str,
            epoch: u64,
        ) -> Result<(u64, mpsc::Receiver<Result<CoordinatorMessage, Status>>), NotTaken> {
            self.links += 1;
            let (out, messages) = mpsc::channel(2);
            let link = Link { id: self.links, out, end: CancellationToken::new() };
            let vitals = Arc::new(Vitals::new(0));
            self.registry.admit(identity(name, epoch), vitals, link, self.now, 0)?;
            Ok((self.links, messages))
        }

        fn is_connected(&self, name: &str) -> bool {
            self.registry.get(&name.parse().unwrap()).unwrap().is_connected()
        }
    }

    #[test]
    fn a_name_passes_to_another_process_when_its_holder_is_away_with_nothing_to_do() {
        let lab1 = "lab1".parse().unwrap();
        let mut bench = Bench::new(9);
        let (link, _messages) = bench.hello("lab1", 1).unwrap();
        assert!(matches!(bench.hello("lab1", 2), Err(NotTaken::NameHeld { .. })));
        bench.registry.occupy(&lab1, Work::Busy("r".parse().unwrap()));
        bench.registry.disconnect(&lab1, link);
        assert!(matches!(bench.hello("lab1", 2), Err(NotTaken::NameHeld { .. })));
        bench.registry.occupy(&lab1, Work::Idle);
        bench.hello("lab1", 2).unwrap();
        assert_eq!(bench.registry.get(&lab1).unwrap().identity.epoch, Epoch(2));
    }

    #[test]
    fn the_end_of_an_old_stream_does_not_end_the_new_one() {
        let lab1 = "lab1".parse().unwrap();
        let mut bench = Bench::new(9);
        let (old, _old) = bench.hello("lab1", 1).unwrap();
        let (_, _new) = bench.hello("lab1", 1).unwrap();
        bench.registry.disconnect(&lab1, old);
        assert!(bench.is_connected("lab1"));
    }

    #[test]
    fn an_agent_that_does_not_read_loses_its_stream_and_nothing_else() {
        let lab1 = "lab1".parse().unwrap();
        let mut bench = Bench::new(9);
        let (_, mut messages) = bench.hello("lab1", 1).unwrap();
        let run: RunId = "r".parse().unwrap();
        bench.registry.occupy(&lab1, Work::Busy(run.clone()));
        for _ in 0..3 {
            bench.registry.send(&lab1, Kind::Release(v1::Release::default()));
        }
        assert!(!bench.is_connected("lab1"));
        assert_eq!(bench.registry.get(&lab1).unwrap().work, Work::Busy(run));
        assert!(messages.try_recv().is_ok() && messages.try_recv().is_ok());
    }

    #[test]
    fn a_full_house_makes_room_only_by_forgetting_those_that_are_gone() {
        let mut bench = Bench::new(2);
        let (_, _one) = bench.hello("one", 1).unwrap();
        let (_, _two) = bench.hello("two", 1).unwrap();
        assert!(matches!(bench.hello("three", 1), Err(NotTaken::TooMany { limit: 2 })));
        bench.registry.remove(&"one".parse().unwrap());
        bench.hello("three", 1).unwrap();
        assert!(bench.registry.get(&"one".parse().unwrap()).is_none());
    }

    #[test]
    fn only_agents_that_are_not_gone_can_fall_silent() {
        let mut bench = Bench::new(9);
        let (_, _messages) = bench.hello("lab1", 1).unwrap();
        let lease = Duration::from_nanos(10);
        assert!(bench.registry.silent(9, lease).is_empty());
        let lab1: AgentName = "lab1".parse().unwrap();
        assert_eq!(bench.registry.silent(10, lease), vec![(lab1.clone(), lease)]);
        bench.registry.remove(&lab1);
        assert!(bench.registry.silent(10, lease).is_empty());
    }
}
