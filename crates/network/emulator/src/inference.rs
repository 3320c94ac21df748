//! Findings of patterns from capture files, at one end of a path or at both.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use posthaste_link::Direction;
use posthaste_link::pattern::infer::{CapturePair, Findings, ReceiverCapture, SenderCapture};
use posthaste_units::{Instant, Span};
use thiserror::Error;

use crate::capture::{self, CaptureError, CapturedPacket, Connections, Remarks};

/// Selection of packets, and the exactness of times.
#[derive(Clone, Copy, Debug)]
pub struct CaptureOptions {
    /// Number of the only connection to read.
    pub connection: Option<u64>,
    /// Exactness of delays between two captures.
    pub grain: Span,
    /// Port of the server in connections without a SYN. `None` is the lower port.
    pub server_port: Option<u16>,
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
    /// Packets would have arrived before they were sent.
    #[error(
        "{} and {} are exchanged: packets would have arrived before they were sent; give the first one with \
         --server-capture and the second one with --client-capture",
        client.display(), server.display()
    )]
    Exchanged {
        /// Capture given as the client's.
        client: PathBuf,
        /// Capture given as the server's.
        server: PathBuf,
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

/// Findings of both directions.
#[derive(Clone, Debug)]
pub struct CaptureFindings {
    /// Up and down, the received direction of a single capture first.
    pub directions: [(Direction, Findings); 2],
    /// Connections in the captures. Without a selected one, their packets share one count in each direction.
    pub connections: u64,
}

/// A property of a capture that affects the findings.
#[derive(Clone, Copy, Debug)]
pub struct CaptureRemark<'a> {
    path: &'a Path,
    kind: RemarkKind,
}

#[derive(Clone, Copy, Debug)]
enum RemarkKind {
    /// The file has no IP packet.
    Nothing,
    /// The file ends within a packet.
    CutOff,
    /// Number of frames without an IP packet.
    Other(u64),
    /// Number of frames without a readable IP header.
    Headless(u64),
    /// An unsupported link type, and its number of frames.
    UnknownLink(i32, u64),
    /// Number of packets of interfaces that the file does not describe.
    UnknownInterface(u64),
    /// Number of frames that show a packet again.
    Copies(u64),
    /// Number of packets that the machine joined.
    Joined(u64),
    /// Number of packets without TCP numbers, because they were cut.
    Numberless(u64),
    /// Number of fragments.
    Fragments(u64),
    /// Number of packets of other protocols than TCP.
    NoTcp(u64),
    /// Number of packets without a time.
    Untimed(u64),
    /// Number of packets without all bytes for the comparison.
    Short(u64),
    /// Number of connections without a SYN.
    Assumed(u64),
    /// No packet of the capture at the other end.
    NothingCommon,
}

