//! Files of a session: a record of the links' input, a trace of their output, the report.
//!
//! All are created before anything starts, so that an unwritable name is found before the run.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::record::{self, RecordError, Recorder, Recording};
use crate::run::report::RunReport;
use crate::trace::{self, TraceError, TraceFileWriter};
use crate::{Emulation, RunningEmulation};

/// Names of the files of a session, and their notes.
#[derive(Clone, Debug, Default)]
pub struct SessionFiles {
    /// Record of the links' input.
    pub record: Option<PathBuf>,
    /// Notes at the beginning of the record.
    pub record_notes: String,
    /// Traces of the packets, each in the form of its ending.
    pub traces: Vec<PathBuf>,
    /// Notes below a ladder.
    pub trace_notes: Vec<String>,
    /// The report, as JSON.
    pub report: Option<PathBuf>,
}

/// Error of a session's files.
#[derive(Debug, Error)]
pub enum SessionFileError {
    /// Error of the record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Error of a trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The report's file cannot be created.
    #[error("--report {}: {source}; name a file in a folder that can be written to", path.display())]
    CreateReport {
        /// Name of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The report cannot be written.
    #[error("--report {}: {source}; make room", path.display())]
    WriteReport {
        /// Name of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Created, empty files.
pub(crate) struct CreatedFiles {
    record: Option<Recorder>,
    trace: Option<TraceFileWriter>,
    report: Option<ReportFile>,
}

/// Files in use.
pub(crate) struct OpenFiles {
    record: Option<Recording>,
    trace: Option<trace::TraceFollower>,
    report: Option<ReportFile>,
}

/// The file of the report.
struct ReportFile {
    path: PathBuf,
    file: File,
}

impl CreatedFiles {
    /// Creates the requested files.
    pub(crate) fn create(files: &SessionFiles) -> Result<Self, SessionFileError> {
        let record = files.record.as_ref();
        let record = record.map(|path| Recorder::create(path, &files.record_notes));
        let traces = !files.traces.is_empty();
        let trace = traces.then(|| TraceFileWriter::create(&files.traces, &files.trace_notes));
        let report = files.report.as_ref().map(|path| ReportFile::create(path));
        Ok(Self {
            record: record.transpose()?,
            trace: trace.transpose()?,
            report: report.transpose()?,
        })
    }

    /// Makes the emulation keep the data that the files need.
    pub(crate) fn ask(&self, mut emulation: Emulation) -> Emulation {
        if self.record.is_some() {
            emulation = emulation.inputs(record::BUFFER);
        }
        if self.trace.is_some() {
            emulation = emulation.packet_records(trace::BUFFER);
        }
        emulation
    }

    /// Starts writing.
    pub(crate) fn begin(
        self,
        running: &mut RunningEmulation,
    ) -> Result<OpenFiles, SessionFileError> {
        let record = self.record.zip(running.inputs.take());
        let record = record.map(|(recorder, inputs)| recorder.follow(inputs));
        let log = running
            .control
            .as_ref()
            .map(|control| control.log().clone());
        let writer = self.trace.map(|writer| match log {
            Some(log) => writer.changes(log),
            None => writer,
        });
        let trace = writer.zip(running.packet_records.take());
        let trace = trace.map(|(writer, packet_records)| writer.follow(packet_records));
        Ok(OpenFiles {
            record: record.transpose()?,
            trace: trace.transpose()?,
            report: self.report,
        })
    }
}

impl OpenFiles {
    /// Writes the rest. It is complete, because the emulator has ended. One failure does not prevent the other files.
    pub(crate) fn finish(self, report: &RunReport) -> Result<(), SessionFileError> {
        let record = self.record.map(Recording::finish).transpose();
        let trace = self.trace.map(trace::TraceFollower::finish).transpose();
        let page = self.report.map(|page| page.write(report)).transpose();
        record?;
        trace?;
        page.map(|_| ())
    }
}

impl ReportFile {
    fn create(path: &Path) -> Result<Self, SessionFileError> {
        let file = File::create(path).map_err(|source| SessionFileError::CreateReport {
            path: path.to_owned(),
            source,
        })?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    fn write(mut self, report: &RunReport) -> Result<(), SessionFileError> {
        let json =
            serde_json::to_string_pretty(report).expect("a report has no maps with odd keys");
        writeln!(self.file, "{json}").map_err(|source| SessionFileError::WriteReport {
            path: self.path,
            source,
        })
    }
}
