//! The files of a run: a record of the links' input, a trace of their output, the report.
//!
//! All are created before anything starts, so that an unwritable name is found before the run.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use posthaste_emulator::record::{self, Recorder, Recording};
use posthaste_emulator::trace::{self, TraceError, TraceFileWriter};
use posthaste_emulator::{Emulation, RunningEmulation};
use posthaste_link::Plan;

use super::Args;
use super::report::Report;
use crate::commands::Failure;

/// Created, empty files.
pub(super) struct Blank {
    record: Option<Recorder>,
    trace: Option<TraceFileWriter>,
    report: Option<Page>,
}

/// Files in use.
pub(super) struct Open {
    record: Option<Recording>,
    trace: Option<trace::TraceFollower>,
    report: Option<Page>,
}

/// The file of the report.
struct Page {
    path: PathBuf,
    file: File,
}

impl Blank {
    /// Creates the requested files. `plans` are the links' plans, for the notes below a ladder.
    pub(super) fn create(args: &Args, plans: [&Plan; 2]) -> Result<Self, Failure> {
        // For people, so lossy conversion of invalid text is acceptable.
        let words: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let words = format!("posthaste {}\nseed {}", words.join(" "), args.seed);
        let record = args.record.as_ref();
        let record = record.map(|path| Recorder::create(path, &words));
        let trace = (!args.trace.is_empty())
            .then(|| TraceFileWriter::create(&args.trace, &args.notes(plans)));
        let report = args.report.as_ref().map(|path| Page::create(path));
        Ok(Self {
            record: record.transpose().map_err(Failure::run)?,
            trace: trace.transpose().map_err(|error| match error {
                TraceError::Ending(_) => Failure::usage(error),
                error => Failure::run(error),
            })?,
            report: report.transpose()?,
        })
    }

    /// Makes the emulation keep the data that the files need.
    pub(super) fn ask(&self, mut emulation: Emulation) -> Emulation {
        if self.record.is_some() {
            emulation = emulation.inputs(record::BUFFER);
        }
        if self.trace.is_some() {
            emulation = emulation.packet_records(trace::BUFFER);
        }
        emulation
    }

    /// Starts writing.
    pub(super) fn begin(self, running: &mut RunningEmulation) -> Result<Open, Failure> {
        let record = self.record.zip(running.inputs.take());
        let record = record.map(|(recorder, inputs)| recorder.follow(inputs));
        let trace = self.trace.zip(running.packet_records.take());
        let trace = trace.map(|(writer, packet_records)| writer.follow(packet_records));
        Ok(Open {
            record: record.transpose().map_err(Failure::run)?,
            trace: trace.transpose().map_err(Failure::run)?,
            report: self.report,
        })
    }
}

impl Open {
    /// Writes the rest. It is complete, because the emulator has ended. One failure does not prevent the other files.
    pub(super) fn finish(self, report: &Report) -> Result<(), Failure> {
        let record = self.record.map(Recording::finish).transpose();
        let trace = self.trace.map(trace::TraceFollower::finish).transpose();
        let page = self.report.map(|page| page.write(report)).transpose();
        record.map_err(Failure::run)?;
        trace.map_err(Failure::run)?;
        page.map(|_| ())
    }
}

impl Page {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| {
            let path = path.display();
            let remedy = "name a file in a folder that can be written to";
            Failure::run(format!("--report {path}: {error}; {remedy}"))
        })?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    fn write(mut self, report: &Report) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(report).map_err(Failure::run)?;
        writeln!(self.file, "{json}").map_err(|error| {
            let path = self.path.display();
            Failure::run(format!("--report {path}: {error}; make room"))
        })
    }
}
