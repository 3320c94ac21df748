//! Findings of patterns from capture files, at one end of a path or at both.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use posthaste_link::Direction;
use posthaste_link::pattern::infer::{CapturePair, Findings, ReceiverCapture, SenderCapture};
use posthaste_units::Span;
use thiserror::Error;

use crate::capture::{self, CaptureError, CapturedPacket, Connections, Remarks};

/// Selection of packets, and the exactness of times.
#[derive(Clone, Copy, Debug)]
pub struct CaptureOptions {
    /// Number of the only connection to read.
    pub connection: Option<u64>,
    /// Exactness of delays between two captures.
    pub grain: Span,
}

/// Reason for which captures give no findings.
#[derive(Debug, Error)]
pub enum InferenceError {
    /// A file that cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file that cannot be read as a capture.
    #[error("{}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Error in the file.
        source: CaptureError,
    },
    /// A connection that is not in the capture.
    #[error("--connection {number}: {} holds connections 1 to {count}", path.display())]
    Connection {
        /// The requested number.
        number: u64,
        /// The file.
        path: PathBuf,
        /// Number of connections in the file.
        count: u64,
    },
}

/// A property of a capture that affects the findings.
#[derive(Clone, Copy, Debug)]
pub struct CaptureRemark<'a> {
    path: &'a Path,
    kind: RemarkKind,
}

#[derive(Clone, Copy, Debug)]
enum RemarkKind {
    /// The file ends within a packet.
    CutOff,
    /// Number of frames without an IP packet.
    Other(u64),
    /// Number of packets that the machine joined.
    Joined(u64),
    /// Number of packets without the bytes for the comparison.
    Short(u64),
}

impl fmt::Display for CaptureRemark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.kind {
            RemarkKind::CutOff => write!(
                f,
                "{path}: cut off in the middle of a packet; what stands before it was used"
            ),
            RemarkKind::Other(count) => write!(
                f,
                "{path}: {count} frames without an IP packet were passed over"
            ),
            RemarkKind::Joined(count) => write!(
                f,
                "{path}: {count} packets are longer than 1,500 bytes: the machine joined them before they were \
                 captured, so that positions are not those on the wire; capture with \
                 `ethtool -K DEVICE tso off gso off gro off`"
            ),
            RemarkKind::Short(count) => write!(
                f,
                "{path}: {count} packets were cut before the 96 bytes by which captures are compared, and count as \
                 lost where the other capture is cut elsewhere: capture both with `-s 0`"
            ),
        }
    }
}

