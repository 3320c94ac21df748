//! `posthaste reproduce`: figures of the papers, run for real, and the report about them.

use std::path::PathBuf;

use posthaste_experiments::{
    Check, Console, FIGURES, Figure, Kind, Listed, Options, Outcome, lab, list, reproduce, select,
};
use posthaste_units::Seed;
use serde::Serialize;

use super::{Failure, print, stop_on_signal};

/// Reproduce figures of the papers on this machine, ours beside theirs, as one HTML report.
///
/// Everything runs in a network of its own where the machine allows it; no root is needed.
/// Ctrl-C stops cleanly and keeps what was measured, and what was measured before beside it, in `previous`,
/// until a run comes to its end.
#[derive(clap::Args)]
#[command(after_help = "\
A figure is named as in the list (overload/fig-08), or by the beginning of its name (overload).
Exit codes: 0 all well, 1 a check of the instrument failed, 2 usage, 3 a run failed or was stopped.
A claim of a paper that does not hold here is reported and changes no exit code.
POSTHASTE_POSTGRES may name a PostgreSQL to measure beside the broker's index, by a Unix socket, since everything runs in
a network of its own: postgres://USER@%2Frun%2Fpostgresql/DATABASE.

Examples:
  Everything that is built, in a quarter of an hour:
    posthaste reproduce
  One study, as long and as dense as it deserves:
    posthaste reproduce overload --full --out overload-full
  What there is, and what is still to come:
    posthaste reproduce --list")]
pub(crate) struct Args {
    /// Figures, or beginnings of their names; all when there is none
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Run longer and at more points
    #[arg(long)]
    full: bool,
    /// List the figures of the papers, built and planned, and run nothing
    #[arg(long)]
    list: bool,
    /// With --list: one JSON document
    #[arg(long, requires = "list")]
    json: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = Seed::default())]
    seed: Seed,
    /// Where to write records, pictures and the report
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let selection = select(FIGURES, &self.figures).map_err(Failure::usage)?;
        if self.list {
            return self.print_list(&selection);
        }
        let options = Options {
            full: self.full,
            seed: self.seed,
            commit: option_env!("POSTHASTE_COMMIT").map(str::to_owned),
            out: self.out,
            // Before any thread starts: only this one and its children move.
            lab: lab::enter(),
        };
        let stop = stop_on_signal()?;
        let outcome = reproduce(FIGURES, &selection, &options, &stop, &Console::new())
            .map_err(Failure::run)?;
        summarise(&outcome);
        print(&format!("{}\n", outcome.report.display()))?;
        match outcome.exit_code() {
            0 => Ok(()),
            1 => Err(Failure::Threshold(
                "a check of the instrument failed: the numbers of that figure are not to be trusted"
                    .to_owned(),
            )),
            _ if outcome.stopped => Err(Failure::Run("stopped before the end".to_owned())),
            _ => Err(Failure::Run("a study failed; see above".to_owned())),
        }
    }

    fn print_list(&self, selection: &[&Figure]) -> Result<(), Failure> {
        let listed: Vec<Listed<'_>> = if self.figures.is_empty() {
            list(FIGURES)
        } else {
            selection
                .iter()
                .map(|figure| Listed::Built(figure))
                .collect()
        };
        let entries: Vec<Entry<'_>> = listed.iter().map(Entry::of).collect();
        if self.json {
            let json = serde_json::to_string_pretty(&entries).map_err(Failure::run)?;
            return print(&format!("{json}\n"));
        }
        let width = entries
            .iter()
            .map(|entry| entry.id.len())
            .max()
            .unwrap_or(0);
        let line = |entry: &Entry<'_>| match entry.comes {
            None => format!("{:width$}  {}\n", entry.id, entry.title),
            Some(comes) => format!("{:width$}  {} (comes {comes})\n", entry.id, entry.title),
        };
        print(&entries.iter().map(line).collect::<String>())
    }
}

/// A line of the list.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    title: &'a str,
    /// "built" or "planned".
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<&'a str>,
    /// The study that it shares with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    study: Option<&'a str>,
    /// What a quick run of the study may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comes: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn of(listed: &Listed<'a>) -> Self {
        match *listed {
            Listed::Built(figure) => Self {
                id: figure.id,
                title: figure.title,
                state: "built",
                claim: Some(figure.claim),
                study: Some(figure.study.name),
                budget_s: Some(figure.budget.as_secs_f64()),
                comes: None,
            },
            Listed::Planned(planned) => Self {
                id: planned.id,
                title: planned.title,
                state: "planned",
                claim: None,
                study: None,
                budget_s: None,
                comes: Some(planned.comes),
            },
        }
    }
}

/// One line a figure, and every check of the instrument that failed, to stderr.
fn summarise(outcome: &Outcome<'_>) {
    for drawn in &outcome.figures {
        let held = |kind: Kind| {
            let checks: Vec<&Check> = drawn
                .checks
                .iter()
                .filter(|check| check.kind == kind)
                .collect();
            let held = checks.iter().filter(|check| check.holds).count();
            format!("{held} of {}", checks.len())
        };
        let (instrument, claims) = (held(Kind::Instrument), held(Kind::Claim));
        match &drawn.error {
            Some(error) => eprintln!("{}: {error}", drawn.figure.id),
            None => eprintln!(
                "{}: instrument checks {instrument}, claims {claims} hold",
                drawn.figure.id
            ),
        }
        for check in drawn.checks.iter().filter(|check| check.fails_the_run()) {
            eprintln!("    does not hold: {}", check.sentence);
        }
    }
}
