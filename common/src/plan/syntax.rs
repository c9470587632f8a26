//! What is wrong with a plan as TOML, in words for people who do not know TOML well.
//!
//! The TOML reader goes on after a mistake, but loses what stands around it, and then finds mistakes that nobody
//! made. So each line with a mistake is blanked and the rest is read again: one mistake is one problem, and the lines
//! after it are still looked at.

use std::{collections::BTreeSet, ops::Range};

use toml::de::{DeTable, Error};

use super::problem::{Problem, code};

/// So many lines are blanked; what is wrong after that is reported as the TOML reader sees it.
const MOST_BLANKED: usize = 50;

/// With more mistakes than this, the text is no plan: reading it again helps nobody, nor does a longer list.
const MOST_ERRORS: usize = 1_000;

/// A text of the same length that can be read as TOML, as far as that could be reached.
pub(crate) struct Readable {
    /// The text with blanks in place of the lines with mistakes. Places in it are places in the plan.
    pub(crate) text: String,
    mistakes: Vec<Problem>,
    /// From a table's header that cannot be read to the next header: in which table this is cannot be told.
    homeless: Vec<Range<usize>>,
}

impl Readable {
    /// Finds the mistakes of a text, all but those of [`Readable::join`].
    pub(crate) fn new(original: &str) -> Self {
        let mut readable =
            Self { text: original.to_owned(), mistakes: Vec::new(), homeless: Vec::new() };
        let mut blanked = BTreeSet::new();
        while blanked.len() < MOST_BLANKED {
            let (_, errors) = DeTable::parse_recoverable(&readable.text);
            let first =
                errors.iter().filter(|error| !is_clear(error)).min_by_key(|e| place(e).start);
            let Some(error) = first else { break };
            if errors.len() > MOST_ERRORS {
                break;
            }
            let line = line(original, place(error).start);
            // At the end of the text (a string that never ends) blanking does not help.
            if !blanked.insert(line.start) {
                break;
            }
            readable.mistakes.push(unreadable(original, place(error), error.message()));
            let typed = original.get(line.clone()).unwrap_or_default();
            if typed.trim_start().starts_with('[') {
                let rest = original.get(line.end..).unwrap_or_default();
                let next = rest.find("\n[").unwrap_or(rest.len());
                readable.homeless.push(line.start..line.end + next);
            }
            readable.text.replace_range(line.clone(), &" ".repeat(line.len()));
        }
        readable
    }

    /// All problems of a plan: the mistakes found before, those that `errors` still holds from reading
    /// [`Readable::text`], and what was `found` in the document that was read.
    pub(crate) fn join(self, errors: &[Error], found: Vec<Problem>) -> Vec<Problem> {
        let lost = !self.mistakes.is_empty();
        let missing = [
            code::MISSING_KEY,
            code::NO_LOAD,
            code::NO_END,
            code::NO_RATE,
            code::UNKNOWN_PHASE,
            code::UNKNOWN_END,
            code::EMPTY,
        ];
        let mut all: Vec<Problem> = found
            .into_iter()
            // It may be there, on a line that cannot be read.
            .filter(|problem| !(lost && missing.contains(&problem.code)))
            .filter(|problem| {
                !self.homeless.iter().any(|place| place.contains(&problem.span.start))
            })
            .collect();
        let mut lines: BTreeSet<usize> = self
            .mistakes
            .iter()
            .map(|mistake| line(&self.text, mistake.span.start).start)
            .collect();
        let better: BTreeSet<usize> = all
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| problem.span.start)
            .collect();
        let mut errors: Vec<&Error> = errors.iter().collect();
        errors.sort_by_key(|error| place(error).start);
        for error in errors.into_iter().take(MOST_ERRORS) {
            let span = place(error);
            let mistake = if is_unquoted(error) {
                // "expected a whole number" helps more than "text must stand in quotes".
                if better.range(span.clone()).next().is_some() {
                    continue;
                }
                unquoted(span)
            } else if is_duplicate(error) {
                duplicate(span)
            } else if lines.insert(line(&self.text, span.start).start) {
                unreadable(&self.text, span, error.message())
            } else {
                continue;
            };
            all.push(mistake);
        }
        all.extend(self.mistakes);
        all
    }
}

/// Whether it is clear what was meant, so that the reader lost nothing.
fn is_clear(error: &Error) -> bool {
    is_duplicate(error) || (is_unquoted(error) && !place(error).is_empty())
}

fn is_unquoted(error: &Error) -> bool {
    error.message().starts_with("string values must be quoted")
}