impl CaptureOptions {
    /// Reads one capture. Packets in the direction `towards` are received there, the others are sent.
    pub fn one_end(
        &self,
        path: &Path,
        towards: Direction,
        remark: &mut impl FnMut(CaptureRemark<'_>),
    ) -> Result<[(Direction, Findings); 2], InferenceError> {
        let mut receiver = ReceiverCapture::new(towards);
        let mut sender = SenderCapture::new(towards.reverse());
        let mut connections = Connections::default();
        let remarks = read(path, &mut connections, |packet| {
            if self.wanted(packet) {
                receiver.push(&packet.seen);
                sender.push(&packet.seen);
            }
        })?;
        self.check(path, &connections)?;
        report(path, &remarks, remark);
        Ok([
            (towards, receiver.finish()),
            (towards.reverse(), sender.finish()),
        ])
    }

    /// Reads the captures of both ends and compares their packets one by one.
    pub fn both_ends(
        &self,
        client: &Path,
        server: &Path,
        remark: &mut impl FnMut(CaptureRemark<'_>),
    ) -> Result<[(Direction, Findings); 2], InferenceError> {
        let mut connections = Connections::default();
        let (mut up, mut down) = (CapturePair::default(), CapturePair::default());
        let mut arrived = Vec::new();
        let mut begins = [CaptureBeginning::default(), CaptureBeginning::default()];
        let remarks = read(client, &mut connections, |packet| {
            down.ran(packet.seen.at);
            begins[0].note(packet, self.wanted(packet));
            match (self.wanted(packet), packet.seen.direction) {
                (true, Direction::Up) => up.sent(packet.seen.at, packet.mark),
                (true, Direction::Down) => arrived.push((packet.seen.at, packet.mark)),
                (false, _) => {}
            }
        })?;
        self.check(client, &connections)?;
        report(client, &remarks, remark);
        report_short(client, &remarks, remark);
        let remarks = read(server, &mut connections, |packet| {
            up.ran(packet.seen.at);
            begins[1].note(packet, self.wanted(packet));
            match (self.wanted(packet), packet.seen.direction) {
                (true, Direction::Up) => up.arrived(packet.seen.at, packet.mark),
                (true, Direction::Down) => down.sent(packet.seen.at, packet.mark),
                (false, _) => {}
            }
        })?;
        self.check(server, &connections)?;
        report(server, &remarks, remark);
        report_short(server, &remarks, remark);
        for (at, mark) in arrived {
            down.arrived(at, mark);
        }
        let [of_client, of_server] = begins;
        if of_server.shows(&of_client) {
            up.ran_from_the_first();
        }
        if of_client.shows(&of_server) {
            down.ran_from_the_first();
        }
        Ok([
            (Direction::Up, up.finish(self.grain)),
            (Direction::Down, down.finish(self.grain)),
        ])
    }

    fn wanted(&self, packet: &CapturedPacket) -> bool {
        self.connection
            .is_none_or(|number| number == packet.seen.connection)
    }

    /// Returns an error if the capture lacks the requested connection.
    fn check(&self, path: &Path, connections: &Connections) -> Result<(), InferenceError> {
        let count = connections.count();
        match self.connection {
            Some(number) if !(1..=count).contains(&number) => Err(InferenceError::Connection {
                number,
                path: path.to_owned(),
                count,
            }),
            _ => Ok(()),
        }
    }
}

/// The beginning of a capture.
#[derive(Default)]
struct CaptureBeginning {
    /// The connection of the first selected packet.
    first: Option<u64>,
    /// Connections with a captured SYN.
    opened: HashSet<u64>,
}

impl CaptureBeginning {
    fn note(&mut self, packet: &CapturedPacket, wanted: bool) {
        let connection = packet.seen.connection;
        if wanted {
            self.first.get_or_insert(connection);
        }
        if packet.opens {
            self.opened.insert(connection);
        }
    }

    /// True if it contains the SYN of the other capture's first connection.
    fn shows(&self, other: &Self) -> bool {
        other
            .first
            .is_some_and(|first| self.opened.contains(&first))
    }
}

/// Reports facts about a capture that matter for the findings.
fn report(path: &Path, remarks: &Remarks, remark: &mut impl FnMut(CaptureRemark<'_>)) {
    let mut say = |kind| remark(CaptureRemark { path, kind });
    if remarks.cut_off {
        say(RemarkKind::CutOff);
    }
    if remarks.other > 0 {
        say(RemarkKind::Other(remarks.other));
    }
    if remarks.joined > 0 {
        say(RemarkKind::Joined(remarks.joined));
    }
}

/// Reports packets of one of two captures that were cut before the bytes used for the comparison.
fn report_short(path: &Path, remarks: &Remarks, remark: &mut impl FnMut(CaptureRemark<'_>)) {
    if remarks.short > 0 {
        let kind = RemarkKind::Short(remarks.short);
        remark(CaptureRemark { path, kind });
    }
}

/// Reads the packets of a capture file.
fn read(
    path: &Path,
    connections: &mut Connections,
    look: impl FnMut(&CapturedPacket),
) -> Result<Remarks, InferenceError> {
    let file = File::open(path).map_err(|source| InferenceError::Open {
        path: path.to_owned(),
        source,
    })?;
    capture::read(file, connections, look).map_err(|source| InferenceError::Capture {
        path: path.to_owned(),
        source,
    })
}
