//! What others send through a link: packets of one length at a rate, each at a time drawn from a
//! slot of its own. Nobody receives them; they take room and bandwidth.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{BitRate, Dscp, Instant, Seed, Span, Stream};
use rand::RngExt as _;
use thiserror::Error;

use crate::{Plan, SpellingError, Tally};

/// How much of it is played where a link was idle: what a packet meets is what came in the last
/// second before it.
const MEMORY: Span = Span::from_secs(1);

/// Traffic of others, from the beginning of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Their code point.
    pub dscp: Dscp,
    /// Bits per second, of IP packets.
    pub rate: BitRate,
    /// Bytes of each packet.
    pub bytes: u32,
}

/// What became of the traffic of others; not in the link's own [`Counters`](crate::Counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundCounters {
    /// Passed.
    pub sent: Tally,
    /// Found no room, or had waited too long.
    pub dropped: Tally,
}

/// Why there can be no such background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BackgroundError {
    /// Nothing that could be taken from others.
    #[error("background takes a part of a bandwidth: give the link one")]
    NoBandwidth,
    /// Not the length of a packet.
    #[error("background of {bytes} bytes a packet: write 20 to 65,535")]
    Length {
        /// What was given.
        bytes: u32,
    },
}

impl Background {
    pub(crate) fn check(&self, bandwidth: Option<BitRate>) -> Result<(), BackgroundError> {
        if !(20..=65_535).contains(&self.bytes) {
            return Err(BackgroundError::Length { bytes: self.bytes });
        }
        bandwidth.map(|_| ()).ok_or(BackgroundError::NoBandwidth)
    }
}

impl FromStr for Background {
    type Err = SpellingError;

    /// A rate, `800kB/s`; before it a code point other than default, and behind it the bytes of a
    /// packet other than 1,500: `le:800kB/s:576`.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || SpellingError::new(text, "a background", "800kB/s, le:6Mbit or 800kB/s:576");
        let parts: Vec<&str> = text.split(':').collect();
        let (dscp, parts) = match parts.split_first() {
            Some((first, rest)) if first.parse::<BitRate>().is_err() => {
                (first.parse().map_err(|_| wrong())?, rest)
            }
            _ => (Dscp::DEFAULT, parts.as_slice()),
        };
        let (rate, bytes) = match parts {
            [rate] => (rate, 1500),
            [rate, bytes] => (rate, bytes.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        Ok(Self {
            dscp,
            rate: rate.parse().map_err(|_| wrong())?,
            bytes,
        })
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dscp != Dscp::DEFAULT {
            write!(f, "{}:", self.dscp)?;
        }
        write!(f, "{}", self.rate)?;
        match self.bytes {
            1500 => Ok(()),
            bytes => write!(f, ":{bytes}"),
        }
    }
}

/// The traffic of others at work.
pub(crate) struct Others {
    background: Background,
    stream: Stream,
    /// The slot of the next packet, from 0, and when in it the packet comes.
    slot: u64,
    next: Instant,
    sent: Tally,
}

impl Others {
    /// Those of a plan. Without a bandwidth there are none: what takes no time would never end.
    pub(crate) fn of(plan: &Plan, seed: Seed) -> Option<Self> {
        let background = plan.background.filter(|_| plan.bandwidth.is_some());
        background.map(|background| Self::new(background, seed))
    }

    fn new(background: Background, seed: Seed) -> Self {
        let mut others = Self {
            background,
            stream: seed.stream("background"),
            slot: 0,
            next: Instant::ORIGIN,
            sent: Tally::default(),
        };
        others.draw();
        others
    }

    pub(crate) const fn background(&self) -> Background {
        self.background
    }

    /// When the next comes.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// The next has come; returns when.
    pub(crate) fn take(&mut self) -> Instant {
        let came = self.next;
        self.slot = self.slot.saturating_add(1);
        self.draw();
        came
    }

    /// Leaves out what nobody can have met by `now` any more.
    pub(crate) fn forget(&mut self, now: Instant) {
        let since = now - MEMORY;
        if self.next >= since {
            return;
        }
        let bits = u128::from(since.as_nanos()) * u128::from(self.background.rate.as_bits());
        let slot = bits / (u128::from(self.background.bytes) * 8_000_000_000);
        self.slot = u64::try_from(slot).unwrap_or(u64::MAX).max(self.slot);
        self.draw();
    }

    /// One was sent.
    pub(crate) fn sent(&mut self) {
        self.sent.add(self.background.bytes);
    }

    pub(crate) const fn sent_so_far(&self) -> Tally {
        self.sent
    }

    /// The moment in the slot: all are equally likely, so that nothing keeps step with it and the
    /// rate is still exact.
    fn draw(&mut self) {
        let part = u128::from(self.stream.random::<u32>());
        let work = u128::from(self.background.bytes) * 8_000_000_000;
        let rate = u128::from(self.background.rate.as_bits());
        let ns = u128::from(self.slot) * work / rate + ((part * work / rate) >> 32);
        self.next = Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    }
}
