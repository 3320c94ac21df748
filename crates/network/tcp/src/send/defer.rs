//! Deferred sending: a burst of one segment waits for the next acknowledgement (Linux tcp_output.c,
//! `tcp_tso_should_defer`, as since 6.18 and in the stable series of that time).
//!
//! Current Linux passes at least two segments at a time to its device. If the window leaves only one and an
//! acknowledgement is due, it prefers to wait. The effect is visible if two acknowledgements arrive within a
//! millisecond: the second releases nothing.

use posthaste_units::{Instant, Span};

use super::Sender;
use super::episode::RecoveryPhase;
use crate::profile::RecoveryEngine;

/// Longest time since the last send, and longest time to the expected acknowledgement.
const SOON: Span = Span::from_millis(1);

/// Part of the window (a third) that is used at once if free (net.ipv4.tcp_tso_win_divisor = 3).
const THIRDS: u64 = 3;

impl Sender {
    /// Returns true if new data waits although the congestion window leaves `left` bytes.
    ///
    /// Bursts have two segments (net.ipv4.tcp_min_tso_segs = 2), as below some 35 Mbit/s.
    pub(super) fn defers(&mut self, now: Instant, left: u64) -> bool {
        if !matches!(self.rules.engine, RecoveryEngine::Pipe { defers: true, .. }) {
            return false;
        }
        let mss = u64::from(self.agreed.mss);
        let open = (self.una + self.window).saturating_sub(self.max);
        let left = left.min(open);
        let single = self.written.saturating_sub(self.max) <= mss;
        if std::mem::take(&mut self.episode.pair) || left < mss || single {
            return false;
        }
        if left >= 2 * mss {
            self.episode.pair = true;
            return false;
        }
        let recovers = self.phase() >= RecoveryPhase::Recovery;
        let window = self.window.min(self.congestion.window());
        if recovers || now.saturating_since(self.spoke) > SOON || left >= window / THIRDS {
            return false;
        }
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let first = self.board.get(0);
        first.is_some_and(|first| now + SOON.min(smoothed / 2) >= first.sent + smoothed)
    }
}
