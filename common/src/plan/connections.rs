//! How connections are made and kept.

use std::num::NonZeroU16;

use toml::Spanned;

use super::{
    ConnectionPolicy, Resolve,
    compile::Compiler,
    keys::{self, grouped},
    problem::code,
    raw::{Field, RawConnections},
    url,
};
use crate::{schedule::Rate, wire::MAX_CONNECT_TO};

/// Checks all keys; `None` only when a problem is reported, here or by the reader before.
pub(super) fn check(compiler: &mut Compiler<'_>, raw: &RawConnections) -> Option<ConnectionPolicy> {
    let requests_per_connection = requests_per_connection(compiler, raw);
    let connect_rate = connect_rate(compiler, &raw.connect_rate);
    let resolves = [Resolve::Once, Resolve::PerConnection];
    let resolve = compiler.choice("resolve", &raw.resolve, &resolves, Resolve::name);
    let connect_to = connect_to(compiler, &raw.connect_to);
    let hold = compiler.count("hold", &raw.hold);
    Some(ConnectionPolicy {
        requests_per_connection: requests_per_connection?,
        connect_rate: connect_rate?,
        resolve: resolve?,
        connect_to: connect_to?,
        hold: hold?,
    })
}

#[expect(clippy::option_option, reason = "whether it is good, and whether there is a limit")]
fn requests_per_connection(
    compiler: &mut Compiler<'_>,
    raw: &RawConnections,
) -> Option<Option<u64>> {
    let keep_alive = compiler.flag("keep_alive", &raw.keep_alive)?;
    let typed = match &raw.requests_per_connection {
        Field::Missing => return Some((!keep_alive).then_some(1)),
        Field::Wrong => return None,
        Field::Is(typed) => typed,
    };
    let requests = compiler.count("requests_per_connection", &raw.requests_per_connection)?;
    let kept = requests > 1;
    if raw.keep_alive.given().is_some() && keep_alive != kept {
        let shown = grouped(requests);
        compiler.error(
            code::CONFLICT,
            typed.span(),
            format!("`keep_alive = {keep_alive}` contradicts `requests_per_connection = {shown}`"),
            if kept { "more than one request" } else { "a new connection for each request" },
            "remove one of the two",
        );
        return None;
    }
    Some(Some(requests))
}

#[expect(clippy::option_option, reason = "whether it is good, and whether there is a limit")]
fn connect_rate(compiler: &mut Compiler<'_>, field: &Field<String>) -> Option<Option<Rate>> {
    let path = "connect_rate";
    let typed = match field {
        Field::Missing => return Some(None),
        Field::Wrong => return None,
        Field::Is(typed) => typed,
    };
    let rate = compiler.rate(path, typed)?;
    if rate.is_zero() {
        compiler.beyond(path, typed.span(), ", got 0");
        return None;
    }
    Some(Some(rate))
}

fn connect_to(
    compiler: &mut Compiler<'_>,
    field: &Field<Vec<Spanned<String>>>,
) -> Option<Vec<String>> {
    let list = match field {
        Field::Missing => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Is(list) => list,
    };
    if list.get_ref().is_empty() {
        let help = format!("for example: {}", keys::find("connect_to").example);
        let message = "`connect_to` has no address";
        compiler.error(code::OUT_OF_RANGE, list.span(), message, "nothing in here", help);
        return None;
    }
    if let Some(next) = list.get_ref().get(MAX_CONNECT_TO) {
        let most = grouped(MAX_CONNECT_TO as u64);
        let message = format!("`connect_to` has more than {most} addresses");
        let help = "give a name that has many addresses, with resolve = \"per-connection\"";
        compiler.error(code::OUT_OF_RANGE, next.span(), message, "one too many", help);
        return None;
    }
    let mut good = Vec::new();
    for typed in list.get_ref() {
        match host_and_port(typed.get_ref()) {
            Ok(()) => good.push(typed.get_ref().clone()),
            Err((label, help)) => {
                let shown: String = typed.get_ref().chars().take(60).collect();
                let message = format!("`connect_to` cannot be {shown:?}");
                compiler.error(code::BAD_ADDRESS, typed.span(), message, label, help);
            }
        }
    }
    (good.len() == list.get_ref().len()).then_some(good)
}

/// Whether the text is a host and a port; else what is wrong with it, and the remedy.
fn host_and_port(text: &str) -> Result<(), (&'static str, String)> {
    let example = "write host and port: \"127.0.0.1:8081\"";
    if text.contains('@') {
        return Err(("a user has no place here", example.to_owned()));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return Err(("no URL, only a host and a port", format!("write \"{host}\"")));
    }
    if text.contains(['/', '?', '#', '\\']) {
        return Err(("no path, only a host and a port", example.to_owned()));
    }
    if text.matches(':').count() > 1 && !text.starts_with('[') {
        let help = "put an IPv6 address into brackets: \"[::1]:8081\"";
        return Err(("more than one colon", help.to_owned()));
    }
    let port = text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let Some((host, port)) = port.filter(|(host, _)| !host.is_empty()) else {
        let label =
            if text.starts_with(':') { "the host is missing" } else { "the port is missing" };
        return Err((label, example.to_owned()));
    };
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || port.parse::<NonZeroU16>().is_err() {
        return Err(("expected a port from 1 to 65535", example.to_owned()));
    }
    if url::check(&format!("http://{host}/")).url.is_none() {
        return Err(("not a host name or an address", example.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_and_nothing_else() {
        for good in ["127.0.0.1:1", "[::1]:65535", "a-b.example.test:8080", "localhost:08080"] {
            assert_eq!(host_and_port(good), Ok(()), "{good}");
        }
        for (bad, label) in [
            ("", "the port is missing"),
            ("127.0.0.1", "the port is missing"),
            ("[::1]", "the port is missing"),
            (":80", "the host is missing"),
            ("::1:80", "more than one colon"),
            ("h:0", "expected a port from 1 to 65535"),
            ("h:65536", "expected a port from 1 to 65535"),
            ("h:+80", "expected a port from 1 to 65535"),
            ("h:", "expected a port from 1 to 65535"),
            ("http://h:80/x", "no URL, only a host and a port"),
            ("h:80/x", "no path, only a host and a port"),
            ("u:p@h:80", "a user has no place here"),
            ("h h:80", "not a host name or an address"),
            ("256.1.1.1:80", "not a host name or an address"),
            ("[::g]:80", "not a host name or an address"),
        ] {
            assert_eq!(host_and_port(bad).map_err(|error| error.0), Err(label), "{bad}");
        }
    }
}
