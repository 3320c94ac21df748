//! Comparison of remedies: their gain under packet losses, and their unnecessary retransmissions under reordering only.

use posthaste_stats::Statistic;

use crate::case::{AS_GIVEN, PATH, RECOVERY, REORDERED, SimulationCase, SimulationCases};
use crate::numbers::{CaseNumbers, CaseResults, table};

/// A remedy on the path as given, and on the same path without loss and with reordering.
pub(crate) struct ComparedRemedy<'a> {
    /// The other options that differ between cases.
    pub(crate) place: String,
    pub(crate) remedy: &'a str,
    pub(crate) given: &'a CaseNumbers,
    pub(crate) reordered: &'a CaseNumbers,
}

/// Every remedy, in the order given.
pub(crate) fn compared<'a>(
    cases: &'a SimulationCases,
    results: &'a CaseResults,
) -> Vec<ComparedRemedy<'a>> {
    let all: Vec<(&SimulationCase, &CaseNumbers)> =
        cases.list.iter().zip(&results.numbers).collect();
    let pairs = all.chunks_exact(2).filter_map(|pair| {
        let [(case, given), (other, reordered)] = pair else {
            return None;
        };
        debug_assert_eq!(
            (label(case, PATH), label(other, PATH)),
            (AS_GIVEN, REORDERED)
        );
        let others = case.labels.iter();
        let others = others.filter(|(option, _)| option != RECOVERY && option != PATH);
        let place: Vec<&str> = others.map(|(_, value)| value.as_str()).collect();
        Some(ComparedRemedy {
            place: place.join(" "),
            remedy: label(case, RECOVERY),
            given,
            reordered,
        })
    });
    pairs.collect()
}

fn label<'a>(case: &'a SimulationCase, option: &str) -> &'a str {
    let found = case.labels.iter().find(|(known, _)| known == option);
    found.map_or("", |(_, value)| value)
}

/// A table with one line for each remedy, for each combination of the other options.
pub fn comparison_text(cases: &SimulationCases, results: &CaseResults) -> String {
    let head = [
        "recovery",
        "mean ms",
        "change",
        "p50",
        "p90",
        "p99",
        "timeouts",
        "bytes",
        "for nothing",
        "reordered: for nothing",
        "mean ms",
    ];
    let mut text = format!("{}\n", cases.title);
    let compared = compared(cases, results);
    for group in compared.chunk_by(|one, other| one.place == other.place) {
        let Some(first) = group.first() else {
            continue;
        };
        let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
        let (same, others) = fold(group.iter().map(|one| row(one, first)));
        rows.extend(others);
        text += &format!("\n{}", heading(&first.place));
        text += &table(&rows);
        if !same.is_empty() {
            text += &format!("the same as {}: {}\n", first.remedy, same.join(", "));
        }
    }
    text + "\ntimeouts and what was sent for nothing: for a thousand connections; reordered: on the same path\n\
            without loss, where packets change places\n"
}

/// Separates rows with the same figures as the first, by their names, from the others.
fn fold(rows: impl Iterator<Item = Vec<String>>) -> (Vec<String>, Vec<Vec<String>>) {
    let mut others: Vec<Vec<String>> = Vec::new();
    let mut same = Vec::new();
    for row in rows {
        match others.first() {
            Some(first) if first[1..] == row[1..] => same.extend(row.into_iter().next()),
            _ => others.push(row),
        }
    }
    (same, others)
}

fn heading(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!("{place}\n"),
    }
}

fn row(one: &ComparedRemedy<'_>, first: &ComparedRemedy<'_>) -> Vec<String> {
    let change = |now: f64, before: f64| match (now / before - 1.0) * 100.0 {
        percent if percent.is_finite() => format!("{percent:+.1}%"),
        _ => String::new(),
    };
    let [mean, p50, p90, p99, _] = one.given.times();
    let [reordered, ..] = one.reordered.times();
    let ms = |numbers: &CaseNumbers| numbers.ms(Statistic::Mean);
    let bytes = |numbers: &CaseNumbers| numbers.bytes.iter().sum::<u64>() as f64;
    let thousand = |count, numbers: &CaseNumbers| format!("{:.1}", numbers.per_thousand(count));
    vec![
        one.remedy.to_owned(),
        mean,
        change(ms(one.given), ms(first.given)),
        p50,
        p90,
        p99,
        thousand(one.given.timeouts, one.given),
        change(bytes(one.given), bytes(first.given)),
        thousand(one.given.sent_for_nothing, one.given),
        thousand(one.reordered.sent_for_nothing, one.reordered),
        reordered,
    ]
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn rows_that_change_nothing_are_folded() {
        let row = |name: &str, figure: &str| vec![name.to_owned(), figure.to_owned()];
        let rows = [
            row("none", "1"),
            row("a", "2"),
            row("b", "1"),
            row("c", "2"),
        ];
        let (same, others) = fold(rows.into_iter());
        assert_eq!(same, ["b"]);
        assert_eq!(others, [row("none", "1"), row("a", "2"), row("c", "2")]);
    }
}
