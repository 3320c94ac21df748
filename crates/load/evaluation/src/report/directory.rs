//! `--out DIR`: the run's records on disk, written every second during the run.
//!
//! | file | content |
//! |---|---|
//! | `seconds.csv` | one row per second: requests due, outcomes, percentiles (`inf`: no reply), lateness |
//! | `report.json` | the report as `--json` prints it |
//! | `times.hlog` | HdrHistogram log: times of the whole run by tag, of complete replies and of good ones |
//! | `index.html` | the report as a page |
//! | `metrics.prom` | the report as Prometheus text |

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Timestamp, Unit};
use posthaste_load::{Cause, Observer, Outcome, Run, Tick};
use posthaste_stats::{LogInterval, Time, write_log};
use posthaste_units::Span;
use thiserror::Error;

use super::{FORMAT, Report, page, prometheus};

/// Files written at the end of a run.
const ENDS: [&str; 4] = [REPORT, PAGE, METRICS, TIMES];

/// Interval of a row.
const SECOND: Span = Span::from_secs(1);
/// File of seconds before the run begins.
const NEW: &str = "seconds.csv.new";
/// Name of a file until it is completely written.
const UNFINISHED: &str = "unfinished";

const SECONDS: &str = "seconds.csv";
const REPORT: &str = "report.json";
const PAGE: &str = "index.html";
const METRICS: &str = "metrics.prom";
const TIMES: &str = "times.hlog";

/// Failure to write or read records.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct DirectoryError {
    /// The file or folder.
    pub path: PathBuf,
    /// The error of the system or the format.
    #[source]
    pub reason: Cause,
}

/// A folder for the records of a run.
pub struct Directory {
    path: PathBuf,
    /// Keeps other runs out of the folder.
    _lock: File,
    seconds: csv::Writer<File>,
    started: Timestamp,
    /// The last second with a row.
    written: u64,
    failed: Option<csv::Error>,
}

/// Permission to write records to a folder that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Neither over a finished run nor next to other files.
    Never,
    /// Replace files of an earlier run. Other files stay.
    Force,
}

impl Directory {
    /// Creates the folder and the file of seconds, so that write errors show before the first request. Records of an
    /// earlier run are removed when this one begins.
    ///
    /// # Errors
    /// A folder that another run writes to; one that holds a finished run or other files, unless `overwrite` permits it;
    /// and errors of the system.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self, DirectoryError> {
        fs::create_dir_all(path).map_err(|error| failed(path, error))?;
        let lock = lock(path)?;
        if overwrite == Overwrite::Never {
            refuse_occupied(path)?;
        }
        let file = path.join(NEW);
        let mut seconds = csv::Writer::from_path(&file).map_err(|error| failed(&file, error))?;
        let columns = ["second", "time", "intended"]
            .into_iter()
            .chain(Outcome::ALL.iter().map(|outcome| outcome.name()))
            .chain([
                "response_p50_ms",
                "response_p99_ms",
                "response_max_ms",
                "ok_p50_ms",
                "ok_p99_ms",
                "lateness_max_ms",
                "retries",
            ]);
        let written = seconds
            .write_record(columns)
            .and_then(|()| Ok(seconds.flush()?));
        written.map_err(|error| failed(&file, error))?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            seconds,
            started: Timestamp::UNIX_EPOCH,
            written: 0,
            failed: None,
        })
    }

    /// Path of the report as a page.
    pub fn page(&self) -> PathBuf {
        self.path.join(PAGE)
    }

    /// Removes the files of an earlier run, which are not this run's whatever its result.
    fn replace(&self) -> io::Result<()> {
        for file in ENDS.map(|name| self.path.join(name)) {
            if fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
                fs::remove_file(&file)?;
            }
        }
        fs::rename(self.path.join(NEW), self.path.join(SECONDS))
    }

    /// Writes all records that are known at the end. A second that could not be written earlier is an error here:
    /// records are complete or reported as incomplete.
    ///
    /// Each file is written completely or not at all.
    pub fn finish(
        mut self,
        report: &Report,
        run: &Run,
        warm_up: Span,
    ) -> Result<(), DirectoryError> {
        self.fill(seconds_of(warm_up + run.duration));
        let flushed = self.seconds.flush().map_err(csv::Error::from);
        if let Some(error) = self.failed.take().or(flushed.err()) {
            return Err(failed(&self.path.join(SECONDS), error));
        }
        let json =
            serde_json::to_string_pretty(report).map_err(|error| failed(&self.path, error))?;
        self.write(REPORT, json.as_bytes())?;
        self.write(PAGE, page(report, run).as_bytes())?;
        self.write(METRICS, prometheus(report).as_bytes())?;
        self.log(run)
    }

    /// Writes rows of seconds in which nothing became due or ended, up to `second`.
    fn fill(&mut self, second: u64) {
        for second in self.written + 1..=second {
            self.write_row(second, &Tick::default());
        }
    }

    fn write_row(&mut self, second: u64, tick: &Tick) {
        let millis = |span: Span| format!("{:.3}", span.as_millis_f64());
        let all = tick.responses.all();
        let ok = tick.responses.ok();
        let of_all = |time: Time| match time {
            _ if all.count() == 0 => String::new(),
            Time::Known(time) => millis(time),
            Time::Above(_) | Time::Never => "inf".to_owned(),
        };
        let of_ok = |quantile: f64| match ok.count() {
            0 => String::new(),
            _ => millis(ok.quantile(quantile)),
        };
        let time = self.started + Duration::from_secs(second);
        let counts = tick.outcomes.iter().map(|(_, count)| count.to_string());
        let row = [
            second.to_string(),
            time.round(Unit::Millisecond).unwrap_or(time).to_string(),
            tick.intended.to_string(),
        ]
        .into_iter()
        .chain(counts)
        .chain([
            of_all(all.quantile(0.5)),
            of_all(all.quantile(0.99)),
            of_all(all.max()),
            of_ok(0.5),
            of_ok(0.99),
            millis(tick.lateness),
            tick.retries.to_string(),
        ]);
        let written = self
            .seconds
            .write_record(row)
            .and_then(|()| Ok(self.seconds.flush()?));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
        self.written = second;
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), DirectoryError> {
        let path = self.path.join(name);
        let unfinished = self.path.join(UNFINISHED);
        let written = fs::write(&unfinished, content).and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|error| {
            // A partial file would be mistaken for a complete one.
            let _ = fs::remove_file(&unfinished);
            failed(&path, error)
        })
    }

    fn log(&self, run: &Run) -> Result<(), DirectoryError> {
        let whole = |tag, histogram| LogInterval {
            tag,
            start: Span::ZERO,
            length: run.duration,
            histogram,
        };
        let intervals = [
            whole("response-answered", run.response.histogram()),
            whole("response-ok", run.ok.histogram()),
            whole("service-answered", run.service.histogram()),
            whole("lateness", &run.lateness),
        ];
        let censored = run.response.distribution().censored();
        let left_out = format!("requests without a complete reply, in no histogram: {censored}");
        let comments = ["values are nanoseconds", &left_out];
        let mut out = Vec::new();
        write_log(&mut out, &comments, &intervals)
            .map_err(|error| failed(&self.path.join(TIMES), error))?;
        self.write(TIMES, &out)
    }
}

