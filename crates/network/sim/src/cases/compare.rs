//! Comparison of remedies: their gain under packet losses, and their unnecessary retransmissions under reordering only.

use std::fmt::Write as _;

use posthaste_stats::Statistic;

use crate::cases::case::{AS_GIVEN, PATH, RECOVERY, REORDERED, SimulationCase, SimulationCases};
use crate::cases::numbers::{CaseNumbers, CaseResults, in_ms, table};

/// A remedy on the path as given, and on the same path without loss and with reordering.
#[derive(Clone, Copy)]
pub(crate) struct ComparedRemedy<'a> {
    pub(crate) remedy: &'a str,
    pub(crate) given: &'a CaseNumbers,
    pub(crate) reordered: &'a CaseNumbers,
}

/// Remedies under the same values of all other options.
pub(crate) struct RemedyComparison<'a> {
    /// The values of the other options that differ between cases.
    pub(crate) setting: String,
    /// The first remedy, to which the others are compared, and those that differ from it, in the order given.
    pub(crate) remedies: Vec<ComparedRemedy<'a>>,
    /// Names of the remedies with the same figures as the first.
    pub(crate) same: Vec<&'a str>,
}

/// One comparison for each combination of the other options.
pub(crate) fn comparisons<'a>(
    cases: &'a SimulationCases,
    results: &'a CaseResults,
) -> Vec<RemedyComparison<'a>> {
    let all: Vec<(&SimulationCase, &CaseNumbers)> =
        cases.list.iter().zip(&results.numbers).collect();
    let mut comparisons: Vec<RemedyComparison<'a>> = Vec::new();
    for pair in all.chunks_exact(2) {
        let [(case, given), (other, reordered)] = pair else {
            continue;
        };
        debug_assert_eq!(
            (label(case, PATH), label(other, PATH)),
            (AS_GIVEN, REORDERED)
        );
        let others = case.labels.iter();
        let others = others.filter(|(option, _)| option != RECOVERY && option != PATH);
        let setting: Vec<&str> = others.map(|(_, value)| value.as_str()).collect();
        let setting = setting.join(" ");
        let remedy = ComparedRemedy {
            remedy: label(case, RECOVERY),
            given,
            reordered,
        };
        match comparisons
            .last_mut()
            .filter(|last| last.setting == setting)
        {
            Some(comparison) => comparison.add(remedy),
            None => comparisons.push(RemedyComparison {
                setting,
                remedies: vec![remedy],
                same: Vec::new(),
            }),
        }
    }
    comparisons
}

fn label<'a>(case: &'a SimulationCase, option: &str) -> &'a str {
    let found = case.labels.iter().find(|(known, _)| known == option);
    found.map_or("", |(_, value)| value)
}

impl<'a> RemedyComparison<'a> {
    /// Adds a remedy, by its name alone if it changes no figure.
    fn add(&mut self, remedy: ComparedRemedy<'a>) {
        let first = self.remedies[0];
        let [its, usual] = [&remedy, &first].map(|one| figures(one, &first, false));
        if its == usual {
            self.same.push(remedy.remedy);
        } else {
            self.remedies.push(remedy);
        }
    }
}

/// A table with one line for each remedy, for each combination of the other options.
pub fn comparison_text(cases: &SimulationCases, results: &CaseResults) -> String {
    let mut text = format!("{}\n", cases.title);
    let single = results.are_single();
    for comparison in comparisons(cases, results) {
        let first = comparison.remedies[0];
        let mut rows = heads(single);
        let remedies = comparison.remedies.iter();
        rows.extend(remedies.map(|remedy| row(remedy, &first, single)));
        text.push('\n');
        if !comparison.setting.is_empty() {
            let _ = writeln!(text, "{}", comparison.setting);
        }
        text += &table(&rows);
        if !comparison.same.is_empty() {
            let _ = writeln!(
                text,
                "the same as {}: {}",
                first.remedy,
                comparison.same.join(", ")
            );
        }
    }
    text + if single { ONE_EACH } else { PER_THOUSAND }
}

const ONE_EACH: &str = "\nreordered: the same path without loss, where packets change places
for nothing: segments to an end that already had all of their data\n";

const PER_THOUSAND: &str = "\nchange: of the mean, with its 95 % interval; transaction N meets the same losses in each line
reordered: the same path without loss, where packets change places
timeouts, for nothing: for 1,000 connections; for nothing: segments to an end that already had all of their data\n";

