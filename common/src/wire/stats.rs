//! Counters and histograms.

use std::collections::BTreeMap;

use inrush_proto::v1;

use super::{MAX_PHASES, MAX_REQUESTS, MAX_ROWS, MAX_TIMELINE_NS, WireError, count, cut};
use crate::{
    outcome::{ErrorClass, NotStarted},
    stats::{
        AddressCount, AddressCounts, ConnectionStats, EXAMPLE_BYTES, Example, Histogram,
        MAX_ADDRESSES, PhaseStats, RequestStats, Stats, StatusCount, Times,
    },
};

impl From<&Stats> for v1::Stats {
    fn from(stats: &Stats) -> Self {
        Self {
            phases: stats.phases.iter().map(v1::PhaseStats::from).collect(),
            connections: Some((&stats.connections).into()),
            worker_lag: histogram(&stats.worker_lag),
        }
    }
}

impl TryFrom<v1::Stats> for Stats {
    type Error = WireError;

    fn try_from(message: v1::Stats) -> Result<Self, WireError> {
        at_most("phases", message.phases.len(), MAX_PHASES)?;
        let rows = message.phases.iter().map(|phase| phase.requests.len()).sum();
        at_most("phases", rows, MAX_ROWS)?;
        let phases = message.phases.into_iter().enumerate().map(|(index, phase)| {
            PhaseStats::try_from(phase).map_err(|error| error.element("phases", index))
        });
        Ok(Self {
            phases: phases.collect::<Result<_, _>>()?,
            connections: message
                .connections
                .unwrap_or_default()
                .try_into()
                .map_err(|error: WireError| error.under("connections"))?,
            worker_lag: from_histogram("worker_lag", message.worker_lag)?,
        })
    }
}

fn at_most(field: &str, given: usize, most: usize) -> Result<(), WireError> {
    if given <= most {
        return Ok(());
    }
    Err(WireError::new(field, format!("at most {most} rows, got {given}")))
}

impl From<&PhaseStats> for v1::PhaseStats {
    fn from(stats: &PhaseStats) -> Self {
        Self {
            requests: stats.requests.iter().map(v1::RequestStats::from).collect(),
            gaps: histogram(&stats.gaps),
            until_ns: stats.until_ns,
        }
    }
}

impl TryFrom<v1::PhaseStats> for PhaseStats {
    type Error = WireError;

    fn try_from(message: v1::PhaseStats) -> Result<Self, WireError> {
        at_most("requests", message.requests.len(), MAX_REQUESTS)?;
        let requests = message.requests.into_iter().enumerate().map(|(index, request)| {
            RequestStats::try_from(request).map_err(|error| error.element("requests", index))
        });
        if message.until_ns > MAX_TIMELINE_NS {
            let expected = format!("at most {MAX_TIMELINE_NS}, got {}", message.until_ns);
            return Err(WireError::new("until_ns", expected));
        }
        Ok(Self {
            requests: requests.collect::<Result<_, _>>()?,
            gaps: from_histogram("gaps", message.gaps)?,
            until_ns: message.until_ns,
        })
    }
}

impl From<&RequestStats> for v1::RequestStats {
    fn from(stats: &RequestStats) -> Self {
        let not_started = NotStarted::ALL
            .into_iter()
            .map(|reason| v1::NotStarted {
                reason: reason.name().to_owned(),
                count: stats.not_started[reason as usize],
            })
            .filter(|row| row.count > 0);
        let statuses = stats.statuses.iter().map(|(code, count)| v1::StatusCount {
            code: u32::from(*code),
            succeeded: count.succeeded,
            failed: count.failed,
        });
        let errors = ErrorClass::ALL
            .into_iter()
            .map(|class| {
                let example = stats.examples.get(&class);
                v1::ErrorCount {
                    class: class.name().to_owned(),
                    count: stats.errors[class as usize],
                    example: example.map_or_else(String::new, |example| example.text.clone()),
                    example_at_ns: example.map_or(0, |example| example.at_ns),
                }
            })
            .filter(|row| row.count > 0 || !row.example.is_empty());
        Self {
            started: stats.started,
            succeeded: stats.succeeded,
            failed: stats.failed,
            not_started: not_started.collect(),
            statuses: statuses.collect(),
            errors: errors.collect(),
            bytes_out: stats.bytes_out,
            bytes_in: stats.bytes_in,
            succeeded_times: Some((&stats.succeeded_times).into()),
            failed_times: Some((&stats.failed_times).into()),
        }
    }
}

impl TryFrom<v1::RequestStats> for RequestStats {
    type Error = WireError;

    fn try_from(message: v1::RequestStats) -> Result<Self, WireError> {
        let mut stats = Self {
            started: count("started", message.started)?,
            succeeded: count("succeeded", message.succeeded)?,
            failed: count("failed", message.failed)?,
            bytes_out: count("bytes_out", message.bytes_out)?,
            bytes_in: count("bytes_in", message.bytes_in)?,
            statuses: statuses(&message.statuses)?,
            succeeded_times: times("succeeded_times", message.succeeded_times)?,
            failed_times: times("failed_times", message.failed_times)?,
            ..Self::default()
        };
        for (index, row) in message.not_started.into_iter().enumerate() {
            not_started(&mut stats, &row).map_err(|error| error.element("not_started", index))?;
        }
        for (index, row) in message.errors.into_iter().enumerate() {
            error_count(&mut stats, row).map_err(|error| error.element("errors", index))?;
        }
        Ok(stats)
    }
}

