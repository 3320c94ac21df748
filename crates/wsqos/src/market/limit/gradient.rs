//! `gradient`: the latency of now against that of a long time, after Netflix's `gradient2`.
//!
//! From there: the rule `limit * gradient + queue`, smoothed, with the gradient between 0.5 and 1, the
//! tolerance, the defaults of all of them, and that an unneeded limit does not grow. Ours: the mean of a
//! round in place of single replies, and that the long-time latency rises only from rounds that did not
//! need the limit. There it follows whatever comes, so that in an overload that lasts, what the queue adds
//! comes to count as usual and the limit grows without end.

use serde::{Deserialize, Serialize};

use super::Round;

/// Parameters of `gradient`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gradient {
    /// So many times the long-time latency is still no queue: 1.5.
    pub tolerance: f64,
    /// By how many requests the limit grows in a round without a queue: 4.
    pub queue: u32,
    /// The weight of a round against the limit so far, 0 to 1: 0.2.
    pub smoothing: f64,
    /// Over how many replies the long-time latency is averaged: 600.
    pub window: u32,
}

impl Default for Gradient {
    fn default() -> Self {
        Self {
            tolerance: 1.5,
            queue: 4,
            smoothing: 0.2,
            window: 600,
        }
    }
}

/// The limit at work.
#[derive(Clone, Debug)]
pub(super) struct Running {
    gradient: Gradient,
    /// Long-time latency in seconds; none before the first round.
    usual: Option<f64>,
}

impl Running {
    pub(super) const fn new(gradient: Gradient) -> Self {
        Self {
            gradient,
            usual: None,
        }
    }

    /// The limit after a round.
    pub(super) fn close(&mut self, round: &Round, limit: f64) -> f64 {
        let Gradient {
            tolerance,
            queue,
            smoothing,
            window,
        } = self.gradient;
        let (short, needed) = (round.mean(), round.was_needed(limit));
        let usual = self.usual.unwrap_or(short);
        let weight = f64::from(round.replies) / f64::from(window.max(1));
        self.usual = Some(match short < usual || !needed {
            true => usual + (short - usual) * weight.min(1.0),
            false => usual,
        });
        if !needed {
            return limit;
        }
        let gradient = (tolerance * usual / short.max(1e-9)).clamp(0.5, 1.0);
        let wanted = limit * gradient + f64::from(queue);
        limit + (wanted - limit) * smoothing
    }
}
