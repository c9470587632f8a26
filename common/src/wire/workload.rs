//! An agent's share of the work.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Uri};
use inrush_proto::v1;

use super::{MAX_REQUESTS, WireError, count};
use crate::{
    plan::{ClosedLoad, Expect, Header, Load, Request, Workload},
    units::nanos,
};

impl From<&Workload> for v1::Workload {
    fn from(workload: &Workload) -> Self {
        let Load::Closed(closed) = &workload.load;
        Self {
            requests: workload.requests.iter().map(v1::Request::from).collect(),
            load: Some(v1::workload::Load::Closed(closed.into())),
            timeout_ns: nanos(workload.timeout),
            connect_timeout_ns: nanos(workload.connect_timeout),
            grace_ns: nanos(workload.grace),
            give_up_after_ns: nanos(workload.give_up_after),
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

impl From<&ClosedLoad> for v1::ClosedLoad {
    fn from(closed: &ClosedLoad) -> Self {
        Self {
            connections: closed.connections,
            requests: closed.requests,
            duration_ns: closed.duration.map(nanos),
            ramp_up_ns: nanos(closed.ramp_up),
            ordinal: closed.ordinal,
            agents: closed.shares,
        }
    }
}

impl TryFrom<v1::Workload> for Workload {
    type Error = WireError;

    fn try_from(message: v1::Workload) -> Result<Self, WireError> {
        let given = message.requests.len();
        if !(1..=MAX_REQUESTS).contains(&given) {
            let expected = format!("1 to {MAX_REQUESTS} requests, got {given}");
            return Err(WireError::new("requests", expected));
        }
        let requests = message.requests.into_iter().enumerate().map(|(index, request)| {
            Request::try_from(request).map_err(|error| error.element("requests", index))
        });
        let load = match message.load.ok_or_else(|| WireError::missing("load"))? {
            v1::workload::Load::Closed(closed) => {
                Load::Closed(closed.try_into().map_err(|error: WireError| error.under("closed"))?)
            }
        };
        Ok(Self {
            requests: requests.collect::<Result<_, _>>()?,
            load,
            timeout: positive("timeout_ns", message.timeout_ns)?,
            connect_timeout: positive("connect_timeout_ns", message.connect_timeout_ns)?,
            grace: Duration::from_nanos(message.grace_ns),
            give_up_after: positive("give_up_after_ns", message.give_up_after_ns)?,
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

impl TryFrom<v1::ClosedLoad> for ClosedLoad {
    type Error = WireError;

    fn try_from(message: v1::ClosedLoad) -> Result<Self, WireError> {
        if message.requests.is_none() && message.duration_ns.is_none() {
            return Err(WireError::new("requests", "a count or a duration, got neither"));
        }
        if message.ordinal >= message.agents {
            let expected =
                format!("less than agents ({}), got {}", message.agents, message.ordinal);
            return Err(WireError::new("ordinal", expected));
        }
        if message.connections == 0 && message.requests.is_some_and(|requests| requests > 0) {
            return Err(WireError::new("connections", "at least 1 to make requests on, got 0"));
        }
        Ok(Self {
            connections: count("connections", message.connections)?,
            requests: message.requests.map(|requests| count("requests", requests)).transpose()?,
            duration: message.duration_ns.map(Duration::from_nanos),
            ramp_up: Duration::from_nanos(message.ramp_up_ns),
            ordinal: message.ordinal,
            shares: message.agents,
        })
    }
}
