//! Queues: how much may wait, and who goes when it is too much. A discipline is a file beside this
//! one and a line in [`Discipline`].

mod codel;
mod drop_head;
mod drop_tail;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Instant, Size, Span};

pub use codel::CoDel;

use crate::{Reason, SpellingError};

/// The queue before the bandwidth; the packet that is being sent counts until it is through, as
/// in dummynet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Most packets.
    pub packets: u32,
    /// Most bytes of IP packets.
    pub bytes: Option<Size>,
    /// Who goes when there are more.
    pub discipline: Discipline,
}

/// Who is dropped, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Who arrives at a full queue.
    DropTail,
    /// The one that has waited longest in a full queue.
    DropHead,
    /// Who is about to be sent, where all have been waiting too long; a full queue also drops
    /// who arrives.
    CoDel(CoDel),
}

/// A discipline at work on one queue.
pub(crate) trait Policy {
    /// Whether nothing but arrivals decides: then all is known when a packet arrives.
    fn decides_on_arrival(&self) -> bool {
        false
    }
    /// Whether the oldest makes room in a full queue.
    fn pushes_out(&self) -> bool {
        false
    }
    /// The line may send its first packet now: drops from its head those that are not to be sent.
    fn before_sending(&mut self, _now: Instant, _line: &mut dyn Line) {}
}

/// What a discipline sees of its queue.
pub(crate) trait Line {
    /// How long the first has waited by `now`, and how many bytes wait behind it.
    fn first(&self, now: Instant) -> Option<(Span, u64)>;
    /// Drops the first.
    fn drop_first(&mut self, now: Instant, reason: Reason);
}

impl Discipline {
    pub(crate) fn start(self) -> Box<dyn Policy + Send> {
        match self {
            Self::DropTail => Box::new(drop_tail::DropTail),
            Self::DropHead => Box::new(drop_head::DropHead),
            Self::CoDel(codel) => Box::new(codel.start()),
        }
    }
}

impl Queue {
    /// Whether one more packet of so many bytes fits to those that are there.
    pub(crate) fn has_room(&self, packets: usize, bytes: u64, more: u32) -> bool {
        let bytes = bytes + u64::from(more);
        packets < self.packets as usize && self.bytes.is_none_or(|limit| bytes <= limit.as_bytes())
    }
}

impl Default for Queue {
    /// dummynet's: 50 packets, who arrives too late is dropped.
    fn default() -> Self {
        Self {
            packets: 50,
            bytes: None,
            discipline: Discipline::DropTail,
        }
    }
}

impl FromStr for Queue {
    type Err = SpellingError;

    /// A number of packets and a number of bytes, either or both (`50`, `64kB`, `50:64kB`), then
    /// `drop-tail` (when left out), `drop-head`, `codel` or `codel:TARGET:INTERVAL`. With bytes
    /// alone there is no limit in packets.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "a queue",
                "50 (packets), 64kB, 50:64kB, any of them with :drop-head, :codel or :codel:5ms:100ms behind",
            )
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (packets, parts) = match parts.split_first() {
            Some((first, rest)) if first.bytes().all(|byte| byte.is_ascii_digit()) => {
                let packets = first.parse().ok().filter(|packets| *packets > 0);
                (Some(packets.ok_or_else(wrong)?), rest)
            }
            _ => (None, parts.as_slice()),
        };
        let (bytes, parts) = match parts.split_first() {
            Some((first, rest)) if first.starts_with(|c: char| c.is_ascii_digit()) => {
                let bytes = first.parse().map_err(|_| wrong())?;
                (Some(bytes).filter(|bytes| *bytes > Size::default()), rest)
            }
            _ => (None, parts),
        };
        let discipline = match parts {
            [] | ["drop-tail"] => Discipline::DropTail,
            ["drop-head"] => Discipline::DropHead,
            ["codel"] => Discipline::CoDel(CoDel::default()),
            ["codel", target, interval] => Discipline::CoDel(CoDel {
                target: target.parse().map_err(|_| wrong())?,
                interval: interval.parse().map_err(|_| wrong())?,
            }),
            _ => return Err(wrong()),
        };
        if packets.is_none() && bytes.is_none() {
            return Err(wrong());
        }
        Ok(Self {
            packets: packets.unwrap_or(u32::MAX),
            bytes,
            discipline,
        })
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.packets, self.bytes) {
            (u32::MAX, Some(bytes)) => write!(f, "{bytes}")?,
            (packets, Some(bytes)) => write!(f, "{packets}:{bytes}")?,
            (packets, None) => write!(f, "{packets}")?,
        }
        match self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::DropHead => f.write_str(":drop-head"),
            Discipline::CoDel(CoDel { target, interval }) => {
                write!(f, ":codel:{target}:{interval}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_reads_and_refuses_with_the_remedy() {
        for text in [
            "50",
            "64kB",
            "50:64kB",
            "50:drop-head",
            "64kB:drop-head",
            "1000:codel:5ms:100ms",
        ] {
            assert_eq!(text.parse::<Queue>().unwrap().to_string(), text);
        }
        let codel: Queue = "1000:codel".parse().unwrap();
        assert_eq!(codel.to_string(), "1000:codel:5ms:100ms");
        for text in [
            "",
            "0",
            "0:64kB",
            "0B",
            "codel",
            "50:red",
            "50:codel:5ms",
            "64kB:50",
        ] {
            let error = text.parse::<Queue>().unwrap_err().to_string();
            assert!(error.contains("50:64kB"), "{error}");
        }
    }
}
