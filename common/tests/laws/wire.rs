//! Messages come back as they were, and nothing that is no message does harm.

use crate::strategies::{snapshot, workload};
use bytes::Bytes;
use inrush_common::{
    plan::Workload,
    stats::{Histogram, Snapshot},
    wire::{MAX_COUNT, MAX_PHASES, MAX_REQUESTS, WireError, decode_snapshot, encode_snapshot},
};
use inrush_proto::v1;
use proptest::{collection::vec, prelude::*};
use prost::Message as _;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_workload_comes_back_as_it_was(workload in workload()) {
        let message = v1::Workload::decode(&*v1::Workload::from(&workload).encode_to_vec()).unwrap();
        prop_assert_eq!(Workload::try_from(message), Ok(workload));
    }

    #[test]
    fn a_snapshot_comes_back_as_it_was_in_the_same_bytes(snapshot in snapshot()) {
        let bytes = encode_snapshot(&snapshot);
        let back = decode_snapshot(&bytes).unwrap();
        prop_assert_eq!(&back, &snapshot);
        prop_assert_eq!(encode_snapshot(&back), bytes);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..300)) {
        if let Ok(snapshot) = decode_snapshot(&bytes) {
            prop_assert_eq!(decode_snapshot(&encode_snapshot(&snapshot)), Ok(snapshot));
        }
        if let Ok(message) = v1::Workload::decode(&*bytes) {
            let _unused: Result<Workload, WireError> = message.try_into();
        }
        let _unused: Result<Histogram, _> = Histogram::from_v2(&bytes, 0);
    }

    #[test]
    fn a_damaged_snapshot_does_no_harm(
        snapshot in snapshot(),
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode_snapshot(&snapshot);
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(snapshot) = decode_snapshot(&bytes) {
            prop_assert_eq!(decode_snapshot(&encode_snapshot(&snapshot)), Ok(snapshot));
        }
    }

    #[test]
    fn a_damaged_histogram_is_refused_or_can_be_used(
        samples in vec(crate::strategies::nanos(), 1..20),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut histogram = Histogram::default();
        samples.into_iter().for_each(|nanos| histogram.record(nanos));
        let mut bytes = histogram.to_v2();
        prop_assume!(!bytes.is_empty());
        let at = place.index(bytes.len());
        bytes[at] = byte;
        if let Ok(mut back) = Histogram::from_v2(&bytes, 0) {
            let before = back.count();
            back.add(&histogram);
            prop_assert_eq!(back.count(), before + histogram.count());
            let (min, p50, max) = (back.min(), back.quantile(0.5), back.max());
            prop_assert!(min <= p50, "{min:?} {p50:?}");
            prop_assert!(max.is_none() || p50 <= max, "{p50:?} {max:?}");
        }
    }
}

fn message() -> v1::Snapshot {
    v1::Snapshot {
        run: "r1".to_owned(),
        agent: "lab1".to_owned(),
        epoch: 7,
        seq: 1,
        from_ns: 0,
        to_ns: 1_000_000_000,
        stats: Some(v1::Stats {
            phases: vec![v1::PhaseStats {
                requests: vec![v1::RequestStats { started: 3, ..v1::RequestStats::default() }],
                ..v1::PhaseStats::default()
            }],
            ..v1::Stats::default()
        }),
        gauges: Some(v1::Gauges::default()),
        completion: None,
    }
}

fn error(change: impl FnOnce(&mut v1::Snapshot, &mut v1::RequestStats)) -> WireError {
    let mut message = message();
    let mut request = message.stats.as_mut().unwrap().phases[0].requests.remove(0);
    change(&mut message, &mut request);
    if let Some(stats) = &mut message.stats {
        stats.phases[0].requests.insert(0, request);
    }
    Snapshot::try_from(message).unwrap_err()
}

fn error_count(class: &str) -> v1::ErrorCount {
    v1::ErrorCount { class: class.to_owned(), count: 1, ..v1::ErrorCount::default() }
}

