//! A load as typed: of the plan, or of a phase.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    keys,
    problem::{Problem, code},
    raw::Field,
    reader::{Reader, decimal, integer, kind_of, wrong_type},
};

/// The table `[load]`.
#[derive(Debug)]
pub(crate) struct RawLoad {
    pub(crate) closed: Field<RawClosed>,
    pub(crate) open: Field<RawOpen>,
    /// Where there are both: the key of the later one.
    pub(crate) second: Option<Range<usize>>,
}

/// The table `[load.closed]`.
#[derive(Debug)]
pub(crate) struct RawClosed {
    pub(crate) connections: Field<RawShape<i128>>,
    pub(crate) requests: Field<i128>,
    pub(crate) duration: Field<String>,
    pub(crate) ramp_up: Field<String>,
    pub(crate) think_time: Field<RawThink>,
    pub(crate) steps: Field<Vec<RawStep<i128>>>,
}

/// The table `[load.open]`. Rates are decimal text.
#[derive(Debug)]
pub(crate) struct RawOpen {
    pub(crate) rate: Field<RawShape<String>>,
    pub(crate) duration: Field<String>,
    pub(crate) requests: Field<i128>,
    pub(crate) arrivals: Field<String>,
    pub(crate) max_in_flight: Field<i128>,
    pub(crate) on_overflow: Field<String>,
    pub(crate) steps: Field<Vec<RawStep<String>>>,
}

/// One number, or the two ends of a ramp.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawShape<T> {
    Constant(T),
    Ramp { from: Field<T>, to: Field<T> },
}

/// A table in `steps`.
#[derive(Debug)]
pub(crate) struct RawStep<T> {
    /// Where it is: `load.open.steps[0]`.
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    pub(crate) amount: Field<RawShape<T>>,
    pub(crate) duration: Field<String>,
}

/// `think_time`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawThink {
    Fixed(String),
    Drawn { uniform: Field<Vec<Spanned<String>>>, exponential: Field<String> },
}

impl Reader<'_> {
    pub(super) fn load(&mut self, parent: Option<&DeTable<'_>>, path: &str) -> Field<RawLoad> {
        let load = match self.table(parent, path, keys::find("phases.load").example) {
            Field::Is(load) => load,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let (span, load) = (load.span(), *load.get_ref());
        let place = |name: &str| load.get_key_value(name).map(|(key, _)| key.span());
        let both = place("closed").zip(place("open"));
        let (closed, open) = (format!("{path}.closed"), format!("{path}.open"));
        let raw = RawLoad {
            closed: match self.table(Some(load), &closed, "[load.closed]") {
                Field::Is(table) => self.closed(&table, &closed),
                Field::Missing => Field::Missing,
                Field::Wrong => Field::Wrong,
            },
            open: match self.table(Some(load), &open, "[load.open]") {
                Field::Is(table) => self.open(&table, &open),
                Field::Missing => Field::Missing,
                Field::Wrong => Field::Wrong,
            },
            second: both.map(|(a, b)| if a.start < b.start { b } else { a }),
        };
        Field::Is(Spanned::new(span, raw))
    }

    fn closed(&mut self, table: &Spanned<&DeTable<'_>>, path: &str) -> Field<RawClosed> {
        let (this, at) = (Some(*table.get_ref()), |name: &str| format!("{path}.{name}"));
        let closed = RawClosed {
            connections: self.shape(this, &at("connections"), integer),
            requests: self.integer(this, &at("requests")),
            duration: self.string(this, &at("duration")),
            ramp_up: self.string(this, &at("ramp_up")),
            think_time: self.think_time(this, &at("think_time")),
            steps: self.steps(this, &at("steps"), "connections", integer),
        };
        Field::Is(Spanned::new(table.span(), closed))
    }

    fn open(&mut self, table: &Spanned<&DeTable<'_>>, path: &str) -> Field<RawOpen> {
        let (this, at) = (Some(*table.get_ref()), |name: &str| format!("{path}.{name}"));
        let open = RawOpen {
            rate: self.shape(this, &at("rate"), decimal),
            duration: self.string(this, &at("duration")),
            requests: self.integer(this, &at("requests")),
            arrivals: self.string(this, &at("arrivals")),
            max_in_flight: self.integer(this, &at("max_in_flight")),
            on_overflow: self.string(this, &at("on_overflow")),
            steps: self.steps(this, &at("steps"), "rate", decimal),
        };
        Field::Is(Spanned::new(table.span(), open))
    }

    fn shape<T>(
        &mut self,
        table: Option<&DeTable<'_>>,
        path: &str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Field<RawShape<T>> {
        if let Field::Is(value) = self.find(table, path)
            && let DeValue::Table(ends) = value.get_ref()
        {
            let ramp = RawShape::Ramp {
                from: self.value(Some(ends), &format!("{path}.from"), read),
                to: self.value(Some(ends), &format!("{path}.to"), read),
            };
            return Field::Is(Spanned::new(value.span(), ramp));
        }
        self.value(table, path, |value| read(value).map(RawShape::Constant))
    }

    fn steps<T>(
        &mut self,
        table: Option<&DeTable<'_>>,
        path: &str,
        amount: &str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Field<Vec<RawStep<T>>> {
        let value = match self.find(table, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let DeValue::Array(items) = value.get_ref() else {
            return self.wrong(wrong_type(path, value.get_ref(), value.span()));
        };
        let before = self.problems.len();
        let mut steps = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let DeValue::Table(step) = item.get_ref() else {
                let found = kind_of(item.get_ref());
                self.problems.push(Problem::error(
                    code::WRONG_TYPE,
                    item.span(),
                    format!("a step of `{}` is {found}, expected a table", keys::shown(path)),
                    "expected a table",
                    format!("for example: {}", keys::find(path).example),
                ));
                continue;
            };
            let path = format!("{path}[{index}]");
            steps.push(RawStep {
                amount: self.shape(Some(step), &format!("{path}.{amount}"), read),
                duration: self.string(Some(step), &format!("{path}.duration")),
                span: item.span(),
                path,
            });
        }
        // The good ones still go on, so that what is wrong with them is shown as well.
        if steps.is_empty() && self.problems.len() > before {
            return Field::Wrong;
        }
        Field::Is(Spanned::new(value.span(), steps))
    }

    fn think_time(&mut self, table: Option<&DeTable<'_>>, path: &str) -> Field<RawThink> {
        if let Field::Is(value) = self.find(table, path)
            && let DeValue::Table(drawn) = value.get_ref()
        {
            let drawn = RawThink::Drawn {
                uniform: self.strings(Some(drawn), &format!("{path}.uniform")),
                exponential: self.string(Some(drawn), &format!("{path}.exponential")),
            };
            return Field::Is(Spanned::new(value.span(), drawn));
        }
        self.value(table, path, |value| value.as_str().map(|text| RawThink::Fixed(text.to_owned())))
    }
}
