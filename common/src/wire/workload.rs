//! An agent's share of the work.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Uri};
use inrush_proto::v1;

use super::{MAX_CONNECT_TO, MAX_PHASES, MAX_REQUESTS, MAX_ROWS, WireError, count, rate, unknown};
use crate::{
    plan::{ConnectionPolicy, Expect, Header, Phase, Request, Resolve, Workload},
    schedule::Rate,
    units::nanos,
};

impl From<&Workload> for v1::Workload {
    fn from(workload: &Workload) -> Self {
        Self {
            requests: workload.requests.iter().map(v1::Request::from).collect(),
            phases: workload.phases.iter().map(v1::Phase::from).collect(),
            timeout_ns: nanos(workload.timeout),
            connect_timeout_ns: nanos(workload.connect_timeout),
            grace_ns: nanos(workload.grace),
            give_up_after_ns: nanos(workload.give_up_after),
            connections: Some((&workload.connections).into()),
            seed: workload.seed,
        }
    }
}

impl From<&ConnectionPolicy> for v1::ConnectionPolicy {
    fn from(policy: &ConnectionPolicy) -> Self {
        let resolve = match policy.resolve {
            Resolve::Once => v1::connection_policy::Resolve::Once,
            Resolve::PerConnection => v1::connection_policy::Resolve::PerConnection,
        };
        Self {
            requests_per_connection: policy.requests_per_connection,
            opened_per_second_micro: policy.connect_rate.map(Rate::micro),
            resolve: resolve.into(),
            connect_to: policy.connect_to.clone(),
            hold: policy.hold,
        }
    }
}

impl From<&Request> for v1::Request {
    fn from(request: &Request) -> Self {
        Self {
            name: request.name.clone(),
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: request
                .headers
                .iter()
                .map(|Header { name, value }| v1::Header {
                    name: name.to_string(),
                    value: value.as_bytes().to_vec().into(),
                })
                .collect(),
            body: request.body.clone(),
            expect_status: request.expect.status.iter().copied().map(u32::from).collect(),
        }
    }
}

impl TryFrom<v1::Workload> for Workload {
    type Error = WireError;

    fn try_from(message: v1::Workload) -> Result<Self, WireError> {
        let (requests, phases) = (message.requests.len(), message.phases.len());
        rows("requests", requests, MAX_REQUESTS)?;
        rows("phases", phases, MAX_PHASES)?;
        rows("phases", phases.saturating_mul(requests), MAX_ROWS)?;
        let requests = message.requests.into_iter().enumerate().map(|(index, request)| {
            Request::try_from(request).map_err(|error| error.element("requests", index))
        });
        let phases = message.phases.into_iter().enumerate().map(|(index, phase)| {
            Phase::try_from(phase).map_err(|error| error.element("phases", index))
        });
        Ok(Self {
            requests: requests.collect::<Result<_, _>>()?,
            phases: phases.collect::<Result<_, _>>()?,
            timeout: positive("timeout_ns", message.timeout_ns)?,
            connect_timeout: positive("connect_timeout_ns", message.connect_timeout_ns)?,
            grace: Duration::from_nanos(message.grace_ns),
            give_up_after: positive("give_up_after_ns", message.give_up_after_ns)?,
            connections: message
                .connections
                .ok_or_else(|| WireError::missing("connections"))?
                .try_into()
                .map_err(|error: WireError| error.under("connections"))?,
            seed: message.seed,
        })
    }
}

fn rows(field: &str, given: usize, most: usize) -> Result<(), WireError> {
    if (1..=most).contains(&given) {
        return Ok(());
    }
    Err(WireError::new(field, format!("1 to {most} rows, got {given}")))
}

impl TryFrom<v1::ConnectionPolicy> for ConnectionPolicy {
    type Error = WireError;

    fn try_from(message: v1::ConnectionPolicy) -> Result<Self, WireError> {
        use v1::connection_policy::Resolve as Wire;
        let resolve = match Wire::try_from(message.resolve) {
            Ok(Wire::Once) => Resolve::Once,
            Ok(Wire::PerConnection) => Resolve::PerConnection,
            Ok(Wire::Unspecified) | Err(_) => return Err(unknown("resolve", message.resolve)),
        };
        let requests_per_connection = message.requests_per_connection;
        if requests_per_connection == Some(0) {
            return Err(WireError::new("requests_per_connection", "at least 1, got 0"));
        }
        if message.connect_to.len() > MAX_CONNECT_TO {
            let got = message.connect_to.len();
            let expected = format!("at most {MAX_CONNECT_TO} addresses, got {got}");
            return Err(WireError::new("connect_to", expected));
        }
        let rate = |micro| rate("opened_per_second_micro", micro);
        Ok(Self {
            requests_per_connection,
            connect_rate: message.opened_per_second_micro.map(rate).transpose()?,
            resolve,
            connect_to: message.connect_to,
            hold: count("hold", message.hold)?,
        })
    }
}

fn positive(field: &str, nanos: u64) -> Result<Duration, WireError> {
    if nanos == 0 {
        return Err(WireError::new(field, "a duration above 0, got 0"));
    }
    Ok(Duration::from_nanos(nanos))
}

impl TryFrom<v1::Request> for Request {
    type Error = WireError;

    fn try_from(message: v1::Request) -> Result<Self, WireError> {
        let headers = message.headers.into_iter().enumerate().map(|(index, header)| {
            Header::try_from(header).map_err(|error| error.element("headers", index))
        });
        Ok(Self {
            name: message.name,
            method: Method::from_bytes(message.method.as_bytes()).map_err(|_| {
                WireError::new("method", format!("an HTTP method, got {:?}", message.method))
            })?,
            url: url(&message.url)?,
            headers: headers.collect::<Result<_, _>>()?,
            body: message.body,
            expect: Expect { status: expected_status(&message.expect_status)? },
        })
    }
}

fn url(text: &str) -> Result<Uri, WireError> {
    let uri = text.parse::<Uri>().ok();
    let fits = |uri: &Uri| {
        uri.scheme_str() == Some("http")
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && uri.host().is_some_and(|host| !host.is_empty())
    };
    uri.filter(fits).ok_or_else(|| {
        let got: String = text.chars().take(200).collect();
        let expected = format!("an http:// URL with a host and without a user, got {got:?}");
        WireError::new("url", expected)
    })
}

fn expected_status(codes: &[u32]) -> Result<Vec<u16>, WireError> {
    let mut status = Vec::with_capacity(codes.len());
    for (index, code) in codes.iter().enumerate() {
        let previous = status.last().copied().unwrap_or(99);
        match u16::try_from(*code) {
            Ok(code @ 100..=999) if code > previous => status.push(code),
            _ => {
                let expected = format!("status codes 100 to 999 in rising order, got {code}");
                return Err(WireError::new(format_args!("expect_status[{index}]"), expected));
            }
        }
    }
    Ok(status)
}

impl TryFrom<v1::Header> for Header {
    type Error = WireError;

    fn try_from(message: v1::Header) -> Result<Self, WireError> {
        let name = HeaderName::from_bytes(message.name.as_bytes()).map_err(|_| {
            let got: String = message.name.chars().take(200).collect();
            WireError::new("name", format!("a header name, got {got:?}"))
        })?;
        let value = HeaderValue::from_bytes(&message.value)
            .map_err(|_| WireError::new("value", "a header value without control characters"))?;
        Ok(Self { name, value })
    }
}
