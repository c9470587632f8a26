//! The plan's URL: from what was typed to what goes on the wire.
//!
//! Characters beyond ASCII in the path and the query are percent-encoded once, as UTF-8. Everything else is sent as
//! written: escapes, `..`, `//`, quotes. What cannot stand in a URL is refused at its place, never repaired.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    ops::Range,
};

use http::Uri;

use super::problem::{Problem, code};

/// What `http` can hold.
const LONGEST: usize = 65_534;

/// What came out of a text: a URL, where there is no error among the problems. Their places are bytes of the text.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) url: Option<Uri>,
    pub(crate) problems: Vec<Problem>,
}

/// Checks a URL. No problem repeats any part of it that may hold a password.
pub(crate) fn check(text: &str) -> Checked {
    let mut checker = Checker { text, problems: Vec::new() };
    let url = checker.url();
    Checked { url, problems: checker.problems }
}

/// Where user name and password stand in a URL, with the `@` behind them.
///
/// A password may hold, unescaped, what would end the host: `http://me:p@ss#1@host/`. So it is taken to reach to the
/// last `@`: rather too much is hidden than too little. An `@` that only stands behind the host counts where the text
/// before it is no host and port, or where it would be in a fragment, which means nothing in a load test.
pub(crate) fn credentials(text: &str) -> Option<Range<usize>> {
    let start = scheme_end(text).map_or(0, |at| at + 3);
    let rest = text.get(start..)?;
    let last = rest.rfind('@')?;
    let host = rest.get(..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()))?;
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let bad_port = !host.ends_with(']')
        && port.is_some_and(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()));
    let in_fragment = rest.find('#').is_some_and(|hash| hash < last);
    let in_host = host.contains('@');
    (in_host || bad_port || in_fragment).then_some(start..start + last + 1)
}

/// Where the `://` behind a scheme stands. There may be another one in a password.
fn scheme_end(text: &str) -> Option<usize> {
    let at = text.find("://")?;
    let scheme = text.get(..at)?;
    let part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (!scheme.is_empty() && scheme.chars().all(part)).then_some(at)
}