#[test]
fn an_error_names_the_field_from_the_top_of_the_message() {
    let unknown = error(|_, request| {
        request.errors =
            vec![error_count("reset"), error_count("dns_failed"), error_count("gremlins")];
    });
    assert_eq!(
        unknown.to_string(),
        "stats.phases[0].requests[0].errors[2].class: expected a name known to this version, got \"gremlins\""
    );
    let paths = [
        error(|_, request| request.errors = vec![error_count("reset"), error_count("reset")]),
        error(|_, request| {
            let row = v1::NotStarted { reason: "bored".to_owned(), count: 1 };
            request.not_started = vec![row];
        }),
        error(|_, request| {
            request.statuses = vec![v1::StatusCount { code: 42, succeeded: 1, failed: 0 }];
        }),
        error(|_, request| {
            let row = v1::StatusCount { code: 200, succeeded: 1, failed: 0 };
            request.statuses = vec![row, row];
        }),
        error(|_, request| request.started = MAX_COUNT + 1),
        error(|_, request| {
            let bad = v1::Histogram { v2: Bytes::from_static(b"hist"), overflow: 0 };
            request.failed_times = Some(v1::Times { ttfb: Some(bad), ..v1::Times::default() });
        }),
        error(|message, _| message.seq = 0),
        error(|message, _| message.agent = "lab 1".to_owned()),
        error(|message, _| message.run = String::new()),
        error(|message, _| message.from_ns = 2_000_000_000),
        error(|message, _| message.to_ns = u64::MAX),
        error(|message, _| message.gauges = None),
        error(|message, _| message.stats = None),
        error(|message, _| {
            message.completion = Some(v1::Completion { reason: 77, detail: String::new() });
        }),
        error(|message, _| {
            let stats = message.stats.as_mut().unwrap();
            stats.phases[0].requests = vec![v1::RequestStats::default(); MAX_REQUESTS];
        }),
        error(|message, _| {
            let stats = message.stats.as_mut().unwrap();
            stats.phases.resize(MAX_PHASES + 1, v1::PhaseStats::default());
        }),
        error(|message, _| {
            message.stats.as_mut().unwrap().phases[0].until_ns = u64::MAX;
        }),
        error(|message, _| {
            let bad = v1::Histogram { v2: Bytes::from_static(b"hist"), overflow: 0 };
            message.stats.as_mut().unwrap().phases[0].gaps = Some(bad);
        }),
        decode_snapshot(b"\xff\xff").unwrap_err(),
    ]
    .map(|error| error.path);
    assert_eq!(
        paths,
        [
            "stats.phases[0].requests[0].errors[1].class",
            "stats.phases[0].requests[0].not_started[0].reason",
            "stats.phases[0].requests[0].statuses[0].code",
            "stats.phases[0].requests[0].statuses[1].code",
            "stats.phases[0].requests[0].started",
            "stats.phases[0].requests[0].failed_times.ttfb.v2",
            "seq",
            "agent",
            "run",
            "to_ns",
            "to_ns",
            "gauges",
            "stats",
            "completion.reason",
            "stats.phases[0].requests",
            "stats.phases",
            "stats.phases[0].until_ns",
            "stats.phases[0].gaps.v2",
            "snapshot",
        ]
    );
}

#[test]
fn words_that_are_too_long_are_cut_and_cost_no_numbers() {
    let mut message = message();
    message.completion = Some(v1::Completion { reason: 5, detail: "é".repeat(5_000) });
    let mut row = error_count("reset");
    row.example = "é".repeat(5_000);
    message.stats.as_mut().unwrap().phases[0].requests[0].errors = vec![row];
    let snapshot = Snapshot::try_from(message).unwrap();
    let cut = encode_snapshot(&snapshot);
    assert!(cut.len() < 1_500, "{}", cut.len());
    assert_eq!(snapshot.stats.phases[0].requests[0].started, 3);
}

fn lanes(each: u64) -> Option<v1::Interleave> {
    let groups = vec![v1::InterleaveGroup { each, agents: 1 }];
    Some(v1::Interleave { groups, place: 0 })
}

fn closed() -> v1::ClosedLoad {
    v1::ClosedLoad {
        profile: Some(v1::ConnectionProfile {
            connections: 10,
            ..v1::ConnectionProfile::default()
        }),
        lanes: lanes(10),
        requests: Some(100),
        duration_ns: None,
        think_time: Some(v1::ThinkTime { kind: 1, ..v1::ThinkTime::default() }),
    }
}

fn open() -> v1::OpenLoad {
    let rate = 5_000_000;
    v1::OpenLoad {
        segments: vec![v1::RateSegment {
            from_micro: rate,
            to_micro: rate,
            duration_ns: 2_000_000_000,
        }],
        slots: lanes(10),
        arrivals: 1,
        on_overflow: 1,
        max_in_flight: 3,
    }
}

fn phase(load: v1::phase::Load) -> v1::Phase {
    v1::Phase { name: "main".to_owned(), measure: true, starts_at_ns: 0, load: Some(load) }
}

fn message_of(phases: Vec<v1::Phase>) -> v1::Workload {
    let request = v1::Request {
        name: "all".to_owned(),
        method: "GET".to_owned(),
        url: "http://example.test/".to_owned(),
        ..v1::Request::default()
    };
    v1::Workload {
        requests: vec![request],
        phases,
        timeout_ns: 1,
        connect_timeout_ns: 1,
        grace_ns: 0,
        give_up_after_ns: 1,
        connections: Some(v1::ConnectionPolicy { resolve: 1, ..v1::ConnectionPolicy::default() }),
        seed: 1,
    }
}

