//! Queues: their limits, and the discipline that selects packets to drop. A discipline is a file in this folder and a
//! variant of [`Discipline`].

mod codel;
mod drop_head;
mod drop_tail;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Instant, Size, Span};

pub use codel::CoDel;

use crate::{DropReason, SpellingError};

/// The queue in front of the bandwidth. The packet in transmission counts until it is through, as in dummynet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Maximum number of packets.
    pub packets: u32,
    /// Maximum number of bytes of IP packets.
    pub bytes: Option<Size>,
    /// Selection of packets to drop.
    pub discipline: Discipline,
}

/// A queue discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Drops packets that arrive at a full queue.
    DropTail,
    /// Drops the oldest packet of a full queue.
    DropHead,
    /// Drops packets before transmission if all have been waiting too long. Also drops arrivals at a full queue.
    CoDel(CoDel),
}

/// State of a discipline on one queue.
pub(crate) trait Policy {
    /// True if arrivals decide everything, so that the result is known when a packet arrives.
    fn decides_on_arrival(&self) -> bool {
        false
    }
    /// True if the oldest packet makes room in a full queue.
    fn pushes_out(&self) -> bool {
        false
    }
    /// Drops packets from the head that must not be sent. Called before the first packet is transmitted.
    fn before_sending(&mut self, _now: Instant, _queue: &mut dyn QueueView) {}
}

/// A discipline's view of its queue.
pub(crate) trait QueueView {
    /// Waiting time of the first packet by `now`, and bytes behind it.
    fn first(&self, now: Instant) -> Option<(Span, u64)>;
    /// Drops the first packet.
    fn drop_first(&mut self, now: Instant, reason: DropReason);
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
    /// True if one more packet of `more` bytes fits.
    pub(crate) fn has_room(&self, packets: usize, bytes: u64, more: u32) -> bool {
        let bytes = bytes + u64::from(more);
        packets < self.packets as usize && self.bytes.is_none_or(|limit| bytes <= limit.as_bytes())
    }
}

impl Default for Queue {
    /// The default of dummynet: 50 packets, drop-tail.
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

    /// Parses a number of packets, a number of bytes, or both (`50`, `64kB`, `50:64kB`), then `drop-tail` (default),
    /// `drop-head`, `codel` or `codel:TARGET:INTERVAL`. With bytes alone there is no limit in packets.
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
