//! CUBIC: the window as a cubic of the time since the last loss (RFC 9438).
//!
//! Section numbers are the RFC's. Growth is a number of segments to be acknowledged for one
//! more, reckoned at most once per millisecond, as in Linux (`bictcp_update` in tcp_cubic.c),
//! whose integers are those of a millisecond's clock. The window at which the cubic begins is
//! the current one, and the target is that of one round trip ahead.

use posthaste_units::{Instant, Span};

use super::Progress;

/// `beta_cubic`, of 1024: 0.7 (section 4.6).
const BETA: u64 = 717;
/// The Reno-friendly window grows by a segment for `(1 + beta) / (3 (1 - beta))` windows, of 8:
/// the inverse of `alpha_cubic` (section 4.3), cut off.
const FRIENDLY: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// Segments acknowledged for one more, at least: at most half the window per round trip.
const FEWEST: u64 = 2;
/// Without a loss so far, at most so many.
const UNTRIED: u64 = 20;
/// For so long the growth is not reckoned anew for the same window.
const STEP: Span = Span::from_nanos(1_000_000_000 / 32);
const MILLISECOND: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// `W_max` in segments; 0 before any loss.
    maximum: u64,
    epoch: Option<Epoch>,
    /// The shortest round-trip time.
    shortest: Option<Span>,
    need: u64,
    /// Something was lost at some time.
    lossy: bool,
}

/// The time since the window began to grow after a loss.
#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    /// `K` in milliseconds.
    k: u64,
    /// Where the cubic is flat, in segments.
    origin: u64,
    /// `W_est`: what Reno would have.
    friendly: u64,
    acked: u64,
    window: u64,
    reckoned: Instant,
}

impl Cubic {
    /// Notes the shortest round-trip time; not in the first second after a loss, whose queue is
    /// no measure (`cubictcp_acked`).
    pub(super) fn observe(&mut self, progress: &Progress) {
        let fresh = self
            .epoch
            .as_ref()
            .is_some_and(|epoch| progress.now.since(epoch.start) < Span::from_secs(1));
        if let Some(rtt) = progress.rtt.filter(|_| !fresh) {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
    }

    /// How many segments must be acknowledged for the window of so many to grow by one; `acked`
    /// have been.
    pub(super) fn need(&mut self, now: Instant, segments: u64, acked: u64) -> u64 {
        let maximum = self.maximum;
        let began = self.epoch.is_none();
        let epoch = self
            .epoch
            .get_or_insert_with(|| Epoch::begin(now, segments, maximum));
        epoch.acked = if began { acked } else { epoch.acked + acked };
        let same = epoch.window == segments && now.since(epoch.reckoned) <= STEP;
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

    /// Something was lost while so many bytes counted; returns the new threshold in bytes.
    pub(super) fn lost(&mut self, bytes: u64, mss: u64, halves_first: bool) -> u64 {
        self.epoch = None;
        let segments = bytes / mss;
        // Fast convergence (section 4.7): who has less than before makes room.
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

    /// A timeout: nothing is known any more (`cubictcp_state`).
    pub(super) fn forget(&mut self) {
        *self = Self {
            lossy: self.lossy,
            ..Self::default()
        };
    }

    /// Nothing was sent for `idle`: that time does not count (section 4.2, `cubictcp_cwnd_event`).
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
        let t = (now.since(self.start) + rtt).as_nanos() / MILLISECOND;
        let offset = t.abs_diff(self.k).min(1_000_000);
        let delta = offset.pow(3) / 2_500_000_000;
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        }
    }

    /// How many segments to acknowledge for one more so as not to stay behind Reno, where that
    /// would be ahead (section 4.3).
    fn friendly(&mut self, segments: u64) -> Option<u64> {
        let each = ((segments * FRIENDLY) >> 3).max(1);
        // Whoever has acknowledged exactly enough waits for one more, as in Linux.
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

/// The cube root, cut off: bit by bit, so that it is the same on every machine.
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
            // K to a millisecond, so its slope times that; and a segment for cutting off.
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
