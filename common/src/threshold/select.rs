//! Selectors: which part of the run a figure is of, and whether the report has it of that part.

use std::ops::Range;

use super::{
    Scope,
    fault::{Fault, shown},
    figure::Place,
    hints::suggestion,
    metric::{Counter, Metric, OutcomeFilter},
    parse::Parser,
};
use crate::plan::{code, nearest::nearest};

/// The selectors as typed.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    request: Option<(String, Range<usize>)>,
    phase: Option<(String, Range<usize>)>,
    outcome: Option<(OutcomeFilter, Range<usize>)>,
}

impl Parser<'_> {
    /// What stands in braces; nothing selected where there are none. `None` where reading cannot go on.
    pub(super) fn selectors(&mut self) -> Option<Selectors> {
        let mut found = Selectors::default();
        if !self.cursor.eat('{') {
            return Some(found);
        }
        loop {
            self.selector(&mut found)?;
            if self.cursor.eat('}') {
                return Some(found);
            }
            if !self.cursor.eat(',') {
                let help = "separate selectors by commas and close the brace";
                let here = self.cursor.here();
                return self.fault(Fault::unreadable(here, "expected , or }", help));
            }
        }
    }

    fn selector(&mut self, found: &mut Selectors) -> Option<()> {
        const KEYS: [&str; 3] = ["request", "phase", "outcome"];
        let key = self.cursor.word();
        if key.is_empty() {
            let help = "write request=\"…\", phase=\"…\" or outcome=\"succeeded\"";
            let here = self.cursor.here();
            return self.fault(Fault::unreadable(here, "expected a selector", help));
        }
        if !self.cursor.eat('=') {
            let name = self.cursor.text(&key);
            let help = format!("write {}=\"…\"", shown(name));
            let here = self.cursor.here();
            return self.fault(Fault::unreadable(here, "expected =", help));
        }
        let (value, part) = match self.cursor.string() {
            Ok(string) => string,
            Err(fault) => return self.fault(fault),
        };
        let all = key.start..part.end;
        let twice = match self.cursor.text(&key) {
            "request" => found.request.replace((value, part)).is_some(),
            "phase" => found.phase.replace((value, part)).is_some(),
            "outcome" => {
                let outcome = self.outcome(&value, part);
                outcome
                    .is_some_and(|outcome| found.outcome.replace((outcome, all.clone())).is_some())
            }
            typed => {
                let message = format!("there is no selector {:?}", shown(typed));
                let fault = Fault::new(
                    code::UNKNOWN_METRIC,
                    key.clone(),
                    message,
                    "not a known selector",
                    suggestion(typed, KEYS),
                );
                self.faults.push(fault);
                false
            }
        };
        if twice {
            let help = "keep the one that is meant, and write a threshold for each";
            self.faults.push(Fault::unreadable(all, "selected twice", help));
        }
        Some(())
    }

    fn outcome(&mut self, value: &str, part: Range<usize>) -> Option<OutcomeFilter> {
        if let Some(found) = OutcomeFilter::from_name(value) {
            return Some(found);
        }
        let help = suggestion(value, OutcomeFilter::ALL.iter().map(|one| one.name()));
        let message = format!("there is no outcome {:?}", shown(value));
        self.fault(Fault::new(code::UNKNOWN_METRIC, part, message, "not an outcome", help))
    }

    /// Applies the selectors to the metric, where the plan and the report have what they select.
    pub(super) fn select(
        &mut self,
        metric: Metric,
        name: Range<usize>,
        selectors: Selectors,
    ) -> Option<(Metric, Scope)> {
        let before = self.faults.len();
        let typed = self.cursor.text(&name).to_owned();
        let requests = self.known.requests.map(|all| all.iter().map(String::as_str).collect());
        let phases = self.known.phases.map(|all| all.iter().map(|phase| phase.name).collect());
        self.named("request", requests, selectors.request.as_ref());
        self.named("phase", phases, selectors.phase.as_ref());
        let metric = match (metric, &selectors.outcome) {
            (metric, None) => metric,
            (Metric::Time { statistic, time, .. }, Some((outcome, _))) if time.is_split() => {
                Metric::Time { statistic, time, outcome: *outcome }
            }
            (metric, Some((_, part))) => {
                let message = format!("the report has no `{typed}` by outcome");
                let help = match metric {
                    Metric::Time { .. } => {
                        "take off the selector; response_time, service_time, schedule_lag and ttfb have it"
                    }
                    _ => {
                        "take off the selector; count(succeeded) and count(failed) count them apart"
                    }
                };
                self.no_figure(part.clone(), message, help.to_owned());
                metric
            }
        };
        let place = Place::of(selectors.request.is_some(), selectors.phase.is_some());
        if !place.has(metric) {
            let given = [&selectors.request, &selectors.phase].into_iter().flatten();
            let parts: Vec<_> = given.map(|(_, part)| part.clone()).collect();
            let start = parts.iter().map(|part| part.start).min().unwrap_or(name.start);
            let end = parts.iter().map(|part| part.end).max().unwrap_or(name.end);
            let message = format!("the report has no `{typed}` of {place}");
            let help = format!("it has of {place}: {}", place.names());
            self.no_figure(start..end, message, help);
        }
        if metric == Metric::Count(Counter::NotStarted) {
            self.not_started(&selectors, name);
        }
        if self.faults.len() > before {
            return None;
        }
        let name_of = |selector: Option<(String, Range<usize>)>| selector.map(|(name, _)| name);
        let scope = Scope { request: name_of(selectors.request), phase: name_of(selectors.phase) };
        Some((metric, scope))
    }

    /// Only where it is known how many there were to be can any have been left out.
    fn not_started(&mut self, selectors: &Selectors, name: Range<usize>) {
        let phase = selectors.phase.as_ref().map(|(name, _)| name.as_str());
        let counted = self.known.phases.is_none_or(|phases| {
            let mut meant = phases
                .iter()
                .filter(|known| phase.map_or(known.measured, |name| known.name == name));
            meant.all(|phase| phase.counted)
        });
        if !counted {
            let message = "there is no count of requests in the plan, so that none can be missing";
            let help =
                "give `requests` beside the duration, or use count(completed) or started_rate";
            self.no_figure(name, message.to_owned(), help.to_owned());
        } else if let Some((_, part)) = &selectors.request
            && self.known.requests.is_some_and(|requests| requests.len() > 1)
        {
            let message =
                "the requests of a plan share its count: not_started is not known of each";
            let help = "take off the selector: count(not_started) == 0";
            self.no_figure(part.clone(), message.to_owned(), help.to_owned());
        }
    }

    fn no_figure(&mut self, part: Range<usize>, message: String, help: String) {
        let label = "nothing there to compare";
        self.faults.push(Fault::new(code::NO_FIGURE, part, message, label, help));
    }

    fn named(
        &mut self,
        what: &str,
        known: Option<Vec<&str>>,
        selected: Option<&(String, Range<usize>)>,
    ) {
        let (Some(known), Some((name, part))) = (known, selected) else { return };
        if known.contains(&name.as_str()) {
            return;
        }
        let near = nearest(name, known.iter().copied());
        let mut names: Vec<String> =
            known.iter().take(5).map(|name| format!("{:?}", shown(name))).collect();
        if known.len() > 5 {
            names.push(format!("{} more", known.len() - 5));
        }
        let has = format!("the plan has {}", names.join(", "));
        let help = match near {
            Some(near) => format!("did you mean {near:?}? {has}"),
            None => has,
        };
        let message = format!("no {what} is called {:?}", shown(name));
        let label = format!("not the name of a {what}");
        self.faults.push(Fault::new(code::UNKNOWN_NAME, part.clone(), message, label, help));
    }
}
