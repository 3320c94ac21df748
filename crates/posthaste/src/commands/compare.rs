//! `posthaste compare`: a verdict on two sides of runs.

use std::path::PathBuf;

use posthaste_evaluation::compare::{ComparedRun, Comparison, OverallVerdict};
use posthaste_stats::Margins;
use posthaste_units::Ratio;

use super::checks::CheckFiles;
use super::{Failure, print};

/// Compare runs that were kept with --out, with a verdict that respects the scatter between runs.
///
/// Judged are mean, p50 and p99 of the response time and the share of errors. Each is better, worse, equal
/// within a stated margin, or unknown.
///
/// Exit code 1 when any is worse, else 3 when any is unknown, else 0. A comparison needs several runs a side, three
/// at least: one run does not show how much runs scatter.
#[derive(clap::Args)]
#[command(
    override_usage = "posthaste compare [OPTIONS] <BEFORE> <AFTER>\n       \
    posthaste compare [OPTIONS] <BEFORE>... -- <AFTER>...",
    after_help = "Examples:
  Three runs a side, made in turns (A B A B A B):
    posthaste compare base1 base2 base3 -- new1 new2 new3
  One run a side, on a machine whose runs are known to scatter by 3%:
    posthaste compare --scatter 3% lastweek today
  A table for a pull request and a file for the build server; unknown passes:
    posthaste compare --allow-unknown --markdown verdict.md --junit verdict.xml \\
    base1 base2 base3 -- new1 new2 new3"
)]
pub(crate) struct Args {
    /// The runs to compare with; without `--`, one run, and the run to judge
    #[arg(value_name = "BEFORE", required = true)]
    before: Vec<PathBuf>,
    /// The runs to judge
    #[arg(value_name = "AFTER", last = true)]
    after: Vec<PathBuf>,
    /// Largest margin for equal times
    #[arg(long, value_name = "SHARE", default_value = "25%")]
    margin: Ratio,
    /// Largest margin for equal shares of errors, in percentage points
    #[arg(long, value_name = "SHARE", default_value = "1%")]
    error_margin: Ratio,
    /// Standard deviation between runs, where it is known; with several runs a side, a lower bound
    #[arg(long, value_name = "SHARE")]
    scatter: Option<Ratio>,
    /// Exit with 0 where a statistic is unknown and none is worse
    #[arg(long)]
    allow_unknown: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: CheckFiles,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.files.on_stdout() + usize::from(self.json) > 1 {
            return Err(Failure::usage(
                "--json, --markdown - and --junit - all print to standard output: choose one, and give a file to the others",
            ));
        }
        let [before, after] = self.sides()?;
        let comparison = Comparison::from_runs(&before, &after, &self.margins());
        let written = self.files.write(&comparison.checks(self.allow_unknown));
        if self.json {
            let json = serde_json::to_string_pretty(&comparison).map_err(Failure::run)?;
            print(&(json + "\n"))?;
        } else if self.files.on_stdout() == 0 {
            print(&comparison.text())?;
        }
        written?;
        match comparison.verdict {
            OverallVerdict::Worse => Err(Failure::Threshold(comparison.conclusion())),
            OverallVerdict::Unknown if !self.allow_unknown => Err(Failure::run(format!(
                "{}; --allow-unknown lets it pass",
                comparison.conclusion()
            ))),
            _ => Ok(()),
        }
    }

    fn margins(&self) -> Margins {
        Margins {
            times: self.margin.get(),
            errors: self.error_margin.get(),
            scatter: self.scatter.map(Ratio::get),
        }
    }

    /// Reads the runs of both sides. Two folders without `--` are one run each.
    fn sides(&self) -> Result<[Vec<ComparedRun>; 2], Failure> {
        let (before, after) = match (self.before.as_slice(), self.after.as_slice()) {
            ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
            (_, []) => {
                return Err(Failure::usage(
                    "no runs to judge: give two folders, or several on each side of `--`: \
                     posthaste compare base1 base2 base3 -- new1 new2 new3",
                ));
            }
            sides => sides,
        };
        once(before)?;
        once(after)?;
        let read = |side: &[PathBuf]| -> Result<Vec<ComparedRun>, Failure> {
            let runs = side.iter().map(|folder| ComparedRun::read(folder));
            runs.collect::<Result<_, _>>().map_err(Failure::usage)
        };
        Ok([read(before)?, read(after)?])
    }
}

/// Refuses a run that is given twice on a side. It would reduce the scatter below its real size.
fn once(side: &[PathBuf]) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for folder in side {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if seen.contains(&real) {
            return Err(Failure::usage(format!(
                "{} is given twice on one side: give each run once",
                folder.display()
            )));
        }
        seen.push(real);
    }
    Ok(())
}
