//! The files that follow a run: a record of what goes into the links, a trace of what comes out.

use posthaste_emulator::record::{self, Recorder, Recording};
use posthaste_emulator::trace::{self, Writer};
use posthaste_emulator::{Emulation, Running};

use super::Args;
use crate::commands::Failure;

/// Files that are there and empty.
pub(super) struct Blank {
    record: Option<Recorder>,
    trace: Option<Writer>,
}

/// Files that are being written.
pub(super) struct Open {
    record: Option<Recording>,
    trace: Option<trace::Following>,
}

impl Blank {
    /// Makes those that are asked for.
    pub(super) fn create(args: &Args) -> Result<Self, Failure> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words = format!("posthaste {}\nseed {}", words.join(" "), args.seed);
        let record = args.record.as_ref();
        let record = record.map(|path| Recorder::create(path, &words));
        let trace = args.trace.as_ref().map(|path| Writer::create(path));
        Ok(Self {
            record: record.transpose().map_err(Failure::run)?,
            trace: trace.transpose().map_err(Failure::usage)?,
        })
    }

    /// Has the emulation keep what they need.
    pub(super) fn ask(&self, mut emulation: Emulation) -> Emulation {
        if self.record.is_some() {
            emulation = emulation.inputs(record::BUFFER);
        }
        if self.trace.is_some() {
            emulation = emulation.sightings(trace::BUFFER);
        }
        emulation
    }

    /// Begins to write.
    pub(super) fn begin(self, running: &mut Running) -> Result<Open, Failure> {
        let record = self.record.zip(running.inputs.take());
        let record = record.map(|(recorder, inputs)| recorder.follow(inputs));
        let trace = self.trace.zip(running.sightings.take());
        let trace = trace.map(|(writer, sightings)| writer.follow(sightings));
        Ok(Open {
            record: record.transpose().map_err(Failure::run)?,
            trace: trace.transpose().map_err(Failure::run)?,
        })
    }
}

impl Open {
    /// Writes the rest, which is all there is once the emulator has ended.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let record = self.record.map(Recording::finish).transpose();
        let trace = self.trace.map(trace::Following::finish).transpose();
        record.map_err(Failure::run)?;
        trace.map_err(Failure::run)?;
        Ok(())
    }
}
