//! A trace: every packet of a run, what it was, and what happened to it.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use posthaste_emulator::{Emulation, trace};
//! # let emulation = Emulation::new(Arc::default(), Arc::default());
//! let writer = trace::Writer::create(&["run.csv"], &[])?; // or .pcapng, .svg, .txt
//! let mut running = emulation.sightings(trace::BUFFER).start()?;
//! let sightings = running.sightings.take().expect("they were asked for");
//! let following = writer.follow(sightings)?;
//! // ... the commands inside ...
//! running.finish()?;
//! let written = following.finish()?; // an error here: the file is not complete
//! eprintln!("{} packets in run.csv", written.packets);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The name's ending decides the form:
//!
//! - **csv**: a line for each packet and copy, in the order in which they came to the link.
//! - **pcapng**: each packet twice, on the interface `before` the link when it came and on `after`
//!   when it was sent, so that a lost one is there once. Stamps are nanoseconds since the start of
//!   the run; the comment says position and fate; both have the same packet id. At most
//!   [`HEAD`](crate::HEAD) bytes of each are kept.
//! - **svg**, **txt**: the ladder of the first TCP connection, or of the first connection where
//!   there is none; at most 2,000 packets of it.
//!
//! # Columns of the CSV
//!
//! | column | what it holds |
//! |---|---|
//! | `arrived_ns` | when it came to the link, by the kernel's stamp; nanoseconds since the start of the run |
//! | `left_ns` | when it was to leave the link, or was dropped: exact, as decided |
//! | `sent_ns` | when it was really sent on; empty where it was dropped |
//! | `direction` | `up` (client to server) or `down` |
//! | `connection` | the connection's number, from 1 in the order of first packets |
//! | `flow` | protocol and both ends, the client's first |
//! | `position` | its place among the packets of its link, from 1: what patterns name |
//! | `copy` | 0, or the number of a copy that the link made of it |
//! | `bytes` | of the whole IP packet |
//! | `what` | what it was: the names of [`What`] and [`Kind`] |
//! | `sending` | `first`, or why it was sent again: the names of [`Sending`], inferred as it says there |
//! | `flags` | TCP's, as tcpdump writes them |
//! | `seq`, `ack` | counted from the connection's SYN, which is 0 |
//! | `payload` | bytes of data |
//! | `sack` | blocks `first-behind`, separated by blanks |
//! | `window` | in bytes, scaled where both SYNs were seen to agree on it |
//! | `fate` | `delivered` or `dropped` |
//! | `reason` | why it was dropped: the names of [`Reason`](posthaste_link::Reason) |
//! | `flipped` | bits that the link flipped; the header is shown as it left |
//! | `order` | `overtook`, `held` or nothing |
//!
//! What is read of a segment is bounded in memory: see [`Chronicle`].

mod capture;
mod chronicle;
mod half;
#[cfg(test)]
pub(crate) mod hand;
mod ladder;
mod packet;
mod table;
#[cfg(test)]
mod tests;
mod what;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use posthaste_draw::Ladder;
use thiserror::Error;

pub(crate) use chronicle::Life;
pub use chronicle::{Chronicle, Seen, Step, Tcp};
pub use ladder::ladder;
pub use posthaste_tcp::trace::{Kind, Sending};
pub use what::What;

use self::ladder::Drawing;
use crate::following::Following as Thread;
use crate::sighting::{Notes, Sighting};

/// Sightings to keep for a writer that follows: a second of 65,000 packets, about 17 MB.
pub const BUFFER: usize = 1 << 16;

/// What a trace can be written as.
trait Form: Send {
    /// Writes what happened.
    fn step(&mut self, step: &Step) -> io::Result<()>;
    /// Writes what is left.
    fn end(&mut self) -> io::Result<()>;
}

