//! Random reordering of packets.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Ratio, Stream};
use rand::RngExt as _;

use crate::SpellingError;

/// A model of random reordering.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reordering {
    /// As in netem: this share goes at once, without the link's delay, and so overtakes.
    AtOnce {
        /// Probability.
        share: Ratio,
        /// Minimum distance: only a packet after `gap` - 1 that did not overtake may do so. With a gap of 5 and a share
        /// of 100 %, every fifth does; 1 sets no condition.
        gap: u32,
    },
    /// This share is held back behind later packets, for at most [`HOLD_LIMIT`](crate::HOLD_LIMIT).
    Hold {
        /// Probability.
        share: Ratio,
        /// Number of later packets.
        places: u32,
    },
}

/// Decision for one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) at_once: bool,
    pub(crate) hold: u32,
}

impl Reordering {
    /// Draws for the next packet, after `since` packets that did not overtake.
    pub(crate) fn draw(&self, since: &mut u32, draws: &mut Stream) -> Turn {
        let drawn = |share: Ratio, draws: &mut Stream| draws.random::<f64>() < share.get();
        match *self {
            Self::AtOnce { share, gap } => {
                let at_once = drawn(share, draws) && *since >= gap.saturating_sub(1);
                *since = if at_once { 0 } else { since.saturating_add(1) };
                Turn { at_once, hold: 0 }
            }
            Self::Hold { share, places } => Turn {
                at_once: false,
                hold: if drawn(share, draws) { places } else { 0 },
            },
        }
    }
}

impl FromStr for Reordering {
    type Err = SpellingError;

    /// Parses `SHARE[:GAP]` for packets that go at once, or `hold:SHARE:PLACES` for packets held back.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "a reordering",
                "25% (go at once), 25%:5 (at most every fifth) or hold:1%:3 (three go first)",
            )
        };
        let share = |text: &str| {
            let share = text.parse::<Ratio>();
            share.map_err(|reason| wrong().of_share(&reason))
        };
        let count = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or_else(wrong);
        match *text.split(':').collect::<Vec<_>>().as_slice() {
            ["hold", part, places] => Ok(Self::Hold {
                share: share(part)?,
                places: count(places)?,
            }),
            [part] => Ok(Self::AtOnce {
                share: share(part)?,
                gap: 1,
            }),
            [part, gap] => Ok(Self::AtOnce {
                share: share(part)?,
                gap: count(gap)?,
            }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Reordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtOnce { share, gap: 1 } => share.fmt(f),
            Self::AtOnce { share, gap } => write!(f, "{share}:{gap}"),
            Self::Hold { share, places } => write!(f, "hold:{share}:{places}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_reads_and_refuses_with_the_remedy() {
        for text in ["25%", "25%:5", "hold:1%:3"] {
            assert_eq!(text.parse::<Reordering>().unwrap().to_string(), text);
        }
        for text in ["", "25%:0", "hold:1%", "hold:1%:0", "1%:2:3", "often"] {
            let error = text.parse::<Reordering>().unwrap_err().to_string();
            assert!(error.contains("hold:1%:3"), "{error}");
        }
    }
}
