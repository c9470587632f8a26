//! The exit codes of `inrush`: one closed set, documented in `docs/exit-codes.md` and tested against it.

use std::process::ExitCode;

use inrush_common::report::{Report, RunOutcome, VerdictStatus};

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// All was done, and the numbers may be believed.
    Passed,
    /// The command line or the plan is wrong: nothing was sent.
    Usage,
    /// The run ended, but its numbers may not be believed: the generator or an agent is at fault.
    RunInvalid,
    /// The target could not be reached when the run was to start: no load was made.
    TargetUnreachable,
    /// The user stopped the run; what had been measured is in the report.
    Cancelled,
    /// The coordinator or an agent failed, or could not be reached.
    Internal,
}

impl ExitStatus {
    /// All of them, by code.
    pub const ALL: [Self; 6] = [
        Self::Passed,
        Self::Usage,
        Self::RunInvalid,
        Self::TargetUnreachable,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The number that the shell sees. 3 is kept free for failed thresholds.
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Usage => 2,
            Self::RunInvalid => 4,
            Self::TargetUnreachable => 5,
            Self::Cancelled => 6,
            Self::Internal => 7,
        }
    }

    /// What it means, in the words of the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Usage => "usage or plan error",
            Self::RunInvalid => "run invalid",
            Self::TargetUnreachable => "target unreachable at the start",
            Self::Cancelled => "cancelled by the user",
            Self::Internal => "coordinator or agent error",
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

/// The exit status that a run's report stands for. How the run ended comes before what its numbers are worth: who
/// pressed Ctrl-C wants to hear that, not that the run is incomplete.
pub fn of(report: &Report) -> ExitStatus {
    match report.run.outcome {
        RunOutcome::TargetUnreachable => ExitStatus::TargetUnreachable,
        RunOutcome::Cancelled => ExitStatus::Cancelled,
        RunOutcome::Failed => ExitStatus::Internal,
        // A look at a run under way says nothing yet about how it will end.
        RunOutcome::Running => ExitStatus::Passed,
        // Whatever the verdict says: a run that was cut short by a fault must not pass.
        RunOutcome::Aborted => ExitStatus::RunInvalid,
        RunOutcome::Finished => match report.verdict.status {
            VerdictStatus::Valid | VerdictStatus::Degraded => ExitStatus::Passed,
            VerdictStatus::Invalid => ExitStatus::RunInvalid,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENT: &str = include_str!("../../docs/exit-codes.md");

    /// The rows of the document's table: code and meaning.
    fn documented() -> BTreeSet<(String, String)> {
        DOCUMENT
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .filter(|row| row.starts_with(|c: char| c.is_ascii_digit()))
            .map(|row| {
                let mut cells = row.split('|').map(|cell| cell.trim().to_owned());
                (cells.next().unwrap(), cells.next().unwrap())
            })
            .collect()
    }

    #[test]
    fn the_document_lists_exactly_the_codes_that_exist() {
        let coded: BTreeSet<_> = ExitStatus::ALL
            .into_iter()
            .map(|status| (status.code().to_string(), status.meaning().to_owned()))
            .collect();
        assert_eq!(documented(), coded);
    }

    #[test]
    fn each_outcome_and_verdict_has_its_code() {
        use ExitStatus as Exit;
        use VerdictStatus::{Degraded, Invalid, Valid};

        let json = include_str!("../../common/tests/report/golden/normal.json");
        let mut report: Report = serde_json::from_str(json).unwrap();
        let table = [
            (RunOutcome::Running, [Exit::Passed, Exit::Passed, Exit::Passed]),
            (RunOutcome::Finished, [Exit::Passed, Exit::Passed, Exit::RunInvalid]),
            (RunOutcome::Cancelled, [Exit::Cancelled; 3]),
            (RunOutcome::Aborted, [Exit::RunInvalid; 3]),
            (RunOutcome::TargetUnreachable, [Exit::TargetUnreachable; 3]),
            (RunOutcome::Failed, [Exit::Internal; 3]),
        ];
        assert_eq!(table.len(), RunOutcome::ALL.len());
        for (outcome, expected) in table {
            report.run.outcome = outcome;
            let codes = [Valid, Degraded, Invalid].map(|status| {
                report.verdict.status = status;
                of(&report)
            });
            assert_eq!(codes, expected, "{outcome}");
        }
    }

    #[test]
    fn codes_differ_and_stand_in_order() {
        assert!(ExitStatus::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }
}