/// Why there is no trace, or no whole one.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The name does not say what to write.
    #[error("{}: the ending of a trace's name decides its form: .csv, .pcapng, .svg or .txt", .0.display())]
    Ending(PathBuf),
    /// The file cannot be made.
    #[error("{}: {error}; name a file in a folder that can be written to", path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file was begun, and is not complete.
    #[error("{}: the trace is not whole, some of {packets} packets are missing: {error}; make room, or trace less", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
        /// Packets that were to be written.
        packets: u64,
    },
    /// No thread.
    #[error("a thread for the trace: {0}")]
    Thread(io::Error),
}

/// A trace that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Packets and copies in it.
    pub packets: u64,
}

/// Writes a trace to one file or several, each in the form that its name asks for.
pub struct Writer {
    files: Vec<Output>,
    chronicle: Chronicle,
    packets: u64,
}

/// A file that a trace is written to. After an error nothing more is written to it.
struct Output {
    path: PathBuf,
    form: Box<dyn Form>,
    failed: Option<io::Error>,
}

impl Output {
    fn create(path: &Path, notes: &[String]) -> Result<Self, TraceError> {
        let form: fn(File, &[String]) -> Box<dyn Form> =
            match path.extension().and_then(OsStr::to_str) {
                Some("csv") => |file, _| Box::new(table::Table::new(file)),
                Some("pcapng") => |file, _| Box::new(capture::Capture::new(file)),
                Some("svg") => |file, notes| Box::new(Drawing::new(file, Ladder::svg, notes)),
                Some("txt") => |file, notes| Box::new(Drawing::new(file, Ladder::text, notes)),
                _ => return Err(TraceError::Ending(path.to_owned())),
            };
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self {
                path,
                form: form(file, notes),
                failed: None,
            }),
            Err(error) => Err(TraceError::Create { path, error }),
        }
    }

    fn step(&mut self, step: &Step) {
        if self.failed.is_none() {
            self.failed = self.form.step(step).err();
        }
    }

    fn end(mut self, packets: u64) -> Result<(), TraceError> {
        let failed = self.failed.take().or_else(|| self.form.end().err());
        let path = self.path;
        failed.map_or(Ok(()), |error| {
            Err(TraceError::Write {
                path,
                error,
                packets,
            })
        })
    }
}

impl Writer {
    /// Makes the files, or empties them. A name's ending decides what the file becomes.
    ///
    /// `notes` are sentences that stand beneath ladders, such as the parameters of the run. Tables and captures do
    /// not have them.
    pub fn create(paths: &[impl AsRef<Path>], notes: &[String]) -> Result<Self, TraceError> {
        let files = paths
            .iter()
            .map(|path| Output::create(path.as_ref(), notes));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            chronicle: Chronicle::new(),
            packets: 0,
        })
    }

    /// Writes a sighting. [`Writer::finish`] reports errors.
    pub fn note(&mut self, sighting: Sighting) {
        self.packets += 1;
        if self.files.iter().any(|file| file.failed.is_none()) {
            self.chronicle.push(sighting);
            self.write_steps();
        }
    }

    fn write_steps(&mut self) {
        while let Some(step) = self.chronicle.pop() {
            for file in &mut self.files {
                file.step(&step);
            }
        }
    }

    /// Writes the rest, to each file what can be written. An error means that a file is not complete.
    pub fn finish(mut self) -> Result<Written, TraceError> {
        self.chronicle.end();
        self.write_steps();
        let packets = self.packets;
        let ends: Vec<_> = self
            .files
            .into_iter()
            .map(|file| file.end(packets))
            .collect();
        ends.into_iter()
            .collect::<Result<(), _>>()
            .map(|()| Written { packets })
    }

    /// Takes sightings as they come, in a thread of its own, which the emulator never waits for.
    /// What finds the buffer between them full is counted in the run's outcome as unseen.
    pub fn follow(self, sightings: Notes<Sighting>) -> Result<Following, TraceError> {
        let thread = Thread::start(sightings, self, Self::note).map_err(TraceError::Thread)?;
        Ok(Following { thread })
    }
}

/// A writer that follows a run.
pub struct Following {
    thread: Thread<Writer>,
}

impl Following {
    /// Writes what is still to be written, which is everything once the run has finished.
    pub fn finish(self) -> Result<Written, TraceError> {
        self.thread.finish().finish()
    }
}