impl fmt::Display for CaptureRemark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.kind {
            RemarkKind::Nothing => write!(f, "holds no IP packet, so that nothing is known"),
            RemarkKind::CutOff => write!(
                f,
                "cut off in the middle of a packet; the packets before it were used"
            ),
            RemarkKind::Other(count) => {
                write!(f, "{count} frames without an IP packet were not read")
            }
            RemarkKind::Headless(count) => write!(
                f,
                "{count} frames without a complete IP header were not read: capture with `-s 0`"
            ),
            RemarkKind::UnknownLink(link, count) => write!(
                f,
                "{count} frames of a link of type {link} and others like it were not read: capture on Ethernet or \
                 with `-i any`"
            ),
            RemarkKind::UnknownInterface(count) => write!(
                f,
                "{count} packets of interfaces that the file does not describe were not read: it is damaged"
            ),
            RemarkKind::Copies(count) => write!(
                f,
                "{count} frames show a packet again, on another interface of the machine or twice on the same one, and \
                 were not read; `tcpdump -i DEVICE` captures each packet once"
            ),
            RemarkKind::Joined(count) => write!(
                f,
                "{count} packets are longer than 1,500 bytes: unless the network carries such packets, the machine \
                 joined them before they were captured, and positions are not those on the wire; capture with \
                 `ethtool -K DEVICE tso off gso off gro off`"
            ),
            RemarkKind::Numberless(count) => write!(
                f,
                "{count} packets were cut before the end of their TCP numbers: they count as packets, and losses \
                 among them do not show; capture with `-s 0`"
            ),
            RemarkKind::Fragments(count) => write!(
                f,
                "{count} fragments: they count as packets, and losses among them show only between two captures"
            ),
            RemarkKind::NoTcp(count) => write!(
                f,
                "{count} packets are not TCP: they count as packets, and losses among them show only between two \
                 captures"
            ),
            RemarkKind::Untimed(count) => write!(
                f,
                "{count} packets have no time: delays are not known, and overtaken packets count as lost where one \
                 end was captured"
            ),
            RemarkKind::Short(count) => write!(
                f,
                "{count} packets were cut before the 60 bytes by which captures are compared: only headers were \
                 compared; capture both with `-s 0`"
            ),
            RemarkKind::Assumed(count) => write!(
                f,
                "{count} connections without a SYN: the end with the higher port, or else the first sender, counts as \
                 the client; --server-port names the server's port"
            ),
            RemarkKind::NothingCommon => write!(
                f,
                "no packet is in the capture of the other end, too, so that nothing is lost or delayed: were they \
                 captured at the same time, without address translation between them?"
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
    ) -> Result<CaptureFindings, InferenceError> {
        let mut receiver = ReceiverCapture::new(towards);
        let mut sender = SenderCapture::new(towards.reverse());
        let mut connections = Connections::with_server_port(self.server_port);
        let remarks = read(path, &mut connections, |packet| {
            if self.wanted(packet) {
                receiver.push(&packet.seen);
                sender.push(&packet.seen);
            }
        })?;
        self.check(path, &connections)?;
        let in_one_capture = [
            (
                remarks.numberless,
                RemarkKind::Numberless(remarks.numberless),
            ),
            (remarks.fragments, RemarkKind::Fragments(remarks.fragments)),
            (remarks.no_tcp, RemarkKind::NoTcp(remarks.no_tcp)),
        ];
        report(path, &remarks, in_one_capture, remark);
        report_assumed(path, &connections, remark);
        Ok(CaptureFindings {
            directions: [
                (towards, receiver.finish()),
                (towards.reverse(), sender.finish()),
            ],
            connections: connections.count(),
        })
    }