fn workload_error(change: impl FnOnce(&mut v1::Workload)) -> String {
    let mut message = message_of(vec![phase(v1::phase::Load::Closed(closed()))]);
    change(&mut message);
    Workload::try_from(message).unwrap_err().to_string()
}

fn closed_error(change: impl FnOnce(&mut v1::ClosedLoad)) -> String {
    let mut load = closed();
    change(&mut load);
    workload_error(|message| message.phases = vec![phase(v1::phase::Load::Closed(load))])
}

fn open_error(change: impl FnOnce(&mut v1::OpenLoad)) -> String {
    let mut load = open();
    change(&mut load);
    workload_error(|message| message.phases = vec![phase(v1::phase::Load::Open(load))])
}

#[test]
fn a_workload_that_cannot_be_executed_is_refused_with_its_field() {
    let errors = [
        workload_error(|message| message.requests.clear()),
        workload_error(|message| message.phases.clear()),
        workload_error(|message| message.timeout_ns = 0),
        workload_error(|message| message.requests[0].method = "GE T".to_owned()),
        workload_error(|message| message.requests[0].url = "/only/a/path".to_owned()),
        workload_error(|message| message.requests[0].url = "http://u:p@example.test/".to_owned()),
        workload_error(|message| message.requests[0].expect_status = vec![200, 200]),
        workload_error(|message| {
            let header = v1::Header { name: "a b".to_owned(), value: Bytes::new() };
            message.requests[0].headers = vec![header];
        }),
        workload_error(|message| message.connections = None),
        workload_error(|message| {
            message.connections.as_mut().unwrap().requests_per_connection = Some(0);
        }),
        workload_error(|message| message.connections.as_mut().unwrap().resolve = 0),
        workload_error(|message| message.phases[0].load = None),
        workload_error(|message| message.phases[0].starts_at_ns = u64::MAX),
    ];
    assert_eq!(
        errors,
        [
            "requests: expected 1 to 256 rows, got 0",
            "phases: expected 1 to 100 rows, got 0",
            "timeout_ns: expected a duration above 0, got 0",
            "requests[0].method: expected an HTTP method, got \"GE T\"",
            "requests[0].url: expected an http:// URL with a host and without a user, got \"/only/a/path\"",
            "requests[0].url: expected an http:// URL with a host and without a user, got \"http://u:p@example.test/\"",
            "requests[0].expect_status[1]: expected status codes 100 to 999 in rising order, got 200",
            "requests[0].headers[0].name: expected a header name, got \"a b\"",
            "connections: expected a value, got none",
            "connections.requests_per_connection: expected at least 1, got 0",
            "connections.resolve: expected a value known to this version, got number 0",
            "phases[0].load: expected a value, got none",
            "phases[0].starts_at_ns: expected at most 691200000000000, got 18446744073709551615",
        ]
    );
}

#[test]
fn a_load_that_cannot_be_made_is_refused_with_its_field() {
    let errors = [
        closed_error(|closed| closed.requests = None),
        closed_error(|closed| closed.lanes = lanes(0)),
        closed_error(|closed| closed.lanes = lanes(11)),
        closed_error(|closed| closed.lanes.as_mut().unwrap().place = 1),
        closed_error(|closed| closed.profile.as_mut().unwrap().connections = u64::MAX),
        closed_error(|closed| {
            closed.think_time = Some(v1::ThinkTime { kind: 2, from_ns: 2, to_ns: 1 });
        }),
        open_error(|open| open.segments.clear()),
        open_error(|open| open.segments[0].to_micro = u64::MAX),
        open_error(|open| open.slots = lanes(11)),
        open_error(|open| open.max_in_flight = 0),
        open_error(|open| open.arrivals = 9),
        open_error(|open| open.on_overflow = 0),
    ]
    .map(|error| error.split_once(':').unwrap().0.to_owned());
    assert_eq!(
        errors,
        [
            "phases[0].closed.requests",
            "phases[0].closed.lanes",
            "phases[0].closed.lanes",
            "phases[0].closed.lanes.groups",
            "phases[0].closed.profile.steps",
            "phases[0].closed.think_time.to_ns",
            "phases[0].open.segments",
            "phases[0].open.segments[0].to_micro",
            "phases[0].open.slots",
            "phases[0].open.max_in_flight",
            "phases[0].open.arrivals",
            "phases[0].open.on_overflow",
        ]
    );
}

#[test]
fn the_limits_of_the_wire_are_wider_than_any_plan() {
    let closed = v1::ClosedLoad {
        profile: Some(v1::ConnectionProfile {
            connections: 10_000_000,
            ..v1::ConnectionProfile::default()
        }),
        lanes: lanes(10_000_000),
        requests: Some(MAX_COUNT),
        ..closed()
    };
    let message = message_of(vec![phase(v1::phase::Load::Closed(closed))]);
    assert!(Workload::try_from(message).is_ok());
}
