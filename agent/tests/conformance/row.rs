//! A behaviour of a server, and what the engine must make of it.

use std::{collections::BTreeMap, net::SocketAddr, panic::AssertUnwindSafe, time::Duration};

use http::Method;
use inrush_common::{
    outcome::ErrorClass,
    plan::{Header, Workload},
    stats::{Completion, RequestStats},
};
use inrush_testkit::{Counts, Deaf, LONG, Options, Received, Refusing, Script, Step, Target};

use crate::support::{Outcome, job, run, workload};

/// No row takes so long.
const MOST: Duration = Duration::from_secs(15);

/// A time limit is kept to this, on a busy machine.
const LATE: Duration = Duration::from_secs(2);

/// Defines a test and a row of the document for each behaviour.
macro_rules! behaviours {
    ($($test:ident $name:literal: $row:expr;)*) => {
        /// The rows of this family.
        pub(crate) fn rows() -> Vec<(&'static str, $crate::row::Row)> {
            vec![$(($name, $row)),*]
        }
        $(#[test] fn $test() { $row.check(); })*
    };
}
pub(crate) use behaviours;

/// A server's behaviour, what is asked of it, and what is to come of it.
pub(crate) struct Row {
    server: Server,
    change: Box<dyn FnOnce(&mut Workload)>,
    requests: u64,
    connections: u64,
    expected: Expected,
}

/// What is to come of a row.
struct Expected {
    ends: Ends,
    connection: Connection,
    reads: Reads,
    writes: Writes,
}

/// How the requests end.
enum Ends {
    /// All with this status, which the plan expects.
    Answered(u16),
    /// All in this class.
    Failed(ErrorClass),
    /// The first of a connection with a 200, the second in this class.
    FailedOnReuse(ErrorClass),
}

enum Server {
    Scripted(Box<dyn FnOnce() -> Target>),
    /// Nobody listens.
    Refusing,
    /// Somebody listens, and never accepts.
    Deaf,
}

/// Where the next request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Kept,
    New,
    /// There is none.
    None,
}

/// What the server does with the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It reads them all, to the end.
    All,
    /// It closes before it has read everything.
    Some,
    /// It stops reading, and keeps the connection.
    Stops,
}

/// What of the server's bytes is there when the request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    All,
    /// It goes on writing when the request has been given up.
    More,
}

/// A server with a script of its own.
pub(crate) fn server(script: impl Script) -> Row {
    server_with(Options { keep: 0, ..Options::default() }, script)
}

/// A server with a script and options of its own.
pub(crate) fn server_with(options: Options, script: impl Script) -> Row {
    Row {
        server: Server::Scripted(Box::new(move || Target::with(options, script))),
        change: Box::new(|_| {}),
        requests: 4,
        connections: 1,
        expected: Expected {
            ends: Ends::Answered(200),
            connection: Connection::Kept,
            reads: Reads::All,
            writes: Writes::All,
        },
    }
}

/// A server that takes these steps once it has the request.
pub(crate) fn does(steps: impl Into<Vec<Step>>) -> Row {
    let steps = steps.into();
    server(move |_: &Received| steps.clone())
}

/// A server that writes these bytes for each request and serves on.
pub(crate) fn says(bytes: impl AsRef<[u8]>) -> Row {
    does([Step::write(bytes)])
}

/// A server that writes these bytes and closes with them.
pub(crate) fn says_and_closes(bytes: impl AsRef<[u8]>) -> Row {
    does([Step::last(bytes)])
}

/// A server that writes these bytes, and then nothing, and keeps the connection.
pub(crate) fn says_and_holds(bytes: impl AsRef<[u8]>) -> Row {
    does([Step::write(bytes), Step::Hold])
}

/// A server that writes these bytes and resets the connection.
pub(crate) fn says_and_resets(bytes: impl AsRef<[u8]>) -> Row {
    does([Step::write(bytes), Step::Reset])
}

/// An address at which nobody listens.
pub(crate) fn refusing() -> Row {
    Row { server: Server::Refusing, ..says("") }
}

/// An address at which nobody accepts.
pub(crate) fn deaf() -> Row {
    Row { server: Server::Deaf, ..says("") }
}

impl Row {
    /// Changes the plan.
    pub(crate) fn with(self, change: impl FnOnce(&mut Workload) + 'static) -> Self {
        let before = self.change;
        Self {
            change: Box::new(|workload| {
                before(workload);
                change(workload);
            }),
            ..self
        }
    }

