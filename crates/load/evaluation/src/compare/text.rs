//! The comparison in words: the report on the terminal, and the checks for other programs.

use posthaste_stats::{ComparisonVerdict, FEWEST_FOR_P999, JudgementReason, Needed, Statistic};

use super::{ComparedStatistic, Comparison, OptionDifference, OverallVerdict};
use crate::checks::{Check, CheckState, Checks};

/// The remedy for one run per side.
const ONE_RUN: &str = "one run a side does not show the scatter between runs: compare three a side \
(posthaste compare a1 a2 a3 -- b1 b2 b3), or give a known scatter with --scatter";

impl Comparison {
    /// The report for a terminal.
    pub fn text(&self) -> String {
        let side = |runs: &[String]| match runs.len() {
            1 => runs.join(""),
            count => format!("{count} runs: {}", runs.join(" ")),
        };
        let mut out = format!("before    {}\n", side(&self.before));
        out.push_str(&format!("after     {}\n", side(&self.after)));
        for line in notes(self) {
            out.push_str(&format!("          {line}\n"));
        }
        let width = self.judged.iter().chain(&self.informative);
        let width = width.map(|row| row.name.len()).max().unwrap_or(0);
        out.push_str(&format!(
            "\n{:<width$} {:>11} {:>11} {:>8}  {:<26} verdict\n",
            "judged", "before", "after", "change", "interval of change"
        ));
        self.judged
            .iter()
            .for_each(|row| out.push_str(&self.line(row, width)));
        out.push_str("\nfor information\n");
        self.informative
            .iter()
            .for_each(|row| out.push_str(&self.line(row, width)));
        out.push_str(&format!("\n{}\n", self.conclusion()));
        out
    }

    /// The overall verdict as a sentence.
    pub fn conclusion(&self) -> String {
        match self.verdict {
            OverallVerdict::Worse => format!(
                "worse in {}",
                self.named(ComparisonVerdict::Worse).join(", ")
            ),
            OverallVerdict::Unknown => {
                format!(
                    "no verdict on {}",
                    self.named(ComparisonVerdict::Unknown).join(", ")
                )
            }
            OverallVerdict::Better => {
                format!(
                    "better in {}",
                    self.named(ComparisonVerdict::Better).join(", ")
                )
            }
            OverallVerdict::Equal => "equal within the margins stated".to_owned(),
        }
    }

    /// The judged statistics as checks.
    pub fn checks(&self, allow_unknown: bool) -> Checks {
        let check = |row: &ComparedStatistic| {
            let judgement = &row.judgement;
            let state = match judgement.verdict {
                ComparisonVerdict::Better | ComparisonVerdict::Equal { .. } => CheckState::Passed,
                ComparisonVerdict::Worse => CheckState::Failed,
                ComparisonVerdict::Unknown => CheckState::Unknown,
            };
            let found = match judgement.change {
                Some(by) => format!("{}, {}", change(by), self.verdict_text(row)),
                None => self.verdict_text(row),
            };
            let value = |name, value: Option<f64>| {
                value.map(|value| format!("{name} {}", size(value, row.share)))
            };
            let interval = judgement.interval.map(|[low, high]| {
                let confidence = (judgement.confidence * 100.0).round();
                format!("{confidence}% interval {} to {}", change(low), change(high))
            });
            let detail = [
                value("before", judgement.before),
                value("after", judgement.after),
                interval,
            ];
            Check {
                name: row.name.clone(),
                state,
                found,
                detail: detail.into_iter().flatten().collect::<Vec<_>>().join("\n"),
            }
        };
        Checks {
            title: "posthaste compare".to_owned(),
            notes: notes(self),
            checks: self.judged.iter().map(check).collect(),
            allow_unknown,
        }
    }

