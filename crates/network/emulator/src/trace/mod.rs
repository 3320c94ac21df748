//! A trace: every packet of a run, with its kind and its fate.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use posthaste_emulator::{Emulation, trace};
//! # let emulation = Emulation::new(Arc::default(), Arc::default());
//! let writer = trace::TraceFileWriter::create(&["run.csv"], &[])?; // or .pcapng, .svg, .txt
//! let mut running = emulation.packet_records(trace::BUFFER).start()?;
//! let packet_records = running.packet_records.take().expect("they were asked for");
//! let following = writer.follow(packet_records)?;
//! // ... the commands inside ...
//! running.finish()?;
//! let written = following.finish()?; // an error here: the file is not complete
//! eprintln!("{} packets in run.csv", written.packets);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The extension of the file name selects the format:
//!
//! - **csv**: a line for each packet and copy, in the order in which they arrived at the link.
//! - **pcapng**: each packet twice, on the interface `before` when it arrived at the link and on `after` when it was
//!   sent, so that a dropped one is there once. Time stamps are nanoseconds since the start of the run. The comment
//!   states position and fate. Both records have the same packet id. At most [`HEAD`](crate::HEAD) bytes of each packet
//!   are kept.
//! - **svg**, **txt**: the ladder of the first TCP connection, or of the first connection if there is none; at most
//!   2,000 packets of it. QUIC packets are named by their long headers; the rest of them is encrypted.
//!
//! # Columns of the CSV
//!
//! | column | content |
//! |---|---|
//! | `arrived_ns` | arrival at the link, by the kernel's stamp; nanoseconds since the start of the run |
//! | `left_ns` | planned departure from the link, or time of the drop; exact, as decided |
//! | `sent_ns` | actual time of sending; empty for a dropped packet |
//! | `direction` | `up` (client to server) or `down` |
//! | `connection` | number of the connection, from 1 in the order of first packets |
//! | `flow` | protocol and both ends, the client's first |
//! | `position` | position among the packets of its link, from 1, as used in patterns |
//! | `copy` | 0, or the number of a copy made by the link |
//! | `bytes` | size of the whole IP packet |
//! | `what` | kind of packet: the names of [`PacketKind`] and [`SegmentKind`]; of a QUIC datagram its packets, `Initial+Handshake` |
//! | `sending` | `first`, or the reason of a retransmission: the names of [`Sending`], inferred as described there |
//! | `flags` | TCP flags, as tcpdump writes them |
//! | `seq`, `ack` | relative to the SYN of the connection, which is 0 |
//! | `payload` | bytes of data; bytes of UDP payload of a QUIC datagram |
//! | `sack` | blocks `start-end`, separated by blanks; the end is exclusive |
//! | `window` | in bytes, scaled if both SYNs were seen with the option |
//! | `fate` | `delivered` or `dropped` |
//! | `reason` | reason of the drop: the names of [`DropReason`](posthaste_link::DropReason) |
//! | `flipped` | bits that the link flipped; the header is shown as it left |
//! | `order` | `overtook`, `held` or empty |
//! | `marked` | 1 if the queue marked the packet CE (congestion experienced) |
//!
//! A change of the links is a line with its time in `arrived_ns`, `change` in `what`, the change in `reason`, and nothing
//! else. Captures have it as a comment of the next packet, ladders as a note.
//!
//! The state kept to decode segments is bounded: see [`EventOrder`].

mod changes;
mod event_order;
mod headers;
mod ladder;
mod observed_sender;
mod packet_kind;
mod pcapng;
#[cfg(test)]
pub(crate) mod segment_builder;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use posthaste_draw::Ladder;
use posthaste_link::change::AppliedChange;
use posthaste_units::Instant;
use thiserror::Error;

pub(crate) use event_order::Lifecycle;
pub use event_order::{DecodedPacket, DecodedSegment, EventOrder, PacketEvent};
pub use ladder::ladder;
pub use packet_kind::PacketKind;
pub use posthaste_link::quic::{QuicDatagram, QuicPacketType};
pub use posthaste_tcp::trace::{SegmentKind, Sending};

use self::changes::UnwrittenChanges;
use self::ladder::LadderFile;
use crate::control::ChangeLog;
use crate::follower::RecordFollower;
use crate::path::packet_record::{Notes, PacketRecord};

/// Buffer for a writer that follows a run, in packet records: a second at 65,000 packets a second, about 17 MB.
pub const BUFFER: usize = 1 << 16;

/// A format of traces.
trait TraceFormat: Send {
    /// Writes an event.
    fn write(&mut self, event: &PacketEvent) -> io::Result<()>;
    /// Writes a change of the links.
    fn change(&mut self, applied: &AppliedChange) -> io::Result<()>;
    /// Writes the rest.
    fn end(&mut self) -> io::Result<()>;
}

/// Error that prevents a trace, or leaves it incomplete.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file name has no known extension.
    #[error("{}: the ending of a trace's name decides its form: .csv, .pcapng, .svg or .txt", .0.display())]
    Ending(PathBuf),
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
    #[error("{}: the trace is not whole, some of {packets} packets are missing: {error}; make room, or trace less", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
        /// Packets of the run.
        packets: u64,
    },
    /// The thread could not be started.
    #[error("a thread for the trace: {0}")]
    Thread(#[source] io::Error),
}

