//! Comparison of two sides of runs.
//!
//! | file | content |
//! |---|---|
//! | `mod` | verdicts and differences as data |
//! | `runs` | reports as runs |
//! | `text` | the comparison in words, and as checks |
//!
//! The statistics are in the crate `stats`.

mod runs;
mod text;

use posthaste_stats::{
    ComparisonVerdict, FEWEST_FOR_INTERVAL, Judged, Judgement, JudgementReason, Margins,
    MeasuredStatistic, Rules, judge_shares, judge_times,
};
use serde::Serialize;

pub use self::runs::ComparedRun;

/// Result of a comparison, as documents have it.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The overall verdict.
    pub verdict: OverallVerdict,
    /// Folders of the runs before.
    pub before: Vec<String>,
    /// Folders of the runs after.
    pub after: Vec<String>,
    /// Reasons why no statistic can be judged. Empty if all can.
    pub incomparable: Vec<String>,
    /// Options that are not the same in all runs.
    pub differences: Vec<OptionDifference>,
    /// Statistics that decide the exit code.
    pub judged: Vec<ComparedStatistic>,
    /// Statistics that inform.
    pub informative: Vec<ComparedStatistic>,
}

/// One statistic of both sides; times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedStatistic {
    /// Name of the statistic.
    pub name: String,
    /// A share of requests, not a time.
    pub share: bool,
    /// Folders of the runs that have no such number. Empty for shares.
    pub absent_in: Vec<String>,
    /// Folders of the runs that have the number without an interval of their own. Empty for shares.
    pub no_interval_in: Vec<String>,
    #[serde(flatten)]
    /// Verdict with its numbers.
    pub judgement: Judgement,
}

/// An option that is not the same in all runs, with its value in each run.
#[derive(Clone, Debug, Serialize)]
pub struct OptionDifference {
    /// Name of the option.
    pub option: String,
    /// Values before.
    pub before: Vec<String>,
    /// Values after.
    pub after: Vec<String>,
}

/// The verdict over all judged statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverallVerdict {
    /// At least one statistic is better, the others better or equal.
    Better,
    /// At least one statistic is worse.
    Worse,
    /// All statistics are equal within their margins.
    Equal,
    /// At least one statistic is unknown, and none is worse.
    Unknown,
}

impl Comparison {
    /// Compares two sides of runs.
    pub fn from_runs(before: &[ComparedRun], after: &[ComparedRun], margins: &Margins) -> Self {
        let incomparable = incomparable(before, after);
        let withdraw = |judgement: Judgement| {
            if incomparable.is_empty() {
                judgement
            } else {
                judgement.withdrawn(JudgementReason::Incomparable)
            }
        };
        let judged = Judged::ALL.map(|judged| judge(judged, before, after, margins));
        let judged: Vec<ComparedStatistic> = judged
            .into_iter()
            .map(|row| ComparedStatistic {
                judgement: withdraw(row.judgement),
                ..row
            })
            .collect();
        let names = |side: &[ComparedRun]| {
            side.iter()
                .map(|run| run.name.display().to_string())
                .collect()
        };
        Self {
            verdict: OverallVerdict::from_rows(&judged),
            before: names(before),
            after: names(after),
            differences: differences(before, after),
            informative: informative(before, after, margins)
                .into_iter()
                .map(|row| ComparedStatistic {
                    judgement: withdraw(row.judgement),
                    ..row
                })
                .collect(),
            incomparable,
            judged,
        }
    }

    /// The names of the judged statistics with this verdict.
    pub(crate) fn named(&self, verdict: ComparisonVerdict) -> Vec<&str> {
        let rows = self.judged.iter();
        rows.filter(|row| row.judgement.verdict == verdict)
            .map(|row| row.name.as_str())
            .collect()
    }

    /// One run on each side.
    pub(crate) fn one_each(&self) -> bool {
        self.before.len() == 1 && self.after.len() == 1
    }
}

impl OverallVerdict {
    fn from_rows(judged: &[ComparedStatistic]) -> Self {
        let any = |verdict| judged.iter().any(|row| row.judgement.verdict == verdict);
        match () {
            () if any(ComparisonVerdict::Worse) => Self::Worse,
            () if any(ComparisonVerdict::Unknown) || judged.is_empty() => Self::Unknown,
            () if any(ComparisonVerdict::Better) => Self::Better,
            () => Self::Equal,
        }
    }
}

