//! BIC: binary search for the window at the last loss.
//!
//! After Xu, Harfoush and Rhee, "Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004,
//! with the constants and the integer steps of Linux 2.6 (tcp_bic.c). There `B` is 4 and `Smax` 16, and near the target
//! a step takes `smooth_part` (20) round trips. Up to 14 segments it behaves like Reno.

use posthaste_units::{Instant, Span};

use super::AckProgress;

/// `low_window`: largest window, in segments, with Reno's behaviour.
const LOW: u64 = 14;
/// `max_increment`: maximum growth in segments per round trip.
const FASTEST: u64 = 16;
/// `BICTCP_B`: growth by a quarter of the distance per round trip.
const PART: u64 = 4;
/// `smooth_part`: round trips of a step close to the target.
const SMOOTH: u64 = 20;
/// `beta`, of 1024: remaining share of the window after a loss.
const BETA: u64 = 819;
/// Largest number of acknowledged segments per segment of growth before the first loss.
const UNTRIED: u64 = 20;
/// Time for which a computed step stays valid for the same window.
const STEP: Span = Span::from_nanos(1_000_000_000 / 32);

#[derive(Clone, Debug)]
pub(super) struct Bic {
    /// Acknowledged segments per segment of growth.
    need: u64,
    /// The window that was too large.
    target: u64,
    /// The window at the last loss. 0 before any.
    at_loss: u64,
    reckoned: Option<(u64, Instant)>,
    /// Segments per acknowledgement, in sixteenths.
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
    /// Updates the segments per acknowledgement, smoothed with 1/16 (`bictcp_acked`).
    pub(super) fn observe(&mut self, progress: &AckProgress) {
        if progress.segments > 0 {
            self.ratio = self.ratio - (self.ratio >> 4) + u64::from(progress.segments);
        }
    }

    /// Returns the number of acknowledgements per segment of growth at a window of `segments`.
    pub(super) fn need(&mut self, now: Instant, segments: u64) -> u64 {
        if let Some((window, when)) = self.reckoned
            && window == segments
            && now.saturating_since(when) <= STEP
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
        debug_assert!(
            self.need > 0 || segments == 0,
            "a window grows without acknowledgements"
        );
        self.need
    }

    /// Acknowledged segments per segment of growth, if each were acknowledged separately.
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

    /// Handles a loss at a window of `segments`. Returns the new threshold.
    pub(super) fn lost(&mut self, segments: u64) -> u64 {
        // Fast convergence: a flow with less than before releases bandwidth.
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

    /// Resets the state after a timeout (`bictcp_state`).
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
