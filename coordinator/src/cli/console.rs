//! The two streams a command writes to. Stdout carries results, stderr everything else.

use std::{
    env,
    io::{self, IsTerminal as _, Write},
};

use super::{args::ColorWhen, error::CliError};
use crate::live::Style;

/// Where a command writes, and how.
pub(super) struct Console<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    color: ColorWhen,
}

impl std::fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("color", &self.color).finish_non_exhaustive()
    }
}

impl<'a> Console<'a> {
    /// A console over these writers.
    pub(super) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, color: ColorWhen) -> Self {
        Self { out, err, color }
    }

    /// Writes a result. A reader that has gone away (`inrush … | head`) has had enough: that is no failure.
    ///
    /// # Errors
    /// When stdout fails in another way, for instance a full disk.
    pub(super) fn print(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Stdout(error)),
            _ => Ok(()),
        }
    }

    /// Says a line beside the result. A closed stderr leaves nobody to tell.
    pub(super) fn say(&mut self, text: &str) {
        writeln!(self.err, "{text}").ok();
    }

    /// Stderr itself.
    pub(super) fn err(&mut self) -> &mut dyn Write {
        self.err
    }

    /// Whether what goes to stdout is coloured.
    pub(super) fn color_out(&self) -> bool {
        color(self.color, no_color(), io::stdout().is_terminal())
    }

    /// Whether what goes to stderr is coloured.
    pub(super) fn color_err(&self) -> bool {
        color(self.color, no_color(), io::stderr().is_terminal())
    }

    /// How progress is shown here.
    pub(super) fn progress(&self, quiet: bool) -> Style {
        if quiet {
            Style::Quiet
        } else if io::stderr().is_terminal() {
            Style::Bar
        } else {
            Style::Lines
        }
    }
}

/// `NO_COLOR` counts when it is set and not empty (no-color.org).
fn no_color() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

const fn color(when: ColorWhen, no_color: bool, terminal: bool) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => terminal && !no_color,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that fails in one way.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_enough_is_no_failure_and_a_full_disk_is_one() {
        let print = |kind| {
            let (mut out, mut err) = (Broken(kind), Broken(kind));
            let mut console = Console::new(&mut out, &mut err, ColorWhen::Auto);
            console.say("nobody hears this");
            console.print("report")
        };
        assert!(print(io::ErrorKind::BrokenPipe).is_ok());
        assert!(matches!(print(io::ErrorKind::StorageFull), Err(CliError::Stdout(_))));
    }

    #[test]
    fn colour_is_for_terminals_and_an_option_beats_the_environment() {
        assert!(color(ColorWhen::Auto, false, true));
        assert!(!color(ColorWhen::Auto, true, true));
        assert!(!color(ColorWhen::Auto, false, false));
        assert!(color(ColorWhen::Always, true, false));
        assert!(!color(ColorWhen::Never, false, true));
    }
}