    /// Reads the captures of both ends and compares their packets one by one.
    pub fn both_ends(
        &self,
        client: &Path,
        server: &Path,
        remark: &mut impl FnMut(CaptureRemark<'_>),
    ) -> Result<CaptureFindings, InferenceError> {
        let mut connections = Connections::with_server_port(self.server_port);
        let (mut up, mut down) = (CapturePair::default(), CapturePair::default());
        let mut contents = [CaptureContent::default(), CaptureContent::default()];
        for (path, here, number) in [(client, Direction::Up, 0), (server, Direction::Down, 1)] {
            let (leaving, coming) = match here {
                Direction::Up => (&mut up, &mut down),
                Direction::Down => (&mut down, &mut up),
            };
            let remarks = read(path, &mut connections, |packet| {
                coming.ran(packet.seen.at);
                contents[number].note(packet, self.wanted(packet));
                if !self.wanted(packet) {
                    return;
                }
                if packet.seen.direction == here {
                    leaving.sent(packet.seen.at, packet.mark);
                } else {
                    coming.arrived(packet.seen.at, packet.mark);
                }
            })?;
            self.check(path, &connections)?;
            let in_two_captures = [(remarks.short, RemarkKind::Short(remarks.short))];
            report(path, &remarks, in_two_captures, remark);
        }
        report_assumed(client, &connections, remark);
        let [of_client, of_server] = contents;
        if of_client.is_foreign_to(&of_server) {
            up.set_foreign();
            down.set_foreign();
        }
        if of_server.shows(&of_client) {
            up.ran_from_the_first();
        }
        if of_client.shows(&of_server) {
            down.ran_from_the_first();
        }
        let length = of_client.length_ns().max(of_server.length_ns());
        let (up, down) = (up.finish(self.grain), down.finish(self.grain));
        // The difference of the clocks is in both, with opposite signs. What it changes during the captures is not.
        let round_trip = up.least_ns.zip(down.least_ns).map(|(up, down)| up + down);
        if round_trip.is_some_and(|least| least < -(CLOCK_NS + length / CLOCK_DRIFT)) {
            return Err(InferenceError::Exchanged {
                client: client.to_owned(),
                server: server.to_owned(),
            });
        }
        if [&up, &down].iter().any(|findings| findings.foreign) {
            remark(CaptureRemark {
                path: server,
                kind: RemarkKind::NothingCommon,
            });
        }
        Ok(CaptureFindings {
            directions: [(Direction::Up, up), (Direction::Down, down)],
            connections: connections.count(),
        })
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

/// Tolerated error of two clocks in nanoseconds, and the part of the time by which they may drift apart: 1 in 10,000.
const CLOCK_NS: i128 = 1_000_000;
const CLOCK_DRIFT: i128 = 10_000;

/// The connections of a capture.
#[derive(Default)]
struct CaptureContent {
    /// The connection of the first selected packet.
    first: Option<u64>,
    /// All connections, selected or not.
    connections: HashSet<u64>,
    /// First and last time.
    times: Option<(Instant, Instant)>,
    /// Connections with a captured SYN.
    opened: HashSet<u64>,
}

impl CaptureContent {
    fn note(&mut self, packet: &CapturedPacket, wanted: bool) {
        let connection = packet.seen.connection;
        self.connections.insert(connection);
        if let Some(at) = packet.seen.at {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first.min(at), last.max(at)));
        }
        if wanted {
            self.first.get_or_insert(connection);
        }
        if packet.opens {
            self.opened.insert(connection);
        }
    }

    /// Time from the first to the last packet in nanoseconds.
    fn length_ns(&self) -> i128 {
        self.times
            .map_or(0, |(first, last)| i128::from(last.since(first).as_nanos()))
    }

    /// True if the captures hold packets and no connection is in both, as with address translation between them.
    fn is_foreign_to(&self, other: &Self) -> bool {
        let is_empty = self.connections.is_empty() || other.connections.is_empty();
        !is_empty && self.connections.is_disjoint(&other.connections)
    }

    /// True if it contains the SYN of the other capture's first connection.
    fn shows(&self, other: &Self) -> bool {
        other
            .first
            .is_some_and(|first| self.opened.contains(&first))
    }
}

/// Reports facts about a capture that matter for the findings: those of any capture, then the further ones.
fn report<const N: usize>(
    path: &Path,
    remarks: &Remarks,
    further: [(u64, RemarkKind); N],
    remark: &mut impl FnMut(CaptureRemark<'_>),
) {
    let (link, unknown) = remarks.unknown_link.unwrap_or_default();
    let all = [
        (u64::from(remarks.packets == 0), RemarkKind::Nothing),
        (u64::from(remarks.cut_off), RemarkKind::CutOff),
        (remarks.other, RemarkKind::Other(remarks.other)),
        (remarks.headless, RemarkKind::Headless(remarks.headless)),
        (unknown, RemarkKind::UnknownLink(link, unknown)),
        (
            remarks.unknown_interface,
            RemarkKind::UnknownInterface(remarks.unknown_interface),
        ),
        (remarks.copies, RemarkKind::Copies(remarks.copies)),
        (remarks.joined, RemarkKind::Joined(remarks.joined)),
        (remarks.untimed, RemarkKind::Untimed(remarks.untimed)),
    ];
    let found = all.into_iter().chain(further);
    for (_, kind) in found.filter(|(count, _)| *count > 0) {
        remark(CaptureRemark { path, kind });
    }
}

/// Reports connections whose client is not known for certain.
fn report_assumed(
    path: &Path,
    connections: &Connections,
    remark: &mut impl FnMut(CaptureRemark<'_>),
) {
    if connections.assumed() > 0 {
        let kind = RemarkKind::Assumed(connections.assumed());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_without_a_common_connection_are_foreign() {
        let content = |connections: &[u64]| CaptureContent {
            connections: connections.iter().copied().collect(),
            ..CaptureContent::default()
        };
        assert!(content(&[1, 2]).is_foreign_to(&content(&[3])));
        assert!(!content(&[1, 2]).is_foreign_to(&content(&[2, 3])));
        // Nothing is known of a capture without packets: an outage looks the same.
        assert!(!content(&[1]).is_foreign_to(&content(&[])));
    }
}