    /// Asks with another method.
    pub(crate) fn to(self, method: Method) -> Self {
        self.with(|workload| workload.requests[0].method = method)
    }

    /// Posts so many bytes.
    pub(crate) fn posted(self, bytes: usize) -> Self {
        self.to(Method::POST).with(move |workload| {
            workload.requests[0].body = vec![b'x'; bytes].into();
        })
    }

    /// The plan's request has this header.
    pub(crate) fn asked_with(self, name: &'static str, value: &'static str) -> Self {
        self.with(|workload| {
            let (name, value) = (name.parse().unwrap(), value.parse().unwrap());
            workload.requests[0].headers.push(Header { name, value });
        })
    }

    /// The plan's time limit.
    pub(crate) fn within(self, millis: u64) -> Self {
        self.with(move |workload| workload.timeout = Duration::from_millis(millis))
    }

    /// So many requests.
    pub(crate) fn times(self, requests: u64) -> Self {
        Self { requests, ..self }
    }

    /// Over so many connections at a time.
    pub(crate) fn over(self, connections: u64) -> Self {
        Self { connections, ..self }
    }

    /// Every request gets a response with this status, which the plan expects.
    pub(crate) fn answers(mut self, status: u16) -> Self {
        self.expected.ends = Ends::Answered(status);
        self.with(move |workload| workload.requests[0].expect.status = vec![status])
    }

    /// Every request fails, and needs a new connection.
    pub(crate) fn fails(mut self, class: ErrorClass) -> Self {
        self.expected.ends = Ends::Failed(class);
        self.renewed()
    }

    /// The first of two requests on a connection gets a 200, the second fails.
    pub(crate) fn fails_on_reuse(mut self, class: ErrorClass) -> Self {
        self.expected.ends = Ends::FailedOnReuse(class);
        self.renewed()
    }

    /// All requests go over one connection.
    pub(crate) fn kept(mut self) -> Self {
        self.expected.connection = Connection::Kept;
        self
    }

    /// Each request needs a connection of its own.
    pub(crate) fn renewed(mut self) -> Self {
        self.expected.connection = Connection::New;
        self
    }

    /// There is never a connection.
    pub(crate) fn unconnected(mut self) -> Self {
        self.expected.connection = Connection::None;
        self
    }

    /// The server closes without reading what it is sent.
    pub(crate) fn unread(mut self) -> Self {
        self.expected.reads = Reads::Some;
        self
    }

    /// The server stops reading, and does not even notice when it is left.
    pub(crate) fn frozen(mut self) -> Self {
        self.expected.reads = Reads::Stops;
        self
    }

    /// The server still writes when the request has been given up.
    pub(crate) fn still_writing(mut self) -> Self {
        self.expected.writes = Writes::More;
        self
    }

    /// What the document says of the request.
    pub(crate) fn shown_outcome(&self) -> String {
        match &self.expected.ends {
            Ends::Answered(_) => "a response".to_owned(),
            Ends::Failed(class) | Ends::FailedOnReuse(class) => format!("`{class}`"),
        }
    }

    /// What the document says of the connection.
    pub(crate) fn shown_connection(&self) -> &'static str {
        match self.expected.connection {
            Connection::Kept => "kept",
            Connection::New => "new",
            Connection::None => "none",
        }
    }

    /// Runs it.
    pub(crate) fn check(self) {
        let mut workload = workload(self.requests, self.connections);
        (self.change)(&mut workload);
        let expected = self.expected;
        match self.server {
            Server::Scripted(start) => {
                let target = start();
                let outcome = run(job(workload.clone(), target.addr(), 1));
                expected.check(&outcome, target.addr(), &workload);
                let frozen = expected.reads == Reads::Stops;
                let (opened, received) = (outcome.stats.connections.opened, outcome.total.bytes_in);
                let seen = target.wait_until(LONG, |counts| {
                    let done = if frozen { counts.bytes_out >= received } else { counts.open == 0 };
                    counts.connections == opened && done
                });
                expected.check_target(&outcome, &seen.unwrap());
            }
            Server::Refusing => {
                let nobody = Refusing::start();
                let outcome = run(job(workload.clone(), nobody.addr(), 1));
                expected.check(&outcome, nobody.addr(), &workload);
            }
            Server::Deaf => {
                let deaf = Deaf::start();
                let outcome = run(job(workload.clone(), deaf.addr(), 1));
                expected.check(&outcome, deaf.addr(), &workload);
            }
        }
    }
}

