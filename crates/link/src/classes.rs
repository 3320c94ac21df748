//! Shares of a bandwidth by code point: what is guaranteed, what may be borrowed.
//!
//! After HTB (Linux's `net/sched/sch_htb.c`): a class within its guaranteed rate goes first; what
//! is left is lent to classes below their ceilings, in proportion to their guarantees, and what is
//! lent is not charged to the borrower's guarantee. Token buckets are kept as the times at which
//! they will have been refilled, exactly; lending is start-time fair queueing (Goyal, Vin, Cheng,
//! SIGCOMM 1996) where HTB counts deficits.

use posthaste_units::{BitRate, Instant, Size, Span};
use thiserror::Error;

use crate::Tally;
use crate::meter::Meter;

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The code points that belong to it, 0 to 63.
    pub dscp: Vec<u8>,
    /// What it has whatever the others do.
    pub guaranteed: BitRate,
    /// What it can reach by borrowing; equal to `guaranteed` where it must not borrow.
    pub ceiling: BitRate,
}

/// The classes of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Each with a queue of its own, as the plan describes it.
    pub list: Vec<Class>,
    /// The one to which all other code points belong: its place in the list.
    pub rest: usize,
    /// What a class that was idle, or had to wait for others, may send beyond its rates to catch
    /// up. Several of the longest packets are needed for exact shares.
    pub burst: Size,
}

/// What a class has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Within its guarantee.
    pub guaranteed: Tally,
    /// Borrowed from others.
    pub borrowed: Tally,
}

/// Why classes do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassError {
    /// There is nothing to share.
    #[error("classes share a bandwidth: give the link one")]
    NoBandwidth,
    /// The class of all other code points does not exist.
    #[error("the class for all other code points is not in the list: name one that is")]
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
    /// A code point that does not exist or belongs to two classes.
    #[error("the code point {dscp:#04x} is above 0x3f or in two classes: list each once")]
    CodePoint {
        /// The code point.
        dscp: u8,
    },
}

impl Classes {
    /// Classes that may catch up ten Ethernet frames; code points in no class belong to the last.
    pub fn new(list: Vec<Class>) -> Self {
        Self {
            rest: list.len().saturating_sub(1),
            list,
            burst: Size::from_bytes(15_140),
        }
    }

    pub(crate) fn check(&self, bandwidth: Option<BitRate>) -> Result<(), ClassError> {
        let bandwidth = bandwidth.ok_or(ClassError::NoBandwidth)?;
        if self.rest >= self.list.len() {
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
                if dscp > 0x3f || seen >> dscp & 1 == 1 {
                    return Err(ClassError::CodePoint { dscp });
                }
                seen |= 1 << dscp;
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
    pub fn of(&self, dscp: u8) -> usize {
        let listed = self
            .list
            .iter()
            .position(|class| class.dscp.contains(&dscp));
        listed.unwrap_or(self.rest)
    }
}

/// The classes of one link at work.
pub(crate) struct Shares {
    classes: Vec<Share>,
    burst: u64,
    /// The tag of what was lent last.
    lent: u128,
}

struct Share {
    guaranteed: BitRate,
    ceiling: BitRate,
    within: Meter,
    below: Meter,
    tag: u128,
    counters: ClassCounters,
}

impl Shares {
    pub(crate) fn new(classes: &Classes) -> Self {
        let share = |class: &Class| Share {
            guaranteed: class.guaranteed,
            ceiling: class.ceiling,
            within: Meter::default(),
            below: Meter::default(),
            tag: 0,
            counters: ClassCounters::default(),
        };
        Self {
            classes: classes.list.iter().map(share).collect(),
            burst: classes.burst.as_bytes(),
            lent: 0,
        }
    }

    /// When the class may send next, for its ceiling's sake.
    pub(crate) fn opens(&self, class: usize) -> Instant {
        self.classes[class].below.free()
    }

    /// Which of these classes, all of them below their ceilings, sends at `now`.
    pub(crate) fn choose(
        &self,
        now: Instant,
        ready: impl Iterator<Item = usize> + Clone,
    ) -> Option<usize> {
        let within = ready.clone().filter(|class| self.is_within(*class, now));
        within
            .min_by_key(|class| self.classes[*class].within.free())
            .or_else(|| ready.min_by_key(|class| self.classes[*class].tag.max(self.lent)))
    }

    fn is_within(&self, class: usize, now: Instant) -> bool {
        self.classes[class].within.free() <= now
    }

    /// The class sends `length` bytes on the line, `bytes` of them the packet's, at `now`.
    pub(crate) fn charge(&mut self, class: usize, now: Instant, length: u64, bytes: u32) {
        let within = self.is_within(class, now);
        let share = &mut self.classes[class];
        if within {
            let since = now - credit(self.burst, share.guaranteed);
            share
                .within
                .send(since, length, |_| (Some(share.guaranteed), None));
            share.counters.guaranteed.add(bytes);
        } else {
            let start = share.tag.max(self.lent);
            let rate = u128::from(share.guaranteed.as_bits());
            share.tag = start + (u128::from(length) << 64) / rate;
            self.lent = start;
            share.counters.borrowed.add(bytes);
        }
        let since = now - credit(self.burst, share.ceiling);
        share
            .below
            .send(since, length, |_| (Some(share.ceiling), None));
    }

    pub(crate) fn counters(&self) -> impl Iterator<Item = ClassCounters> + '_ {
        self.classes.iter().map(|share| share.counters)
    }
}

/// How far back in time a rate may catch up.
fn credit(burst: u64, rate: BitRate) -> Span {
    Span::from_secs_f64(burst as f64 / rate.as_bytes_f64())
}