/// Both lines of the head: the paths, and the columns.
fn heads(single: bool) -> Vec<Vec<String>> {
    let (times, numbers): (&[&str], _) = if single {
        (&["ms", "change"], "ms")
    } else {
        (
            &["mean ms", "change", "95 %", "p50", "p90", "p99"],
            "mean ms",
        )
    };
    let counts = ["timeouts", "bytes", "for nothing"];
    let given = times.len() + counts.len();
    let columns = ["recovery"].iter().chain(times).chain(&counts);
    let reordered = [numbers, "for nothing"];
    let columns = columns.chain(&reordered);
    let mut paths = vec![String::new(); given + 3];
    paths[1] = "as given".to_owned();
    paths[given + 1] = "reordered".to_owned();
    vec![paths, columns.map(|name| (*name).to_owned()).collect()]
}

/// A line of the table: the name, and the figures with the interval of the change.
fn row(one: &ComparedRemedy<'_>, first: &ComparedRemedy<'_>, single: bool) -> Vec<String> {
    let mut cells = figures(one, first, single);
    if !single {
        let interval = one.given.change_since(first.given);
        let ends = interval.filter(|_| one.remedy != first.remedy);
        let ends = ends.map(|ends| ends.map(percent));
        let interval = ends.map_or_else(String::new, |[low, high]| format!("{low} to {high}%"));
        cells.insert(2, interval);
    }
    cells.insert(0, one.remedy.to_owned());
    cells
}

/// Cells of a remedy, compared with the first, without intervals.
fn figures(one: &ComparedRemedy<'_>, first: &ComparedRemedy<'_>, single: bool) -> Vec<String> {
    let change = |now: f64, before: f64| match now / before - 1.0 {
        share if share.is_finite() => percent(share) + "%",
        _ => String::new(),
    };
    // A stopped simulation may have fewer transactions, or none, of a later remedy.
    let bytes = |numbers: &CaseNumbers| {
        numbers.bytes.iter().sum::<u64>() as f64 / numbers.connections as f64
    };
    let [now, before] = [one.given, first.given];
    let mean = |numbers: &CaseNumbers| numbers.ms(Statistic::Mean);
    let mut cells = vec![in_ms(mean(now)), change(mean(now), mean(before))];
    if !single {
        let quantiles = [Statistic::P50, Statistic::P90, Statistic::P99];
        cells.extend(quantiles.map(|statistic| in_ms(now.ms(statistic))));
    }
    let count = |count: u64, numbers: &CaseNumbers| {
        if numbers.connections == 0 {
            "-".to_owned()
        } else if single {
            count.to_string()
        } else {
            format!("{:.1}", numbers.per_thousand(count))
        }
    };
    cells.extend([
        count(now.timeouts, now),
        change(bytes(now), bytes(before)),
        count(now.sent_for_nothing, now),
        in_ms(mean(one.reordered)),
        count(one.reordered.sent_for_nothing, one.reordered),
    ]);
    cells
}

/// A share in percent, with its sign and without the unit. Never a negative zero.
fn percent(share: f64) -> String {
    let text = format!("{:+.1}", 100.0 * share);
    match text.as_str() {
        "-0.0" => "+0.0".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Totals;

    fn numbers(sent_for_nothing: u64) -> CaseNumbers {
        let mut totals = Totals::new();
        totals.connections = 1000;
        totals.for_nothing = sent_for_nothing;
        CaseNumbers::new(&totals)
    }

    #[test]
    fn remedies_that_change_nothing_are_named_only() {
        let [none, other] = [0, 7].map(numbers);
        let remedy = |remedy, given| ComparedRemedy {
            remedy,
            given,
            reordered: &none,
        };
        let mut comparison = RemedyComparison {
            setting: String::new(),
            remedies: vec![remedy("none", &none)],
            same: Vec::new(),
        };
        for (name, given) in [("a", &other), ("b", &none), ("c", &other)] {
            comparison.add(remedy(name, given));
        }
        let names: Vec<&str> = comparison.remedies.iter().map(|one| one.remedy).collect();
        assert_eq!(
            (names, comparison.same),
            (vec!["none", "a", "c"], vec!["b"])
        );
    }

    #[test]
    fn a_head_names_each_column_once() {
        for single in [true, false] {
            let [paths, columns] = heads(single).try_into().unwrap();
            assert_eq!(paths.len(), columns.len());
            let one = numbers(0);
            let remedy = ComparedRemedy {
                remedy: "none",
                given: &one,
                reordered: &one,
            };
            assert_eq!(row(&remedy, &remedy, single).len(), columns.len());
            let reordered = paths.iter().position(|path| path == "reordered").unwrap();
            let (given, reordered) = columns.split_at(reordered);
            for names in [given, reordered] {
                let set: std::collections::BTreeSet<&String> = names.iter().collect();
                assert_eq!(set.len(), names.len(), "{names:?}");
            }
        }
    }

    #[test]
    fn a_share_has_no_negative_zero() {
        assert_eq!([-0.0001, 0.0, 0.012].map(percent), ["+0.0", "+0.0", "+1.2"]);
    }
}