    fn line(&self, row: &ComparedStatistic, width: usize) -> String {
        let judgement = &row.judgement;
        let value = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| size(value, row.share))
        };
        let interval = judgement.interval.map_or_else(String::new, |[low, high]| {
            let confidence = (judgement.confidence * 100.0).round();
            format!("{} to {} ({confidence}%)", change(low), change(high))
        });
        format!(
            "{:<width$} {:>11} {:>11} {:>8}  {interval:<26} {}\n",
            row.name,
            value(judgement.before),
            value(judgement.after),
            judgement.change.map_or_else(String::new, change),
            self.verdict_text(row)
        )
    }

    /// The verdict with its reason, and the data needed for a decision.
    fn verdict_text(&self, row: &ComparedStatistic) -> String {
        let judgement = &row.judgement;
        let mut out = match judgement.verdict {
            ComparisonVerdict::Better => "better".to_owned(),
            ComparisonVerdict::Worse => "worse".to_owned(),
            ComparisonVerdict::Equal { within } => format!("equal within {:.1}%", within * 100.0),
            ComparisonVerdict::Unknown => "unknown".to_owned(),
        };
        if let Some(reason) = judgement.reason {
            out.push_str(&format!(": {}", self.reason(reason, row)));
        }
        if let Some(needed) = judgement.needed {
            out.push_str(&format!("; {}", remedy(needed, judgement.reason)));
        }
        out
    }

    /// The reason for a verdict. Names the runs that lack a number or an interval.
    fn reason(&self, reason: JudgementReason, row: &ComparedStatistic) -> String {
        let statistic = row.statistic();
        let runs = self.before.len() + self.after.len();
        let list = |names: &[String]| {
            if names.len() == runs {
                return "any run".to_owned();
            }
            names.join(", ")
        };
        let no_interval = format!(
            "no interval of the {statistic} in {}",
            list(&row.no_interval_in)
        );
        match reason {
            JudgementReason::Absent if !row.absent_in.is_empty() => {
                let mut message = format!("no {statistic} in {}", list(&row.absent_in));
                if statistic == Statistic::P999.key() {
                    message.push_str(&format!(": it needs {FEWEST_FOR_P999} requests per run"));
                }
                message
            }
            JudgementReason::Grows => {
                format!("{no_interval}: response times may grow during a run")
            }
            JudgementReason::NoInterval => format!("{no_interval}: too few independent values"),
            _ => reason.to_string(),
        }
    }
}

impl ComparedStatistic {
    /// The statistic without its times, such as `p99`.
    fn statistic(&self) -> &str {
        self.name.split(" of ").next().unwrap_or(&self.name)
    }
}

/// Lines about all statistics: reasons not to compare, options that differ, the remedy for one run per side.
fn notes(comparison: &Comparison) -> Vec<String> {
    let reasons = comparison.incomparable.iter();
    let mut lines: Vec<String> = reasons
        .map(|why| format!("not comparable: {why}"))
        .collect();
    lines.extend(comparison.differences.iter().map(|found| {
        let (before, after) = (
            OptionDifference::text(&found.before),
            OptionDifference::text(&found.after),
        );
        format!("{} differs: {before} | {after}", found.option)
    }));
    if comparison.one_each() {
        lines.push(ONE_RUN.to_owned());
    }
    lines
}

fn size(value: f64, share: bool) -> String {
    if share {
        format!("{:.3}%", value * 100.0)
    } else {
        format!("{value:.3} ms")
    }
}

/// Percent of the value before, or percentage points of shares.
fn change(change: f64) -> String {
    if change.is_finite() {
        format!("{:+.1}%", change * 100.0)
    } else {
        "any".to_owned()
    }
}

fn remedy(needed: Needed, reason: Option<JudgementReason>) -> String {
    let runs = match needed.runs {
        Some(runs) if needed.assumed => {
            format!("about {runs} runs a side would decide if their scatter is 5%")
        }
        Some(runs) => format!("about {runs} runs a side would decide"),
        None => "more than 99 runs a side of this length would be needed".to_owned(),
    };
    match needed
        .times_longer
        .filter(|_| reason != Some(JudgementReason::OneRun))
    {
        Some(times) => format!("{runs}, or runs {times} times as long"),
        None => runs,
    }
}