struct Checker<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn refuse(
        &mut self,
        part: Range<usize>,
        message: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        self.problems.push(Problem::error(code::BAD_URL, part, message, label, help));
    }

    fn url(&mut self) -> Option<Uri> {
        let text = self.text;
        if text.is_empty() {
            self.refuse(0..0, "`url` is empty", "nothing here", EXAMPLE);
            return None;
        }
        let start = self.scheme();
        let secret = credentials(text);
        if let Some(secret) = &secret {
            self.problems.push(Problem::error(
                code::CREDENTIALS_IN_URL,
                secret.clone(),
                "`url` holds a user name or a password",
                "not allowed in a URL",
                "remove it and send it as a header: \
                 headers = { Authorization = \"Basic ...\" }, with user:password in base64",
            ));
        }
        let host_at = secret.map_or(start?, |secret| secret.end);
        let rest = text.get(host_at..)?;
        let path_at = host_at + rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        self.host_and_port(host_at..path_at);
        let target = self.target(path_at);
        if self.problems.iter().any(Problem::is_error) {
            return None;
        }
        let authority = text.get(host_at..path_at)?;
        let url = format!("http://{authority}{target}");
        if url.len() > LONGEST {
            let message = format!("`url` has {} bytes, {LONGEST} are possible", url.len());
            self.refuse(0..text.len(), message, "too long", "shorten it");
            return None;
        }
        url.parse()
            .map_err(|error| {
                let message = format!("`url` cannot be requested: {error}");
                self.refuse(0..text.len(), message, "not a URL", EXAMPLE);
            })
            .ok()
    }

    /// Where the host starts, where the scheme can be told at all.
    fn scheme(&mut self) -> Option<usize> {
        let Some(at) = scheme_end(self.text) else {
            // No part of the text is repeated: it may hold a password.
            let help = "write it with its scheme: \"http://127.0.0.1:8080/\"";
            let place = 0..self.text.find(['/', '?', '#', ':', '@']).unwrap_or(self.text.len());
            self.refuse(place, "`url` has no scheme", "no \"http://\" here", help);
            return None;
        };
        let scheme = self.text.get(..at)?.to_ascii_lowercase();
        match scheme.as_str() {
            "http" => {}
            "https" => self.problems.push(Problem::error(
                code::NOT_AVAILABLE,
                0..at,
                "https is not available in this version",
                "not available",
                "use http:// against a target without TLS",
            )),
            _ => {
                let message = "`url` has a scheme that is not http";
                self.refuse(0..at, message, "not a known scheme", EXAMPLE);
            }
        }
        Some(at + 3)
    }

    fn host_and_port(&mut self, place: Range<usize>) {
        let Some(authority) = self.text.get(place.clone()) else { return };
        if !authority.starts_with('[') && authority.matches(':').count() > 1 {
            let help = "put an IPv6 address into brackets: \"http://[::1]:8080/\"";
            self.refuse(place, "`url` has more than one colon in its host", "unclear", help);
            return;
        }
        let (host, port) = match authority.find(']') {
            Some(end) if authority.starts_with('[') => authority.split_at(end + 1),
            _ => authority.split_at(authority.rfind(':').unwrap_or(authority.len())),
        };
        let host_end = place.start + host.len();
        self.host(host, place.start);
        if port.is_empty() {
            return;
        }
        let digits = port.strip_prefix(':');
        let good = digits
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|digits| digits.parse::<u16>().ok())
            .is_some_and(|port| port > 0);
        if !good {
            self.refuse(
                host_end..place.end,
                "`url` has a port that is none",
                "expected : and 1 to 65535",
                "write the port as digits, or leave it out with its colon for port 80",
            );
        }
    }

    fn host(&mut self, host: &str, at: usize) {
        let place = at..at + host.len();
        if host.is_empty() {
            self.refuse(place, "`url` has no host", "expected a host name or address", EXAMPLE);
        } else if let Some(address) = host.strip_prefix('[') {
            if address.strip_suffix(']').is_none_or(|ip| ip.parse::<Ipv6Addr>().is_err()) {
                let help =
                    "an IPv6 address stands in brackets, without a zone: \"http://[::1]:8080/\"";
                self.refuse(place, "`url` has a bad IPv6 address", "not an IPv6 address", help);
            }
        } else if let Some((offset, c)) = host.char_indices().find(|(_, c)| !host_character(*c)) {
            let part = at + offset..at + offset + c.len_utf8();
            let help = if c.is_ascii() {
                "a host has letters, digits, points and hyphens".to_owned()
            } else {
                "write an international host name in its ASCII form (xn--...)".to_owned()
            };
            self.character(part, format!("`url` has {c:?} in its host"), help);
        } else if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            if host.parse::<Ipv4Addr>().is_err() {
                let help = "an IPv4 address has four numbers from 0 to 255: \"127.0.0.1\"";
                self.refuse(place, "`url` has a bad IPv4 address", "not an IPv4 address", help);
            }
        } else {
            let labels = host.strip_suffix('.').unwrap_or(host);
            let bad = |label: &str| label.is_empty() || label.len() > 63;
            if host.len() > 253 || labels.split('.').any(bad) {
                let help =
                    "the parts of a host name have 1 to 63 characters, all of it at most 253";
                self.refuse(place, "`url` has a bad host name", "not a host name", help);
            }
        }
    }

    fn character(&mut self, part: Range<usize>, message: String, help: String) {
        let label = "cannot stand in a URL";
        self.problems.push(Problem::error(code::BAD_URL_CHARACTER, part, message, label, help));
    }

    /// Path and query as they are sent, from the place where they start.
    fn target(&mut self, at: usize) -> String {
        let all = self.text.get(at..).unwrap_or_default();
        let (sent, fragment) = match all.find('#') {
            Some(hash) => all.split_at(hash),
            None => (all, ""),
        };
        if !fragment.is_empty() {
            self.problems.push(Problem::warning(
                code::FRAGMENT,
                at + sent.len()..at + all.len(),
                "a fragment is never sent to a server",
                "left out",
                "remove it; a # that belongs to the path is written %23",
            ));
        }
        let mut target = String::with_capacity(sent.len() + 1);
        if !sent.starts_with('/') {
            target.push('/');
        }
        let mut bad = Vec::new();
        for (offset, c) in sent.char_indices() {
            let half_escape = c == '%' && !escape(sent.get(offset..).unwrap_or_default());
            if half_escape || c.is_control() || c.is_ascii() && !target_character(c) {
                bad.push((offset, c));
            } else if c.is_ascii() {
                target.push(c);
            } else {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    target.push_str(&format!("%{byte:02X}"));
                }
            }
        }
        if let Some((offset, c)) = bad.first().copied() {
            let mut help = match c {
                '\\' => {
                    "a path has / between its parts; a backslash itself is written %5C".to_owned()
                }
                _ if c.is_ascii() => format!("write it as %{:02X}", u32::from(c)),
                _ => "leave it out".to_owned(),
            };
            if bad.len() > 1 {
                help.push_str(&format!("; {} characters of this URL need it", bad.len()));
            }
            let part = at + offset..at + offset + c.len_utf8();
            self.character(part, format!("`url` has {c:?} in its path or query"), help);
        }
        target
    }
}

const EXAMPLE: &str = "for example: \"http://127.0.0.1:8080/\"";

