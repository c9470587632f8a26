//! Shows problems to people: file, line, arrow, what was expected, the remedy. The only user of the rendering library.

use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

use super::{
    mask,
    problem::{Problem, Severity, code},
    source::Source,
};

/// How wide the output is.
const WIDTH: usize = 100;
/// How many characters of a line are shown: long lines are cut around the place.
const SHOWN: usize = 88;

/// All problems as text, in the order of their places, with a blank line between two.
///
/// Passwords and credentials in the source are shown as asterisks, control characters as a replacement character.
pub fn render(source_name: &str, source: &str, problems: &[Problem], color: bool) -> String {
    let read = Source::new(source);
    let shown = Shown::new(&read, problems);
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(WIDTH)
        .with_context_lines(0)
        .without_syntax_highlighting();
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| (problem.span.start, problem.severity));
    let mut out = String::new();
    for (nth, problem) in sorted.into_iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        let place = read.in_text(&problem.span);
        let mut text = String::new();
        let report = Report { problem, line: shown.line(source_name, &place) };
        if handler.render_report(&mut text, &report).is_err() {
            // Only a writer or an unreadable source can fail; the words are worth more than the picture.
            text = format!("{}: {} ({})\n", problem.code, problem.message, problem.help);
        }
        // The library pads some lines with blanks.
        for line in text.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// The source as it may be shown: of the same number of characters as the one that is read.
struct Shown<'a> {
    text: &'a str,
    hidden: Vec<Range<usize>>,
}

impl<'a> Shown<'a> {
    fn new(source: &'a Source<'_>, problems: &[Problem]) -> Self {
        let mut hidden = mask::secrets(source.text());
        let known = problems.iter().filter(|problem| problem.code == code::CREDENTIALS_IN_URL);
        hidden.extend(known.map(|problem| source.in_text(&problem.span)));
        Self { text: source.text(), hidden }
    }

    /// The line a place is on, cut where it is too long. A place of several lines is shown on its first.
    fn line(&self, source_name: &str, place: &Range<usize>) -> Line {
        let before = self.text.get(..place.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.find('\n').unwrap_or(rest.len());
        let chars: Vec<char> = rest
            .get(..length)
            .unwrap_or_default()
            .char_indices()
            .map(|(at, c)| self.shown_character(start + at, c))
            .collect();
        let index = |at: usize| {
            let at = at.clamp(start, start + length);
            self.text.get(start..at).unwrap_or_default().chars().count()
        };
        let (from, to) = (index(place.start), index(place.end));
        let (text, span) = cut(&chars, from, to);
        Line {
            name: source_name.chars().map(printable).collect(),
            text,
            span,
            number: before.matches('\n').count(),
            column: from,
        }
    }

    fn shown_character(&self, at: usize, c: char) -> char {
        if self.hidden.iter().any(|hidden| hidden.contains(&at)) { '*' } else { printable(c) }
    }
}

/// Nothing from a plan may move the cursor or turn the direction of the text.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// At most [`SHOWN`] characters with the place among them, and the place in bytes of that text.
fn cut(chars: &[char], from: usize, to: usize) -> (String, Range<usize>) {
    let first = if chars.len() <= SHOWN || from < SHOWN / 2 { 0 } else { from - SHOWN / 3 };
    let last = chars.len().min(first + SHOWN);
    let window = chars.get(first..last).unwrap_or_default();
    let mut text = String::new();
    if first > 0 {
        text.push('…');
    }
    let (mut start, mut end) = (None, None);
    for (index, c) in window.iter().enumerate() {
        if first + index == from {
            start = Some(text.len());
        }
        text.push(*c);
        if first + index < to {
            end = Some(text.len());
        }
    }
    let tail = text.len();
    if last < chars.len() {
        text.push('…');
    }
    let start = start.unwrap_or(tail);
    if start == text.len() {
        // An arrow needs something to point at.
        text.push(' ');
    }
    let end = if to > from { end.unwrap_or(start) } else { start };
    (text, start..end.max(start))
}

/// One line of the source with the place on it.
struct Line {
    name: String,
    text: String,
    span: Range<usize>,
    /// From 0.
    number: usize,
    /// In characters, from 0.
    column: usize,
}

impl SourceCode for Line {
    /// Always the whole line; only the column of the place itself is asked for without context.
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            self.text.as_bytes(),
            (0, self.text.len()).into(),
            self.number,
            self.column,
            1,
        )))
    }
}

struct Report<'a> {
    problem: &'a Problem,
    line: Line,
}

impl std::fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Report").field(self.problem).finish()
    }
}

impl std::fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&one_line(&self.problem.message))
    }
}

impl std::error::Error for Report<'_> {}

impl Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(self.problem.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(one_line(&self.problem.help)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.line)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (at, length) = (self.line.span.start, self.line.span.len());
        let label = Some(one_line(&self.problem.label));
        Some(Box::new(std::iter::once(LabeledSpan::new(label, at, length))))
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { ' ' } else { printable(c) }).collect()
}
