//! Patterns from random draws and from findings, with a summary of each source.

use posthaste_units::{Ratio, Seed, Size, Span};
use thiserror::Error;

use super::infer::Findings;
use super::{Chances, Draft, DrawError};
use crate::{Direction, Jitter, Loss};

/// Maximum packet length: the limit of an IP header.
const LONGEST: u64 = 65_535;

/// Random effects for a number of packets in each direction.
#[derive(Clone, Debug)]
pub struct DrawOptions {
    /// Model of losses.
    pub loss: Option<Loss>,
    /// Probability of a flip for each bit.
    pub bit_errors: Option<Ratio>,
    /// Share of duplicated packets.
    pub duplicate: Option<Ratio>,
    /// Mean delay. Needs `jitter`.
    pub delay: Option<Span>,
    /// Distribution of the delay. Needs `delay`.
    pub jitter: Option<Jitter>,
    /// Number of packets in each direction.
    pub packets: u64,
    /// Length of each IP packet.
    pub size: Size,
    /// Seed of all draws.
    pub seed: Seed,
    /// Number of the connection whose draws are repeated. None for a shared link.
    pub connection: Option<u64>,
}

/// Error while random effects are drawn for packets of a length.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketDrawError {
    /// Not the length of an IP packet.
    #[error("{0}: an IP packet has 1 to {longest} bytes", longest = LONGEST)]
    Size(Size),
    /// Effects that a pattern cannot express.
    #[error(transparent)]
    Draw(#[from] DrawError),
}

impl DrawOptions {
    /// Draws for the directions, and returns a summary. Returns None if no effect is requested.
    pub fn add_to(
        &self,
        directions: impl Iterator<Item = Direction>,
        draft: &mut Draft,
    ) -> Result<Option<String>, PacketDrawError> {
        let drawn = self.loss.is_some()
            || self.bit_errors.is_some()
            || self.duplicate.is_some()
            || self.delay.is_some();
        if !drawn {
            return Ok(None);
        }
        let bytes = u32::try_from(self.size.as_bytes()).ok();
        let size = bytes.filter(|bytes| (1..=LONGEST).contains(&u64::from(*bytes)));
        let size = size.ok_or(PacketDrawError::Size(self.size))?;
        let chances = Chances {
            loss: self.loss,
            bit_error_rate: self.bit_errors.unwrap_or_default(),
            duplication: self.duplicate.unwrap_or_default(),
            delay: self.delay.zip(self.jitter),
        };
        for direction in directions {
            let seed = match self.connection {
                Some(number) => crate::seed_of(self.seed, number),
                None => self.seed,
            };
            let seed = seed.child(direction.name());
            chances.add_to(direction, self.packets, size, seed, draft)?;
        }
        Ok(Some(self.summary()))
    }

    fn summary(&self) -> String {
        let mut summary = format!("drawn for {} packets with seed {}", self.packets, self.seed);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                summary += &format!(", {name} {value}");
            }
        };
        add("loss", self.loss.map(|loss| loss.to_string()));
        add("bit errors", self.bit_errors.map(|share| share.to_string()));
        add("copies", self.duplicate.map(|share| share.to_string()));
        add("delay", self.delay.map(|delay| delay.to_string()));
        add("jitter", self.jitter.map(|jitter| jitter.to_string()));
        summary
    }
}

impl Findings {
    /// The findings of one direction in one sentence.
    pub fn summary(&self, direction: Direction) -> String {
        let mut summary = format!("{direction}: {} packets", self.packets);
        let counts = [
            (self.lost.len() as u64, "lost"),
            (
                self.uncertain,
                "of the lost ones equal to an arrived one sent at nearly the same time: positions not certain",
            ),
            (self.overtaken.len() as u64, "overtaken"),
            (self.copied.len() as u64, "copied"),
            (self.delayed.len() as u64, "delayed"),
            (self.uncaptured, "acknowledged and not in the capture"),
            (self.jumps, "after a jump in sequence numbers"),
            (
                self.unassigned,
                "equal to too many others: not known, omitted",
            ),
            (self.unsent, "only in the receiver's capture"),
            (
                self.outside,
                "sent while the other capture shows nothing: not known, omitted",
            ),
        ];
        for (count, name) in counts {
            if count > 0 {
                summary += &format!(", {count} {name}");
            }
        }
        summary
    }
}
