//! `inrush check` and `inrush init`: plans that are not run.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
};

use inrush_common::{
    plan::{Expect, OnLoss, Plan, STARTER},
    units::{Count, Nanos},
};

use super::{
    args::{CheckArgs, InitArgs},
    console::Console,
    describe,
    error::CliError,
    plan::PlanFile,
};
use crate::exit::ExitStatus;

/// `inrush check`
///
/// # Errors
/// With all that is wrong with the plan.
pub(super) fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let plan = PlanFile::read(&args.plan, console)?;
    console.print(&summary(&plan.plan))?;
    Ok(ExitStatus::Passed)
}

/// `inrush init`
///
/// # Errors
/// When the file exists and may not be replaced, or cannot be written.
pub(super) fn init(args: &InitArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let shown = args.file.display();
    write_starter(&args.file, args.force).map_err(|error| {
        CliError::Usage(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{shown} exists: name another file, or replace it with --force")
            }
            _ => format!("cannot write {shown}: {error}"),
        })
    })?;
    console.say(&format!(
        "wrote {shown}. Its target is http://127.0.0.1:8080/: start one with `inrush target`, or change `url`.\nThen: \
         inrush run {shown}"
    ));
    Ok(ExitStatus::Passed)
}

fn write_starter(path: &Path, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(path)?.write_all(STARTER.as_bytes())
}

/// What a plan would do.
fn summary(plan: &Plan) -> String {
    let workload = &plan.workload;
    let mut text = format!("plan ok: {}\n", plan.name);
    let mut row = |what: &str, says: String| {
        text.push_str(&format!("  {what:<9} {says}\n"));
    };
    for request in &workload.requests {
        let body = match request.body.len() as u64 {
            0 => String::new(),
            bytes => format!(" with a body of {} bytes", Count(bytes)),
        };
        row("sends", format!("{} {}{body}", request.method, request.url));
        row("success", success(&request.expect));
    }
    for (what, says) in describe::phases(workload) {
        row(&what, says);
    }
    let connections = describe::connections(&workload.connections);
    if !connections.is_empty() {
        row("connects", connections.join("; "));
    }
    row(
        "timeouts",
        format!(
            "{} to connect, {} for a request, {} for what is under way at the end",
            Nanos::from(workload.connect_timeout),
            Nanos::from(workload.timeout),
            Nanos::from(workload.grace)
        ),
    );
    let on_loss = match plan.agents.on_loss {
        OnLoss::Abort => "if one is lost, the run stops",
        OnLoss::Continue => "if one is lost, the others finish their shares",
    };
    row("agents", format!("at least {}; {on_loss}", plan.agents.min));
    text
}

fn success(expect: &Expect) -> String {
    if expect.status.is_empty() {
        return "every status below 400".to_owned();
    }
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &status in &expect.status {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == status => *last = status,
            _ => ranges.push((status, status)),
        }
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    format!("status {}", ranges.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_would_be_sent() {
        let source = r#"
            name = "checkout"
            url = "http://127.0.0.1:8080/buy"
            method = "POST"
            body = "12345"
            timeout = "2s"
            [expect]
            status = [200, "300-399"]
            [agents]
            min = 3
            on_loss = "continue"
            [load.closed]
            connections = 1_000
            requests = 100_000
            duration = "30s"
            ramp_up = "5s"
        "#;
        let plan = PlanFile::of_text("plan.toml", source.to_owned()).unwrap().plan;
        assert_eq!(
            summary(&plan),
            "\
plan ok: checkout
  sends     POST http://127.0.0.1:8080/buy with a body of 5 bytes
  success   status 200, 300-399
  load      closed model, 1,000 connections at a time, opened over 5.00 s; 100,000 requests in all, for at most 30.0 s
  timeouts  5.00 s to connect, 2.00 s for a request, 5.00 s for what is under way at the end
  agents    at least 3; if one is lost, the others finish their shares
"
        );
    }

    #[test]
    fn a_file_that_exists_is_only_replaced_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        write_starter(&path, false).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let error = write_starter(&path, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        write_starter(&path, true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), STARTER);
    }
}