fn is_duplicate(error: &Error) -> bool {
    error.message().starts_with("duplicate key")
}

fn unquoted(span: Range<usize>) -> Problem {
    let help = "put it in double quotes, as in timeout = \"30s\"";
    Problem::error(code::SYNTAX, span, "text without quotes", "no quotes around this", help)
}

fn duplicate(span: Range<usize>) -> Problem {
    let message = "this key or table is in the plan twice";
    let help = "remove one of the two; a table's header stands only once";
    Problem::error(code::DUPLICATE_KEY, span, message, "the second one", help)
}

/// A mistake after which the line cannot be read. The reader's words are kept, the remedy is ours.
fn unreadable(text: &str, span: Range<usize>, message: &str) -> Problem {
    const REMEDIES: &[(&str, &str, &str)] = &[
        (
            "string values must be quoted",
            "expected a value",
            "write the value behind the =, or remove the key",
        ),
        (
            "key with no value",
            "expected = and a value",
            "write key = value, or start a comment with #",
        ),
        ("unclosed table", "expected ]", "close the table's name: [load.closed]"),
        ("invalid basic string", "the string does not end", "end the string with \" on its line"),
        ("invalid literal string", "the string does not end", "end the string with ' on its line"),
        (
            "missing escaped value",
            "not an escape",
            "write a backslash as \\\\, or the string in '...'",
        ),
        ("unexpected leading zero", "a zero too many", "write the number without leading zeros"),
        ("invalid boolean", "neither true nor false", "write true or false, or text in quotes"),
        ("unexpected key or value", "expected a new line", "one key = value stands on a line"),
        ("missing comma", "expected a comma", "put a comma between the entries"),
        ("unclosed array", "expected ]", "close the array with ]"),
        ("unclosed inline table", "expected }", "close the table with }"),
        ("unquoted keys cannot be empty", "expected a key", "write a key before the ="),
    ];
    let comma = text.get(span.start..).is_some_and(|rest| rest.starts_with(','));
    if comma && message.starts_with("unexpected key or value") {
        let help = "write a number with underscores between the thousands: 1_000";
        return Problem::error(code::SYNTAX, span, "a comma in a number", "not in a number", help);
    }
    let known = REMEDIES.iter().find(|(start, ..)| message.starts_with(start));
    // A control character also makes an "invalid string", one that does end.
    let (label, help) = match known {
        Some((_, label, help)) if !message.contains("visible characters") => (*label, *help),
        _ => ("not TOML", "a plan is TOML: lines with key = value, and headers like [agents]"),
    };
    Problem::error(code::SYNTAX, span, format!("not TOML: {message}"), label, help)
}

fn place(error: &Error) -> Range<usize> {
    error.span().unwrap_or(0..0)
}

/// The line a place is on, without its end.
fn line(text: &str, at: usize) -> Range<usize> {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let rest = text.get(start..).unwrap_or_default();
    start..start + rest.find('\n').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines (from 1) of the mistakes that reading alone finds.
    fn lines(text: &str) -> Vec<usize> {
        let readable = Readable::new(text);
        assert_eq!(readable.text.len(), text.len());
        let document = readable.text.clone();
        let (_, errors) = DeTable::parse_recoverable(&document);
        let all = readable.join(&errors, Vec::new());
        let mut lines: Vec<usize> = all
            .iter()
            .map(|problem| text.get(..problem.span.start).unwrap().matches('\n').count() + 1)
            .collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn every_line_with_a_mistake_is_reported_once_and_no_other() {
        for (text, expected) in [
            ("a = 1\n", vec![]),
            ("just words\n= 3\nb = 1\nc = x\n", vec![1, 2, 4]),
            ("[load.closed\na = 1\n[b\nc = \n", vec![1, 3, 4]),
            ("a = 1 b = 2\nc = \"x\nd = 3\ne = 'y\n", vec![1, 2, 4]),
            ("a = [1,\n2\n]\nb = {c = 1, d = }\n", vec![4]),
            ("a = \"\"\"x\ny\nz\n", vec![4]),
            ("a = 1\na = 2\nb = yes\n", vec![2, 3]),
            ("a = \"\u{7}\"\nb = 01\n", vec![1, 2]),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn more_mistakes_than_are_blanked_are_still_all_reported() {
        let text = "a b\nc = 1\n".repeat(MOST_BLANKED + 20);
        // The keys that repeat are mistakes too.
        assert!(lines(&text).len() > 2 * MOST_BLANKED, "{:?}", lines(&text));
    }
}
