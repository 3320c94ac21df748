//! BIC: binary search for the window at which something was lost.
//!
//! After Xu, Harfoush and Rhee, "Binary Increase Congestion Control for Fast Long-Distance
//! Networks", INFOCOM 2004, with the constants and the integer steps of Linux 2.6 (tcp_bic.c): `B`
//! is 4 and `Smax` 16 there, and near the target a step takes `smooth_part` (20) round trips.
//! Below 14 segments it is Reno.

use posthaste_units::{Instant, Span};

use super::Progress;

/// `low_window`: at most so many segments, and it is Reno.
const LOW: u64 = 14;
/// `max_increment`: segments per round trip at most.
const FASTEST: u64 = 16;
/// `BICTCP_B`: a quarter of the distance per round trip.
const PART: u64 = 4;
/// `smooth_part`: round trips of a step close to the target.
const SMOOTH: u64 = 20;
/// `beta`, of 1024: what is left at a loss.
const BETA: u64 = 819;
/// Without a loss so far, a segment per so many acknowledged, at least.
const UNTRIED: u64 = 20;
/// For so long a step is not reckoned anew for the same window.
const STEP: Span = Span::from_nanos(1_000_000_000 / 32);

#[derive(Clone, Debug)]
pub(super) struct Bic {
    /// Segments acknowledged for one more.
    need: u64,
    /// The window that was too much.
    target: u64,
    /// The window at the last loss; 0 before any.
    at_loss: u64,
    reckoned: Option<(u64, Instant)>,
    /// Segments per acknowledgement, 16-fold.
    ratio: u64,
}

impl Default for Bic {
    fn default() -> Self {
        Self {
            need: 0,
            target: 0,
            at_loss: 0,
            reckoned: None,
            ratio: 2 << 4,
        }
    }
}

impl Bic {
    /// How many segments an acknowledgement covers, smoothed with 1/16 (`bictcp_acked`).
    pub(super) fn observe(&mut self, progress: &Progress) {
        if progress.segments > 0 {
            self.ratio = self.ratio - (self.ratio >> 4) + u64::from(progress.segments);
        }
    }

    /// How many acknowledgements make the window of so many segments grow by one.
    pub(super) fn need(&mut self, now: Instant, segments: u64) -> u64 {
        if let Some((window, when)) = self.reckoned
            && window == segments
            && now.since(when) <= STEP
        {
            return self.need;
        }
        self.reckoned = Some((segments, now));
        self.need = if segments <= LOW {
            segments
        } else {
            let step = if self.at_loss == 0 {
                self.step(segments).min(UNTRIED)
            } else {
                self.step(segments)
            };
            ((step << 4) / self.ratio.max(1)).max(1)
        };
        self.need
    }

    /// Segments acknowledged for one more, were each acknowledged alone.
    fn step(&self, segments: u64) -> u64 {
        let near = segments * SMOOTH / PART;
        if segments < self.target {
            match (self.target - segments) / PART {
                0..=1 => near,
                distance if distance > FASTEST => segments / FASTEST,
                distance => segments / distance,
            }
        } else if segments < self.target + PART {
            near
        } else if segments < self.target + FASTEST * (PART - 1) {
            segments * (PART - 1) / (segments - self.target)
        } else {
            segments / FASTEST
        }
    }

    /// Something was lost at a window of so many segments; returns the new threshold.
    pub(super) fn lost(&mut self, segments: u64) -> u64 {
        // Fast convergence: who has less than before makes room.
        self.target = if segments < self.target {
            segments * (1024 + BETA) / 2048
        } else {
            segments
        };
        self.at_loss = segments;
        self.reckoned = None;
        if segments <= LOW {
            segments / 2
        } else {
            segments * BETA / 1024
        }
    }

    /// A timeout: nothing is known any more (`bictcp_state`).
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