/// A complete trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenTrace {
    /// Packets and copies in it.
    pub packets: u64,
}

/// Writes a trace to one or more files, each in the format of its extension.
pub struct TraceFileWriter {
    files: Vec<Output>,
    event_order: EventOrder,
    changes: UnwrittenChanges,
    packets: u64,
    /// Arrivals written to the files.
    written: u64,
}

/// A file of a trace. After an error nothing more is written to it.
struct Output {
    path: PathBuf,
    format: Box<dyn TraceFormat>,
    failed: Option<io::Error>,
}

impl Output {
    fn create(path: &Path, notes: &[String]) -> Result<Self, TraceError> {
        let format: fn(File, &[String]) -> Box<dyn TraceFormat> =
            match path.extension().and_then(OsStr::to_str) {
                Some("csv") => |file, _| Box::new(table::CsvTable::new(file)),
                Some("pcapng") => |file, _| Box::new(pcapng::PcapngFile::new(file)),
                Some("svg") => |file, notes| Box::new(LadderFile::new(file, Ladder::svg, notes)),
                Some("txt") => |file, notes| Box::new(LadderFile::new(file, Ladder::text, notes)),
                _ => return Err(TraceError::Ending(path.to_owned())),
            };
        let path = path.to_owned();
        match File::create(&path) {
            Ok(file) => Ok(Self {
                path,
                format: format(file, notes),
                failed: None,
            }),
            Err(error) => Err(TraceError::Create { path, error }),
        }
    }

    fn write(&mut self, event: &PacketEvent) {
        if self.failed.is_none() {
            self.failed = self.format.write(event).err();
        }
    }

    fn change(&mut self, applied: &AppliedChange) {
        if self.failed.is_none() {
            self.failed = self.format.change(applied).err();
        }
    }

    fn end(mut self, packets: u64) -> Result<(), TraceError> {
        let failed = self.failed.take().or_else(|| self.format.end().err());
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

impl TraceFileWriter {
    /// Creates the files, or empties them. The extension of each name selects its format.
    ///
    /// `notes` are sentences for the foot of ladders, such as the parameters of the run. Tables and captures do not
    /// contain them.
    pub fn create(paths: &[impl AsRef<Path>], notes: &[String]) -> Result<Self, TraceError> {
        let files = paths
            .iter()
            .map(|path| Output::create(path.as_ref(), notes));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            event_order: EventOrder::new(),
            changes: UnwrittenChanges::default(),
            packets: 0,
            written: 0,
        })
    }

    /// Writes the changes of a run, too.
    pub fn changes(mut self, log: ChangeLog) -> Self {
        self.changes = UnwrittenChanges::new(log);
        self
    }

    /// Writes a packet record. [`TraceFileWriter::finish`] reports errors.
    pub fn note(&mut self, packet_record: PacketRecord) {
        self.packets += 1;
        if self.files.iter().any(|file| file.failed.is_none()) {
            self.event_order.push(packet_record);
            self.write_events();
        }
    }

    fn write_events(&mut self) {
        while let Some(event) = self.event_order.pop() {
            self.write_changes(event.time());
            self.written += u64::from(matches!(event, PacketEvent::Arrived(_)));
            for file in &mut self.files {
                file.write(&event);
            }
        }
    }

    fn write_changes(&mut self, until: Instant) {
        for applied in self.changes.take(until) {
            self.files.iter_mut().for_each(|file| file.change(&applied));
        }
    }

    /// Writes the rest to all files. An error means that a file is not complete.
    pub fn finish(mut self) -> Result<WrittenTrace, TraceError> {
        self.event_order.end();
        self.write_events();
        self.write_changes(Instant::FAR_FUTURE);
        let packets = self.packets;
        debug_assert!(
            self.written == packets || self.files.iter().all(|file| file.failed.is_some()),
            "{} of {packets} packets were written",
            self.written
        );
        let ends: Vec<_> = self
            .files
            .into_iter()
            .map(|file| file.end(packets))
            .collect();
        ends.into_iter()
            .collect::<Result<(), _>>()
            .map(|()| WrittenTrace { packets })
    }

    /// Writes packet records as they arrive, in a thread of its own. The emulator never waits for it. Records that find
    /// the buffer full are counted as unseen in the outcome of the run.
    pub fn follow(self, packet_records: Notes<PacketRecord>) -> Result<TraceFollower, TraceError> {
        let thread =
            RecordFollower::start(packet_records, self, Self::note).map_err(TraceError::Thread)?;
        Ok(TraceFollower { thread })
    }
}

/// A writer that follows a run.
pub struct TraceFollower {
    thread: RecordFollower<TraceFileWriter>,
}

impl TraceFollower {
    /// Writes the remaining records. The trace is complete once the run has finished.
    pub fn finish(self) -> Result<WrittenTrace, TraceError> {
        self.thread.finish().finish()
    }
}
