//! The plan as typed: every value with its place, nothing checked but its type, no default applied.
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
};

/// A key of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field<T> {
    /// It is not there: its default holds.
    Missing,
    /// It is there and cannot be used; a problem says why.
    Wrong,
    /// It is there.
    Is(Spanned<T>),
}

impl<T> Field<T> {
    /// The value, where it is there and of the right type.
    pub(crate) fn given(&self) -> Option<&Spanned<T>> {
        match self {
            Self::Is(value) => Some(value),
            Self::Missing | Self::Wrong => None,
        }
    }
}

/// A whole plan.
#[derive(Debug)]
pub(crate) struct RawPlan {
    pub(crate) name: Field<String>,
    pub(crate) url: Field<String>,
    pub(crate) method: Field<String>,
    /// In the order of the plan.
    pub(crate) headers: Vec<RawHeader>,
    pub(crate) body: Field<String>,
    pub(crate) body_file: Field<String>,
    pub(crate) timeout: Field<String>,
    pub(crate) connect_timeout: Field<String>,
    pub(crate) grace: Field<String>,
    pub(crate) give_up_after: Field<String>,
    pub(crate) status: Field<Vec<Spanned<RawStatus>>>,
    pub(crate) closed: Field<RawClosed>,
    /// Where `[load.open]` stands, which this version only knows by name.
    pub(crate) open: Option<Range<usize>>,
    pub(crate) agents_min: Field<i128>,
    pub(crate) agents_on_loss: Field<String>,
    pub(crate) thresholds: Field<Vec<Spanned<String>>>,
    pub(crate) stop_when: Field<Vec<Spanned<RawStop>>>,
}

/// A table `[[stop_when]]`.
#[derive(Debug)]
pub(crate) struct RawStop {
    pub(crate) threshold: Field<String>,
    pub(crate) after: Field<String>,
    pub(crate) abort: Field<bool>,
}

/// One header: its name, and its values (more than one: the line is repeated).
#[derive(Debug)]
pub(crate) struct RawHeader {
    pub(crate) name: Spanned<String>,
    pub(crate) values: Vec<Spanned<String>>,
}

/// An entry of `expect.status`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawStatus {
    Code(i128),
    Range(String),
}

/// The table `[load.closed]`.
#[derive(Debug)]
pub(crate) struct RawClosed {
    pub(crate) connections: Field<i128>,
    pub(crate) requests: Field<i128>,
    pub(crate) duration: Field<String>,
    pub(crate) ramp_up: Field<String>,
}

/// Reads a document. `meant` are the paths that a misspelt key stands for: they count as [`Field::Wrong`].
pub(crate) fn read(document: &DeTable<'_>, meant: &[String]) -> (RawPlan, Vec<Problem>) {
    let mut reader = Reader { meant, problems: Vec::new() };
    let top = Some(document);
    let expect = reader.table(top, "expect", "expect = { status = [200] }");
    let agents = reader.table(top, "agents", "[agents]");
    let load = reader.table(top, "load", "[load.closed]");
    let load_is_wrong = matches!(load, Field::Wrong);
    let load = inner(&load);
    let closed = reader.table(load, "load.closed", "[load.closed]");
    let open = load.and_then(|load| load.get_key_value("open")).map(|(key, _)| key.span());
    let (expect, agents) = (inner(&expect), inner(&agents));
    let plan = RawPlan {
        name: reader.string(top, "name"),
        url: reader.string(top, "url"),
        method: reader.string(top, "method"),
        headers: reader.headers(document),
        body: reader.string(top, "body"),
        body_file: reader.string(top, "body_file"),
        timeout: reader.string(top, "timeout"),
        connect_timeout: reader.string(top, "connect_timeout"),
        grace: reader.string(top, "grace"),
        give_up_after: reader.string(top, "give_up_after"),
        status: reader.statuses(expect),
        closed: match closed {
            Field::Is(table) => {
                Field::Is(Spanned::new(table.span(), reader.closed(table.get_ref())))
            }
            Field::Missing if !load_is_wrong => Field::Missing,
            Field::Missing | Field::Wrong => Field::Wrong,
        },
        open,
        agents_min: reader.integer(agents, "agents.min"),
        agents_on_loss: reader.string(agents, "agents.on_loss"),
        thresholds: reader.strings(top, "thresholds"),
        stop_when: reader.stop_rules(top),
    };
    (plan, reader.problems)
}

