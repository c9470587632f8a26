//! The plan's text: from bytes, and from how it was saved to how it is read.
//!
//! Plans saved on Windows start with a byte order mark and end their lines with CR LF. The plan is read without
//! both, so that such a plan equals the Unix one in every byte, also in a body of several lines. Places found in the
//! read text are turned back into places of the saved one.

use std::{borrow::Cow, ops::Range};

use super::problem::{Problem, code};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A plan that is not text, with what of it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotText {
    /// The plan as far as it can be read, for [`super::render()`].
    pub shown: String,
    /// What is wrong; its place is in `shown`.
    pub problem: Problem,
}

/// The text of a plan read as bytes.
///
/// # Errors
/// When the bytes are not UTF-8.
pub fn decode(bytes: Vec<u8>) -> Result<String, Box<NotText>> {
    let wide = match bytes.get(..4) {
        Some([0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff]) => Some("UTF-32"),
        Some([0xff, 0xfe, ..] | [0, b' '..=b'~', ..]) => Some("UTF-16"),
        Some([0xfe, 0xff, ..] | [b' '..=b'~', 0, ..]) => Some("UTF-16"),
        _ => None,
    };
    if let Some(encoding) = wide {
        let problem = Problem::error(
            code::ENCODING,
            0..0,
            format!("the plan is saved as {encoding}, a plan is UTF-8"),
            "no UTF-8 text",
            "save the file again with the encoding UTF-8 (in Windows editors: \"UTF-8\", not \"Unicode\")",
        );
        return Err(Box::new(NotText { shown: String::new(), problem }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(good).copied().unwrap_or_default();
        let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let problem = Problem::error(
            code::ENCODING,
            good..good + char::REPLACEMENT_CHARACTER.len_utf8(),
            format!("the plan is not UTF-8: byte {good} (0x{byte:02x}) starts no character"),
            "not UTF-8 from here",
            "save the file again with the encoding UTF-8",
        );
        Box::new(NotText { shown, problem })
    })
}

/// A plan's text without byte order mark and carriage returns at line ends.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    text: Cow<'a, str>,
    mark: usize,
    /// Where in `text` the line feeds stand that had a carriage return before them.
    returns: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(saved: &'a str) -> Self {
        let unmarked = saved.strip_prefix(BYTE_ORDER_MARK).unwrap_or(saved);
        let mark = saved.len() - unmarked.len();
        let returns: Vec<usize> =
            unmarked.match_indices("\r\n").enumerate().map(|(nth, (at, _))| at - nth).collect();
        let text = if returns.is_empty() {
            Cow::Borrowed(unmarked)
        } else {
            Cow::Owned(unmarked.replace("\r\n", "\n"))
        };
        Self { text, mark, returns }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The place in the saved plan of a place in [`Source::text`].
    pub(crate) fn in_saved(&self, place: &Range<usize>) -> Range<usize> {
        let saved = |at: usize| at + self.mark + self.returns.partition_point(|lf| *lf < at);
        // A place that ends at a line's end does not take the carriage return with it.
        saved(place.start)..saved(place.end)
    }

    /// The place in [`Source::text`] of a place in the saved plan, clipped to the text.
    pub(crate) fn in_text(&self, place: &Range<usize>) -> Range<usize> {
        let read = |saved: usize| {
            let at = saved.saturating_sub(self.mark);
            let before =
                self.returns.iter().enumerate().take_while(|(nth, lf)| *lf + nth < at).count();
            let mut at = (at - before).min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = read(place.start);
        start..read(place.end).max(start)
    }

    /// The place in the text of `part`, a range of bytes of the string that stands at `whole` and has this `value`.
    /// All of `whole` where that cannot be told.
    pub(crate) fn inside(
        &self,
        whole: &Range<usize>,
        value: &str,
        part: Range<usize>,
    ) -> Range<usize> {
        self.text
            .get(whole.clone())
            .and_then(|literal| part_of_literal(literal, value, &part))
            .map_or(whole.clone(), |part| whole.start + part.start..whole.start + part.end)
    }
}

/// Walks the literal and the value side by side, one character of the value at a time.
fn part_of_literal(literal: &str, value: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let quotes = ["\"\"\"", "'''", "\"", "'", ""];
    let quote = quotes.into_iter().find(|quote| literal.starts_with(quote))?;
    let mut at = quote.len();
    if quote.len() == 3 && literal.get(at..)?.starts_with('\n') {
        at += 1;
    }
    let escapes = quote.starts_with('"');
    let (mut start, mut end) = (None, None);
    for (offset, c) in value.char_indices() {
        if offset >= part.end {
            break;
        }
        if offset >= part.start && start.is_none() {
            start = Some(at);
        }
        let next = literal.get(at..)?.chars().next()?;
        at += if escapes && next == '\\' {
            match literal.get(at + 1..)?.chars().next()? {
                'u' => 6,
                'U' => 10,
                'x' => 4,
                // The line goes on after a backslash at its end: too rare to follow.
                '\n' | ' ' | '\t' => return None,
                _ => 2,
            }
        } else if next == c {
            next.len_utf8()
        } else {
            return None;
        };
        end = Some(at);
    }
    // An empty part points between two characters, or behind the last.
    let start = start.unwrap_or(at);
    Some(start..if part.is_empty() { start } else { end?.max(start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_survive_the_way_to_the_read_text_and_back() {
        let saved = "\u{feff}a = 1\r\nbü = 2\r\n\r\nc = 3\n";
        let source = Source::new(saved);
        assert_eq!(source.text(), "a = 1\nbü = 2\n\nc = 3\n");
        for (at, c) in source.text().char_indices() {
            let place = source.in_saved(&(at..at + c.len_utf8()));
            assert_eq!(source.in_text(&place), at..at + c.len_utf8());
            let there = saved.get(place).unwrap();
            assert!(there == c.to_string() || there == "\r\n", "{there:?} for {c:?}");
        }
        assert_eq!(source.in_text(&(0..1000)), 0..source.text().len());
    }

    #[test]
    fn a_part_of_a_string_is_found_behind_umlauts_and_escapes() {
        for (text, value, part, found) in [
            (r#""abc""#, "abc", 1..2, "b"),
            (r"'a\c'", r"a\c", 1..2, r"\"),
            (r#""ü\u00fc\"x""#, "üü\"x", 4..5, "\\\""),
            (r#""ü\u00fc\"x""#, "üü\"x", 5..6, "x"),
            ("\"\"\"\nab\ncd\"\"\"", "ab\ncd", 3..5, "cd"),
            ("http://x/ ", "http://x/", 0..4, "http"),
            ("\"\"\"a\\\n  b\"\"\"", "ab", 1..2, "\"\"\"a\\\n  b\"\"\""),
        ] {
            let source = Source::new(text);
            let place = source.inside(&(0..text.len()), value, part);
            assert_eq!(source.text().get(place), Some(found), "{text}");
        }
    }

    #[test]
    fn other_encodings_are_refused_in_words() {
        let wide: Vec<u8> = "\u{feff}url = 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, word) in [
            (wide.clone(), "UTF-16"),
            (wide.get(2..).unwrap().to_vec(), "UTF-16"),
            (b"\xfe\xff\0u\0r".to_vec(), "UTF-16"),
            (b"\xff\xfe\0\0u\0\0\0".to_vec(), "UTF-32"),
            (b"name = \"M\xfcnchen\"".to_vec(), "byte 9 (0xfc)"),
        ] {
            let refused = decode(bytes).unwrap_err();
            assert!(refused.problem.message.contains(word), "{}", refused.problem);
        }
        assert_eq!(decode("ü".into()), Ok("ü".to_owned()));
        assert_eq!(decode(vec![]), Ok(String::new()));
    }
}
