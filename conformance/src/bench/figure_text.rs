//! Figures as text: numbers with their units, and the table that a benchmark prints.

use std::fmt;

use crate::bench::result::{BenchPeer, Bounds, Figure, Measure, Spread};

/// Prints the figures as a Markdown table.
pub(super) fn print(figures: &[Figure]) {
    println!("| figure | measured | peer | ratio | target | |\n|---|---|---|---|---|---|");
    for figure in figures {
        println!("{}", row(figure));
    }
}

fn row(figure: &Figure) -> String {
    let measured = [measured(figure), figure.remark.clone()];
    let measured = measured.into_iter().filter(|text| !text.is_empty());
    let (text, holds) = target(figure);
    cells([
        figure.name.clone(),
        measured.collect::<Vec<_>>().join("; "),
        peers(figure),
        ratios(figure),
        text.to_owned(),
        holds.to_owned(),
    ])
}

/// A row of a Markdown table.
pub(super) fn cells<const N: usize>(cells: [String; N]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |", cells.join(" | "))
}

/// The figure's own number. For a statement, its result.
pub(super) fn measured(figure: &Figure) -> String {
    match (&figure.ours, &figure.target) {
        (Some(ours), _) => ours.to_string(),
        (None, Some(target)) if target.holds => "yes".to_owned(),
        (None, Some(_)) => "no".to_owned(),
        (None, None) => String::new(),
    }
}

/// Names and numbers of the peers.
pub(super) fn peers(figure: &Figure) -> String {
    let peers = figure.peers.iter();
    let parts: Vec<String> = peers
        .map(|BenchPeer { name, measure, .. }| format!("{name} {measure}"))
        .collect();
    parts.join("; ")
}

/// Ratios to the peers, in their order. Empty if none is known.
pub(super) fn ratios(figure: &Figure) -> String {
    if figure.peers.iter().all(|peer| peer.ratio.is_none()) {
        return String::new();
    }
    let ratios = figure.peers.iter().map(|peer| peer.ratio);
    let parts = ratios.map(|ratio| ratio.map_or("-".to_owned(), number));
    parts.collect::<Vec<_>>().join("; ")
}

/// The target, and the result of comparing the figure with it.
pub(super) fn target(figure: &Figure) -> (&str, &'static str) {
    match &figure.target {
        None => ("", ""),
        Some(target) if target.holds => (&target.text, "holds"),
        Some(target) => (&target.text, "**missed**"),
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number(self.value))?;
        if let Some(total) = self.total {
            write!(f, " of {}", number(total as f64))?;
        }
        if !self.unit.is_empty() {
            write!(f, " {}", self.unit)?;
        }
        let spread = self.spread.map(|spread| spread.to_string());
        let n = self.n.map(|n| format!("n = {}", number(n as f64)));
        let more: Vec<String> = spread.into_iter().chain(n).collect();
        if more.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", more.join(", "))
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Bounds::Range => {}
            Bounds::MiddleHalf => f.write_str("middle half ")?,
            Bounds::Interval95 => f.write_str("95 %: ")?,
        }
        write!(f, "{} to {}", number(self.low), number(self.high))
    }
}

/// A number with four significant digits or one after the point, and with separated thousands.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        1_000.0..10_000.0 => 1,
        size => (3.0 - size.log10().floor()).clamp(0.0, 8.0) as usize,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    grouped(text)
}

/// Puts commas between the thousands of a number.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut digits = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            digits.push(',');
        }
        digits.push(digit);
    }
    digits + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let texts = [
            0.0,
            0.137,
            0.000_2,
            11.1,
            642.87,
            1_020.5,
            15_300.4,
            -1_234_567.0,
            1.0,
        ]
        .map(number);
        let expected = [
            "0",
            "0.137",
            "0.0002",
            "11.1",
            "642.9",
            "1,020.5",
            "15,300",
            "-1,234,567",
            "1",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_figure_is_one_row() {
        let figure = Figure::new("CPU", Measure::median(&[11.0, 11.2, 11.1], "µs"))
            .paired("wrk", Measure::new(12.6, "µs"), 0.88)
            .target("at most 0.90 of wrk's", true)
            .remark("in turns");
        let expected = "| CPU | 11.1 µs (11 to 11.2, n = 3); in turns | wrk 12.6 µs | 0.88 | \
                        at most 0.90 of wrk's | holds |";
        assert_eq!(row(&figure), expected);
    }

    #[test]
    fn a_part_names_its_total() {
        let measure = Measure::part(18, 30, "rounds").between(12.0, 22.0, Bounds::Interval95);
        assert_eq!(measure.to_string(), "18 of 30 rounds (95 %: 12 to 22)");
    }
}
