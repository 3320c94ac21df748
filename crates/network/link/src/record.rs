//! Inputs of a network, as lines of CSV that replay to the same decisions: packets, and changes of the links.
//!
//! Contents are absent, since no decision depends on them. The plans and the seed are absent, too, since they were
//! given to the network; a line that begins with `#` can hold them.
//!
//! The header is the version. [`HEADER`] is written. [`HEADER_1`] is read, too: without the last two columns
//! no packet is ECN-capable, and all may be fragmented.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Dscp, Instant};
use thiserror::Error;

use crate::plans::change::AppliedChange;
use crate::{Direction, Ecn, Packet};

/// Header line of a record. Only comments may precede it.
pub const HEADER: &str = "time_ns,direction,connection,bytes,dscp,ecn,df";

/// Header line of a record without the last two columns and without changes, as written before.
pub const HEADER_1: &str = "time_ns,direction,connection,bytes,dscp";

/// Second field of a change, in the place of a direction.
const CHANGE: &str = "change";

/// An input; a line of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A pushed packet: `1000000,up,1,60,0,2,1`.
    Packet(PacketInput),
    /// A change of the links: `2000000,change,bandwidth=1Mbit up:loss=2%`.
    Change(AppliedChange),
}

/// A pushed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInput {
    /// Effective arrival.
    pub at: Instant,
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of the connection, from 1 in the order of first packets.
    pub connection: u64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Code point, from 0 to 63.
    pub dscp: Dscp,
    /// Congestion notification, from 0 to 3.
    pub ecn: Ecn,
    /// Don't fragment, 0 or 1. IPv6 is never fragmented by routers.
    pub df: bool,
}

/// Error while reading a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The first line is not the header.
    #[error(
        "line {line}: a record begins with {HEADER}: it was written by something else, or its beginning is missing"
    )]
    NoHeader {
        /// Line number from 1.
        line: usize,
    },
    /// A line that is not an input.
    #[error(
        "line {line}: {text:?} is neither a packet ({HEADER}, for example 1000000,up,1,60,0,0,1) nor a change \
         (1000000,change,delay=5ms): remove it if the record was cut off there"
    )]
    NotAnInput {
        /// Line number from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
}

impl Input {
    /// Time of the input.
    pub fn at(&self) -> Instant {
        match self {
            Self::Packet(packet) => packet.at,
            Self::Change(applied) => applied.at,
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(packet) => packet.fmt(f),
            Self::Change(AppliedChange { at, change }) => {
                write!(f, "{},{CHANGE},{change}", at.as_nanos())
            }
        }
    }
}

impl fmt::Display for PacketInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            direction,
            connection,
            bytes,
            dscp,
            ecn,
            df,
        } = self;
        write!(
            f,
            "{},{direction},{connection},{bytes},{},{},{}",
            at.as_nanos(),
            dscp.get(),
            ecn.bits(),
            u8::from(*df)
        )
    }
}

impl PacketInput {
    /// A packet with this length, code point and congestion notification.
    pub(crate) fn packet(&self) -> BlankPacket {
        BlankPacket {
            bytes: self.bytes,
            dscp: self.dscp,
            ecn: self.ecn,
            df: self.df,
        }
    }
}

/// Error for a text that is not a line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not an input: write {HEADER}, for example 1000000,up,1,60,0,0,1, or 1000000,change,delay=5ms"
)]
pub struct NotAnInput;

impl FromStr for Input {
    type Err = NotAnInput;

    fn from_str(line: &str) -> Result<Self, NotAnInput> {
        let mut fields = line.splitn(3, ',');
        let (time, kind, rest) = (fields.next(), fields.next(), fields.next());
        let (Some(time), Some(CHANGE), Some(change)) = (time, kind, rest) else {
            return line.parse().map(Self::Packet);
        };
        Ok(Self::Change(AppliedChange {
            at: Instant::from_nanos(number(time)?),
            change: change.parse().map_err(|_| NotAnInput)?,
        }))
    }
}

impl FromStr for PacketInput {
    type Err = NotAnInput;

    fn from_str(line: &str) -> Result<Self, NotAnInput> {
        let mut fields = line.split(',');
        let mut field = || fields.next().ok_or(NotAnInput);
        let input = Self {
            at: Instant::from_nanos(number(field()?)?),
            direction: field()?.parse().map_err(|_| NotAnInput)?,
            connection: number(field()?)?,
            bytes: number(field()?)?,
            dscp: Dscp::new(number(field()?)?).ok_or(NotAnInput)?,
            ecn: Ecn::new(number(field()?)?).ok_or(NotAnInput)?,
            df: match field()? {
                "0" => false,
                "1" => true,
                _ => return Err(NotAnInput),
            },
        };
        let sound = input.connection > 0 && fields.next().is_none();
        sound.then_some(input).ok_or(NotAnInput)
    }
}

/// Parses digits only: signs and spaces are never written, so they are not read.
fn number<N: FromStr>(text: &str) -> Result<N, NotAnInput> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(NotAnInput)
}

/// Reads a record: the header, then one input a line; `#` begins a comment line.
pub fn parse(text: &str) -> Result<Vec<Input>, RecordError> {
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    let is_first_version = match lines.next() {
        Some((_, HEADER)) => false,
        Some((_, HEADER_1)) => true,
        Some((line, _)) => return Err(RecordError::NoHeader { line }),
        None => return Err(RecordError::NoHeader { line: 1 }),
    };
    let read = |text: &str| {
        if is_first_version {
            format!("{text},0,0").parse().map(Input::Packet)
        } else {
            text.parse()
        }
    };
    lines
        .map(|(line, text)| {
            read(text).map_err(|NotAnInput| RecordError::NotAnInput {
                line,
                text: text.to_owned(),
            })
        })
        .collect()
}

/// A packet without contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlankPacket {
    bytes: u32,
    dscp: Dscp,
    ecn: Ecn,
    df: bool,
}

impl Packet for BlankPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flip(&mut self, _bit: u32) {}
    fn dscp(&self) -> Dscp {
        self.dscp
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_congestion(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn may_be_fragmented(&self) -> bool {
        !self.df
    }
}
