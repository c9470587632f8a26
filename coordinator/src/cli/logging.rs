//! Logs to stderr.

use std::io;

use tracing::level_filters::LevelFilter;

/// Starts logging at the level that `-v` asks for. `base` is the level without any.
pub fn start(base: LevelFilter, verbosity: u8, color: bool) {
    let level = level(base, verbosity);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(color)
        .with_target(false)
        // Others' debug logs (h2, hyper) are about their own insides.
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(level.min(LevelFilter::WARN).into())
                .parse_lossy(["inrush_common", "inrush_agent", "inrush_coordinator"]
                    .map(|name| format!("{name}={level}"))
                    .join(",")),
        );
    // A second start in one process, as in tests, keeps the first.
    subscriber.try_init().ok();
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