impl Expected {
    /// Which answers, and which errors: how many of each.
    fn counts(&self, requests: u64) -> (BTreeMap<u16, u64>, Option<(ErrorClass, u64)>) {
        match self.ends {
            Ends::Answered(status) => (BTreeMap::from([(status, requests)]), None),
            Ends::Failed(class) => (BTreeMap::new(), Some((class, requests))),
            Ends::FailedOnReuse(class) => {
                (BTreeMap::from([(200, requests / 2)]), Some((class, requests / 2)))
            }
        }
    }

    /// How many connections so many requests take.
    fn connections(&self, requests: u64) -> u64 {
        match (self.connection, &self.ends) {
            (Connection::Kept, _) => 1,
            (Connection::New, Ends::FailedOnReuse(_)) => requests / 2,
            (Connection::New, _) => requests,
            (Connection::None, _) => 0,
        }
    }

    /// How the requests ended. The ledger has been checked at the end of the run.
    fn check(&self, outcome: &Outcome, addr: SocketAddr, workload: &Workload) {
        let total = &outcome.total;
        let examples = &total.examples;
        assert_eq!(outcome.completion(), &Completion::Finished, "{examples:?}");
        assert_eq!(total.not_started_total() + outcome.in_flight(), 0, "{examples:?}");
        assert!(outcome.took < MOST, "{:?}", outcome.took);

        let (answers, errors) = self.counts(total.started);
        let succeeded: BTreeMap<u16, u64> =
            total.statuses.iter().map(|(status, count)| (*status, count.succeeded)).collect();
        assert_eq!(succeeded, answers, "{examples:?}");
        let failed: Vec<(ErrorClass, u64)> = ErrorClass::ALL
            .into_iter()
            .map(|class| (class, outcome.errors(class)))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(failed, Vec::from_iter(errors), "{examples:?}");
        assert_eq!(total.failed, errors.map_or(0, |(_, count)| count), "{examples:?}");
        for (class, example) in examples {
            let text = &example.text;
            assert!(text.starts_with(&addr.to_string()), "{text}");
            assert!(text.ends_with(&format!("({class})")), "{text}");
        }
        if matches!(errors, Some((ErrorClass::ResponseTimeout | ErrorClass::BodyTimeout, _))) {
            check_limit(total, workload.timeout);
        }
        assert_eq!(outcome.stats.connections.opened, self.connections(total.started), "opened");
    }

    /// What the target saw, by its own count.
    fn check_target(&self, outcome: &Outcome, seen: &Counts) {
        let requests = outcome.total.started;
        assert_eq!(seen.connections, self.connections(requests), "accepted");
        let (sent, received) = (outcome.total.bytes_out, outcome.total.bytes_in);
        if self.reads == Reads::All {
            assert_eq!(seen.requests, requests, "each request is sent once");
            assert_eq!(sent, seen.bytes_in, "bytes sent, as the target counts them");
        } else {
            assert!(seen.requests <= requests, "no request is sent twice");
            assert!(sent >= seen.bytes_in, "{sent} sent, {} read", seen.bytes_in);
        }
        if self.writes == Writes::All {
            assert_eq!(received, seen.bytes_out, "bytes received, as the target counts them");
        } else {
            assert!(received > 0 && received <= seen.bytes_out, "{received} of {}", seen.bytes_out);
        }
    }
}

fn check_limit(total: &RequestStats, timeout: Duration) {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap();
    let times = &total.failed_times.service_time;
    // A histogram of three digits: its lowest value may lie a thousandth below the truth.
    assert!(times.min() >= Some(nanos(timeout - timeout / 500)), "{times:?}");
    assert!(times.max() < Some(nanos(timeout + LATE)), "{times:?}");
}

#[test]
fn a_row_fails_whichever_of_its_cells_is_wrong() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
    let wrong = [
        says(answer).answers(204).kept(),
        says(answer).answers(200).renewed(),
        says(answer).fails(ErrorClass::Reset),
        says_and_closes(answer).answers(200).kept(),
        says_and_closes(half).answers(200).renewed(),
        says_and_closes(half).fails(ErrorClass::Reset),
        says_and_closes(half).fails_on_reuse(ErrorClass::BodyTruncated),
        says_and_holds(half).within(50).times(1).fails(ErrorClass::ResponseTimeout),
        refusing().fails(ErrorClass::ConnectTimeout).unconnected(),
    ];
    for (place, row) in wrong.into_iter().enumerate() {
        let checked = std::panic::catch_unwind(AssertUnwindSafe(|| row.check()));
        assert!(checked.is_err(), "row {place} is wrong, and passes");
    }
}
