//! `posthaste pattern show`: a pattern as a table, as strips in the terminal, as a picture.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use posthaste_link::pattern::{Coverage, Extent, Pattern, coverage_table, strips};
use posthaste_units::Span;
use serde::Serialize;

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
    /// Number of packets in each direction that are read
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

/// A row as JSON.
#[derive(Serialize)]
struct CoverageRecord {
    direction: &'static str,
    kind: &'static str,
    by: &'static str,
    entries: u64,
    first: u64,
    last: u64,
    repeat: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    touched: Option<u64>,
    #[serde(rename = "of", skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let pattern = read(&self.pattern)?;
        let rows = Coverage::from_pattern(&pattern);
        let covered = Extent::from_pattern(&pattern);
        let extent = Extent {
            packets: self.packets.unwrap_or(covered.packets),
            millis: match self.duration {
                Some(duration) => duration.as_nanos().div_ceil(1_000_000),
                None => covered.millis,
            },
        };
        if let Some(path) = &self.picture {
            let title = format!("Pattern {}", self.pattern.display());
            let picture = picture::file(path, &title, &pattern, &rows, extent)?;
            std::fs::write(path, picture)
                .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        }
        if self.json {
            let records: Vec<CoverageRecord> = rows.iter().map(|row| record(row, extent)).collect();
            let json = serde_json::to_string_pretty(&records).map_err(Failure::run)?;
            return print(&(json + "\n"));
        }
        if rows.is_empty() {
            return print("nothing happens in this pattern\n");
        }
        let table = coverage_table(&rows, extent);
        print(&(table + &strips(&pattern, &rows, extent)))
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

fn record(row: &Coverage, extent: Extent) -> CoverageRecord {
    let counted = !row.kind.persists();
    let places = extent.along(row.axis);
    CoverageRecord {
        direction: row.direction.name(),
        kind: row.kind.name(),
        by: row.axis.unit(),
        entries: row.entries,
        first: row.first,
        last: row.last,
        repeat: row.period,
        touched: counted.then(|| row.touched(places)),
        total: counted.then_some(places),
        share: counted.then(|| row.share(0, places)),
    }
}
