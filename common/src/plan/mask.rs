//! Places in a plan that are shown to nobody: passwords in URLs and values of headers that carry credentials.
//!
//! This looks at the text only, because a plan that cannot be read must keep its secrets too. It rather hides too much.

use std::ops::Range;

use super::url::credentials;

/// Parts of header names whose values are hidden.
const SECRET_NAMES: [&str; 4] = ["authorization", "cookie", "token", "api-key"];

/// With more of one kind on a line, the rest of the line is hidden unseen.
const MOST_ON_A_LINE: usize = 100;

/// The places to hide, in no special order; they may overlap.
pub(crate) fn secrets(source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        in_urls(line, start, &mut found);
        in_headers(line, start, &mut found);
        start += line.len();
    }
    found
}

/// Every URL of a line, whatever key it stands at.
fn in_urls(line: &str, start: usize, found: &mut Vec<Range<usize>>) {
    for (nth, (at, _)) in line.match_indices("://").enumerate() {
        if nth == MOST_ON_A_LINE {
            found.push(start + at..start + line.trim_end().len());
            return;
        }
        let before = line.get(..at).unwrap_or_default();
        let from = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let rest = line.get(from..).unwrap_or_default();
        let end = match before.get(..from).and_then(|before| before.chars().next_back()) {
            Some(quote @ ('"' | '\'')) => closing(rest, quote),
            _ => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        if let Some(secret) = rest.get(..end).and_then(credentials) {
            found.push(start + from + secret.start..start + from + secret.end);
        }
    }
}

/// What stands behind a secret name and its `=`: a string, an array, or all of the line.
fn in_headers(line: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let lower = line.to_ascii_lowercase();
    for name in SECRET_NAMES {
        for (nth, (at, _)) in lower.match_indices(name).enumerate() {
            if nth == MOST_ON_A_LINE {
                found.push(start + at..start + line.trim_end().len());
                break;
            }
            let Some(equals) = line.get(at..).and_then(|rest| rest.find('=')) else { continue };
            let from = at + equals + 1;
            let rest = line.get(from..).unwrap_or_default();
            let value = from + (rest.len() - rest.trim_start().len());
            let rest = rest.trim_start();
            let mut chars = rest.chars();
            let (skip, end) = match chars.next() {
                Some(quote @ ('"' | '\'')) => (1, 1 + closing(chars.as_str(), quote)),
                Some('[') => (1, rest.find(']').unwrap_or(rest.len())),
                _ => (0, rest.trim_end().len()),
            };
            found.push(start + value + skip..start + value + end.max(skip));
        }
    }
}

/// How long the text is up to the quote that ends it; all of it where there is none.
fn closing(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == quote && !escaped {
            return at;
        }
        escaped = quote == '"' && c == '\\' && !escaped;
    }
    text.trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_good_and_bad_lines() {
        for (line, hidden) in [
            (r#"url = "http://u:p@h/""#, vec!["u:p@"]),
            (r#"url = 'http://u:p#"x@h/'"#, vec![r#"u:p#"x@"#]),
            (r#"url = "http://u:p\"x@h/" # me@x"#, vec![r#"u:p\"x@"#]),
            ("url = http://u:p@h/", vec!["u:p@"]),
            (r#"ulr="http://u:p@h/"#, vec!["u:p@"]),
            (r#"url = "http://h/" # me@x"#, vec![]),
            (r#"Authorization = "Bearer x" # y"#, vec!["Bearer x"]),
            (r#"headers = { cookie = ["a", "b"], X = "y" }"#, vec![r#""a", "b""#]),
            ("\"X-API-Key\" = abc", vec!["abc"]),
            (r#"X-Auth-Token = "x"#, vec!["x"]),
            (r#"Accept = "x""#, vec![]),
        ] {
            let text = format!("a = 1\n{line}\nb = 2\n");
            let found: Vec<_> =
                secrets(&text).into_iter().map(|range| text.get(range).unwrap()).collect();
            assert_eq!(found, hidden, "{line}");
        }
    }
}
