//! Inputs of a network, as lines of CSV that replay to the same decisions.
//!
//! Contents are absent, since no decision depends on them. The plans and the seed are absent, too, since they were
//! given to the network; a line that begins with `#` can hold them.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Dscp, Instant};
use thiserror::Error;

use crate::{Direction, Packet};

/// Header line of a record. Only comments may precede it.
pub const HEADER: &str = "time_ns,direction,connection,bytes,dscp";

/// A pushed packet; a line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
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
        "line {line}: {text:?} is not a packet ({HEADER}, for example 1000000,up,1,60,0): remove it if the record was cut off there"
    )]
    NotAnInput {
        /// Line number from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            direction,
            connection,
            bytes,
            dscp,
        } = self;
        write!(
            f,
            "{},{direction},{connection},{bytes},{}",
            at.as_nanos(),
            dscp.get()
        )
    }
}

impl Input {
    /// A packet with this length and code point.
    pub(crate) fn packet(&self) -> BlankPacket {
        BlankPacket {
            bytes: self.bytes,
            dscp: self.dscp,
        }
    }
}

/// Error for a text that is not a line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a packet: write {HEADER}, for example 1000000,up,1,60,0")]
pub struct NotAnInput;

impl FromStr for Input {
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

/// Reads a record: the header, then one packet a line; `#` begins a comment line.
pub fn parse(text: &str) -> Result<Vec<Input>, RecordError> {
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((line, _)) => return Err(RecordError::NoHeader { line }),
        None => return Err(RecordError::NoHeader { line: 1 }),
    }
    lines
        .map(|(line, text)| {
            text.parse().map_err(|NotAnInput| RecordError::NotAnInput {
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
}

impl Packet for BlankPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flip(&mut self, _bit: u32) {}
    fn dscp(&self) -> Dscp {
        self.dscp
    }
}
