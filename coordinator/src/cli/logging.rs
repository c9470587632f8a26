//! Logs to stderr.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// The crates whose logs `-v` is about.
const OURS: [&str; 3] = ["inrush_common", "inrush_agent", "inrush_coordinator"];

/// Starts logging at the level that `-v` asks for, or else `RUST_LOG`. `base` is the level without either.
pub(super) fn start(base: LevelFilter, verbosity: u8, color: bool) {
    let level = level(base, verbosity);
    let directives = OURS.map(|name| format!("{name}={level}")).join(",");
    // Others' logs (h2, hyper) are about their own insides.
    let usual = || EnvFilter::builder().parse_lossy(format!("warn,{directives}"));
    let filter = match EnvFilter::try_from_default_env() {
        Ok(filter) if verbosity == 0 => filter,
        _ => usual(),
    };
    let subscriber = tracing_subscriber::fmt()
        .compact()
        .with_writer(io::stderr)
        .with_ansi(color)
        .with_target(false)
        .with_env_filter(filter)
        .finish();
    // A second start in one process, as in tests, keeps the first.
    tracing::subscriber::set_global_default(subscriber).ok();
}

fn level(base: LevelFilter, verbosity: u8) -> LevelFilter {
    const LEVELS: [LevelFilter; 4] =
        [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE];
    let first = LEVELS.iter().position(|level| *level == base).unwrap_or(0);
    LEVELS[(first + usize::from(verbosity)).min(LEVELS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_is_one_level_more_and_there_is_a_last() {
        assert_eq!(level(LevelFilter::WARN, 0), LevelFilter::WARN);
        assert_eq!(level(LevelFilter::WARN, 1), LevelFilter::INFO);
        assert_eq!(level(LevelFilter::INFO, 1), LevelFilter::DEBUG);
        assert_eq!(level(LevelFilter::WARN, 200), LevelFilter::TRACE);
    }
}
