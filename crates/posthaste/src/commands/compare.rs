//! `posthaste compare`: two runs, and whether they differ by more than their noise.

use std::path::PathBuf;

use posthaste_load::report::{Report, read_report};
use posthaste_stats::{Comparison, Statistic, Verdict, compare};
use serde::Serialize;

use super::{Failure, print};

/// The statistics that decide the exit code; the others inform. Two, so that noise alone
/// rarely fails a build.
const DECISIVE: [Statistic; 2] = [Statistic::Mean, Statistic::P99];
/// A difference of error shares beyond so many standard errors is no chance.
const ERRORS_APART: f64 = 3.0;

/// Compare two runs that were kept with --out, with a verdict that respects noise.
///
/// Exit code 1 when the second run is worse: in the mean or p99 of its response times beyond
/// their 95 % intervals, or because they grow for as long as it lasts, or in its share of errors beyond three
/// standard errors. Too short a run has no interval: that too shows as `no verdict`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  posthaste compare lastweek today")]
pub(crate) struct Args {
    /// The run to compare with
    #[arg(value_name = "DIR")]
    before: PathBuf,
    /// The run to judge
    #[arg(value_name = "DIR")]
    after: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Outcome {
    response_time_ms: Vec<Comparison>,
    service_time_ms: Vec<Comparison>,
    error_share: [f64; 2],
    worse: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let before = read_report(&self.before).map_err(Failure::usage)?;
        let after = read_report(&self.after).map_err(Failure::usage)?;
        let outcome = Outcome::of(&before, &after);
        if self.json {
            let json = serde_json::to_string_pretty(&outcome).map_err(Failure::run)?;
            print(&(json + "\n"))?;
        } else {
            print(&outcome.text(&before, &after))?;
        }
        if outcome.worse.is_empty() {
            return Ok(());
        }
        Err(Failure::Threshold(format!(
            "worse in {}",
            outcome.worse.join(", ")
        )))
    }
}

impl Outcome {
    fn of(before: &Report, after: &Report) -> Self {
        let response = compare(&before.ok_response_time_ms, &after.ok_response_time_ms);
        let mut worse: Vec<String> = response
            .iter()
            .filter(|c| DECISIVE.contains(&c.statistic) && c.verdict == Verdict::Worse)
            .map(|c| format!("{} of the response time", c.statistic.key()))
            .collect();
        if grows(before, after) {
            worse.push("mean of the response time, which grows".to_owned());
        }
        if more_errors(before, after) {
            worse.push("share of errors".to_owned());
        }
        Self {
            response_time_ms: response,
            service_time_ms: compare(&before.service_time_ms, &after.service_time_ms),
            error_share: [before.error_share(), after.error_share()],
            worse,
        }
    }

    fn text(&self, before: &Report, after: &Report) -> String {
        let mut out = format!(
            "before   {} ({})\nafter    {} ({})\n",
            before.plan.target, before.plan.pace, after.plan.target, after.plan.pace
        );
        if before.plan != after.plan {
            out.push_str("         the two runs were not asked for the same\n");
        }
        for (name, rows) in [
            ("response time", &self.response_time_ms),
            ("service time", &self.service_time_ms),
        ] {
            out.push_str(&format!("\n{name:<14} before ms   after ms   change\n"));
            rows.iter().for_each(|row| out.push_str(&line(row)));
        }
        let [old, new] = self.error_share.map(|share| share * 100.0);
        out.push_str(&format!("\nerrors         {old:>8.3}%  {new:>8.3}%\n"));
        out
    }
}

/// Whether the mean was steady and has become so unsteady that it has no interval, beyond where it was: so does a queue
/// that grows for as long as the run lasts. A quantile may have none for want of values beyond it.
fn grows(before: &Report, after: &Report) -> bool {
    // A run of another length may have none for that.
    let same = before.plan.pace == after.plan.pace && !before.stopped && !after.stopped;
    let (before, after) = (&before.ok_response_time_ms, &after.ok_response_time_ms);
    let was = before.interval(Statistic::Mean).filter(|_| same);
    was.is_some_and(|[_, high]| {
        after.interval(Statistic::Mean).is_none() && after.value(Statistic::Mean) > high
    })
}

/// Whether the share of errors has grown by more than chance (difference of two binomial
/// shares against its standard error).
fn more_errors(before: &Report, after: &Report) -> bool {
    let (old, new) = (before.error_share(), after.error_share());
    let count = |report: &Report| report.intended.max(1) as f64;
    let (n, m) = (count(before), count(after));
    let pooled = (old * n + new * m) / (n + m);
    let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    new - old > ERRORS_APART * error
}

fn line(row: &Comparison) -> String {
    let change = row.ratio.map_or(String::new(), |ratio| {
        format!("{:+.1}%", (ratio - 1.0) * 100.0)
    });
    let verdict = match row.verdict {
        Verdict::Better => "better".to_owned(),
        Verdict::Worse => "worse".to_owned(),
        Verdict::Same { within } => format!("same within {:.1}%", within * 100.0),
        Verdict::Unknown => "no verdict".to_owned(),
    };
    let key = row.statistic.key();
    format!(
        "  {key:<12} {:>10.3} {:>10.3} {change:>8}   {verdict}\n",
        row.before, row.after
    )
}
