//! `posthaste reproduce`: figures of the papers, measured again, and a report on them.

#[cfg(feature = "agents")]
pub(crate) mod agents;

use std::path::PathBuf;

use posthaste_papers::COLLECTION;
use posthaste_study::{
    CheckKind, Console, Figure, ListedFigure, Options, Reproduction, draw, lab, reproduce,
    reproduce_part,
};
use posthaste_units::Seed;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;

use super::{Failure, print, stop_on_signal};

/// Reproduce figures of the papers on this machine, in one HTML report with the published ones.
///
/// Without arguments it runs the core selection: figures of each paper, in three minutes on two idle cores.
/// Everything runs in a network of its own where the machine allows it; no root is needed.
/// Ctrl-C stops cleanly and keeps the new measurements. Earlier ones are kept in `previous` until a run comes to
/// its end.
#[derive(clap::Args)]
#[command(after_help = "\
A figure is named as in the list (overload/fig-08), or by the beginning of its name (overload).
Exit codes: 0 all well, 1 a check of the instrument failed, 2 usage, 3 a run failed or was stopped.
A claim of a paper that does not hold here is reported and changes no exit code.
POSTHASTE_POSTGRES may name a PostgreSQL to measure next to the broker's index, by a Unix socket, since everything runs in
a network of its own: postgres://USER@%2Frun%2Fpostgresql/DATABASE.

Examples:
  The core selection, in three minutes:
    posthaste reproduce
  Every figure:
    posthaste reproduce --all
  One paper, measured for as long as the paper did:
    posthaste reproduce overload --full --out overload-full
  The figures and the report of an earlier run, drawn again:
    posthaste reproduce --draw --out overload-full
  Two agents simulate, this machine measures:
    posthaste reproduce --all --agents 2 --nats nats://127.0.0.1:4222
  The figures, those of the core selection marked:
    posthaste reproduce --list")]
pub(crate) struct Args {
    /// Figures, or beginnings of their names; the core selection when there is none
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Run every figure
    #[arg(long, conflicts_with = "figures")]
    all: bool,
    /// Run longer and at more points
    #[arg(long)]
    full: bool,
    /// Run as a part of another run
    #[arg(long, hide = true, requires = "figures")]
    part: bool,
    /// Draw the figures and the report of --out again, and run nothing
    #[arg(long, conflicts_with_all = ["figures", "all", "full", "list"])]
    draw: bool,
    /// List the figures of the papers, built and planned, and run nothing
    #[arg(long)]
    list: bool,
    /// With --list: one JSON document
    #[arg(long, requires = "list")]
    json: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = Seed::default())]
    seed: Seed,
    /// Folder for records, pictures and the report
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    #[cfg(feature = "agents")]
    #[command(flatten)]
    agents: agents::StudyAgents,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let all = self.all || self.list;
        let selection = COLLECTION
            .select(&self.figures, all)
            .map_err(Failure::usage)?;
        if self.list {
            return self.print_list(&selection);
        }
        if self.draw {
            return finish(&draw(&COLLECTION, &self.out).map_err(Failure::run)?);
        }
        let stop = stop_on_signal()?;
        #[cfg(feature = "agents")]
        let simulated = self
            .agents
            .simulate(self.full, self.seed, &selection, &stop)?;
        #[cfg(not(feature = "agents"))]
        let simulated = std::collections::BTreeMap::new();
        let options = Options {
            full: self.full,
            seed: self.seed,
            commit: option_env!("POSTHASTE_COMMIT").map(str::to_owned),
            out: self.out,
            // Only this thread, its children and later threads move. The agents' network was needed before.
            lab: lab::enter(),
            program: std::env::current_exe().ok().filter(|_| !self.part),
            simulated,
        };
        if self.part {
            // A partial run must not outlive the run that started it.
            set_parent_process_death_signal(Some(Signal::TERM)).map_err(Failure::run)?;
            return reproduce_part(&selection, &options, &stop).map_err(Failure::run);
        }
        let outcome = reproduce(&COLLECTION, &selection, &options, &stop, &Console::new())
            .map_err(Failure::run)?;
        finish(&outcome)
    }

    fn print_list(&self, selection: &[&Figure]) -> Result<(), Failure> {
        let listed: Vec<ListedFigure<'_>> = if self.figures.is_empty() {
            COLLECTION.list()
        } else {
            selection
                .iter()
                .map(|figure| ListedFigure::Built(figure))
                .collect()
        };
        let entries: Vec<FigureEntry<'_>> = listed.iter().map(FigureEntry::from_figure).collect();
        if self.json {
            let json = serde_json::to_string_pretty(&entries).map_err(Failure::run)?;
            return print(&format!("{json}\n"));
        }
        let width = entries
            .iter()
            .map(|entry| entry.id.len())
            .max()
            .unwrap_or(0);
        let line = |entry: &FigureEntry<'_>| {
            let mark = if entry.core { '*' } else { ' ' };
            let FigureEntry { id, title, .. } = entry;
            match entry.comes {
                None => format!("{mark} {id:width$}  {title}\n"),
                Some(comes) => format!("{mark} {id:width$}  {title} (comes {comes})\n"),
            }
        };
        print(&entries.iter().map(line).collect::<String>())
    }
}

