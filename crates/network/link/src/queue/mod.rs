//! Queues: their limits, and the discipline that selects packets to drop. A discipline is a file in this folder and a
//! variant of [`Discipline`].

mod codel;
mod drop_head;
mod drop_tail;
mod step;

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Instant, Size, Span};

pub use codel::CoDel;
pub use step::Step;

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
    /// Marks ECN-capable packets beyond a threshold. Also drops arrivals at a full queue.
    Step(Step),
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
    /// True if a packet that finds this many packets in the queue gets a mark.
    fn marks_arrival(&self, _packets: usize) -> bool {
        false
    }
    /// Drops packets from the head that must not be sent, and marks others. Called before the first packet is transmitted.
    fn before_sending(&mut self, _now: Instant, _queue: &mut dyn QueueView) {}
}

/// A discipline's view of its queue.
pub(crate) trait QueueView {
    /// Waiting time of the first packet by `now`, and bytes behind it.
    fn first(&self, now: Instant) -> Option<(Span, u64)>;
    /// Drops the first packet.
    fn drop_first(&mut self, now: Instant, reason: DropReason);
    /// Marks the first packet. Returns false if it is not ECN-capable.
    fn mark_first(&mut self) -> bool;
}

impl Discipline {
    /// True if it marks ECN-capable packets.
    pub const fn marks(&self) -> bool {
        matches!(self, Self::CoDel(CoDel { ecn: true, .. }) | Self::Step(_))
    }

    pub(crate) fn start(self) -> Box<dyn Policy + Send> {
        match self {
            Self::DropTail => Box::new(drop_tail::DropTail),
            Self::DropHead => Box::new(drop_head::DropHead),
            Self::CoDel(codel) => Box::new(codel.start()),
            Self::Step(step) => Box::new(step),
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
    /// `drop-head`, `codel` or `codel:TARGET:INTERVAL`, both also with `:ecn`, `step:PACKETS` or `step:TIME`. With bytes alone there is no limit in packets.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "a queue",
                "50 (packets), 64kB, 50:64kB, any of them with :drop-head, :codel, :codel:5ms:100ms, :codel:ecn, :step:20 or :step:1ms behind",
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
            ["codel", times @ .., "ecn"] => Discipline::CoDel(CoDel {
                ecn: true,
                ..codel(times).ok_or_else(wrong)?
            }),
            ["codel", times @ ..] => Discipline::CoDel(codel(times).ok_or_else(wrong)?),
            ["step", threshold] => Discipline::Step(step(threshold).ok_or_else(wrong)?),
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

/// CoDel without ECN, with its two times or the default.
fn codel(times: &[&str]) -> Option<CoDel> {
    match times {
        [] => Some(CoDel::default()),
        [target, interval] => Some(CoDel {
            target: target.parse().ok()?,
            interval: interval.parse().ok()?,
            ecn: false,
        }),
        _ => None,
    }
}

/// A threshold as a number of packets or as a time.
fn step(threshold: &str) -> Option<Step> {
    if threshold.bytes().all(|byte| byte.is_ascii_digit()) {
        let packets = threshold.parse().ok().filter(|packets| *packets > 0);
        return packets.map(Step::Packets);
    }
    threshold.parse().ok().map(Step::Time)
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
            Discipline::CoDel(CoDel {
                target,
                interval,
                ecn,
            }) => {
                let ecn = if ecn { ":ecn" } else { "" };
                write!(f, ":codel:{target}:{interval}{ecn}")
            }
            Discipline::Step(Step::Packets(packets)) => write!(f, ":step:{packets}"),
            Discipline::Step(Step::Time(time)) => write!(f, ":step:{time}"),
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
            "1000:codel:5ms:100ms:ecn",
            "64kB:step:20",
            "100:step:1ms",
        ] {
            assert_eq!(text.parse::<Queue>().unwrap().to_string(), text);
        }
        let codel: Queue = "1000:codel".parse().unwrap();
        assert_eq!(codel.to_string(), "1000:codel:5ms:100ms");
        let ecn: Queue = "1000:codel:ecn".parse().unwrap();
        assert_eq!(ecn.to_string(), "1000:codel:5ms:100ms:ecn");
        for text in [
            "",
            "0",
            "0:64kB",
            "0B",
            "codel",
            "50:red",
            "50:codel:5ms",
            "50:codel:ecn:5ms",
            "50:codel:5ms:ecn",
            "50:step",
            "50:step:0",
            "50:step:1ms:ecn",
            "64kB:50",
        ] {
            let error = text.parse::<Queue>().unwrap_err().to_string();
            assert!(error.contains("50:64kB"), "{error}");
        }
    }
}
