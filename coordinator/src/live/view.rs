//! Where progress is shown.

use std::{
    io::{self, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inrush_proto::v1::{Progress, RunState, RunUpdate};

use super::line::{fraction, line};
use crate::render::words;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    Quiet,
    /// A line a second.
    Lines,
    /// A bar that is drawn over itself.
    Bar,
}

/// Shows the updates of one run.
#[derive(Debug)]
pub struct View {
    style: Style,
    bar: Option<ProgressBar>,
    /// State and detail last said: said again only when they change.
    said: Option<(i32, String)>,
}

/// Steps of a full bar.
const STEPS: u64 = 1_000;

impl View {
    /// A view in this style. A bar goes to the terminal on stderr.
    pub fn new(style: Style) -> Self {
        let bar = (style == Style::Bar).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(8));
            let template = "{spinner} [{bar:16}] {wide_msg}";
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("=> "),
            );
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self { style, bar, said: None }
    }

    /// Shows an update.
    ///
    /// # Errors
    /// When `err` cannot be written to.
    pub fn update(&mut self, err: &mut dyn Write, update: &RunUpdate) -> io::Result<()> {
        if self.style == Style::Quiet {
            return Ok(());
        }
        let state = update.state();
        let said = (update.state, update.detail.clone());
        let changed = self.said.as_ref() != Some(&said);
        if changed && let Some(text) = announcement(state, &update.detail) {
            self.note(err, &text)?;
        }
        self.said = Some(said);
        if let Some(progress) = progress_of(state, update) {
            match &self.bar {
                Some(bar) => {
                    bar.set_position((fraction(progress) * STEPS as f64) as u64);
                    bar.set_message(line(progress));
                }
                None => writeln!(err, "{}", line(progress))?,
            }
        }
        Ok(())
    }

    /// Says something beside the progress; a bar is moved out of the way.
    ///
    /// # Errors
    /// When `err` cannot be written to.
    pub fn note(&self, err: &mut dyn Write, text: &str) -> io::Result<()> {
        match &self.bar {
            Some(bar) => bar.suspend(|| writeln!(err, "{text}")),
            None => writeln!(err, "{text}"),
        }
    }

    /// Takes the bar away: what follows has the terminal for itself.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What is said once when a run comes into a state. While it runs, the progress itself is enough.
fn announcement(state: RunState, detail: &str) -> Option<String> {
    let word = match state {
        RunState::Queued => "queued",
        RunState::Preparing => "preparing",
        RunState::Ready => "ready",
        RunState::Draining => "draining",
        RunState::Running
        | RunState::Unspecified
        | RunState::Finished
        | RunState::Failed
        | RunState::Cancelled => "",
    };
    // It may hold what a target, or an agent, has said.
    match (word, words(detail).as_str()) {
        ("", "") => None,
        ("", detail) => Some(detail.to_owned()),
        (word, "") => Some(word.to_owned()),
        (word, detail) => Some(format!("{word}: {detail}")),
    }
}

fn progress_of(state: RunState, update: &RunUpdate) -> Option<&Progress> {
    match state {
        RunState::Running | RunState::Draining => update.progress.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(state: RunState, detail: &str) -> RunUpdate {
        RunUpdate {
            run: "r1".to_owned(),
            state: state.into(),
            detail: detail.to_owned(),
            progress: Some(Progress { agents: 2, ..Progress::default() }),
            report_json: Vec::new().into(),
        }
    }

    fn shown(style: Style, updates: &[RunUpdate]) -> String {
        let mut view = View::new(style);
        let mut text = Vec::new();
        for update in updates {
            view.update(&mut text, update).unwrap();
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_state_is_said_once_and_progress_each_time() {
        let updates = [
            update(RunState::Queued, "waiting for agents: 0 of 2"),
            update(RunState::Queued, "waiting for agents: 0 of 2"),
            update(RunState::Preparing, ""),
            update(RunState::Running, ""),
            update(RunState::Running, ""),
        ];
        let progress = "0.0 s · 0 done · 0/s · 0 failed · 2 agents\n";
        assert_eq!(
            shown(Style::Lines, &updates),
            format!("queued: waiting for agents: 0 of 2\npreparing\n{progress}{progress}")
        );
    }

    #[test]
    fn strangers_words_do_not_move_the_cursor() {
        let text = shown(Style::Lines, &[update(RunState::Failed, "refused\u{1b}[2J\nby x")]);
        assert_eq!(text, "refused\\u{1b}[2J by x\n");
    }

    #[test]
    fn quiet_is_quiet() {
        assert_eq!(shown(Style::Quiet, &[update(RunState::Running, "an agent was lost")]), "");
    }
}
