//! CUBIC: the window as a cubic function of the time since the last loss (RFC 9438).
//!
//! Section numbers refer to the RFC. Growth is a number of acknowledged segments per segment of growth. It is computed
//! at most once per millisecond in integers of a millisecond clock, as in Linux (`bictcp_update` in tcp_cubic.c). The
//! cubic begins at the current window. The target is that of one round trip ahead.

use posthaste_units::{Instant, Span};

use super::AckProgress;

/// `beta_cubic`, of 1024: 0.7 (section 4.6).
const BETA: u64 = 717;
/// Acknowledged windows per segment of growth of the Reno-friendly window, in eighths, rounded down: the inverse of
/// `alpha_cubic`, `(1 + beta) / (3 (1 - beta))` (section 4.3).
const FRIENDLY: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// Smallest number of acknowledged segments per segment of growth: at most half the window per round trip.
const FEWEST: u64 = 2;
/// Largest number of acknowledged segments per segment of growth before the first loss.
const UNTRIED: u64 = 20;
/// Time for which a computed growth stays valid for the same window.
const STEP: Span = Span::from_nanos(1_000_000_000 / 32);
const MILLISECOND: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// `W_max` in segments. 0 before any loss.
    maximum: u64,
    epoch: Option<Epoch>,
    /// Shortest round-trip time.
    shortest: Option<Span>,
    need: u64,
    /// A loss has occurred on this connection.
    lossy: bool,
}

/// State since the window began to grow after a loss.
#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    /// `K` in milliseconds.
    k: u64,
    /// The flat part of the cubic, in segments.
    origin: u64,
    /// `W_est`: the window that Reno would have.
    friendly: u64,
    acked: u64,
    window: u64,
    reckoned: Instant,
}

impl Cubic {
    /// Updates the shortest round-trip time, except in the first second after a loss, because its queue would distort
    /// it (`cubictcp_acked`).
    pub(super) fn observe(&mut self, progress: &AckProgress) {
        let fresh = self
            .epoch
            .as_ref()
            .is_some_and(|epoch| progress.now.saturating_since(epoch.start) < Span::from_secs(1));
        if let Some(rtt) = progress.rtt.filter(|_| !fresh) {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
    }

    /// Returns the number of acknowledged segments per segment of growth at a window of `segments`. `acked` segments
    /// are newly acknowledged.
    pub(super) fn need(&mut self, now: Instant, segments: u64, acked: u64) -> u64 {
        let maximum = self.maximum;
        let began = self.epoch.is_none();
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::begin(now, segments, maximum));
        epoch.acked = if began { acked } else { epoch.acked + acked };
        let same = epoch.window == segments && now.saturating_since(epoch.reckoned) <= STEP;
        if !began && same {
            return self.need;
        }
        let tick = |instant: Instant| instant.as_nanos() / MILLISECOND;
        if began || tick(now) != tick(epoch.reckoned) {
            (epoch.window, epoch.reckoned) = (segments, now);
            let target = epoch.target(now, self.shortest.unwrap_or(Span::ZERO));
            self.need = match target.checked_sub(segments) {
                None | Some(0) => 100 * segments,
                Some(more) => segments / more,
            };
            if maximum == 0 {
                self.need = self.need.min(UNTRIED);
            }
        }
        if let Some(most) = epoch.friendly(segments) {
            self.need = self.need.min(most);
        }
        self.need = self.need.max(FEWEST);
        self.need
    }

    /// Handles a loss with a basis of `bytes`. Returns the new threshold in bytes.
    pub(super) fn lost(&mut self, bytes: u64, mss: u64, halves_first: bool) -> u64 {
        self.epoch = None;
        let segments = bytes / mss;
        // Fast convergence (section 4.7): a flow with less than before releases bandwidth.
        self.maximum = if segments < self.maximum {
            segments * (1024 + BETA) / 2048
        } else {
            segments
        };
        let first = !std::mem::replace(&mut self.lossy, true);
        if first && halves_first {
            bytes / 2
        } else {
            bytes * BETA / 1024
        }
    }

