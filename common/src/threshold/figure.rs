//! Where a report has which figure. A new row or column of the report becomes available to thresholds here, and
//! nowhere else: in [`Place::has`], which refuses plans, and in [`Line`], which finds the figure.

use std::fmt;

use super::{
    Scope,
    metric::{Counter, Metric, OutcomeFilter, Time},
};
use crate::report::{
    Connections, Distribution, ErrorRow, Ledger, PhaseRow, Rates, Report, RequestRow,
    SplitByOutcome, StatusRow,
};

/// The kinds of lines that a report has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The run as a whole.
    Run,
    /// A request of the plan.
    Request,
    /// A phase of the plan.
    Phase,
    /// A request within a phase.
    RequestInPhase,
}

impl Place {
    pub(super) const fn of(request: bool, phase: bool) -> Self {
        match (request, phase) {
            (false, false) => Self::Run,
            (true, false) => Self::Request,
            (false, true) => Self::Phase,
            (true, true) => Self::RequestInPhase,
        }
    }

    /// Whether lines of this kind have the figure.
    pub(super) const fn has(self, metric: Metric) -> bool {
        match (self, metric) {
            (Self::Run, _) => true,
            (_, Metric::FailedRatio | Metric::Rate(_)) => true,
            (_, Metric::Count(counter)) => !matches!(counter, Counter::Connections(_)),
            (Self::Phase, Metric::Time { time, .. }) => time.is_split(),
            (Self::Request | Self::RequestInPhase, Metric::Time { time, .. }) => {
                matches!(time, Time::ResponseTime | Time::ServiceTime)
            }
        }
    }

    /// What lines of this kind have, in words.
    pub(super) const fn names(self) -> &'static str {
        match self {
            Self::Run => "everything",
            Self::Phase => {
                "response_time, service_time, schedule_lag, ttfb, failed_ratio, rates, and counts but those of connections"
            }
            Self::Request | Self::RequestInPhase => {
                "response_time, service_time, failed_ratio, rates, and counts but those of connections"
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "a run",
            Self::Request => "a request",
            Self::Phase => "a phase",
            Self::RequestInPhase => "a request within a phase",
        })
    }
}

/// One line of a report, with what it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'r> {
    pub(super) ledger: &'r Ledger,
    pub(super) rates: &'r Rates,
    pub(super) duration_s: f64,
    response_time: Option<&'r SplitByOutcome>,
    service_time: Option<&'r SplitByOutcome>,
    schedule_lag: Option<&'r SplitByOutcome>,
    ttfb: Option<&'r SplitByOutcome>,
    connect: Option<&'r Distribution>,
    tls: Option<&'r Distribution>,
    worker_lag: Option<&'r Distribution>,
    pub(super) status: Option<&'r [StatusRow]>,
    pub(super) errors: Option<&'r [ErrorRow]>,
    pub(super) connections: Option<&'r Connections>,
}

impl<'r> Line<'r> {
    /// What the selectors lead to. `None` where the report has no such line: it is not of the threshold's plan.
    pub(super) fn find(report: &'r Report, scope: &Scope) -> Option<Self> {
        match (&scope.request, &scope.phase) {
            (None, None) => Some(Self::of_run(report)),
            (Some(name), None) => {
                let row = report.requests.iter().find(|row| row.name == *name)?;
                Some(Self::of_request(row, report.duration_s))
            }
            (None, Some(name)) => {
                report.phases.iter().find(|row| row.name == *name).map(Self::of_phase)
            }
            (Some(request), Some(phase)) => {
                let phase = report.phases.iter().find(|row| row.name == *phase)?;
                let request = report.requests.iter().find(|row| row.name == *request)?;
                // Without several phases and several requests, a phase's rows would be copies, and are not there.
                match phase.requests.iter().find(|row| row.name == request.name) {
                    Some(row) => Some(Self::of_request(row, phase.duration_s)),
                    None if report.requests.len() == 1 => Some(Self::of_phase(phase)),
                    None => Some(Self::of_request(request, report.duration_s)),
                }
            }
        }
    }

    /// Of accounts alone.
    const fn new(ledger: &'r Ledger, rates: &'r Rates, duration_s: f64) -> Self {
        Self {
            ledger,
            rates,
            duration_s,
            response_time: None,
            service_time: None,
            schedule_lag: None,
            ttfb: None,
            connect: None,
            tls: None,
            worker_lag: None,
            status: None,
            errors: None,
            connections: None,
        }
    }

    fn of_run(report: &'r Report) -> Self {
        Self {
            response_time: Some(&report.response_time),
            service_time: Some(&report.service_time),
            schedule_lag: Some(&report.schedule_lag),
            ttfb: Some(&report.ttfb),
            connect: Some(&report.connect),
            tls: Some(&report.tls),
            worker_lag: Some(&report.worker_lag),
            status: Some(&report.status),
            errors: Some(&report.errors),
            connections: Some(&report.connections),
            ..Self::new(&report.ledger, &report.rates, report.duration_s)
        }
    }

    fn of_request(row: &'r RequestRow, duration_s: f64) -> Self {
        Self {
            response_time: Some(&row.response_time),
            service_time: Some(&row.service_time),
            status: Some(&row.status),
            errors: Some(&row.errors),
            ..Self::new(&row.ledger, &row.rates, duration_s)
        }
    }

    fn of_phase(row: &'r PhaseRow) -> Self {
        Self {
            response_time: Some(&row.response_time),
            service_time: Some(&row.service_time),
            schedule_lag: Some(&row.schedule_lag),
            ttfb: Some(&row.ttfb),
            status: Some(&row.status),
            errors: Some(&row.errors),
            ..Self::new(&row.ledger, &row.rates, row.duration_s)
        }
    }

    /// The distribution, where the line has it.
    pub(super) const fn distribution(
        &self,
        time: Time,
        outcome: OutcomeFilter,
    ) -> Option<&'r Distribution> {
        let split = match time {
            Time::ResponseTime => self.response_time,
            Time::ServiceTime => self.service_time,
            Time::ScheduleLag => self.schedule_lag,
            Time::Ttfb => self.ttfb,
            Time::Connect => return self.connect,
            Time::Tls => return self.tls,
            Time::WorkerLag => return self.worker_lag,
        };
        match (split, outcome) {
            (None, _) => None,
            (Some(split), OutcomeFilter::All) => Some(&split.all),
            (Some(split), OutcomeFilter::Succeeded) => Some(&split.succeeded),
            (Some(split), OutcomeFilter::Failed) => Some(&split.failed),
        }
    }
}
