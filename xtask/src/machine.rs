//! What machine this is, and when: what a table of measurements must say.

use std::{fs, thread};

use crate::cost;

/// One line about the machine.
pub(crate) fn described() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model =
        field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "CPU unknown".to_owned());
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let gib =
        memory.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0)
            / (1024.0 * 1024.0);
    let system =
        field(&read("/etc/os-release").replace("PRETTY_NAME=", "PRETTY_NAME:"), "PRETTY_NAME")
            .unwrap_or_default()
            .replace('"', "");
    let release = read("/proc/sys/kernel/osrelease");
    let cores = thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
    format!("{model}, {cores} cores, {gib:.0} GiB; {system}, Linux {}", release.trim())
}

/// Today, as the machine's calendar has it.
pub(crate) fn date() -> String {
    cost::run(std::process::Command::new("date").arg("+%Y-%m-%d"))
        .map(|(output, _)| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
