//! Shares of a bandwidth by code point, as data: what is guaranteed, what may be borrowed.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{BitRate, Dscp, Size};
use thiserror::Error;

use crate::{SpellingError, Tally};

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The code points that belong to it.
    pub dscp: Vec<Dscp>,
    /// Whether all code points belong to it that no class lists.
    pub rest: bool,
    /// What it has whatever the others do.
    pub guaranteed: BitRate,
    /// What it can reach by borrowing; equal to `guaranteed` where it must not borrow.
    pub ceiling: BitRate,
}

/// The classes of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Each with a queue of its own, as the plan describes it. One of them is for the rest.
    pub list: Vec<Class>,
    /// What a class that was idle, or had to wait for others, may send beyond its rates to catch
    /// up. Several of the longest packets are needed for exact shares.
    pub burst: Size,
}

/// What became of a class's packets, those of the [background](crate::Background) included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Sent within its guarantee.
    pub guaranteed: Tally,
    /// Sent with what was borrowed from others.
    pub borrowed: Tally,
    /// Dropped from its queue, or before it.
    pub dropped: Tally,
}

/// Why classes do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// There is nothing to share.
    #[error("classes share a bandwidth: give the link one")]
    NoBandwidth,
    /// No class, or several, for all other code points.
    #[error("one class is for all other code points: name rest in one of them, and in no other")]
    NoRest,
    /// More is guaranteed than there is.
    #[error("{guaranteed} is guaranteed and the link has {bandwidth}: guarantee less")]
    TooMuch {
        /// The sum of the guarantees.
        guaranteed: BitRate,
        /// What there is.
        bandwidth: BitRate,
    },
    /// A ceiling below a guarantee.
    #[error("the ceiling {ceiling} is below the guaranteed {guaranteed}: raise it")]
    LowCeiling {
        /// The ceiling.
        ceiling: BitRate,
        /// The guarantee above it.
        guaranteed: BitRate,
    },
    /// A code point that belongs to two classes.
    #[error("the code point {dscp} is in two classes: list each once")]
    Twice {
        /// The code point.
        dscp: Dscp,
    },
}

impl Classes {
    /// Classes that may catch up ten Ethernet frames.
    pub const fn new(list: Vec<Class>) -> Self {
        Self {
            list,
            burst: Size::from_bytes(15_140),
        }
    }

    pub(crate) fn check(&self, bandwidth: Option<BitRate>) -> Result<(), ClassError> {
        let bandwidth = bandwidth.ok_or(ClassError::NoBandwidth)?;
        if self.list.iter().filter(|class| class.rest).count() != 1 {
            return Err(ClassError::NoRest);
        }
        let mut seen = 0u64;
        let mut sum = 0u64;
        for class in &self.list {
            let (guaranteed, ceiling) = (class.guaranteed, class.ceiling);
            if ceiling < guaranteed {
                return Err(ClassError::LowCeiling {
                    ceiling,
                    guaranteed,
                });
            }
            sum = sum.saturating_add(guaranteed.as_bits());
            for &dscp in &class.dscp {
                if seen >> dscp.get() & 1 == 1 {
                    return Err(ClassError::Twice { dscp });
                }
                seen |= 1 << dscp.get();
            }
        }
        match BitRate::per_second(sum) {
            Some(guaranteed) if guaranteed > bandwidth => Err(ClassError::TooMuch {
                guaranteed,
                bandwidth,
            }),
            _ => Ok(()),
        }
    }

    /// The place in the list of the class of this code point.
    pub fn of(&self, dscp: Dscp) -> usize {
        let mut classes = self.list.iter();
        let listed = classes.position(|class| class.dscp.contains(&dscp));
        let rest = || self.list.iter().position(|class| class.rest);
        listed.or_else(rest).unwrap_or_default()
    }
}

impl FromStr for Class {
    type Err = SpellingError;

    /// Code points, `rest` for all others, then the guaranteed rate and, where it may borrow, the
    /// ceiling: `af11,af12:300kbit..1Mbit`, `rest:700kbit`.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        const REMEDY: &str =
            "af11,af12:300kbit..1Mbit, or rest:700kbit where nothing is to be borrowed";
        let wrong = || SpellingError::new(text, "a class", REMEDY);
        let (names, rates) = text.split_once(':').ok_or_else(wrong)?;
        let (guaranteed, ceiling) = rates.split_once("..").unwrap_or((rates, rates));
        let mut class = Self {
            dscp: Vec::new(),
            rest: false,
            guaranteed: guaranteed.parse().map_err(|_| wrong())?,
            ceiling: ceiling.parse().map_err(|_| wrong())?,
        };
        for name in names.split(',') {
            match name.trim() {
                "rest" => class.rest = true,
                name => class.dscp.push(name.parse().map_err(|_| wrong())?),
            }
        }
        Ok(class)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.dscp.iter().map(ToString::to_string);
        let names: Vec<String> = names.chain(self.rest.then(|| "rest".into())).collect();
        write!(f, "{}:{}", names.join(","), self.guaranteed)?;
        match self.ceiling == self.guaranteed {
            true => Ok(()),
            false => write!(f, "..{}", self.ceiling),
        }
    }
}
