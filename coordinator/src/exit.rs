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
    /// The numbers may be believed, and the target did not reach what the plan asks of it.
    ThresholdFailed,
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
    pub const ALL: [Self; 7] = [
        Self::Passed,
        Self::Usage,
        Self::ThresholdFailed,
        Self::RunInvalid,
        Self::TargetUnreachable,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Usage => 2,
            Self::ThresholdFailed => 3,
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
            Self::ThresholdFailed => "threshold failed",
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
/// pressed Ctrl-C wants to hear that, not that the run is incomplete. And what they are worth comes before what they
/// say: of numbers that may not be believed, no threshold is passed or failed.
pub fn of(report: &Report) -> ExitStatus {
    match report.run.outcome {
        RunOutcome::TargetUnreachable => ExitStatus::TargetUnreachable,
        RunOutcome::Cancelled => ExitStatus::Cancelled,
        // It would be refused at once if the coordinator knew what agents may do.
        RunOutcome::Forbidden => ExitStatus::Usage,
        RunOutcome::Failed => ExitStatus::Internal,
        // A look at a run under way says nothing yet about how it will end.
        RunOutcome::Running => ExitStatus::Passed,
        // Whatever the verdict says: a run that was cut short by a fault must not pass.
        RunOutcome::Aborted => ExitStatus::RunInvalid,
        // Numbers that broke a threshold and may not be believed may have broken it by themselves.
        RunOutcome::StoppedByThreshold => match report.verdict.status {
            VerdictStatus::Invalid => ExitStatus::RunInvalid,
            VerdictStatus::Valid | VerdictStatus::Degraded => ExitStatus::ThresholdFailed,
        },
        RunOutcome::Finished => match report.verdict.status {
            VerdictStatus::Invalid => ExitStatus::RunInvalid,
            VerdictStatus::Valid | VerdictStatus::Degraded
                if report.thresholds.iter().all(|row| row.passed) =>
            {
                ExitStatus::Passed
            }
            VerdictStatus::Valid | VerdictStatus::Degraded => ExitStatus::ThresholdFailed,
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

    /// Whether a run's thresholds held.
    const THRESHOLDS: [bool; 2] = [true, false];

    #[test]
    fn each_outcome_and_verdict_has_its_code_with_thresholds_passed_and_failed() {
        use ExitStatus as Exit;
        use VerdictStatus::{Degraded, Invalid, Valid};

        let json = include_str!("../../common/tests/report/golden/normal.json");
        let mut report: Report = serde_json::from_str(json).unwrap();
        let finished = [
            [Exit::Passed, Exit::ThresholdFailed],
            [Exit::Passed, Exit::ThresholdFailed],
            [Exit::RunInvalid, Exit::RunInvalid],
        ];
        let stopped =
            [[Exit::ThresholdFailed; 2], [Exit::ThresholdFailed; 2], [Exit::RunInvalid; 2]];
        let table = [
            (RunOutcome::Running, [[Exit::Passed; 2]; 3]),
            (RunOutcome::Finished, finished),
            (RunOutcome::Cancelled, [[Exit::Cancelled; 2]; 3]),
            (RunOutcome::StoppedByThreshold, stopped),
            (RunOutcome::Aborted, [[Exit::RunInvalid; 2]; 3]),
            (RunOutcome::TargetUnreachable, [[Exit::TargetUnreachable; 2]; 3]),
            (RunOutcome::Forbidden, [[Exit::Usage; 2]; 3]),
            (RunOutcome::Failed, [[Exit::Internal; 2]; 3]),
        ];
        assert_eq!(table.len(), RunOutcome::ALL.len());
        for (outcome, expected) in table {
            report.run.outcome = outcome;
            let codes = [Valid, Degraded, Invalid].map(|status| {
                report.verdict.status = status;
                THRESHOLDS.map(|passed| {
                    report.thresholds.iter_mut().for_each(|row| row.passed = true);
                    report.thresholds[3].passed = passed;
                    of(&report)
                })
            });
            assert_eq!(codes, expected, "{outcome}");
        }
    }

    #[test]
    fn without_thresholds_none_is_failed() {
        let json = include_str!("../../common/tests/report/golden/normal.json");
        let mut report: Report = serde_json::from_str(json).unwrap();
        assert_eq!(of(&report), ExitStatus::ThresholdFailed);
        report.thresholds.clear();
        assert_eq!(of(&report), ExitStatus::Passed);
    }

    #[test]
    fn codes_differ_and_stand_in_order() {
        assert!(ExitStatus::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }
}
