//! Bursty loss: a channel that is good or bad, with more loss in the bad state (Gilbert 1960, Elliott 1963).
//!
//! As in netem (`loss_gilb_ell` in Linux's `net/sched/sch_netem.c`), the current state decides about a packet, and
//! changes after it. Unlike netem, the channel does not always begin in the good state. The initial state is drawn by
//! the stationary distribution, so that short connections have their share of losses.

use posthaste_units::{Ratio, Stream};
use rand::RngExt as _;

use super::Process;

/// The four parameters, all per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad (p; netem's first).
    pub to_bad: Ratio,
    /// Probability of a change from bad to good (r; netem's second).
    pub to_good: Ratio,
    /// Loss in the bad state (1 - h; netem's third).
    pub loss_in_bad: Ratio,
    /// Loss in the good state (1 - k; netem's fourth).
    pub loss_in_good: Ratio,
}

impl GilbertElliott {
    /// The simple Gilbert model: all packets are lost in the bad state and none in the good one. The mean length of
    /// bursts is `1 / to_good`.
    pub fn simple(to_bad: Ratio, to_good: Ratio) -> Self {
        Self {
            to_bad,
            to_good,
            loss_in_bad: Ratio::new(1.0).unwrap_or_default(),
            loss_in_good: Ratio::default(),
        }
    }

    /// The simple model with a long-term loss of `loss` in bursts of `length` packets on average. `None` if there is no
    /// such model: length below 1 or infinite, everything lost, or good periods shorter than a packet.
    pub fn bursts(loss: Ratio, length: f64) -> Option<Self> {
        let possible = length.is_finite() && length >= 1.0;
        let to_good = Ratio::new(1.0 / length).filter(|_| possible)?;
        let to_bad = Ratio::new(to_good.get() * loss.get() / (1.0 - loss.get()))?;
        Some(Self::simple(to_bad, to_good))
    }

    /// Share of packets in the bad state.
    pub fn share_bad(&self) -> f64 {
        let (to_bad, to_good) = (self.to_bad.get(), self.to_good.get());
        if to_bad == 0.0 {
            0.0
        } else {
            to_bad / (to_bad + to_good)
        }
    }

    /// Long-term share of lost packets.
    pub fn mean(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.loss_in_bad.get() + (1.0 - bad) * self.loss_in_good.get()
    }

    pub(super) fn start(self, draws: &mut Stream) -> ChannelState {
        ChannelState {
            bad: draws.random::<f64>() < self.share_bad(),
            model: self,
        }
    }
}

/// State of the channel.
pub(crate) struct ChannelState {
    model: GilbertElliott,
    bad: bool,
}

impl Process for ChannelState {
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
