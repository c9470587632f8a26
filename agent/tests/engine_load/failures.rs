//! Failures that are about time and counts. Which class each gets is in the conformance suite.

use std::time::Duration;

use inrush_common::outcome::ErrorClass;
use inrush_testkit::{Received, Script, Step, Target};

use crate::support::{against, workload};

#[test]
fn a_timeout_is_kept_to_a_fraction_of_its_length() {
    let target = Target::silent();
    let mut workload = workload(3, 3);
    workload.timeout = Duration::from_millis(640);
    let outcome = against(&target, workload);
    assert_eq!(outcome.errors(ErrorClass::ResponseTimeout), 3);
    let times = &outcome.total.failed_times.service_time;
    assert!(times.min() >= Some(639_000_000), "{times:?}");
    // 10 ms for the sweep, the rest for a busy machine.
    assert!(times.max() < Some(900_000_000), "{times:?}");
}

struct ClosesAtOnce;

impl Script for ClosesAtOnce {
    fn on_request(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }

    fn on_connect(&self, _connection: u64) -> Vec<Step> {
        vec![Step::Close]
    }
}

#[test]
fn a_target_that_closes_every_connection_at_once_ends_the_plan_and_not_the_patience() {
    let outcome = against(&Target::start(ClosesAtOnce), workload(50, 2));
    // A close that leaves the request unread is a reset.
    let classes = [ErrorClass::ClosedBeforeResponse, ErrorClass::Reset];
    let failed: u64 = classes.into_iter().map(|class| outcome.errors(class)).sum();
    assert_eq!(failed, 50, "{:?}", outcome.total.examples);
}

#[test]
fn a_status_that_the_plan_does_not_expect_is_a_failed_response_and_no_error() {
    let target = Target::status(503);
    let outcome = against(&target, workload(5, 1));
    assert_eq!((outcome.total.succeeded, outcome.total.failed), (0, 5));
    assert_eq!(outcome.total.statuses[&503].failed, 5);
    assert_eq!(outcome.total.errors.iter().sum::<u64>(), 0);
    let mut workload = workload(5, 1);
    workload.requests[0].expect.status = vec![503];
    let outcome = against(&target, workload);
    outcome.assert_all_succeeded(5);
}