fn inner<'t, 'i>(table: &Field<&'t DeTable<'i>>) -> Option<&'t DeTable<'i>> {
    table.given().map(|table| *table.get_ref())
}

struct Reader<'m> {
    meant: &'m [String],
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn closed(&mut self, table: &DeTable<'_>) -> RawClosed {
        let table = Some(table);
        RawClosed {
            connections: self.integer(table, "load.closed.connections"),
            requests: self.integer(table, "load.closed.requests"),
            duration: self.string(table, "load.closed.duration"),
            ramp_up: self.string(table, "load.closed.ramp_up"),
        }
    }

    /// The value of a key in its table; `table` is `None` where the table itself is missing or no table.
    fn find<'t, 'i>(&self, table: Option<&'t DeTable<'i>>, path: &str) -> Field<&'t DeValue<'i>> {
        let name = path.rsplit('.').next().unwrap_or(path);
        match table.and_then(|table| table.get(name)) {
            Some(value) => Field::Is(Spanned::new(value.span(), value.get_ref())),
            None if self.meant.iter().any(|meant| meant.starts_with(path)) => Field::Wrong,
            None => Field::Missing,
        }
    }

    fn wrong<T>(&mut self, problem: Problem) -> Field<T> {
        self.problems.push(problem);
        Field::Wrong
    }

    fn table<'t, 'i>(
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
                let found = kind_of(other);
                self.wrong(Problem::error(
                    code::WRONG_TYPE,
                    value.span(),
                    format!("`{path}` is {found}, expected a table"),
                    "expected a table",
                    format!("for example: {example}"),
                ))
            }
        }
    }

    fn string(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<String> {
        let value = match self.find(table, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        match value.get_ref() {
            DeValue::String(text) => {
                Field::Is(Spanned::new(value.span(), text.clone().into_owned()))
            }
            other => self.wrong(wrong_type(path, other, value.span())),
        }
    }

    fn integer(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<i128> {
        let value = match self.find(table, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        match integer(value.get_ref()) {
            Some(number) => Field::Is(Spanned::new(value.span(), number)),
            None => self.wrong(wrong_type(path, value.get_ref(), value.span())),
        }
    }

    fn statuses(&mut self, expect: Option<&DeTable<'_>>) -> Field<Vec<Spanned<RawStatus>>> {
        let path = "expect.status";
        let value = match self.find(expect, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(wrong_type(path, value.get_ref(), value.span()));
        };
        let before = self.problems.len();
        let mut statuses = Vec::new();
        for item in items.iter() {
            match (item.get_ref(), integer(item.get_ref())) {
                (_, Some(code)) => statuses.push(Spanned::new(item.span(), RawStatus::Code(code))),
                (DeValue::String(range), _) => {
                    let range = RawStatus::Range(range.clone().into_owned());
                    statuses.push(Spanned::new(item.span(), range));
                }
                (other, None) => self.problems.push(wrong_type(path, other, item.span())),
            }
        }
        // The good ones still go on, so that what is wrong with them is shown as well.
        if statuses.is_empty() && self.problems.len() > before {
            return Field::Wrong;
        }
        Field::Is(Spanned::new(value.span(), statuses))
    }

    fn flag(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<bool> {
        let value = match self.find(table, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Field::Is(Spanned::new(value.span(), *flag)),
            other => self.wrong(wrong_type(path, other, value.span())),
        }
    }

    /// An array of strings; the good ones also where others are wrong.
    fn strings(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<Vec<Spanned<String>>> {
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
            match item.get_ref() {
                DeValue::String(text) => {
                    strings.push(Spanned::new(item.span(), text.clone().into_owned()));
                }
                other => self.problems.push(wrong_type(path, other, item.span())),
            }
        }
        Field::Is(Spanned::new(value.span(), strings))
    }

    fn stop_rules(&mut self, top: Option<&DeTable<'_>>) -> Field<Vec<Spanned<RawStop>>> {
        let value = match self.find(top, "stop_when") {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let mut rules = Vec::new();
        let mut rule = |value: &DeValue<'_>, span: Range<usize>| match value {
            DeValue::Table(table) => {
                let table = Some(table);
                let rule = RawStop {
                    threshold: self.string(table, "stop_when.threshold"),
                    after: self.string(table, "stop_when.after"),
                    abort: self.flag(table, "stop_when.abort"),
                };
                rules.push(Spanned::new(span, rule));
            }
            other => self.problems.push(Problem::error(
                code::WRONG_TYPE,
                span,
                format!("`stop_when` is {}, expected tables", kind_of(other)),
                "expected a table",
                "write [[stop_when]] and below it: threshold = \"failed_ratio < 5%\"",
            )),
        };
        match value.get_ref() {
            DeValue::Array(items) => {
                items.iter().for_each(|item| rule(item.get_ref(), item.span()));
            }
            // Written as [stop_when], for the only one that there is.
            other => rule(other, value.span()),
        }
        Field::Is(Spanned::new(value.span(), rules))
    }

    fn headers(&mut self, top: &DeTable<'_>) -> Vec<RawHeader> {
        let table = self.table(Some(top), "headers", keys::find("headers").example);
        let Some(table) = inner(&table) else {
            return Vec::new();
        };
        let mut lines: Vec<_> = table.iter().collect();
        lines.sort_by_key(|(name, _)| name.span().start);
        let mut headers = Vec::new();
        for (name, value) in lines {
            let values = match value.get_ref() {
                DeValue::Array(values) => values.iter().collect(),
                _ => vec![value],
            };
            let mut good = Vec::new();
            for value in values {
                match value.get_ref() {
                    DeValue::String(text) => {
                        good.push(Spanned::new(value.span(), text.clone().into_owned()));
                    }
                    other => {
                        let example = "a header's value is a string, or an array of strings for \
                                       several lines: \"5\", [\"a=1\", \"b=2\"]";
                        self.problems.push(Problem::error(
                            code::WRONG_TYPE,
                            value.span(),
                            format!(
                                "header {:?} is {}, expected a string",
                                name.get_ref(),
                                kind_of(other)
                            ),
                            "expected a string",
                            example,
                        ));
                    }
                }
            }
            let name = Spanned::new(name.span(), name.get_ref().clone().into_owned());
            headers.push(RawHeader { name, values: good });
        }
        headers
    }
}

/// The number, where it is a whole one; one beyond all limits is the nearest that fits.
fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    let digits = integer.as_str();
    if digits.is_empty() {
        return None;
    }
    let huge = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(digits, integer.radix()).unwrap_or(huge))
}

fn wrong_type(path: &str, value: &DeValue<'_>, span: Range<usize>) -> Problem {
    let key = keys::find(path);
    let found = kind_of(value);
    let (code, expected, help) = match (key.kind, value) {
        (Kind::Duration { .. }, DeValue::Integer(number)) => (
            code::MISSING_UNIT,
            "a duration with its unit",
            format!(
                "write the unit, in quotes: {0} = \"{1}s\" or \"{1}ms\"",
                key.name(),
                number.as_str()
            ),
        ),
        (Kind::Duration { .. }, DeValue::Float(number)) => (
            code::MISSING_UNIT,
            "a duration with its unit",
            format!("write the unit, in quotes: {} = \"{}s\"", key.name(), number.as_str()),
        ),
        (Kind::Duration { .. }, _) => {
            (code::WRONG_TYPE, "a duration with its unit", format!("for example: {}", key.example))
        }
        (Kind::Count { .. }, _) => (
            code::WRONG_TYPE,
            "a whole number",
            format!(
                "write digits only, without quotes; underscores may group them: {}",
                key.example
            ),
        ),
        (Kind::Statuses, _) => {
            (code::WRONG_TYPE, "an array of status codes", format!("for example: {}", key.example))
        }
        (Kind::Thresholds { .. }, DeValue::Array(_) | DeValue::String(_)) => {
            (code::WRONG_TYPE, "an array of strings", format!("for example: {}", key.example))
        }
        (Kind::Flag, _) => {
            (code::WRONG_TYPE, "true or false", format!("without quotes: {}", key.example))
        }
        (Kind::Text { .. } | Kind::Choice(_) | Kind::Headers | Kind::Thresholds { .. }, _) => {
            (code::WRONG_TYPE, "a string", format!("for example: {}", key.example))
        }
    };
    let message = format!("`{path}` is {found}, expected {expected}");
    Problem::error(code, span, message, format!("expected {expected}"), help)
}

/// What a value is, in words.
fn kind_of(value: &DeValue<'_>) -> &'static str {
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
