//! The plan as typed: every value with its place, nothing checked but its type, no default applied.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    keys,
    problem::{Problem, code},
    raw_load::RawLoad,
    reader::{Reader, in_quotes, inner, integer, kind_of, wrong_type},
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

    /// Whether it is not there at all.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Whether a problem already says why it cannot be used.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong)
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
    pub(crate) load: Field<RawLoad>,
    pub(crate) phases: Field<Vec<Spanned<RawPhase>>>,
    pub(crate) connections: RawConnections,
    pub(crate) seed: Field<i128>,
    pub(crate) agents_min: Field<i128>,
    pub(crate) agents_on_loss: Field<String>,
    pub(crate) thresholds: Field<Vec<Spanned<String>>>,
    pub(crate) stop_when: Field<Vec<Spanned<RawStop>>>,
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

/// A table `[[phases]]`.
#[derive(Debug)]
pub(crate) struct RawPhase {
    /// Where it is: `phases[0]`.
    pub(crate) path: String,
    pub(crate) name: Field<String>,
    pub(crate) measure: Field<bool>,
    pub(crate) start_at: Field<String>,
    pub(crate) start_after: Field<String>,
    pub(crate) load: Field<RawLoad>,
}

/// The keys at the top that say how connections are made and kept.
#[derive(Debug)]
pub(crate) struct RawConnections {
    pub(crate) keep_alive: Field<bool>,
    pub(crate) requests_per_connection: Field<i128>,
    /// As decimal text.
    pub(crate) connect_rate: Field<String>,
    pub(crate) resolve: Field<String>,
    pub(crate) connect_to: Field<Vec<Spanned<String>>>,
    pub(crate) hold: Field<i128>,
}

/// A table `[[stop_when]]`.
#[derive(Debug)]
pub(crate) struct RawStop {
    /// Where it is: `stop_when[0]`.
    pub(crate) path: String,
    pub(crate) threshold: Field<String>,
    pub(crate) after: Field<String>,
    pub(crate) abort: Field<bool>,
}

/// Reads a document. `meant` are the paths that a misspelt key stands for: they count as [`Field::Wrong`].
pub(crate) fn read(document: &DeTable<'_>, meant: &[String]) -> (RawPlan, Vec<Problem>) {
    let mut reader = Reader { meant, problems: Vec::new() };
    let top = Some(document);
    let expect = reader.table(top, "expect", "expect = { status = [200] }");
    let agents = reader.table(top, "agents", "[agents]");
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
        load: reader.load(top, "load"),
        phases: reader.repeated(top, "phases", "name = \"warm-up\"", Reader::phase),
        connections: RawConnections {
            keep_alive: reader.flag(top, "keep_alive"),
            requests_per_connection: reader.integer(top, "requests_per_connection"),
            connect_rate: reader.rate(top, "connect_rate"),
            resolve: reader.string(top, "resolve"),
            connect_to: reader.one_or_more(top, "connect_to"),
            hold: reader.integer(top, "hold"),
        },
        seed: reader.integer(top, "seed"),
        agents_min: reader.integer(agents, "agents.min"),
        agents_on_loss: reader.string(agents, "agents.on_loss"),
        thresholds: reader.strings(top, "thresholds"),
        stop_when: reader.repeated(
            top,
            "stop_when",
            keys::find("stop_when.threshold").example,
            Reader::stop_rule,
        ),
    };
    (plan, reader.problems)
}

impl Reader<'_> {
    fn phase(&mut self, table: &DeTable<'_>, path: String) -> RawPhase {
        let (this, at) = (Some(table), |name: &str| format!("{path}.{name}"));
        RawPhase {
            name: self.string(this, &at("name")),
            measure: self.flag(this, &at("measure")),
            start_at: self.string(this, &at("start_at")),
            start_after: self.string(this, &at("start_after")),
            load: self.load(this, &at("load")),
            path,
        }
    }

    fn stop_rule(&mut self, table: &DeTable<'_>, path: String) -> RawStop {
        let (this, at) = (Some(table), |name: &str| format!("{path}.{name}"));
        RawStop {
            threshold: self.string(this, &at("threshold")),
            after: self.string(this, &at("after")),
            abort: self.flag(this, &at("abort")),
            path,
        }
    }

    /// Tables that may stand in the plan several times.
    fn repeated<T>(
        &mut self,
        top: Option<&DeTable<'_>>,
        path: &str,
        example: &str,
        read: fn(&mut Self, &DeTable<'_>, String) -> T,
    ) -> Field<Vec<Spanned<T>>> {
        let value = match self.find(top, path) {
            Field::Is(value) => value,
            Field::Missing => return Field::Missing,
            Field::Wrong => return Field::Wrong,
        };
        let items: Vec<(&DeValue<'_>, Range<usize>)> = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|i| (i.get_ref(), i.span())).collect(),
            // Written as [phases], for the only one that there is.
            only => vec![(only, value.span())],
        };
        let mut tables = Vec::new();
        let mut wrong = false;
        for (index, (item, span)) in items.into_iter().enumerate() {
            if let DeValue::Table(table) = item {
                let read = read(self, table, format!("{path}[{index}]"));
                tables.push(Spanned::new(span, read));
            } else {
                wrong = true;
                self.problems.push(Problem::error(
                    code::WRONG_TYPE,
                    span,
                    format!("`{path}` is {}, expected tables", kind_of(item)),
                    "expected a table",
                    format!("write [[{path}]] and below it: {example}"),
                ));
            }
        }
        if wrong && tables.is_empty() {
            return Field::Wrong;
        }
        Field::Is(Spanned::new(value.span(), tables))
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
                match in_quotes(value) {
                    Some(text) => good.push(text),
                    None => {
                        let example = "a header's value is a string, or an array of strings for \
                                       several lines: \"5\", [\"a=1\", \"b=2\"]";
                        self.problems.push(Problem::error(
                            code::WRONG_TYPE,
                            value.span(),
                            format!(
                                "header {:?} is {}, expected a string",
                                name.get_ref(),
                                kind_of(value.get_ref())
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
