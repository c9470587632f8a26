//! Checks of single values: of the right type already, now against the limits of their keys. Where a key is missing its
//! default holds.

use std::{ops::Range, time::Duration};

use toml::Spanned;

use super::{
    compile::Compiler,
    duration,
    keys::{self, Kind},
    nearest,
    problem::{Problem, code},
    raw::Field,
};

impl Compiler<'_> {
    pub(super) fn error(
        &mut self,
        code: &'static str,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(Problem::error(code, span, message, label, help));
    }

    /// A name that can be shown in lists and reports.
    pub(super) fn name(&mut self, path: &str, name: &Spanned<String>) -> Option<String> {
        let text = name.get_ref();
        let label = if text.trim().is_empty() {
            "nothing to see"
        } else if text.chars().any(unprintable) {
            "holds a line break or a control character"
        } else if text.chars().count() > 100 {
            "longer than 100 characters"
        } else {
            return Some(text.clone());
        };
        let message = format!("`{}` cannot be shown in lists and reports", keys::shown(path));
        let help =
            format!("a name has 1 to 100 characters on one line: {}", keys::find(path).example);
        self.error(code::BAD_NAME, name.span(), message, label, help);
        None
    }

    /// Reports a key that is needed and missing.
    pub(super) fn missing(&mut self, path: &str, table: Range<usize>) {
        let message = format!("`{}` is missing", keys::shown(path));
        let help = format!("for example: {}", keys::find(path).example);
        self.error(code::MISSING_KEY, table, message, "not in this table", help);
    }

    /// One of some words; where the key is missing, its default.
    pub(super) fn choice<T: Copy>(
        &mut self,
        path: &str,
        field: &Field<String>,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let key = keys::find(path);
        let (text, span) = match field {
            Field::Wrong => return None,
            Field::Missing => (key.default_text().unwrap_or_default(), 0..0),
            Field::Is(typed) => (typed.get_ref().as_str(), typed.span()),
        };
        if let Some(found) = all.iter().find(|choice| word(**choice) == text) {
            return Some(*found);
        }
        let help = match nearest::nearest(text, all.iter().map(|choice| word(*choice))) {
            Some(near) => format!("did you mean \"{near}\"? Available are {}", key.limits()),
            None => format!("available are {}", key.limits()),
        };
        let shown: String = text.chars().take(40).collect();
        let message = format!("`{}` cannot be {shown:?}", key.name());
        self.error(code::BAD_CHOICE, span, message, "not one of its words", help);
        None
    }

    /// `true` or `false`; where the key is missing, its default.
    pub(super) fn flag(&self, path: &str, field: &Field<bool>) -> Option<bool> {
        match field {
            Field::Wrong => None,
            Field::Missing => keys::find(path).default_text().map(|text| text == "true"),
            Field::Is(typed) => Some(*typed.get_ref()),
        }
    }

    /// A duration within the limits of its key, which has a default.
    pub(super) fn duration(&mut self, path: &str, field: &Field<String>) -> Option<Duration> {
        let default =
            || keys::find(path).default_text().and_then(|text| duration::parse(text).ok());
        match field {
            Field::Missing => default(),
            _ => self.given_duration(path, field),
        }
    }

    /// A duration within the limits of its key; `None` also where it is missing.
    pub(super) fn given_duration(&mut self, path: &str, field: &Field<String>) -> Option<Duration> {
        let typed = field.given()?;
        let (text, whole) = (typed.get_ref(), typed.span());
        let found = match duration::parse(text) {
            Ok(found) => found,
            Err(why) => {
                let part = if why.part.is_empty() {
                    whole
                } else {
                    self.source.inside(&whole, text, why.part)
                };
                let shown: String = text.chars().take(40).collect();
                let message = format!("`{}` is no duration: {shown:?}", keys::shown(path));
                self.error(code::BAD_DURATION, part, message, why.label, why.help);
                return None;
            }
        };
        let (least, most) = match keys::find(path).kind {
            Kind::Duration { least, most } => (least, most),
            Kind::ThinkTime => (Duration::ZERO, keys::HOUR),
            _ => (Duration::ZERO, Duration::MAX),
        };
        if found < least || found > most {
            self.beyond(path, whole, &format!(", got {text:?}"));
            return None;
        }
        Some(found)
    }

    /// A number within the limits of its key. Where it is missing: the default, where the key has one.
    pub(super) fn count(&mut self, path: &str, field: &Field<i128>) -> Option<u64> {
        let key = keys::find(path);
        let typed = match field {
            Field::Missing => return key.default_text().and_then(|text| text.parse().ok()),
            Field::Wrong => return None,
            Field::Is(typed) => typed,
        };
        let (least, most) = match key.kind {
            Kind::Count { least, most } => (least, most),
            _ => (0, u64::MAX),
        };
        self.number(path, typed, least, most)
    }

    /// A number within limits.
    pub(super) fn number(
        &mut self,
        path: &str,
        typed: &Spanned<i128>,
        least: u64,
        most: u64,
    ) -> Option<u64> {
        let number = *typed.get_ref();
        if let Ok(found) = u64::try_from(number)
            && (least..=most).contains(&found)
        {
            return Some(found);
        }
        let got = if number.unsigned_abs() > 1 << 100 {
            String::new()
        } else {
            format!(", got {number}")
        };
        self.beyond(path, typed.span(), &got);
        None
    }

    /// Reports a key that cannot be there together with another one; the arrow points at the later of the two.
    pub(super) fn exclude<A, B>(
        &mut self,
        key: &Field<A>,
        name: &str,
        (other, other_name): (&Field<B>, &str),
        help: &str,
    ) {
        let (Some(key), Some(other)) = (key.given(), other.given()) else { return };
        let later = if key.span().start < other.span().start { other.span() } else { key.span() };
        self.error(
            code::CONFLICT,
            later,
            format!("`{name}` and `{other_name}` cannot be together"),
            "the second of the two",
            format!("remove one of them: {help}"),
        );
    }

    /// Reports a value beyond the limits of its key.
    pub(super) fn beyond(&mut self, path: &str, span: Range<usize>, got: &str) {
        let (key, shown) = (keys::find(path), keys::shown(path));
        let limits = key.range();
        let message = format!("`{shown}` must be {limits}{got}");
        let help = format!("for example: {}", key.example);
        self.error(code::OUT_OF_RANGE, span, message, limits, help);
    }
}

/// Whether a character would break a line of a list.
pub(super) fn unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}
