//! A record of all inputs to the links. [`link`](posthaste_link::record) repeats every decision from it in virtual
//! time.
//!
//! `link` defines the lines; this module writes those of a run to a file. A record repeats a run only if it is
//! complete: check [`unrecorded`](crate::EmulationOutcome::unrecorded) as well.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use posthaste_link::record::{HEADER, Input};
use thiserror::Error;

use crate::follower::RecordFollower;
use crate::path::packet_record::Notes;

/// Buffer for a recorder that follows a run, in inputs: a second at 65,000 packets a second, 3 MB.
pub const BUFFER: usize = 1 << 16;

/// Error that prevents a record, or leaves it incomplete.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file cannot be created.
    #[error("{}: {error}; name a file in a folder that can be written to", path.display())]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The file was begun, but is not complete.
    #[error("{}: the record ends early and cannot be replayed: {error}; make room", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The thread could not be started.
    #[error("a thread for the record: {0}")]
    Thread(#[source] io::Error),
}

/// Writes a record to a file.
pub struct Recorder {
    path: PathBuf,
    lines: BufWriter<File>,
    written: io::Result<u64>,
}

impl Recorder {
    /// Creates the file, or empties it. Writes `description` into it as comments, one line each: the plans and the seed,
    /// which a replay needs.
    pub fn create(path: &Path, description: &str) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Create {
            path: path.to_owned(),
            error,
        };
        let mut lines = BufWriter::with_capacity(1 << 16, File::create(path).map_err(failed)?);
        let mut begin = || {
            description
                .lines()
                .try_for_each(|line| writeln!(lines, "# {line}"))?;
            writeln!(lines, "{HEADER}")
        };
        let written = begin().map(|()| 0);
        Ok(Self {
            path: path.to_owned(),
            lines,
            written,
        })
    }

    /// Writes an input. After an error it writes nothing more, and [`Recorder::finish`] returns the error.
    pub fn note(&mut self, input: Input) {
        if let Ok(written) = self.written {
            self.written = writeln!(self.lines, "{input}").map(|()| written + 1);
        }
    }

    /// Writes the rest. Returns the number of inputs in the record.
    pub fn finish(mut self) -> Result<u64, RecordError> {
        let flushed = self.lines.flush();
        let written = self.written.and_then(|written| flushed.map(|()| written));
        written.map_err(|error| RecordError::Write {
            path: self.path,
            error,
        })
    }

    /// Writes inputs as they arrive, in a thread of its own. The emulator never waits for it.
    pub fn follow(self, inputs: Notes<Input>) -> Result<Recording, RecordError> {
        let thread =
            RecordFollower::start(inputs, self, Self::note).map_err(RecordError::Thread)?;
        Ok(Recording { thread })
    }
}

/// A recorder that follows a run.
pub struct Recording {
    thread: RecordFollower<Recorder>,
}

impl Recording {
    /// Writes the remaining inputs. The record is complete once the run has finished.
    pub fn finish(self) -> Result<u64, RecordError> {
        self.thread.finish().finish()
    }
}