    /// Resets the state after a timeout (`cubictcp_state`).
    pub(super) fn forget(&mut self) {
        *self = Self {
            lossy: self.lossy,
            ..Self::default()
        };
    }

    /// Excludes a pause of `idle` without sending from the time of the cubic (section 4.2, `cubictcp_cwnd_event`).
    pub(super) fn paused(&mut self, now: Instant, idle: Span) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }
}

impl Epoch {
    fn begin(now: Instant, segments: u64, maximum: u64) -> Self {
        let missing = maximum.saturating_sub(segments);
        Self {
            start: now,
            // K = cbrt((W_max - cwnd) / C), C = 0.4 segments per cubic second (section 4.2).
            k: cube_root(missing.saturating_mul(2_500_000_000)),
            origin: maximum.max(segments),
            friendly: segments,
            acked: 0,
            window: segments,
            reckoned: now,
        }
    }

    /// `W_cubic` one round trip ahead, in segments (section 4.2, equation 1).
    fn target(&self, now: Instant, rtt: Span) -> u64 {
        let t = (now.saturating_since(self.start) + rtt).as_nanos() / MILLISECOND;
        let offset = t.abs_diff(self.k).min(1_000_000);
        let delta = offset.pow(3) / 2_500_000_000;
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        }
    }

    /// Acknowledged segments per segment of growth that keep up with Reno, if Reno would be ahead (section 4.3).
    fn friendly(&mut self, segments: u64) -> Option<u64> {
        let each = ((segments * FRIENDLY) >> 3).max(1);
        // An exact match waits for one more acknowledged segment, as in Linux.
        let grown = self.acked.saturating_sub(1) / each;
        self.acked -= grown * each;
        self.friendly += grown;
        let ahead = self
            .friendly
            .checked_sub(segments)
            .filter(|ahead| *ahead > 0)?;
        Some(segments / ahead)
    }
}

/// Cube root, rounded down. Computed bit by bit, so that the result is the same on every machine.
fn cube_root(value: u64) -> u64 {
    (0..22).rev().fold(0, |root: u64, bit| {
        let higher = root | 1 << bit;
        let fits = u128::from(higher).pow(3) <= u128::from(value);
        if fits { higher } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cube_root_is_one(value: u64) {
            let root = cube_root(value);
            prop_assert!(root.pow(3) <= value);
            prop_assert!((root + 1).checked_pow(3).is_none_or(|above| above > value));
        }

        /// Equation 1 in real numbers, and equation 2's K.
        #[test]
        fn the_cubic_is_that_of_the_standard(
            segments in 2u64..5_000, maximum in 2u64..10_000, ms in 0u64..30_000, rtt in 1u64..500,
        ) {
            let start = Instant::from_nanos(5_000_000_000);
            let epoch = Epoch::begin(start, segments, maximum);
            let target = epoch.target(start + Span::from_millis(ms), Span::from_millis(rtt));
            let above = (maximum as f64 - segments as f64).max(0.0);
            let k = (above / 0.4).cbrt();
            let t = (ms + rtt) as f64 / 1e3;
            let exact = 0.4 * (t - k).powi(3) + maximum.max(segments) as f64;
            // K is rounded to a millisecond, which allows an error of its slope times 1 ms; rounding down allows one
            // segment.
            let slope = 1.2 * (t - k).powi(2) * 1e-3;
            prop_assert!((target as f64 - exact.max(0.0)).abs() <= 1.0 + slope + 1e-3, "{target} {exact}");
        }
    }

    #[test]
    fn the_friendly_constant_is_the_standards() {
        let alpha = 3.0 * (1.0 - 0.7) / (1.0 + 0.7);
        assert!((FRIENDLY as f64 / 8.0 - 1.0 / alpha).abs() < 0.13);
    }
}
