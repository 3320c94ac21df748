//! Deferred sending: a burst of one segment waits for the next acknowledgement (Linux tcp_output.c,
//! `tcp_tso_should_defer`, as since 6.18 and in the stable series of that time).
//!
//! Current Linux passes at least two segments at a time to its device. If the window leaves only one and an
//! acknowledgement is due, it prefers to wait. The effect is visible if two acknowledgements arrive within a
//! millisecond: the second releases nothing.

use posthaste_units::{Instant, Span};

use crate::profile::RecoveryEngine;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;

/// Longest time since the last send, and longest time to the expected acknowledgement.
const SOON: Span = Span::from_millis(1);

/// Part of the window (a third) that is used at once if free (net.ipv4.tcp_tso_win_divisor = 3).
const THIRDS: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct Deferral {
    /// The second of two segments that leave together follows at once.
    pub(in crate::send) pair: bool,
}

impl Deferral {
    /// Returns true if new data waits although the congestion window leaves `left` bytes.
    ///
    /// Bursts have two segments (net.ipv4.tcp_min_tso_segs = 2), as below some 35 Mbit/s.
    pub(super) fn applies(&mut self, flight: &Flight, now: Instant, left: u64) -> bool {
        let rules = &flight.rules;
        if !matches!(
            rules.recovery.engine,
            RecoveryEngine::Pipe { defers: true, .. }
        ) {
            return false;
        }
        let mss = rules.mss();
        let left = left.min(flight.peer.open_beyond(&flight.sequence));
        let single = flight.sequence.unsent_data() <= mss;
        if std::mem::take(&mut self.pair) || left < mss || single {
            return false;
        }
        if left >= 2 * mss {
            self.pair = true;
            return false;
        }
        let recovers = flight.phase() >= RecoveryPhase::Recovery;
        let window = flight.peer.size.min(flight.congestion.window());
        let since = now.saturating_since(flight.spoke);
        if recovers || since > SOON || left >= window / THIRDS {
            return false;
        }
        let smoothed = flight.timer.rtt.smoothed().unwrap_or_default();
        let first = flight.board.get(0);
        first.is_some_and(|first| now + SOON.min(smoothed / 2) >= first.sent + smoothed)
    }
}
