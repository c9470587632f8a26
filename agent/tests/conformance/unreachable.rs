//! Servers that are not there, or not always.

use std::time::Duration;

use inrush_common::{
    outcome::ErrorClass::{self, ConnectRefused, ConnectTimeout},
    stats::Completion,
};
use inrush_testkit::{LONG, Received, Step, Target};

use crate::{
    row::{behaviours, deaf, refusing},
    support::{job, started, workload},
};

behaviours! {
    nobody_listens "nobody listens": refusing().fails(ConnectRefused).unconnected();
    nobody_accepts "nobody accepts, and the queue is full":
        deaf()
            .with(|workload| workload.connect_timeout = Duration::from_millis(200))
            .times(2).fails(ConnectTimeout).unconnected();
}

/// The document's line of the test below.
pub(crate) const RESTARTED: (&str, &str, &str) =
    ("restarts in mid-run", "`closed_on_reuse`, then `connect_refused`", "new");

#[test]
fn a_restart_in_mid_run() {
    const BEFORE: u64 = 100;
    let target = Target::start(|request: &Received| match request.number {
        BEFORE => vec![Step::Refuse, Step::Close],
        _ => vec![Step::hello()],
    });
    let mut running = started(job(workload(2_000, 1), target.addr(), 1));
    let down = running.next();
    assert!(down.stats.connections.failed > 0, "it is noticed while the server is down");
    target.listen_again();
    let outcome = running.finish();

    assert_eq!(outcome.completion(), &Completion::Finished);
    let examples = &outcome.total.examples;
    assert_eq!(outcome.errors(ErrorClass::ClosedOnReuse), 1, "{examples:?}");
    let refused = outcome.errors(ConnectRefused);
    assert_eq!(outcome.total.failed, 1 + refused, "{examples:?}");
    assert_eq!(outcome.total.succeeded, 2_000 - 1 - refused);
    let seen = target.wait_until(LONG, |counts| counts.open == 0).unwrap();
    assert_eq!(seen.requests, outcome.sent(), "nothing is sent twice");
    assert_eq!((seen.connections, outcome.stats.connections.opened), (2, 2));
    assert_eq!((outcome.total.bytes_out, outcome.total.bytes_in), (seen.bytes_in, seen.bytes_out));
}
