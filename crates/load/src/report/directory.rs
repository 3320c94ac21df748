//! `--out DIR`: the run's records on disk, second by second while it runs.
//!
//! | file | content |
//! |---|---|
//! | `seconds.csv` | one row a second: what became due, how requests ended, percentiles, lateness |
//! | `report.json` | the report as `--json` prints it |
//! | `times.hlog` | HdrHistogram log: the whole run's response, service and lateness, by tag |
//! | `index.html` | the report as a page |
//! | `metrics.prom` | the report as Prometheus text |

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use posthaste_stats::{LogInterval, write_log};
use posthaste_units::Span;
use thiserror::Error;

use super::{Report, page, prometheus};
use crate::outcome::Outcome;
use crate::run::{Observer, Run};
use crate::tally::Tick;

/// What is written at the end of a run.
const ENDS: [&str; 4] = [REPORT, PAGE, METRICS, TIMES];

/// The seconds of a run that has not begun.
const NEW: &str = "seconds.csv.new";

const SECONDS: &str = "seconds.csv";
const REPORT: &str = "report.json";
const PAGE: &str = "index.html";
const METRICS: &str = "metrics.prom";
const TIMES: &str = "times.hlog";

/// Why records could not be written or read.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct DirectoryError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system or the format says.
    pub reason: String,
}

/// A folder that takes a run's records.
pub struct Directory {
    path: PathBuf,
    seconds: csv::Writer<File>,
    failed: Option<csv::Error>,
}

impl Directory {
    /// Makes the folder and the file of seconds, so that what cannot be written is known before the first
    /// request. What an earlier run has left goes once this one begins.
    pub fn create(path: &Path) -> Result<Self, DirectoryError> {
        fs::create_dir_all(path).map_err(|error| failed(path, &error))?;
        let file = path.join(NEW);
        let mut seconds = csv::Writer::from_path(&file).map_err(|error| failed(&file, &error))?;
        let columns = ["second", "intended"]
            .into_iter()
            .chain(Outcome::ALL.iter().map(|outcome| outcome.name()))
            .chain([
                "response_p50_ms",
                "response_p99_ms",
                "response_max_ms",
                "lateness_max_ms",
            ]);
        let written = seconds
            .write_record(columns)
            .and_then(|()| Ok(seconds.flush()?));
        written.map_err(|error| failed(&file, &error))?;
        Ok(Self {
            path: path.to_owned(),
            seconds,
            failed: None,
        })
    }

    /// What an earlier run has left is not this run's, whatever becomes of this one.
    fn replace(&self) -> io::Result<()> {
        for file in ENDS.map(|name| self.path.join(name)) {
            if fs::symlink_metadata(&file).is_ok_and(|of| of.is_file()) {
                fs::remove_file(&file)?;
            }
        }
        fs::rename(self.path.join(NEW), self.path.join(SECONDS))
    }

    /// Writes everything that is known at the end. A second that could not be written
    /// earlier is an error here: records are whole or said not to be.
    pub fn finish(mut self, report: &Report, run: &Run) -> Result<(), DirectoryError> {
        let flushed = self.seconds.flush().map_err(csv::Error::from);
        if let Some(error) = self.failed.take().or(flushed.err()) {
            return Err(failed(&self.path.join(SECONDS), &error));
        }
        let json =
            serde_json::to_string_pretty(report).map_err(|error| failed(&self.path, &error))?;
        self.write(REPORT, json.as_bytes())?;
        self.write(PAGE, page(report, run).as_bytes())?;
        self.write(METRICS, prometheus(report).as_bytes())?;
        self.log(run)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), DirectoryError> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(|error| failed(&path, &error))
    }

    fn log(&self, run: &Run) -> Result<(), DirectoryError> {
        let path = self.path.join(TIMES);
        let whole = |tag, histogram| LogInterval {
            tag,
            start: Span::ZERO,
            length: run.duration,
            histogram,
        };
        let intervals = [
            whole("response", run.response.histogram()),
            whole("service", run.service.histogram()),
            whole("lateness", &run.lateness),
        ];
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        let mut out = io::BufWriter::new(file);
        write_log(&mut out, &["values are nanoseconds"], &intervals)
            .map_err(|error| failed(&path, &error))?;
        io::Write::flush(&mut out).map_err(|error| failed(&path, &error))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Left where the run could not begin.
        let _ = fs::remove_file(self.path.join(NEW));
    }
}

impl Observer for Directory {
    fn begin(&mut self) {
        if let Err(error) = self.replace() {
            self.failed.get_or_insert(error.into());
        }
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        let millis = |span: Span| format!("{:.3}", span.as_millis_f64());
        let counts = tick.outcomes.iter().map(|(_, count)| count.to_string());
        let row = [
            format!("{:.3}", at.as_secs_f64()),
            tick.intended.to_string(),
        ]
        .into_iter()
        .chain(counts)
        .chain([
            millis(tick.response.quantile(0.5)),
            millis(tick.response.quantile(0.99)),
            millis(tick.response.max()),
            millis(tick.lateness),
        ]);
        let written = self
            .seconds
            .write_record(row)
            .and_then(|()| Ok(self.seconds.flush()?));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

/// Reads the report of an earlier run.
pub fn read_report(directory: &Path) -> Result<Report, DirectoryError> {
    let path = directory.join(REPORT);
    let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
    serde_json::from_str(&text).map_err(|error| failed(&path, &error))
}

fn failed(path: &Path, reason: &dyn std::fmt::Display) -> DirectoryError {
    DirectoryError {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