fn host_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// What RFC 3986 allows in a path or a query, and brackets, which many send and all accept.
fn target_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~:/?[]@!$&'()*+,;=%".contains(c)
}

fn escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> String {
        let checked = check(text);
        checked.url.unwrap_or_else(|| panic!("{text}: {:?}", checked.problems)).to_string()
    }

    #[test]
    fn bytes_go_out_as_written_and_umlauts_encoded_once() {
        for (typed, url) in [
            ("http://h/", "http://h/"),
            ("http://h", "http://h/"),
            ("HTTP://Host.Test:80", "http://Host.Test:80/"),
            ("http://h?q=1", "http://h/?q=1"),
            ("http://h/münchen", "http://h/m%C3%BCnchen"),
            ("http://h/m%C3%BCnchen?ü=ü", "http://h/m%C3%BCnchen?%C3%BC=%C3%BC"),
            ("http://h/%2F%27'x'", "http://h/%2F%27'x'"),
            ("http://h/x?q=a%20b&r=c+d&e=", "http://h/x?q=a%20b&r=c+d&e="),
            ("http://h//double//", "http://h//double//"),
            ("http://h/../up", "http://h/../up"),
            ("http://h/x#frag", "http://h/x"),
            ("http://[::1]:8080/a[0]", "http://[::1]:8080/a[0]"),
            ("http://127.0.0.1:1/mail@example.test", "http://127.0.0.1:1/mail@example.test"),
            ("http://h/a?b=://c@d", "http://h/a?b=://c@d"),
        ] {
            assert_eq!(sent(typed), url);
        }
        let long = format!("http://h/{}", "a".repeat(10_000));
        assert_eq!(sent(&long), long);
    }

    #[test]
    fn what_is_no_url_is_refused_at_its_place() {
        for (typed, place, word) in [
            ("", "", "empty"),
            ("127.0.0.1:8080/", "127.0.0.1", "no scheme"),
            ("https://h/", "https", "https is not available"),
            ("ftp://h/", "ftp", "scheme that is not http"),
            ("http:///x", "", "no host"),
            ("http://:80/x", "", "no host"),
            ("http://h:/", ":", "port"),
            ("http://h:0/", ":0", "port"),
            ("http://h:99999/", ":99999", "port"),
            ("http://h:+80/", ":+80", "port"),
            ("http://::1/", "::1", "colon in its host"),
            ("http://[::g]/", "[::g]", "IPv6"),
            ("http://[::1]x/", "x", "port"),
            ("http://127.0.0.300/", "127.0.0.300", "IPv4"),
            ("http://a..b/", "a..b", "host name"),
            ("http://münchen.test/", "ü", "host"),
            ("http://h/a b", " ", "path or query"),
            ("http://h/100%", "%", "path or query"),
            ("http://h/{id}", "{", "path or query"),
            ("http://h\\x", "\\", "path or query"),
            ("http://h/a\u{85}b", "\u{85}", "path or query"),
        ] {
            let checked = check(typed);
            assert_eq!(checked.url, None, "{typed}");
            let problem = checked.problems.iter().find(|problem| problem.is_error()).unwrap();
            assert_eq!(typed.get(problem.span.clone()), Some(place), "{typed}: {problem}");
            assert!(problem.message.contains(word), "{typed}: {problem}");
        }
    }

    #[test]
    fn a_password_is_refused_and_in_no_text() {
        for (typed, place) in [
            ("http://user:secret@h/", "user:secret@"),
            ("http://user:se%40cret%23@h/", "user:se%40cret%23@"),
            ("http://user:p@secret#@h/", "user:p@secret#@"),
            ("http://user:secret#1@h/x", "user:secret#1@"),
            ("http://user:secret/1@h/x", "user:secret/1@"),
            ("http://user:se:cret?1@h", "user:se:cret?1@"),
            ("http://secret@h", "secret@"),
            ("http://user:secret@h/mail@x", "user:secret@h/mail@"),
            ("user:secret@h/", "user:secret@"),
            ("user:secret://secret@h/", "user:secret://secret@"),
            ("https://user:secret@h:bad/ /", "user:secret@"),
        ] {
            let checked = check(typed);
            assert_eq!(checked.url, None);
            let codes: Vec<_> = checked.problems.iter().map(|problem| problem.code).collect();
            assert!(codes.contains(&code::CREDENTIALS_IN_URL), "{typed}: {codes:?}");
            assert_eq!(credentials(typed).and_then(|part| typed.get(part)), Some(place));
            for problem in checked.problems {
                let texts = format!("{} {} {}", problem.message, problem.label, problem.help);
                assert!(!texts.contains("secret") && !texts.contains("cret"), "{texts}");
            }
        }
    }
}
