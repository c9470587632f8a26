//! Resident memory per open connection, beside other load generators.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    Failed,
    clients::{Client, Load},
    machine,
    nginx::Nginx,
    trying,
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Open connections of one process.
    #[arg(long, default_value_t = 10_000)]
    connections: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
}

/// The memory is looked at this often.
const PERIOD: Duration = Duration::from_millis(50);

/// # Errors
/// When nginx or a client does not do what it should.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failed> {
    let (clients, missing) = Client::installed();
    let nginx = Nginx::start()?;
    let folder = tempfile::tempdir().map_err(trying("a folder for plans"))?;
    let mut text = format!("{}, {}.\n", machine::date(), machine::described());
    for what in missing {
        text.push_str(&format!("Not installed: {what}.\n"));
    }
    text.push_str(&format!(
        "\n| client | all its processes with 1 connection | with {0} | per connection |\n| --- | --- | --- | --- |\n",
        args.connections
    ));
    for client in clients {
        let peak = |connections| {
            let load =
                Load { target: nginx.address(), connections, seconds: args.seconds, workers: 1 };
            let mut command = load.command(client, folder.path())?;
            command.stdout(Stdio::null()).stderr(Stdio::null());
            peak_of_all(&mut command, client)
        };
        let (one, many) = (peak(1)?, peak(args.connections)?);
        let each = many.saturating_sub(one) as f64 / f64::from(args.connections.max(2) - 1);
        text.push_str(&format!(
            "| {client} | {:.1} MB | {:.1} MB | {:.2} KB |\n",
            one as f64 / 1e6,
            many as f64 / 1e6,
            each / 1e3
        ));
    }
    out.write_all(text.as_bytes()).map_err(trying("stdout"))
}

/// The peaks of resident memory, in bytes, of all processes of a command together: for inrush, coordinator and agent.
fn peak_of_all(command: &mut Command, client: Client) -> Result<u64, Failed> {
    let mut child = command.spawn().map_err(trying(&client.to_string()))?;
    let mut peaks = BTreeMap::new();
    // Its exit status is not asked: on a busy machine inrush says that its times are not to be believed.
    while child.try_wait().map_err(trying(&client.to_string()))?.is_none() {
        look(&child, &mut peaks);
        thread::sleep(PERIOD);
    }
    if peaks.is_empty() {
        return Err(Failed::new(format!("{client} ended at once")));
    }
    Ok(peaks.into_values().sum())
}

/// Looks at a process and at those it started. The kernel keeps the peak, so that nothing between two looks is missed.
fn look(child: &Child, peaks: &mut BTreeMap<u32, u64>) {
    let mut queue = vec![child.id()];
    while let Some(id) = queue.pop() {
        let tasks = format!("/proc/{id}/task");
        for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            queue.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(kib) = peak.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        {
            let kept = peaks.entry(id).or_default();
            *kept = (*kept).max(kib * 1024);
        }
    }
}