/// Number of seconds that have begun within `length`.
fn seconds_of(length: Span) -> u64 {
    length.as_nanos().div_ceil(SECOND.as_nanos())
}

/// Locks the folder until the file is closed, so that a killed process leaves no lock behind.
fn lock(path: &Path) -> Result<File, DirectoryError> {
    let folder = File::open(path).map_err(|error| failed(path, error))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(failed(
            path,
            io::Error::other(
                "another run writes to this folder; give this one a folder of its own",
            ),
        )),
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(folder),
        Err(TryLockError::Error(error)) => Err(failed(path, error)),
    }
}

/// Refuses a folder that holds a finished run, or files that no run has written.
fn refuse_occupied(path: &Path) -> Result<(), DirectoryError> {
    let refuse = |holds: &str| DirectoryError {
        path: path.to_owned(),
        reason: format!(
            "holds {holds}: give another folder, or --force to replace what runs write"
        )
        .into(),
    };
    if fs::symlink_metadata(path.join(REPORT)).is_ok() {
        return Err(refuse("the report of an earlier run"));
    }
    let known = [SECONDS, NEW, UNFINISHED];
    let is_known = |name: &std::ffi::OsStr| {
        let own = known.iter().chain(&ENDS);
        own.into_iter().any(|known| name == *known)
    };
    let Ok(entries) = fs::read_dir(path) else {
        // The folder does not exist. Other errors show when it is created.
        return Ok(());
    };
    match entries
        .flatten()
        .find(|entry| !is_known(&entry.file_name()))
    {
        Some(foreign) => {
            let name = foreign.file_name();
            Err(refuse(&format!(
                "{}, which no run has written",
                name.display()
            )))
        }
        None => Ok(()),
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Left over if the run could not begin.
        let _ = fs::remove_file(self.path.join(NEW));
    }
}

impl Observer for Directory {
    fn begin(&mut self, started: Timestamp) {
        self.started = started;
        if let Err(error) = self.replace() {
            self.failed.get_or_insert(error.into());
        }
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        let second = seconds_of(at);
        self.fill(second.saturating_sub(1));
        self.write_row(second, tick);
    }
}

/// Reads the report of an earlier run.
///
/// # Errors
/// A report with another [`FORMAT`], because its numbers mean something else, and errors of the system or the format.
pub fn read_report(directory: &Path) -> Result<Report, DirectoryError> {
    let path = directory.join(REPORT);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failed(
            directory,
            io::Error::other("has no report.json: give a folder that `load --out` wrote"),
        ),
        _ => failed(&path, error),
    })?;
    let document: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| failed(&path, error))?;
    let format = document["format"].as_u64().unwrap_or(1);
    if format != u64::from(FORMAT) {
        let by = document["plan"]["version"].as_str().unwrap_or("unknown");
        let reason = format!(
            "is a report of form {format}, written by version {by}; this version reads form {FORMAT}: \
             response times of form 1 leave out requests without a reply. Make the run again"
        );
        return Err(failed(&path, reason));
    }
    serde_json::from_value(document).map_err(|error| failed(&path, error))
}

fn failed(path: &Path, reason: impl Into<Cause>) -> DirectoryError {
    DirectoryError {
        path: path.to_owned(),
        reason: reason.into(),
    }
}