/// A line of the list.
#[derive(Serialize)]
struct FigureEntry<'a> {
    id: &'a str,
    title: &'a str,
    /// "built" or "planned".
    state: &'static str,
    /// True if it belongs to the core selection.
    core: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<&'a str>,
    /// The study, if other figures share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    study: Option<&'a str>,
    /// Time budget of a quick run of the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comes: Option<&'a str>,
}

impl<'a> FigureEntry<'a> {
    fn from_figure(listed: &ListedFigure<'a>) -> Self {
        match *listed {
            ListedFigure::Built(figure) => Self {
                id: figure.id,
                title: figure.title,
                state: "built",
                core: figure.study.core,
                claim: Some(figure.claim),
                study: Some(figure.study.name),
                budget_s: Some(figure.budget.as_secs_f64()),
                comes: None,
            },
            ListedFigure::Planned(planned) => Self {
                id: planned.id,
                title: planned.title,
                state: "planned",
                core: false,
                claim: None,
                study: None,
                budget_s: None,
                comes: Some(planned.comes),
            },
        }
    }
}

/// Summarises the outcome, prints the report's path, and decides the exit code.
fn finish(outcome: &Reproduction<'_>) -> Result<(), Failure> {
    summarise(outcome);
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

/// Summarises on stderr: the number of passed checks, and each failed check. Stopped figures are not judged.
fn summarise(outcome: &Reproduction<'_>) {
    let (stopped, ended): (Vec<_>, Vec<_>) =
        outcome.figures.iter().partition(|drawn| drawn.stopped());
    let checks = |kind: CheckKind| {
        let all = ended.iter().flat_map(|drawn| {
            let checks = drawn.checks.iter();
            checks.map(|check| (drawn.figure.id, check))
        });
        all.filter(move |(_, check)| check.kind == kind)
    };
    let held = |kind: CheckKind| {
        let held = checks(kind).filter(|(_, check)| check.holds).count();
        format!("{held} of {}", checks(kind).count())
    };
    note!(
        "\n{} figures: {} checks of the instrument, {} claims of the papers and {} goals of our own hold",
        ended.len(),
        held(CheckKind::Instrument),
        held(CheckKind::Paper),
        held(CheckKind::Goal)
    );
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for (kind, title) in [
        (CheckKind::Instrument, "failed"),
        (CheckKind::Paper, "differs"),
        (CheckKind::Goal, "not reached"),
    ] {
        for (id, check) in checks(kind).filter(|(_, check)| !check.holds) {
            let title = if check.better { "better today" } else { title };
            note!("{title}: {id}: {}", check.sentence);
            match reasons.iter().find(|(reason, _)| *reason == check.reason) {
                _ if check.reason.is_empty() => {}
                Some((_, first)) if *first == id => note!("  the same reason as above"),
                Some((_, first)) => note!("  reason: as for {first}"),
                None => {
                    note!("  reason: {}", check.reason);
                    reasons.push((&check.reason, id));
                }
            }
        }
    }
    for drawn in &outcome.figures {
        if let Some(error) = &drawn.error {
            note!("failed: {}: {error}", drawn.figure.id);
        }
    }
    for drawn in stopped {
        note!("stopped, what was measured is kept: {}", drawn.figure.id);
    }
}
