//! The plan's headers: what may be sent, and what Inrush must write itself.

use std::collections::HashSet;

use http::{HeaderName, HeaderValue};
use toml::Spanned;

use super::{
    Header,
    problem::{Problem, code},
    raw::RawHeader,
    source::Source,
};

const MOST_LINES: usize = 100;
const MOST_BYTES: usize = 64 * 1024;

/// Headers that follow from the body and the connection: a wrong one makes every request fail or hang.
const OURS: &[(&str, &str)] = &[
    ("content-length", "remove it: it follows from `body` or `body_file`"),
    ("transfer-encoding", "remove it: the body is sent with its length"),
];

/// Checks all headers; the good ones come back in the plan's order.
pub(crate) fn check(
    headers: &[RawHeader],
    source: &Source<'_>,
    problems: &mut Vec<Problem>,
) -> Vec<Header> {
    let mut good: Vec<Header> = Vec::new();
    let mut seen: HashSet<HeaderName> = HashSet::new();
    for header in headers {
        let Some(name) = name(&header.name, source, problems) else { continue };
        if !seen.insert(name.clone()) {
            problems.push(Problem::error(
                code::DUPLICATE_HEADER,
                header.name.span(),
                format!("header `{name}` stands here twice; upper and lower case are the same"),
                "the second one",
                format!("for two lines of one name write an array: {name} = [\"a\", \"b\"]"),
            ));
            continue;
        }
        if name == http::header::HOST && header.values.len() > 1 {
            problems.push(Problem::error(
                code::BAD_HEADER_VALUE,
                header.values[1].span(),
                "a request has one `host` header",
                "one too many",
                "keep one of the values",
            ));
        }
        for text in &header.values {
            if let Some(value) = value(&name, text, source, problems) {
                good.push(Header { name: name.clone(), value });
            }
        }
    }
    too_many(headers, &good, problems);
    good
}

fn too_many(headers: &[RawHeader], good: &[Header], problems: &mut Vec<Problem>) {
    let bytes: usize = good.iter().map(|h| h.name.as_str().len() + h.value.len() + 4).sum();
    if let Some(last) = headers.last()
        && (good.len() > MOST_LINES || bytes > MOST_BYTES)
    {
        problems.push(Problem::error(
            code::OUT_OF_RANGE,
            last.name.span(),
            format!(
                "{} header lines with {bytes} bytes, at most {MOST_LINES} with {MOST_BYTES} can be sent",
                good.len()
            ),
            "too many by here",
            "most servers take no more than 100 lines and 8 KiB",
        ));
    }
}

fn name(
    typed: &Spanned<String>,
    source: &Source<'_>,
    problems: &mut Vec<Problem>,
) -> Option<HeaderName> {
    let text = typed.get_ref();
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(name) => {
            let ours = OURS.iter().find(|(ours, _)| *ours == name.as_str());
            if let Some((_, help)) = ours {
                problems.push(Problem::error(
                    code::REFUSED_HEADER,
                    typed.span(),
                    format!("header `{name}` is written by Inrush itself"),
                    "not yours to set",
                    *help,
                ));
            }
            ours.is_none().then_some(name)
        }
        Err(_) => {
            let bad = text.char_indices().find(|(_, c)| !token_character(*c));
            let part = bad.map_or(0..text.len(), |(at, c)| at..at + c.len_utf8());
            let message = match bad {
                Some((_, c)) => format!("a header name cannot hold {c:?}"),
                None if text.is_empty() => "a header name cannot be empty".to_owned(),
                None => "a header name cannot be so long".to_owned(),
            };
            problems.push(Problem::error(
                code::BAD_HEADER_NAME,
                source.inside(&typed.span(), text, part),
                message,
                "not allowed in a header name",
                "a header name has letters, digits and hyphens: X-Request-Id = \"7\"",
            ));
            None
        }
    }
}

/// The value's text is in no problem: it may be a credential.
fn value(
    name: &HeaderName,
    typed: &Spanned<String>,
    source: &Source<'_>,
    problems: &mut Vec<Problem>,
) -> Option<HeaderValue> {
    let text = typed.get_ref();
    let bad = text.char_indices().find(|(_, c)| c.is_ascii_control() && *c != '\t');
    match (HeaderValue::from_bytes(text.as_bytes()), bad) {
        (Ok(mut value), None) => {
            value.set_sensitive(name == http::header::AUTHORIZATION);
            Some(value)
        }
        (_, bad) => {
            let part = bad.map_or(0..text.len(), |(at, c)| at..at + c.len_utf8());
            let (what, help) = match bad {
                Some((_, '\r' | '\n')) => (
                    "a line break",
                    "a header is one line; for several lines of one name write an array",
                ),
                _ => ("a control character", "remove it"),
            };
            problems.push(Problem::error(
                code::BAD_HEADER_VALUE,
                source.inside(&typed.span(), text, part),
                format!("the value of header `{name}` holds {what}"),
                "not allowed in a header",
                help,
            ));
            None
        }
    }
}

/// What RFC 9110 calls a token: header names and methods are made of it.
pub(crate) fn token_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
