//! `posthaste pattern show`: a pattern as a table, as strips in the terminal, as a picture.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use posthaste_link::pattern::{Axis, Pattern};
use posthaste_units::Span;
use serde::Serialize;

use super::coverage::{Row, length, rows};
use super::picture;
use crate::commands::{Failure, print};

/// Show a pattern: what it does, how often, where
///
/// Counts and shares are those of the packets and milliseconds that the pattern speaks of, or of
/// --packets and --duration.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    posthaste pattern show loss.pattern\n  \
    posthaste pattern show loss.pattern --packets 100000 --picture loss.html\n  \
    posthaste pattern make --loss 2% | posthaste pattern show -")]
pub(crate) struct Args {
    /// The pattern; - reads standard input
    #[arg(value_name = "FILE")]
    pattern: PathBuf,
    /// Look at so many packets in each direction
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Look at so much time
    #[arg(long, value_name = "T")]
    duration: Option<Span>,
    /// Write a picture: FILE.svg holds the first chart, FILE.html all of them and the table
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The range to show.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    packets: u64,
    millis: u64,
}

impl Lengths {
    pub(super) const fn along(self, axis: Axis) -> u64 {
        match axis {
            Axis::Packets => self.packets,
            Axis::Millis => self.millis,
        }
    }
}

/// A row as JSON.
#[derive(Serialize)]
struct Listed {
    direction: &'static str,
    kind: &'static str,
    by: &'static str,
    entries: u64,
    first: u64,
    last: u64,
    repeat: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    touched: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let pattern = read(&self.pattern)?;
        let rows = rows(&pattern);
        let lengths = Lengths {
            packets: self
                .packets
                .unwrap_or_else(|| length(&pattern, Axis::Packets)),
            millis: match self.duration {
                Some(duration) => duration.as_nanos().div_ceil(1_000_000),
                None => length(&pattern, Axis::Millis),
            },
        };
        if let Some(path) = &self.picture {
            let title = format!("Pattern {}", self.pattern.display());
            let picture = picture::file(path, &title, &pattern, &rows, lengths)?;
            std::fs::write(path, picture)
                .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        }
        if self.json {
            let listed: Vec<Listed> = rows.iter().map(|row| listed(row, lengths)).collect();
            let json = serde_json::to_string_pretty(&listed).map_err(Failure::run)?;
            return print(&(json + "\n"));
        }
        if rows.is_empty() {
            return print("nothing happens in this pattern\n");
        }
        let mut text = String::from(
            "direction  what            entries        first         last   touched\n",
        );
        for row in &rows {
            text += &line(row, lengths);
        }
        text += &picture::strips(&pattern, &rows, lengths);
        print(&text)
    }
}

fn read(path: &Path) -> Result<Pattern, Failure> {
    let refuse = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| refuse(error.to_string()))?)
    };
    Pattern::read(BufReader::new(source)).map_err(|error| refuse(error.to_string()))
}

const fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Packets => "packets",
        Axis::Millis => "ms",
    }
}

fn listed(row: &Row, lengths: Lengths) -> Listed {
    let counted = !row.kind.persists();
    let places = lengths.along(row.axis);
    Listed {
        direction: row.direction.name(),
        kind: row.kind.name(),
        by: unit(row.axis),
        entries: row.entries,
        first: row.first,
        last: row.last,
        repeat: row.period,
        touched: counted.then(|| row.touched(places)),
        of: counted.then_some(places),
        share: counted.then(|| row.share(0, places)),
    }
}

fn line(row: &Row, lengths: Lengths) -> String {
    let suffix = match row.axis {
        Axis::Packets => "",
        Axis::Millis => "ms",
    };
    let (first, last) = (
        format!("{}{suffix}", row.first),
        format!("{}{suffix}", row.last),
    );
    format!(
        "{:<9}  {:<14} {:>8} {first:>12} {last:>12}   {}\n",
        row.direction.name(),
        row.kind.name(),
        row.entries,
        touched(row, lengths)
    )
}

/// The covered part of the range, in words.
pub(super) fn touched(row: &Row, lengths: Lengths) -> String {
    let unit = unit(row.axis);
    let again = row.period.map_or(String::new(), |period| {
        format!(", again every {period} {unit}")
    });
    if row.kind.persists() {
        return format!("from there on{again}");
    }
    let places = lengths.along(row.axis);
    let share = row.share(0, places) * 100.0;
    format!(
        "{} of {places} {unit}, {share:.3}%{again}",
        row.touched(places)
    )
}
