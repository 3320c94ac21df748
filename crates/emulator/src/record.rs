//! A record of what came to the links, from which [`link`](posthaste_link::record) repeats every
//! decision in virtual time.
//!
//! The lines are `link`'s own; here they come from a run and go to a file. A record repeats a run
//! only if it is whole: look at [`unrecorded`](crate::Outcome::unrecorded) too.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use posthaste_link::record::{HEADER, Input};
use thiserror::Error;

use crate::following::Following;
use crate::sighting::Notes;

/// Inputs to keep for a recorder that follows: a second of 65,000 packets, 3 MB.
pub const BUFFER: usize = 1 << 16;

/// Why there is no record, or no whole one.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file cannot be made.
    #[error("{}: {error}; name a file in a folder that can be written to", path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file was begun, and is not complete.
    #[error("{}: the record ends early and cannot be replayed: {error}; make room", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// No thread.
    #[error("a thread for the record: {0}")]
    Thread(io::Error),
}

/// Writes a record to a file.
pub struct Recorder {
    path: PathBuf,
    lines: BufWriter<File>,
    written: io::Result<u64>,
}

impl Recorder {
    /// Makes the file, or empties it. `words` go into it as comments, a line each: the plans and
    /// the seed, without which nobody can replay it.
    pub fn create(path: &Path, words: &str) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Create {
            path: path.to_owned(),
            error,
        };
        let mut lines = BufWriter::with_capacity(1 << 16, File::create(path).map_err(failed)?);
        let mut begin = || {
            words
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

    /// Writes down an input. After an error nothing more is written; [`Recorder::finish`] says so.
    pub fn note(&mut self, input: Input) {
        if let Ok(written) = self.written {
            self.written = writeln!(self.lines, "{input}").map(|()| written + 1);
        }
    }

    /// Writes the rest, and says how many inputs the record holds.
    pub fn finish(mut self) -> Result<u64, RecordError> {
        let flushed = self.lines.flush();
        let written = self.written.and_then(|written| flushed.map(|()| written));
        written.map_err(|error| RecordError::Write {
            path: self.path,
            error,
        })
    }

    /// Takes inputs as they come, in a thread of its own, which the emulator never waits for.
    pub fn follow(self, inputs: Notes<Input>) -> Result<Recording, RecordError> {
        let thread = Following::start(inputs, self, Self::note).map_err(RecordError::Thread)?;
        Ok(Recording { thread })
    }
}

/// A recorder that follows a run.
pub struct Recording {
    thread: Following<Recorder>,
}

impl Recording {
    /// Writes what is still to be written, which is everything once the run has finished.
    pub fn finish(self) -> Result<u64, RecordError> {
        self.thread.finish().finish()
    }
}