fn statuses(rows: &[v1::StatusCount]) -> Result<BTreeMap<u16, StatusCount>, WireError> {
    let mut statuses = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let at = |error: WireError| error.element("statuses", index);
        let code = u16::try_from(row.code)
            .ok()
            .filter(|code| (100..=999).contains(code))
            .ok_or_else(|| at(WireError::new("code", format!("100 to 999, got {}", row.code))))?;
        let counts = StatusCount {
            succeeded: count("succeeded", row.succeeded).map_err(at)?,
            failed: count("failed", row.failed).map_err(at)?,
        };
        // A row of nothing and no row mean the same, and must become the same.
        if counts != StatusCount::default() && statuses.insert(code, counts).is_some() {
            return Err(at(WireError::new("code", format!("each code once, got {code} again"))));
        }
    }
    Ok(statuses)
}

fn not_started(stats: &mut RequestStats, row: &v1::NotStarted) -> Result<(), WireError> {
    let reason =
        NotStarted::from_name(&row.reason).ok_or_else(|| unknown("reason", &row.reason))?;
    let kept = &mut stats.not_started[reason as usize];
    if *kept > 0 {
        return Err(WireError::new("reason", format!("each reason once, got {reason} again")));
    }
    *kept = count("count", row.count)?;
    Ok(())
}

fn error_count(stats: &mut RequestStats, row: v1::ErrorCount) -> Result<(), WireError> {
    let class = ErrorClass::from_name(&row.class).ok_or_else(|| unknown("class", &row.class))?;
    let kept = &mut stats.errors[class as usize];
    if *kept > 0 || stats.examples.contains_key(&class) {
        return Err(WireError::new("class", format!("each class once, got {class} again")));
    }
    *kept = count("count", row.count)?;
    if !row.example.is_empty() {
        let text = cut(row.example, EXAMPLE_BYTES);
        stats.examples.insert(class, Example { at_ns: row.example_at_ns, text });
    }
    Ok(())
}

fn unknown(field: &str, name: &str) -> WireError {
    let got: String = name.chars().take(60).collect();
    WireError::new(field, format!("a name known to this version, got {got:?}"))
}

impl From<&Times> for v1::Times {
    fn from(times: &Times) -> Self {
        Self {
            response_time: histogram(&times.response_time),
            service_time: histogram(&times.service_time),
            schedule_lag: histogram(&times.schedule_lag),
            ttfb: histogram(&times.ttfb),
        }
    }
}

fn times(field: &str, message: Option<v1::Times>) -> Result<Times, WireError> {
    let message = message.unwrap_or_default();
    let under = |error: WireError| error.under(field);
    Ok(Times {
        response_time: from_histogram("response_time", message.response_time).map_err(under)?,
        service_time: from_histogram("service_time", message.service_time).map_err(under)?,
        schedule_lag: from_histogram("schedule_lag", message.schedule_lag).map_err(under)?,
        ttfb: from_histogram("ttfb", message.ttfb).map_err(under)?,
    })
}

impl From<&ConnectionStats> for v1::ConnectionStats {
    fn from(stats: &ConnectionStats) -> Self {
        Self {
            opened: stats.opened,
            closed: stats.closed,
            failed: stats.failed,
            established: stats.established,
            peak: stats.peak,
            connect: histogram(&stats.connect),
            addresses: addresses(&stats.addresses),
        }
    }
}

impl TryFrom<v1::ConnectionStats> for ConnectionStats {
    type Error = WireError;

    fn try_from(message: v1::ConnectionStats) -> Result<Self, WireError> {
        Ok(Self {
            opened: count("opened", message.opened)?,
            closed: count("closed", message.closed)?,
            failed: count("failed", message.failed)?,
            established: count("established", message.established)?,
            peak: count("peak", message.peak)?,
            connect: from_histogram("connect", message.connect)?,
            addresses: from_addresses(message.addresses)?,
        })
    }
}

fn addresses(counts: &AddressCounts) -> Vec<v1::AddressCount> {
    let row = |address: String, AddressCount { opened, failed }| v1::AddressCount {
        address,
        opened,
        failed,
    };
    let rows = counts.rows().map(|(address, count)| row(address.to_string(), count));
    rows.chain(
        (counts.other() != AddressCount::default()).then(|| row(String::new(), counts.other())),
    )
    .collect()
}

fn from_addresses(rows: Vec<v1::AddressCount>) -> Result<AddressCounts, WireError> {
    at_most("addresses", rows.len(), MAX_ADDRESSES + 1)?;
    let mut counts = AddressCounts::default();
    for (index, row) in rows.into_iter().enumerate() {
        let at = |error: WireError| error.element("addresses", index);
        let more = AddressCount {
            opened: count("opened", row.opened).map_err(at)?,
            failed: count("failed", row.failed).map_err(at)?,
        };
        if more == AddressCount::default() {
            // A row of nothing and no row mean the same, and must become the same.
        } else if row.address.is_empty() {
            counts.count_other(more);
        } else {
            let address = row.address.parse().map_err(|_| {
                let got: String = row.address.chars().take(60).collect();
                at(WireError::new("address", format!("ip:port, got {got:?}")))
            })?;
            counts.count(address, more);
        }
    }
    Ok(counts)
}

fn histogram(histogram: &Histogram) -> Option<v1::Histogram> {
    (!histogram.is_empty())
        .then(|| v1::Histogram { v2: histogram.to_v2().into(), overflow: histogram.overflow() })
}

fn from_histogram(field: &str, message: Option<v1::Histogram>) -> Result<Histogram, WireError> {
    let message = message.unwrap_or_default();
    let overflow = count("overflow", message.overflow).map_err(|error| error.under(field))?;
    Histogram::from_v2(&message.v2, overflow)
        .map_err(|error| WireError::new(format_args!("{field}.v2"), error))
}