fn judge(
    judged: Judged,
    before: &[ComparedRun],
    after: &[ComparedRun],
    margins: &Margins,
) -> ComparedStatistic {
    let rules = judged.rules(margins);
    let times = |name: &str, measured: &dyn Fn(&ComparedRun) -> MeasuredStatistic| {
        let may_grow = |run: &ComparedRun| {
            measured(run).lacks_interval() && run.errors.trials >= FEWEST_FOR_INTERVAL
        };
        let rules = Rules {
            steady: rules.steady && before.iter().chain(after).any(may_grow),
            ..rules
        };
        times_row(name.to_owned(), [before, after], measured, &rules)
    };
    match judged {
        Judged::Mean if censored(before) || censored(after) => {
            times("mean of response time, ok only (survivors)", &|run| {
                run.mean_of_ok
            })
        }
        Judged::Mean => times("mean of response time, all due", &|run| run.mean),
        Judged::P50 => times("p50 of response time, all due", &|run| run.p50),
        Judged::P99 => times("p99 of response time, all due", &|run| run.p99),
        Judged::Errors => {
            let errors =
                |side: &[ComparedRun]| side.iter().map(|run| run.errors).collect::<Vec<_>>();
            ComparedStatistic {
                name: "share of errors".to_owned(),
                share: true,
                absent_in: Vec::new(),
                no_interval_in: Vec::new(),
                judgement: judge_shares(&errors(before), &errors(after), &rules),
            }
        }
    }
}

/// Judges a time of all runs, and names the runs that lack it or its interval.
fn times_row(
    name: String,
    [before, after]: [&[ComparedRun]; 2],
    measured: &dyn Fn(&ComparedRun) -> MeasuredStatistic,
    rules: &Rules,
) -> ComparedStatistic {
    let names = |is_named: &dyn Fn(MeasuredStatistic) -> bool| {
        let runs = before.iter().chain(after);
        let named = runs.filter(|run| is_named(measured(run)));
        named.map(|run| run.name.display().to_string()).collect()
    };
    ComparedStatistic {
        name,
        share: false,
        absent_in: names(&MeasuredStatistic::is_absent),
        no_interval_in: names(&MeasuredStatistic::lacks_interval),
        judgement: judge_times(&each(before, measured), &each(after, measured), rules),
    }
}

fn each(
    side: &[ComparedRun],
    measured: &dyn Fn(&ComparedRun) -> MeasuredStatistic,
) -> Vec<MeasuredStatistic> {
    side.iter().map(measured).collect()
}

/// True if the mean of some run is beyond any bound.
fn censored(side: &[ComparedRun]) -> bool {
    let beyond = |run: &ComparedRun| matches!(run.mean, MeasuredStatistic::Beyond { .. });
    side.iter().any(beyond)
}

fn informative(
    before: &[ComparedRun],
    after: &[ComparedRun],
    margins: &Margins,
) -> Vec<ComparedStatistic> {
    let rules = Rules {
        steady: false,
        ..Judged::Mean.rules(margins)
    };
    let names = before.first().into_iter().flat_map(|run| &run.others);
    names
        .map(|(name, _)| {
            let measured = |run: &ComparedRun| {
                let found = run.others.iter().find(|(other, _)| other == name);
                found.map_or(MeasuredStatistic::Absent, |(_, statistic)| *statistic)
            };
            times_row(name.clone(), [before, after], &measured, &rules)
        })
        .collect()
}

/// Reasons for which nothing can be concluded.
fn incomparable(before: &[ComparedRun], after: &[ComparedRun]) -> Vec<String> {
    let all = || before.iter().chain(after);
    let stopped = all().filter(|run| run.stopped);
    let mut reasons: Vec<String> = stopped
        .map(|run| format!("{} was stopped before its end", run.name.display()))
        .collect();
    let limited = all().filter(|run| run.limited);
    reasons.extend(limited.map(|run| {
        let name = run.name.display();
        format!("{name} was limited by the generator: its response times are the generator's own")
    }));
    let schedule = |run: &ComparedRun| run.schedule().cloned().collect::<Vec<_>>();
    let first = before.first().map(schedule).unwrap_or_default();
    let other = all().find(|run| schedule(run) != first);
    reasons.extend(other.map(|run| {
        let options = schedule(run).into_iter();
        let differs = options.filter(|option| !first.contains(option));
        let differs: Vec<String> = differs.map(|(_, value)| value).collect();
        format!(
            "{} has another pace, length or warm-up: {}",
            run.name.display(),
            differs.join(", ")
        )
    }));
    reasons
}

/// Options that are not the same in all runs, in the order of the first report that has them.
fn differences(before: &[ComparedRun], after: &[ComparedRun]) -> Vec<OptionDifference> {
    let mut options: Vec<&str> = Vec::new();
    for (option, _) in before.iter().chain(after).flat_map(|run| &run.plan) {
        if !options.contains(&option.as_str()) {
            options.push(option);
        }
    }
    let value = |run: &ComparedRun, option: &str| {
        let found = run.plan.iter().find(|(name, _)| name == option);
        found.map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let values = |side: &[ComparedRun], option| {
        side.iter()
            .map(|run| value(run, option))
            .collect::<Vec<_>>()
    };
    options
        .into_iter()
        .map(|option| OptionDifference {
            option: option.replace('_', "-"),
            before: values(before, option),
            after: values(after, option),
        })
        .filter(|found| {
            let mut all = found.before.iter().chain(&found.after);
            let first = all.next();
            all.any(|value| Some(value) != first)
        })
        .collect()
}

impl OptionDifference {
    /// The value of a side, or the values of its runs if they differ.
    fn text(values: &[String]) -> String {
        match values {
            [first, rest @ ..] if rest.iter().all(|value| value == first) => first.clone(),
            _ => values.join(", "),
        }
    }
}
