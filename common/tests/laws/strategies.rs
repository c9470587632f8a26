//! Arbitrary values of the domain, for the property tests.

use std::time::Duration;

use inrush_common::{
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    outcome::{ErrorClass, NotStarted, Outcome},
    plan::{ClosedLoad, Expect, Header, Load, Request, Workload},
    stats::{
        Completion, ConnectionStats, Gauges, Histogram, Interval, RequestStats, Sample, Snapshot,
        SnapshotKey, Stats,
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// Durations over all magnitudes, 0 and beyond the top of the histograms included.
pub(crate) fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (0_u32..42, any::<u64>()).prop_map(|(bits, noise)| noise & ((1 << bits) - 1)),
        1 => Just(0),
        1 => 3_599_000_000_000_u64..3_700_000_000_000,
    ]
}

pub(crate) fn histogram() -> impl Strategy<Value = Histogram> {
    vec(nanos(), 0..30).prop_map(|samples| {
        let mut histogram = Histogram::default();
        samples.into_iter().for_each(|nanos| histogram.record(nanos));
        histogram
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (100_u16..=999, any::<bool>())
            .prop_map(|(status, success)| Outcome::Response { status, success }),
        select(&ErrorClass::ALL[..]).prop_map(Outcome::Error),
    ]
}

pub(crate) fn sample() -> impl Strategy<Value = Sample> {
    let times = (nanos(), option::of(nanos()), option::of(nanos()), option::of(nanos()));
    (outcome(), times, 0_u64..1 << 40, 0_u64..1 << 40).prop_map(
        |(outcome, (response_time, service_time, schedule_lag, ttfb), bytes_out, bytes_in)| {
            Sample { outcome, response_time, service_time, schedule_lag, ttfb, bytes_out, bytes_in }
        },
    )
}

pub(crate) fn request_stats() -> impl Strategy<Value = RequestStats> {
    let example = (select(&ErrorClass::ALL[..]), 0_u64..1 << 40, "\\PC{1,400}");
    let not_started = vec(0_u64..1 << 40, NotStarted::ALL.len());
    (vec(sample(), 0..8), vec(example, 0..4), not_started, 0_u64..100).prop_map(
        |(samples, examples, not_started, more)| {
            let mut stats =
                RequestStats { started: samples.len() as u64 + more, ..RequestStats::default() };
            stats.not_started.copy_from_slice(&not_started);
            samples.iter().for_each(|sample| stats.record(sample));
            for (class, at_ns, text) in examples {
                stats.keep_example(class, at_ns, || text);
            }
            stats
        },
    )
}

pub(crate) fn stats(requests: usize) -> impl Strategy<Value = Stats> {
    let connections =
        (vec(0_u64..1 << 40, 5), histogram()).prop_map(|(n, connect)| ConnectionStats {
            opened: n[0],
            closed: n[1],
            failed: n[2],
            established: n[3],
            peak: n[4],
            connect,
        });
    (vec(request_stats(), requests), connections, histogram())
        .prop_map(|(requests, connections, worker_lag)| Stats { requests, connections, worker_lag })
}

fn completion() -> impl Strategy<Value = Completion> {
    prop_oneof![
        Just(Completion::Finished),
        Just(Completion::Stopped),
        "\\PC{0,40}".prop_map(Completion::TargetUnreachable),
        Just(Completion::LeaseExpired),
        "\\PC{0,40}".prop_map(Completion::Internal),
    ]
}

fn name<N: std::str::FromStr<Err: std::fmt::Debug> + std::fmt::Debug>() -> impl Strategy<Value = N>
{
    "[a-zA-Z0-9._-]{1,63}".prop_map(|text| text.parse().expect("a name"))
}

pub(crate) fn run_id() -> impl Strategy<Value = RunId> {
    name()
}

pub(crate) fn agent_name() -> impl Strategy<Value = AgentName> {
    name()
}

pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let key = (agent_name(), any::<u64>(), 1_u64..1 << 40).prop_map(|(agent, epoch, seq)| {
        SnapshotKey { agent, epoch: Epoch(epoch), seq: SnapshotSeq(seq) }
    });
    let interval = (0_u64..100_000_000_000, 0_u64..5_000_000_000)
        .prop_map(|(from_ns, length)| Interval { from_ns, to_ns: from_ns + length });
    let gauges = vec(0_u64..1 << 40, 5).prop_map(|n| Gauges {
        open_connections: n[0],
        in_flight: n[1],
        cpu_ns: n[2],
        cpu_capacity_ns: n[3],
        resident_bytes: n[4],
    });
    let stats = (0_usize..3).prop_flat_map(stats);
    (run_id(), key, interval, stats, gauges, option::of(completion())).prop_map(
        |(run, key, interval, stats, gauges, completion)| Snapshot {
            run,
            key,
            interval,
            stats,
            gauges,
            completion,
        },
    )
}

fn header() -> impl Strategy<Value = Header> {
    ("[a-z][a-z0-9-]{0,20}", "[ -~é]{0,40}").prop_map(|(name, value)| Header {
        name: name.parse().expect("a header name"),
        value: http::HeaderValue::from_str(value.trim()).unwrap_or_else(|_| {
            http::HeaderValue::from_bytes(value.as_bytes()).expect("a header value")
        }),
    })
}

fn request() -> impl Strategy<Value = Request> {
    (
        "\\PC{1,20}",
        "[A-Z]{1,10}",
        "http://[a-z]{1,9}(:[1-9][0-9]{0,3})?/[a-z0-9/]{0,20}(\\?[a-z=&]{0,9})?",
        vec(header(), 0..4),
        vec(any::<u8>(), 0..100),
        proptest::collection::btree_set(100_u16..=999, 0..4),
    )
        .prop_map(|(name, method, url, headers, body, status)| Request {
            name,
            method: method.parse().expect("a method"),
            url: url.parse().expect("a URL"),
            headers,
            body: body.into(),
            expect: Expect { status: status.into_iter().collect() },
        })
}

fn duration(least: u64) -> impl Strategy<Value = Duration> {
    (least..1 << 50).prop_map(Duration::from_nanos)
}

pub(crate) fn workload() -> impl Strategy<Value = Workload> {
    let load = (
        1_u64..=10_000_000,
        option::of(0_u64..=1_000_000_000_000_000),
        option::of(duration(0)),
        duration(0),
        0_u32..50,
        1_u32..50,
    )
        .prop_map(|(connections, requests, duration, ramp_up, ordinal, more)| {
            Load::Closed(ClosedLoad {
                connections,
                requests: requests.or(duration.is_none().then_some(7)),
                duration,
                ramp_up,
                ordinal,
                shares: ordinal + more,
            })
        });
    (vec(request(), 1..4), load, duration(1), duration(1), duration(0), duration(1)).prop_map(
        |(requests, load, timeout, connect_timeout, grace, give_up_after)| Workload {
            requests,
            load,
            timeout,
            connect_timeout,
            grace,
            give_up_after,
        },
    )
}
