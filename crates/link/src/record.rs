//! What was pushed into a network, as lines of CSV that replay to the same decisions.
//!
//! Contents are absent: nothing a network decides depends on them. The plans and the seed are
//! absent too, since they are what was given to the network; a line that begins with `#` has room
//! for them.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Dscp, Instant};
use thiserror::Error;

use crate::network::Arrived;
use crate::{Direction, Network, Packet};

/// The first line of a record, comments aside.
pub const HEADER: &str = "time_ns,direction,connection,bytes,dscp";

/// A packet that was pushed; a line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its arrival as it counted.
    pub at: Instant,
    /// Which way it went.
    pub direction: Direction,
    /// The connection's number, from 1 in the order of first packets.
    pub connection: u64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its code point; a number from 0 to 63.
    pub dscp: Dscp,
}

/// Why a record could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The first line is another.
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
        /// What stands there.
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

/// The text is not a line of a record.
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

/// Digits only: signs and spaces are not written, so they are not read.
fn number<N: FromStr>(text: &str) -> Result<N, NotAnInput> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(NotAnInput)
}

/// Reads a record: the header, then a packet a line; `#` begins a comment line.
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
pub struct Blank {
    bytes: u32,
    dscp: Dscp,
}

impl Packet for Blank {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flip(&mut self, _bit: u32) {}
    fn dscp(&self) -> Dscp {
        self.dscp
    }
}

impl Network<u64, Blank> {
    /// Pushes what a record holds and gives every passage to `each`, in the order in which they
    /// leave. With the plans, the sharing and the seed of the recorded network, and with nothing
    /// pushed before, its decisions are the same.
    pub fn replay(&mut self, inputs: &[Input], mut each: impl FnMut(Arrived<u64, Blank>)) {
        // Two directions are stamped apart, so that times may run back a little from one input to
        // the next: nothing is popped that a later input could still change.
        let mut later = vec![None; inputs.len()];
        for at in (1..inputs.len()).rev() {
            let next = inputs[at].at;
            later[at - 1] = Some(later[at].map_or(next, |later| next.min(later)));
        }
        for (input, later) in inputs.iter().zip(later) {
            let Input { bytes, dscp, .. } = *input;
            let packet = Blank { bytes, dscp };
            // Numbers tell connections apart already: none is over for being quiet.
            self.open(input.at, input.direction, input.connection, packet, 0);
            let settled = |wake: &Instant| later.is_none_or(|later| *wake < later);
            while let Some(wake) = self.wake().filter(settled) {
                if let Some(passage) = self.pop(wake) {
                    each(passage);
                }
            }
        }
    }
}
