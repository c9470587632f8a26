//! CPU per request, beside other load generators.
//!
//! They take turns against one nginx, and what counts is the ratio within a round: noise that lasts longer than a round
//! meets them all.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    Failed,
    clients::{Client, Load},
    cost::{self, Cpu},
    machine,
    nginx::Nginx,
    trying,
};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Connections; each number makes a table.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1000])]
    connections: Vec<u32>,
    /// Rounds, each with every client once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Also measures inrush with two workers on both cores, nginx among them.
    #[arg(long)]
    two_workers: bool,
    /// Writes the tables here as well.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// One run of one client.
#[derive(Debug, Clone, Copy)]
struct Round {
    requests: u64,
    cpu: Cpu,
    seconds: u32,
}

impl Round {
    fn micros(self) -> f64 {
        per_request(self.cpu.total(), self.requests)
    }

    fn rate(self) -> f64 {
        self.requests as f64 / f64::from(self.seconds)
    }
}

fn per_request(time: std::time::Duration, requests: u64) -> f64 {
    time.as_secs_f64() * 1e6 / requests as f64
}

/// One line of a table: who, and its rounds in order.
type Line = (String, Vec<Round>);

/// # Errors
/// When nginx or a client does not do what it should.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failed> {
    let (clients, missing) = Client::installed();
    let mut text = format!("{}, {}.\n", machine::date(), machine::described());
    for what in missing {
        text.push_str(&format!("Not installed: {what}.\n"));
    }
    let nginx = Nginx::start()?;
    let folder = tempfile::tempdir().map_err(trying("a folder for plans"))?;
    for connections in &args.connections {
        let lines = measured(args, &clients, *connections, &nginx, folder.path(), out)?;
        text.push_str(&table(*connections, &lines));
    }
    out.write_all(text.as_bytes()).map_err(trying("stdout"))?;
    if let Some(path) = &args.markdown {
        fs::write(path, text).map_err(trying("the file of tables"))?;
    }
    Ok(())
}

fn measured(
    args: &Args,
    clients: &[Client],
    connections: u32,
    nginx: &Nginx,
    folder: &Path,
    out: &mut impl Write,
) -> Result<Vec<Line>, Failed> {
    let mut turns: Vec<(Client, u32)> = clients.iter().map(|client| (*client, 1)).collect();
    if args.two_workers && clients.contains(&Client::Inrush) {
        turns.push((Client::Inrush, 2));
    }
    let mut lines: Vec<Line> = turns
        .iter()
        .map(|(client, workers)| match workers {
            1 => (client.to_string(), Vec::new()),
            _ => (format!("{client}, {workers} workers"), Vec::new()),
        })
        .collect();
    for round in 0..args.rounds {
        for ((client, workers), (name, rounds)) in turns.iter().zip(&mut lines) {
            let load = Load {
                target: nginx.address(),
                connections,
                seconds: args.seconds,
                workers: *workers,
            };
            let (output, cpu) = cost::run(&mut load.command(*client, folder)?)?;
            let requests = load.requests(*client, &output.stdout, folder)?;
            let result = Round { requests, cpu, seconds: args.seconds };
            writeln!(
                out,
                "{connections} connections, round {}: {name} {:.2} µs",
                round + 1,
                result.micros()
            )
            .map_err(trying("stdout"))?;
            rounds.push(result);
        }
    }
    Ok(lines)
}

/// A table in Markdown. The ratios are of inrush's first line to each.
fn table(connections: u32, lines: &[Line]) -> String {
    let ours = lines.first().map_or(&[][..], |(_, rounds)| rounds);
    let mut text = format!(
        "\n{connections} connections, {} rounds:\n\n\
         | client | CPU per request, µs (user + kernel) | requests/s | inrush ÷ client, median (all rounds) |\n\
         | --- | --- | --- | --- |\n",
        ours.len()
    );
    for (name, rounds) in lines {
        let over = |of: fn(Round) -> f64| median(rounds.iter().map(|round| of(*round)).collect());
        let ratios: Vec<f64> =
            ours.iter().zip(rounds).map(|(ours, theirs)| ours.micros() / theirs.micros()).collect();
        let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        text.push_str(&format!(
            "| {name} | {:.2} ({:.2} + {:.2}) | {:.0} | {:.2} ({}) |\n",
            over(Round::micros),
            over(|round| per_request(round.cpu.user, round.requests)),
            over(|round| per_request(round.cpu.kernel, round.requests)),
            over(Round::rate),
            median(ratios),
            all.join(", "),
        ));
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn round(requests: u64, user: u64, kernel: u64) -> Round {
        let cpu = Cpu { user: Duration::from_micros(user), kernel: Duration::from_micros(kernel) };
        Round { requests, cpu, seconds: 2 }
    }

    #[test]
    fn a_ratio_is_taken_within_its_round() {
        let ours = ("inrush".to_owned(), vec![round(100, 200, 800), round(100, 400, 1600)]);
        let theirs = ("wrk".to_owned(), vec![round(100, 100, 900), round(100, 500, 2000)]);
        let table = table(64, &[ours, theirs]);
        assert!(
            table.contains("| inrush | 15.00 (3.00 + 12.00) | 50 | 1.00 (1.00, 1.00) |"),
            "{table}"
        );
        assert!(
            table.contains("| wrk | 17.50 (3.00 + 14.50) | 50 | 0.90 (1.00, 0.80) |"),
            "{table}"
        );
    }
}
