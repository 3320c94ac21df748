//! Loss in bursts: a line that is good or bad and loses more where it is bad (Gilbert 1960,
//! Elliott 1963).
//!
//! As in netem (`loss_gilb_ell` in Linux's `net/sched/sch_netem.c`), a packet is judged by the
//! state it finds, which changes behind it. Unlike there, the line does not always begin good but
//! in a state drawn by how often each occurs, so that short connections lose their share too.

use posthaste_units::{Ratio, Stream};
use rand::RngExt as _;

use super::Process;

/// The four parameters, all per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability that a good line turns bad (p; netem's first).
    pub to_bad: Ratio,
    /// Probability that a bad line turns good (r; netem's second).
    pub to_good: Ratio,
    /// Loss where it is bad (1 - h; netem's third).
    pub loss_in_bad: Ratio,
    /// Loss where it is good (1 - k; netem's fourth).
    pub loss_in_good: Ratio,
}

impl GilbertElliott {
    /// The simple Gilbert model: all is lost in the bad state and nothing in the good one, so that
    /// bursts have a mean length of `1 / to_good`.
    pub fn simple(to_bad: Ratio, to_good: Ratio) -> Self {
        Self {
            to_bad,
            to_good,
            loss_in_bad: Ratio::new(1.0).unwrap_or_default(),
            loss_in_good: Ratio::default(),
        }
    }

    /// The simple model that loses `loss` in the long run, in bursts of `length` packets on
    /// average; `None` where no such model exists: length below 1 or without end, everything lost,
    /// or good stretches between the bursts that would have to be shorter than a packet.
    pub fn bursts(loss: Ratio, length: f64) -> Option<Self> {
        let possible = length.is_finite() && length >= 1.0;
        let to_good = Ratio::new(1.0 / length).filter(|_| possible)?;
        let to_bad = Ratio::new(to_good.get() * loss.get() / (1.0 - loss.get()))?;
        Some(Self::simple(to_bad, to_good))
    }

    /// The share of packets that find the line bad.
    pub fn share_bad(&self) -> f64 {
        let (to_bad, to_good) = (self.to_bad.get(), self.to_good.get());
        if to_bad == 0.0 {
            0.0
        } else {
            to_bad / (to_bad + to_good)
        }
    }

    /// The share of packets lost in the long run.
    pub fn mean(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_in_bad.get() + (1.0 - bad) * self.loss_in_good.get()
    }

    pub(super) fn start(self, draws: &mut Stream) -> Line {
        Line {
            bad: draws.random::<f64>() < self.share_bad(),
            model: self,
        }
    }
}

/// A line in one of the two states.
pub(crate) struct Line {
    model: GilbertElliott,
    bad: bool,
}

impl Process for Line {
    fn loses(&mut self, draws: &mut Stream) -> bool {
        let (loss, turns) = if self.bad {
            (self.model.loss_in_bad, self.model.to_good)
        } else {
            (self.model.loss_in_good, self.model.to_bad)
        };
        let lost = draws.random::<f64>() < loss.get();
        self.bad ^= draws.random::<f64>() < turns.get();
        lost
    }
}
