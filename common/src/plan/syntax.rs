//! What is wrong with a plan as TOML, in words for people who do not know TOML well.

use std::ops::Range;

use toml::de::Error;

use super::problem::{Problem, code};

const EMPTY_KEY: &str = "unquoted keys cannot be empty";

/// Joins what the TOML reader found with what was found in the rest of the document, so that one mistake is one
/// problem.
///
/// The reader goes on after a mistake and guesses. Where a guess makes a second problem of the same mistake, one is
/// left out: the better one stays.
pub(crate) fn join(text: &str, syntax: Vec<Error>, found: Vec<Problem>) -> Vec<Problem> {
    if syntax.is_empty() {
        return found;
    }
    let mistakes = mistakes(text, &syntax);
    let lost_text = mistakes.iter().any(|mistake| mistake.guess == Guess::Lost);
    let found: Vec<Problem> = found
        .into_iter()
        .filter(|problem| {
            let missing = [code::MISSING_KEY, code::NO_LOAD, code::NO_END, code::EMPTY];
            if missing.contains(&problem.code) {
                return !lost_text;
            }
            mistakes.iter().all(|mistake| {
                mistake.guess == Guess::Exact || line(text, problem.span.start) != mistake.line
            })
        })
        .collect();
    let mut all: Vec<Problem> = mistakes
        .into_iter()
        .filter(|mistake| {
            // "expected a whole number" helps more than "text must stand in quotes".
            let better = |other: &Problem| {
                other.is_error() && overlap(&other.span, &mistake.problem.span)
            };
            !(mistake.unquoted && found.iter().any(better))
        })
        .map(|mistake| mistake.problem)
        .collect();
    all.extend(found);
    all
}

/// How much the reader had to guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    /// What was meant is clear, and was read.
    Exact,
    /// Something on this line may be missing or wrong.
    Lost,
}

struct Mistake {
    problem: Problem,
    /// Where the line starts.
    line: usize,
    guess: Guess,
    unquoted: bool,
}

/// The first mistake of each line: those behind it are mostly its consequences.
fn mistakes(text: &str, errors: &[Error]) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut sorted: Vec<(Range<usize>, &Error)> =
        errors.iter().map(|error| (error.span().unwrap_or(0..0), error)).collect();
    sorted.sort_by_key(|(span, _)| span.start);
    // The reader gives no place for a line that starts with =.
    let mut nameless = lines_without_key(text);
    for (span, error) in sorted {
        let span = if error.message().starts_with(EMPTY_KEY) && span.is_empty() {
            nameless.next().unwrap_or(span)
        } else {
            span
        };
        let line = line(text, span.start);
        if mistakes.iter().all(|mistake| mistake.line != line) {
            mistakes.push(mistake(text, line, span, error.message()));
        }
    }
    mistakes
}

fn mistake(text: &str, line: usize, span: Range<usize>, message: &str) -> Mistake {
    // The words of the TOML reader are kept; where they are unknown here, the help is a general one.
    let unquoted = message.starts_with("string values must be quoted");
    let duplicate = message.starts_with("duplicate key");
    let problem = if unquoted && !span.is_empty() {
        let help = "put it in double quotes, as in timeout = \"30s\"";
        Problem::error(code::SYNTAX, span, "text without quotes", "no quotes around this", help)
    } else if unquoted {
        let help = "write the value behind the =, or remove the key";
        Problem::error(code::SYNTAX, span, "a key without a value", "expected a value", help)
    } else if duplicate {
        let message = "this key or table is in the plan twice";
        let help = "remove one of the two; a table's header stands only once";
        Problem::error(code::DUPLICATE_KEY, span, message, "the second one", help)
    } else if text.get(span.start..).is_some_and(|rest| rest.starts_with(','))
        && message.starts_with("unexpected key or value")
    {
        let help = "write a number with underscores between the thousands: 1_000";
        Problem::error(code::SYNTAX, span, "a comma in a number", "not in a number", help)
    } else {
        let (label, help) = remedy(message);
        Problem::error(code::SYNTAX, span, format!("not TOML: {message}"), label, help)
    };
    let exact = (unquoted && !problem.span.is_empty()) || duplicate;
    let guess = if exact { Guess::Exact } else { Guess::Lost };
    Mistake { problem, line, guess, unquoted }
}

fn lines_without_key(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split_inclusive('\n').scan(0, |start, line| {
        let at = *start + (line.len() - line.trim_start().len());
        *start += line.len();
        Some((at..at + 1, line.trim_start().starts_with('=')))
    })
    .filter_map(|(place, nameless)| nameless.then_some(place))
}

fn remedy(message: &str) -> (&'static str, &'static str) {
    const REMEDIES: &[(&str, &str, &str)] = &[
        ("key with no value", "expected = and a value", "write key = value, or start a comment with #"),
        ("unclosed table", "expected ]", "close the table's name: [load.closed]"),
        ("invalid basic string", "the string does not end", "end the string with \" on its line"),
        ("invalid literal string", "the string does not end", "end the string with ' on its line"),
        ("missing escaped value", "not an escape", "write a backslash as \\\\, or the string in '...'"),
        ("unexpected leading zero", "a zero too many", "write the number without leading zeros"),
        ("invalid boolean", "neither true nor false", "write true or false, or text in quotes"),
        ("unexpected key or value", "expected a new line", "one key = value stands on a line"),
        ("missing comma", "expected a comma", "put a comma between the entries"),
        ("unclosed array", "expected ]", "close the array with ]"),
        ("unclosed inline table", "expected }", "close the table with }"),
        (EMPTY_KEY, "expected a key", "write a key before the ="),
    ];
    REMEDIES
        .iter()
        .find(|(start, ..)| message.starts_with(start))
        .map_or(("not TOML", "a plan is TOML: key = value lines and [table] headers"), |remedy| {
            (remedy.1, remedy.2)
        })
}

/// Where the line starts that a place is on.
fn line(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
