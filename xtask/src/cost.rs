//! The CPU time of programs that have ended.

use std::{
    process::{Command, Output},
    time::Duration,
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike as _},
};

use crate::{Failed, trying};

/// CPU time of a program and of all that it started and waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub(crate) user: Duration,
    pub(crate) kernel: Duration,
}

impl Cpu {
    pub(crate) fn total(self) -> Duration {
        self.user + self.kernel
    }

    fn of_ended_children() -> Result<Self, Failed> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
            .map_err(|error| Failed::new(format!("the CPU time of children: {error}")))?;
        Ok(Self { user: duration(usage.user_time()), kernel: duration(usage.system_time()) })
    }
}

fn duration(value: TimeVal) -> Duration {
    Duration::from_micros(u64::try_from(value.num_microseconds()).unwrap_or(0))
}

/// Runs a program to its end; what it wrote, and what it cost. Nothing else that this process started may end meanwhile.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn run(command: &mut Command) -> Result<(Output, Cpu), Failed> {
    let before = Cpu::of_ended_children()?;
    let output = command.output().map_err(trying(&format!("{command:?}")))?;
    let after = Cpu::of_ended_children()?;
    let cpu = Cpu { user: after.user - before.user, kernel: after.kernel - before.kernel };
    Ok((output, cpu))
}
