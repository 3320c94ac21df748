//! Traffic classes of a link as data: guaranteed rates, ceilings and code points.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{BitRate, Dscp, Size};
use thiserror::Error;

use crate::{PacketTally, SpellingError};

/// A traffic class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Code points of the class.
    pub dscp: Vec<Dscp>,
    /// True if the class takes all code points that no class lists.
    pub rest: bool,
    /// Rate guaranteed regardless of the other classes.
    pub guaranteed: BitRate,
    /// Maximum rate with borrowing; equal to `guaranteed` if the class must not borrow.
    pub ceiling: BitRate,
}

/// The traffic classes of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The classes, each with its own queue as described by the plan. One of them takes all other code points.
    pub list: Vec<Class>,
    /// Data that a class may send beyond its rates to catch up after it was idle or had to wait. Exact shares need
    /// several of the longest packets.
    pub burst: Size,
}

/// Counters of a class, including the [cross traffic](crate::BackgroundTraffic).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Sent within the guarantee.
    pub guaranteed: PacketTally,
    /// Sent with borrowed bandwidth.
    pub borrowed: PacketTally,
    /// Dropped from its queue, or on arrival.
    pub dropped: PacketTally,
}

/// Error in a set of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// The link has no bandwidth limit.
    #[error("classes share a bandwidth: give the link one")]
    NoBandwidth,
    /// No class, or more than one, for all other code points.
    #[error("one class is for all other code points: name rest in one of them, and in no other")]
    NoRest,
    /// The guarantees exceed the bandwidth.
    #[error("{guaranteed} is guaranteed and the link has {bandwidth}: guarantee less")]
    TooMuch {
        /// Sum of the guarantees.
        guaranteed: BitRate,
        /// Bandwidth of the link.
        bandwidth: BitRate,
    },
    /// A ceiling below the guarantee.
    #[error("the ceiling {ceiling} is below the guaranteed {guaranteed}: raise it")]
    LowCeiling {
        /// The ceiling.
        ceiling: BitRate,
        /// The guarantee.
        guaranteed: BitRate,
    },
    /// A code point in two classes.
    #[error("the code point {dscp} is in two classes: list each once")]
    Twice {
        /// The code point.
        dscp: Dscp,
    },
}

impl Classes {
    /// Classes with a burst of ten Ethernet frames.
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

    /// Index of the class of this code point.
    pub fn index_of(&self, dscp: Dscp) -> usize {
        let mut classes = self.list.iter();
        let listed = classes.position(|class| class.dscp.contains(&dscp));
        let rest = || self.list.iter().position(|class| class.rest);
        listed.or_else(rest).unwrap_or_default()
    }
}

impl FromStr for Class {
    type Err = SpellingError;

    /// Parses code points (`rest` for all others), the guaranteed rate and optionally a ceiling:
    /// `af11,af12:300kbit..1Mbit`, `rest:700kbit`.
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
        if self.ceiling == self.guaranteed {
            Ok(())
        } else {
            write!(f, "..{}", self.ceiling)
        }
    }
}
