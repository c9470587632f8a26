//! One line of progress. A pure function: what it prints is what a log of a CI job shows.

use std::fmt::Write as _;

use inrush_common::units::{Count, Nanos};
use inrush_proto::v1::Progress;

use crate::render::words;

/// What is known of a run, on one line.
///
/// `12.0 s · 4,321 of 10,000 (43 %) · 812/s · response time p50 1.20 ms p99 8.40 ms · 3 failed · 4 agents`
///
/// Of several phases with those at work: `12.0 s · peak · …`; of an open load with its rate: `812/s (1,000/s planned now)`.
pub fn line(progress: &Progress) -> String {
    let mut line = seconds(progress.elapsed_ns);
    if !progress.phases.is_empty() {
        // A phase's name is whatever the plan says.
        append(&mut line, format_args!(" · {}", words(&progress.phases.join(" + "))));
    }
    append(&mut line, format_args!(" · {}", done(progress)));
    append(&mut line, format_args!(" · {}/s", Count(progress.rate.round() as u64)));
    if let Some(planned) = progress.planned_rate {
        append(&mut line, format_args!(" ({}/s planned now)", planned_rate(planned)));
    }
    if progress.completed > 0 {
        append(
            &mut line,
            format_args!(
                " · response time p50 {} p99 {}",
                time(progress.p50_ns),
                time(progress.p99_ns)
            ),
        );
    }
    append(&mut line, format_args!(" · {} failed", Count(progress.failed)));
    append(&mut line, format_args!(" · {}", agents(progress)));
    line
}

/// How far the run is, 0 to 1: by requests where they are counted, by time elsewhere, and the further of the two where
/// both are planned, since whichever comes first ends it.
pub(super) fn fraction(progress: &Progress) -> f64 {
    let part = |done: u64, of: Option<u64>| match of {
        Some(of) if of > 0 => (done as f64 / of as f64).min(1.0),
        _ => 0.0,
    };
    part(progress.completed, progress.planned).max(part(progress.elapsed_ns, progress.duration_ns))
}

/// Below ten a second, tenths count.
fn planned_rate(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { Count(rate.round() as u64).to_string() }
}

fn done(progress: &Progress) -> String {
    // Rounded down: 100 % is only said of what is all done.
    let percent = (fraction(progress) * 100.0).floor();
    let completed = Count(progress.completed);
    match (progress.planned, progress.duration_ns) {
        (Some(planned), _) => format!("{completed} of {} ({percent} %)", Count(planned)),
        (None, Some(duration)) => {
            format!("{completed} done, {percent} % of {}", seconds(duration))
        }
        (None, None) => format!("{completed} done"),
    }
}

fn agents(progress: &Progress) -> String {
    let noun = if progress.agents == 1 { "agent" } else { "agents" };
    match progress.agents_lost {
        0 => format!("{} {noun}", progress.agents),
        lost => format!("{} {noun}, {lost} lost", progress.agents),
    }
}

fn seconds(nanos: u64) -> String {
    format!("{:.1} s", nanos as f64 / 1e9)
}

fn time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "–".to_owned(), |nanos| Nanos(nanos).to_string())
}

fn append(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn midway() -> Progress {
        Progress {
            elapsed_ns: 12_040_000_000,
            planned: Some(1_000_000),
            duration_ns: None,
            started: 432_200,
            completed: 432_100,
            failed: 1_003,
            rate: 36_008.4,
            p50_ns: Some(1_204_000),
            p99_ns: Some(8_390_000),
            agents: 4,
            agents_lost: 0,
            open_connections: 100,
            phases: Vec::new(),
            planned_rate: None,
        }
    }

    #[test]
    fn a_counted_run_shows_its_part_done() {
        assert_eq!(
            line(&midway()),
            "12.0 s · 432,100 of 1,000,000 (43 %) · 36,008/s · response time p50 1.20 ms p99 8.39 ms · 1,003 failed \
             · 4 agents"
        );
    }

    #[test]
    fn a_timed_run_shows_its_time() {
        let progress = Progress {
            planned: None,
            duration_ns: Some(30_000_000_000),
            failed: 0,
            agents: 1,
            ..midway()
        };
        assert_eq!(
            line(&progress),
            "12.0 s · 432,100 done, 40 % of 30.0 s · 36,008/s · response time p50 1.20 ms p99 8.39 ms · 0 failed · 1 \
             agent"
        );
    }

    #[test]
    fn of_several_phases_those_at_work_are_named_and_an_open_load_shows_its_rate() {
        let phases = vec!["peak".to_owned(), "side\u{1b}[2J".to_owned()];
        let progress = Progress { phases, planned_rate: Some(50_000.4), ..midway() };
        assert_eq!(
            line(&progress),
            "12.0 s · peak + side\\u{1b}[2J · 432,100 of 1,000,000 (43 %) · 36,008/s (50,000/s planned now) · response time \
             p50 1.20 ms p99 8.39 ms · 1,003 failed · 4 agents"
        );
        let slow = Progress { planned_rate: Some(0.4), rate: 0.0, ..midway() };
        assert!(line(&slow).contains(" · 0/s (0.4/s planned now) · "), "{}", line(&slow));
    }

    #[test]
    fn before_the_first_answer_there_is_no_percentile() {
        let progress = Progress {
            elapsed_ns: 0,
            completed: 0,
            failed: 0,
            rate: 0.0,
            p50_ns: None,
            p99_ns: None,
            ..midway()
        };
        assert_eq!(line(&progress), "0.0 s · 0 of 1,000,000 (0 %) · 0/s · 0 failed · 4 agents");
    }

    #[test]
    fn too_few_samples_for_a_percentile_make_a_dash() {
        let progress = Progress { p99_ns: None, ..midway() };
        assert!(line(&progress).contains("p50 1.20 ms p99 –"), "{}", line(&progress));
    }

    #[test]
    fn a_lost_agent_is_said_on_every_line() {
        let progress = Progress { agents: 3, agents_lost: 1, ..midway() };
        assert!(line(&progress).ends_with(" · 3 agents, 1 lost"), "{}", line(&progress));
    }

    #[test]
    fn a_hundred_per_cent_is_only_said_of_all() {
        let progress = Progress { completed: 999_999, ..midway() };
        assert!(line(&progress).contains("(99 %)"), "{}", line(&progress));
        let progress = Progress { completed: 1_000_000, ..midway() };
        assert!(line(&progress).contains("(100 %)"), "{}", line(&progress));
    }

    #[test]
    fn where_count_and_duration_are_planned_the_nearer_end_counts() {
        let progress = Progress { duration_ns: Some(15_000_000_000), ..midway() };
        assert!((fraction(&progress) - 12.04 / 15.0).abs() < 1e-9);
    }
}
