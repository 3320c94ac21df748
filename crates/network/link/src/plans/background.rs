//! Cross traffic in a link: packets of one length at a rate, each at a random time within a slot of its own. They have
//! no receiver. They take queue space and bandwidth.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{BitRate, Dscp, Instant, Seed, Span, Stream};
use rand::RngExt as _;
use thiserror::Error;

use crate::{PacketTally, Plan, SpellingError};

/// Period of cross traffic that is simulated after an idle time. A packet is affected only by the last second before
/// it.
const MEMORY: Span = Span::from_secs(1);

/// Cross traffic, from time zero on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundTraffic {
    /// Code point of its packets.
    pub dscp: Dscp,
    /// Rate of IP packets in bits per second.
    pub rate: BitRate,
    /// Bytes of each packet.
    pub bytes: u32,
}

/// Counters of the cross traffic. They are not part of the link's own [`LinkCounters`](crate::LinkCounters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundCounters {
    /// Packets sent.
    pub sent: PacketTally,
    /// Packets that found the queue full, or had waited too long.
    pub dropped: PacketTally,
}

/// Error in the cross traffic of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BackgroundError {
    /// The link has no bandwidth limit.
    #[error("background takes a part of a bandwidth: give the link one")]
    NoBandwidth,
    /// Invalid packet length.
    #[error("background of {bytes} bytes a packet: write 20 to 65,535")]
    Length {
        /// The given length.
        bytes: u32,
    },
}

impl BackgroundTraffic {
    pub(crate) fn check(&self, bandwidth: Option<BitRate>) -> Result<(), BackgroundError> {
        if !(20..=65_535).contains(&self.bytes) {
            return Err(BackgroundError::Length { bytes: self.bytes });
        }
        bandwidth.map(|_| ()).ok_or(BackgroundError::NoBandwidth)
    }
}

impl FromStr for BackgroundTraffic {
    type Err = SpellingError;

    /// Parses a rate such as `800kB/s`. A code point may precede it, and the packet length in bytes may follow it
    /// (`le:800kB/s:576`). The defaults are the default code point and 1,500 bytes.
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

impl fmt::Display for BackgroundTraffic {
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

/// State of the cross traffic.
pub(crate) struct CrossTraffic {
    background: BackgroundTraffic,
    stream: Stream,
    /// Slot of the next packet, from 0, and the packet's time in it.
    slot: u64,
    next: Instant,
    sent: PacketTally,
}

impl CrossTraffic {
    /// The cross traffic of a plan. `None` without a bandwidth: packets that take no time would never end.
    pub(crate) fn from_plan(plan: &Plan, seed: Seed) -> Option<Self> {
        let background = plan.background.filter(|_| plan.bandwidth.is_some());
        background.map(|background| Self::new(background, seed))
    }

    fn new(background: BackgroundTraffic, seed: Seed) -> Self {
        let mut cross_traffic = Self {
            background,
            stream: seed.stream("background"),
            slot: 0,
            next: Instant::ORIGIN,
            sent: PacketTally::default(),
        };
        cross_traffic.draw();
        cross_traffic
    }

    pub(crate) const fn background(&self) -> BackgroundTraffic {
        self.background
    }

    /// Time of the next packet.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Takes the next packet and returns its time.
    pub(crate) fn take(&mut self) -> Instant {
        let came = self.next;
        self.slot = self.slot.saturating_add(1);
        self.draw();
        debug_assert!(self.next >= came, "cross traffic goes back in time");
        came
    }

    /// Skips packets that can no longer affect others at `now`.
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

    /// Counts a packet as sent.
    pub(crate) fn sent(&mut self) {
        self.sent.add(self.background.bytes);
    }

    pub(crate) const fn sent_so_far(&self) -> PacketTally {
        self.sent
    }

    /// Draws the time within the slot. All times are equally likely, so that nothing can synchronise with it and the
    /// rate is still exact.
    fn draw(&mut self) {
        let part = u128::from(self.stream.random::<u32>());
        let work = u128::from(self.background.bytes) * 8_000_000_000;
        let rate = u128::from(self.background.rate.as_bits());
        let ns = u128::from(self.slot) * work / rate + ((part * work / rate) >> 32);
        self.next = Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    }
}
