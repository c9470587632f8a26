//! Reads single values out of TOML tables, and says what is wrong with their types.
//!
//! The tables are walked by hand. A derived reader stops at the first wrong type or unknown key; this one goes on,
//! so that one look shows everything that is wrong.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    keys::{self, Kind},
    problem::{Problem, code},
    raw::Field,
};
use crate::schedule::Rate;

/// Goes through a document.
pub(super) struct Reader<'m> {
    /// Paths that a misspelt key stands for.
    pub(super) meant: &'m [String],
    pub(super) problems: Vec<Problem>,
}

/// A value and its place.
type Found<'t, 'i> = Field<&'t DeValue<'i>>;

impl Reader<'_> {
    /// The value of a key in its table; `table` is `None` where the table itself is missing or no table.
    pub(super) fn find<'t, 'i>(&self, table: Option<&'t DeTable<'i>>, path: &str) -> Found<'t, 'i> {
        let name = path.rsplit('.').next().unwrap_or(path);
        let is_inside = |meant: &String| {
            meant
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        match table.and_then(|table| table.get(name)) {
            Some(value) => Field::Is(Spanned::new(value.span(), value.get_ref())),
            None if self.meant.iter().any(is_inside) => Field::Wrong,
            None => Field::Missing,
        }
    }

    pub(super) fn wrong<T>(&mut self, problem: Problem) -> Field<T> {
        self.problems.push(problem);
        Field::Wrong
    }

    /// What `read` makes of a value. `None` of it: the value is of a wrong type.
    pub(super) fn value<T>(
        &mut self,
        table: Option<&DeTable<'_>>,
        path: &str,
        read: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Field<T> {
        match self.find(table, path) {
            Field::Is(value) => match read(value.get_ref()) {
                Some(good) => Field::Is(Spanned::new(value.span(), good)),
                None => self.wrong(wrong_type(path, value.get_ref(), value.span())),
            },
            Field::Missing => Field::Missing,
            Field::Wrong => Field::Wrong,
        }
    }

    pub(super) fn table<'t, 'i>(
        &mut self,
        parent: Option<&'t DeTable<'i>>,
        path: &str,
        example: &str,
    ) -> Field<&'t DeTable<'i>> {
        let value = match self.find(parent, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        match value.get_ref() {
            DeValue::Table(table) => Field::Is(Spanned::new(value.span(), table)),
            other => {
                let (found, shown) = (kind_of(other), keys::shown(path));
                self.wrong(Problem::error(
                    code::WRONG_TYPE,
                    value.span(),
                    format!("`{shown}` is {found}, expected a table"),
                    "expected a table",
                    format!("for example: {example}"),
                ))
            }
        }
    }

    pub(super) fn string(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<String> {
        self.value(table, path, text)
    }

    pub(super) fn integer(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<i128> {
        self.value(table, path, integer)
    }

    pub(super) fn flag(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<bool> {
        self.value(table, path, |value| value.as_bool())
    }

    /// A number of any kind, as decimal text: a binary fraction would not be what was typed.
    pub(super) fn rate(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<String> {
        self.value(table, path, decimal)
    }

    /// An array of strings; the good ones also where others are wrong.
    pub(super) fn strings(
        &mut self,
        table: Option<&DeTable<'_>>,
        path: &str,
    ) -> Field<Vec<Spanned<String>>> {
        let value = match self.find(table, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(wrong_type(path, value.get_ref(), value.span()));
        };
        let mut strings = Vec::new();
        for item in items.iter() {
            match in_quotes(item) {
                Some(text) => strings.push(text),
                None => self.problems.push(wrong_type(path, item.get_ref(), item.span())),
            }
        }
        Field::Is(Spanned::new(value.span(), strings))
    }

    /// A string, or an array of them.
    pub(super) fn one_or_more(
        &mut self,
        table: Option<&DeTable<'_>>,
        path: &str,
    ) -> Field<Vec<Spanned<String>>> {
        if let Field::Is(value) = self.find(table, path)
            && let DeValue::String(only) = value.get_ref()
        {
            let only = Spanned::new(value.span(), only.clone().into_owned());
            return Field::Is(Spanned::new(value.span(), vec![only]));
        }
        self.strings(table, path)
    }
}

/// The table, where it is one.
pub(super) fn inner<'t, 'i>(table: &Field<&'t DeTable<'i>>) -> Option<&'t DeTable<'i>> {
    table.given().map(|table| *table.get_ref())
}

fn text(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The text, where it is one.
pub(super) fn in_quotes(value: &Spanned<DeValue<'_>>) -> Option<Spanned<String>> {
    text(value.get_ref()).map(|text| Spanned::new(value.span(), text))
}

/// The number, where it is a whole one; one beyond all limits is the nearest that fits.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    let digits = integer.as_str();
    if digits.is_empty() {
        return None;
    }
    let huge = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(digits, integer.radix()).unwrap_or(huge))
}

/// The number as decimal text, where it is one.
pub(super) fn decimal(value: &DeValue<'_>) -> Option<String> {
    let float = || value.as_float().map(|float| float.as_str().to_owned());
    integer(value).map(|whole| whole.to_string()).or_else(float)
}

/// A value of another type than its key wants.
pub(super) fn wrong_type(path: &str, value: &DeValue<'_>, span: Range<usize>) -> Problem {
    let key = keys::find(path);
    let found = kind_of(value);
    let example = || format!("for example: {}", key.example);
    let (code, expected, help) = match (key.kind, value) {
        (Kind::ThinkTime, _) if path.ends_with(".uniform") => {
            (code::WRONG_TYPE, "two durations with their units", example())
        }
        (Kind::Duration { .. } | Kind::ThinkTime, DeValue::Integer(number)) => (
            code::MISSING_UNIT,
            "a duration with its unit",
            format!(
                "write the unit, in quotes: {0} = \"{1}s\" or \"{1}ms\"",
                key.name(),
                number.as_str()
            ),
        ),
        (Kind::Duration { .. } | Kind::ThinkTime, DeValue::Float(number)) => (
            code::MISSING_UNIT,
            "a duration with its unit",
            format!("write the unit, in quotes: {} = \"{}s\"", key.name(), number.as_str()),
        ),
        (Kind::Duration { .. }, _) => (code::WRONG_TYPE, "a duration with its unit", example()),
        (Kind::Count { .. }, _) => (
            code::WRONG_TYPE,
            "a whole number",
            format!(
                "write digits only, without quotes; underscores may group them: {}",
                key.example
            ),
        ),
        (Kind::Rate | Kind::RateOrRamp { .. }, DeValue::String(text)) => {
            let plain = text.trim().trim_end_matches("/s").trim_end();
            let number = plain.parse().map(Rate::to_decimal).ok();
            let line = number.map(|number| format!("{} = {number}", key.name()));
            let line = line.unwrap_or_else(|| key.example.to_owned());
            let help = format!("write the number alone, a rate is per second: {line}");
            (code::WRONG_TYPE, "a number", help)
        }
        (Kind::Rate, _) => (code::WRONG_TYPE, "a number", example()),
        (Kind::RateOrRamp { .. }, _) => (code::WRONG_TYPE, "a number, or { from, to }", example()),
        (Kind::Connections { .. }, DeValue::String(_)) => {
            let help = format!(
                "write digits only, without quotes; underscores may group them: {}",
                key.example
            );
            (code::WRONG_TYPE, "a whole number", help)
        }
        (Kind::Connections { .. }, _) => {
            (code::WRONG_TYPE, "a whole number, or { from, to }", example())
        }
        (Kind::Steps, _) => (code::WRONG_TYPE, "an array of tables", example()),
        (Kind::ThinkTime, _) => (code::WRONG_TYPE, "a duration, or how it is drawn", example()),
        (Kind::Load, _) => (code::WRONG_TYPE, "a table", example()),
        (Kind::Statuses, _) => (code::WRONG_TYPE, "an array of status codes", example()),
        (Kind::Thresholds { .. }, DeValue::Array(_) | DeValue::String(_)) => {
            (code::WRONG_TYPE, "an array of strings", example())
        }
        (Kind::Flag, _) => {
            (code::WRONG_TYPE, "true or false", format!("without quotes: {}", key.example))
        }
        (
            Kind::Text { .. }
            | Kind::Choice(_)
            | Kind::Headers
            | Kind::Thresholds { .. }
            | Kind::Addresses,
            _,
        ) => (code::WRONG_TYPE, "a string", example()),
    };
    let message = format!("`{}` is {found}, expected {expected}", keys::shown(path));
    Problem::error(code, span, message, format!("expected {expected}"), help)
}

/// What a value is, in words.
pub(super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a bare number",
        DeValue::Float(_) => "a number with a point or an exponent",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
