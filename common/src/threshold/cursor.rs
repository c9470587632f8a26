//! The words and signs of a threshold, one after the other, with their places.

use std::ops::Range;

use super::fault::Fault;

/// The characters that operators are made of; a few more than there are, so that a wrong one is seen whole.
const SIGNS: [char; 5] = ['<', '>', '=', '!', '~'];

/// A place in the text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// What stands in a range that this cursor gave.
    pub(super) fn text(&self, part: &Range<usize>) -> &'t str {
        self.text.get(part.clone()).unwrap_or_default()
    }

    /// From here to the end.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character here, for an arrow; empty at the end.
    pub(super) fn here(&self) -> Range<usize> {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn take_while(&mut self, mut good: impl FnMut(char) -> bool) -> Range<usize> {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|c| !good(c)).unwrap_or(rest.len());
        start..self.at
    }

    /// Goes over blanks.
    pub(super) fn blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Goes over blanks and over `sign`, where it comes next.
    pub(super) fn eat(&mut self, sign: char) -> bool {
        self.blanks();
        let found = self.peek() == Some(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    /// A name, behind blanks: letters, digits, `_`, `.` and `-`. Empty where none stands.
    pub(super) fn word(&mut self) -> Range<usize> {
        self.blanks();
        self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
    }

    /// The signs of an operator, behind blanks. Empty where none stands.
    pub(super) fn signs(&mut self) -> Range<usize> {
        self.blanks();
        self.take_while(|c| SIGNS.contains(&c))
    }

    /// A string in single or double quotes, behind blanks: its value and the place of all of it. A backslash takes the
    /// next character as it is.
    pub(super) fn string(&mut self) -> Result<(String, Range<usize>), Fault> {
        self.blanks();
        let start = self.at;
        let Some(quote @ ('"' | '\'')) = self.peek() else {
            let word = self.word();
            let (part, help) = if word.is_empty() {
                (self.here(), "write a name in quotes: {request=\"login\"}".to_owned())
            } else {
                let help = format!("write quotes around it: \"{}\"", self.text(&word));
                (word, help)
            };
            return Err(Fault::unreadable(part, "expected a string in quotes", help));
        };
        let (mut value, mut escaped) = (String::new(), false);
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                c if escaped => {
                    value.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                c if c == quote => {
                    self.at = start + at + quote.len_utf8();
                    return Ok((value, start..self.at));
                }
                c => value.push(c),
            }
        }
        let part = start..self.text.len();
        self.at = self.text.len();
        Err(Fault::unreadable(
            part,
            "the string does not end",
            format!("close it with another {quote}"),
        ))
    }

    /// Goes to the next sign of an operator, or to the end: where reading goes on after a mistake. What stands in
    /// braces or quotes is none.
    pub(super) fn skip_to_operator(&mut self) {
        let (mut braces, mut quote) = (0_u32, None);
        self.take_while(|c| {
            match (quote, c) {
                (Some(open), c) if open == c => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '{') => braces += 1,
                (None, '}') => braces = braces.saturating_sub(1),
                (None, c) => return braces > 0 || !SIGNS.contains(&c),
            }
            true
        });
    }
}

/// A string as [`Cursor::string`] reads it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_string_reads_back_whatever_is_in_it() {
        for text in ["login", "", "GET /\"a\\b'", "ü \\", "a\nb"] {
            let written = format!("  {} rest", quoted(text));
            let mut cursor = Cursor::new(&written);
            assert_eq!(cursor.string().unwrap().0, text);
            assert_eq!(cursor.rest(), " rest");
        }
        assert_eq!(Cursor::new("'a\"b'").string().unwrap().0, "a\"b");
    }

    #[test]
    fn signs_in_braces_and_quotes_are_no_operators() {
        let mut cursor = Cursor::new("x{request=\"a < b\"} y 'z<' < 3");
        cursor.skip_to_operator();
        assert_eq!(cursor.rest(), "< 3");
        cursor.skip_to_operator();
        assert_eq!(cursor.rest(), "< 3");
    }
}
