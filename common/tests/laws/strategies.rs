//! Arbitrary values of the domain, for the property tests.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use inrush_common::{
    assign::by_weight,
    id::{AgentName, Epoch, RunId, SnapshotSeq},
    outcome::{ErrorClass, NotStarted, Outcome},
    plan::{
        ArrivalProcess, ClosedLoad, ConnectionPolicy, Expect, Header, Load, OpenLoad, Overflow,
        Phase, Request, Resolve, ThinkTime, Workload,
    },
    schedule::{ConnectionProfile, ConnectionStep, Interleave, Rate, RateProfile, Segment},
    stats::{
        AddressCount, AddressCounts, Completion, ConnectionStats, Gauges, Histogram, Interval,
        PhaseStats, RequestStats, Sample, Snapshot, SnapshotKey, Stats,
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

fn phase_stats(requests: usize) -> impl Strategy<Value = PhaseStats> {
    (vec(request_stats(), requests), histogram(), 0_u64..1 << 40)
        .prop_map(|(requests, gaps, until_ns)| PhaseStats { requests, gaps, until_ns })
}

/// Often more of them than have rows of their own.
pub(crate) fn addresses() -> impl Strategy<Value = AddressCounts> {
    let row = (0_u16..200, any::<bool>(), 0_u64..1 << 40, 0_u64..1 << 40);
    vec(row, 0..150).prop_map(|rows| {
        let mut counts = AddressCounts::default();
        for (port, v4, opened, failed) in rows {
            let ip: IpAddr =
                if v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            if opened + failed > 0 {
                counts.count(SocketAddr::new(ip, port), AddressCount { opened, failed });
            }
        }
        counts
    })
}

pub(crate) fn stats(phases: usize, requests: usize) -> impl Strategy<Value = Stats> {
    let connections =
        (vec(0_u64..1 << 40, 5), histogram(), addresses()).prop_map(|(n, connect, addresses)| {
            ConnectionStats {
                opened: n[0],
                closed: n[1],
                failed: n[2],
                established: n[3],
                peak: n[4],
                connect,
                addresses,
            }
        });
    (vec(phase_stats(requests), phases), connections, histogram())
        .prop_map(|(phases, connections, worker_lag)| Stats { phases, connections, worker_lag })
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
    let gauges = vec(0_u64..1 << 40, 6).prop_map(|n| Gauges {
        open_connections: n[0],
        in_flight: n[1],
        cpu_ns: n[2],
        cpu_capacity_ns: n[3],
        resident_bytes: n[4],
        throttled_ns: n[5],
    });
    let stats =
        (0_usize..3, 0_usize..3).prop_flat_map(|(phases, requests)| stats(phases, requests));
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
    (least..1 << 49).prop_map(Duration::from_nanos)
}

fn rate() -> impl Strategy<Value = Rate> {
    (0_u64..=Rate::MAX.micro()).prop_map(|micro| Rate::from_micro(micro).expect("within the limit"))
}

fn think_time() -> impl Strategy<Value = ThinkTime> {
    prop_oneof![
        Just(ThinkTime::None),
        duration(1).prop_map(ThinkTime::Fixed),
        (duration(0), duration(0)).prop_map(|(a, b)| ThinkTime::Uniform(a.min(b), a.max(b))),
        duration(1).prop_map(ThinkTime::Exponential),
    ]
}

fn connection_profile() -> impl Strategy<Value = ConnectionProfile> {
    let step = (0_u64..10_000, 0_u64..10_000, 0_u64..1 << 40)
        .prop_map(|(from, to, duration_ns)| ConnectionStep { from, to, duration_ns });
    prop_oneof![
        (1_u64..=10_000_000, 0_u64..1 << 40).prop_map(|(connections, ramp_up_ns)| {
            ConnectionProfile::constant(connections, ramp_up_ns).expect("within the limits")
        }),
        vec(step, 1..4).prop_map(|steps| ConnectionProfile::steps(steps).expect("few and short")),
    ]
}

/// One share of several, of `total` in all.
fn share(total: u64) -> impl Strategy<Value = Interleave> {
    (vec(0_u64..5, 1..6), any::<prop::sample::Index>()).prop_map(move |(weights, which)| {
        let counts = by_weight(total, &weights);
        let shares = Interleave::deal(&counts).expect("below the most");
        which.get(&shares).clone()
    })
}

pub(crate) fn closed_load() -> impl Strategy<Value = ClosedLoad> {
    let counts = (option::of(1_u64..=1_000_000_000_000_000), option::of(duration(0)));
    (connection_profile(), counts, think_time()).prop_flat_map(
        |(profile, (requests, duration), think_time)| {
            share(profile.peak()).prop_map(move |lanes| {
                let requests = requests.or(duration.is_none().then_some(7));
                ClosedLoad {
                    profile: profile.clone(),
                    requests: requests
                        .map(|requests| if lanes.count() == 0 { 0 } else { requests }),
                    lanes,
                    duration,
                    think_time,
                }
            })
        },
    )
}

pub(crate) fn open_load() -> impl Strategy<Value = OpenLoad> {
    let segment = (rate(), rate(), 0_u64..1 << 40).prop_map(|(from, to, duration_ns)| Segment {
        from,
        to,
        duration_ns,
    });
    let arrivals = select(&[ArrivalProcess::Uniform, ArrivalProcess::Poisson][..]);
    let on_overflow = select(&[Overflow::Queue, Overflow::Drop][..]);
    (vec(segment, 1..4), arrivals, on_overflow, 1_u64..=10_000_000).prop_flat_map(
        |(segments, arrivals, on_overflow, max_in_flight)| {
            let profile = RateProfile::new(segments).expect("few and short");
            share(profile.count()).prop_map(move |slots| OpenLoad {
                profile: profile.clone(),
                slots,
                arrivals,
                max_in_flight,
                on_overflow,
            })
        },
    )
}

pub(crate) fn phase() -> impl Strategy<Value = Phase> {
    let load = prop_oneof![closed_load().prop_map(Load::Closed), open_load().prop_map(Load::Open)];
    ("\\PC{1,20}", any::<bool>(), 0_u64..1 << 49, load).prop_map(
        |(name, measure, starts_at, load)| Phase {
            name,
            measure,
            starts_at: Duration::from_nanos(starts_at),
            load,
        },
    )
}

pub(crate) fn connection_policy() -> impl Strategy<Value = ConnectionPolicy> {
    let resolve = select(&[Resolve::Once, Resolve::PerConnection][..]);
    let connect_to = vec("[a-z]{1,9}:[1-9][0-9]{0,3}", 0..3);
    (option::of(1_u64..1 << 40), option::of(rate()), resolve, connect_to, 0_u64..1_000_000)
        .prop_map(|(requests_per_connection, connect_rate, resolve, connect_to, hold)| {
            ConnectionPolicy { requests_per_connection, connect_rate, resolve, connect_to, hold }
        })
}

pub(crate) fn workload() -> impl Strategy<Value = Workload> {
    let times = (duration(1), duration(1), duration(0), duration(1));
    (vec(request(), 1..4), vec(phase(), 1..4), times, connection_policy(), any::<u64>()).prop_map(
        |(
            requests,
            phases,
            (timeout, connect_timeout, grace, give_up_after),
            connections,
            seed,
        )| {
            Workload {
                requests,
                phases,
                timeout,
                connect_timeout,
                grace,
                give_up_after,
                connections,
                seed,
            }
        },
    )
}
