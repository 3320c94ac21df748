//! Constants of one sender: the stack's rules, and the options that both ends agreed on.

use posthaste_units::Span;

use super::Agreed;
use crate::Profile;
use crate::congestion::{Basis, Counting, GrowthLimit};
use crate::profile::{FramingRule, Recovery, RecoveryEngine, RoundTrips};

#[derive(Clone, Debug)]
pub(super) struct SendRules {
    pub(super) recovery: Recovery,
    pub(super) round_trips: RoundTrips,
    /// Timeouts in a row, and window probes, before the connection ends.
    pub(super) retries: u32,
    pub(super) counting: Counting,
    pub(super) limit: GrowthLimit,
    /// The new threshold after a loss derives from the smaller of the congestion window and the peer's.
    pub(super) usable_basis: bool,
    /// One tick of the timestamp clock.
    pub(super) tick: Span,
    pub(super) agreed: Agreed,
}

impl SendRules {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            recovery: profile.recovery,
            round_trips: profile.round_trips,
            retries: profile.handshake.retries,
            counting: profile.control.counting,
            limit: profile.control.limit,
            usable_basis: profile.control.basis == Basis::Usable,
            tick: profile.offer.timestamp_tick,
            agreed: Agreed {
                mss: u32::from(profile.offer.mss),
                ..Agreed::default()
            },
        }
    }

    pub(super) const fn sack(&self) -> bool {
        self.agreed.sack
    }

    /// Payload of a full segment in bytes.
    pub(super) const fn mss(&self) -> u64 {
        self.agreed.mss as u64
    }

    pub(super) const fn has_rack(&self) -> bool {
        self.recovery.rack && self.agreed.sack
    }

    /// Returns true if the final FIN ignores the congestion window, as in Linux (`tcp_cwnd_test`).
    pub(super) const fn frees_fin(&self) -> bool {
        matches!(
            self.recovery.engine,
            RecoveryEngine::Pipe { free_fin: true, .. }
        )
    }

    /// Charge of `len` bytes in the units of the window.
    pub(super) fn charge(&self, len: u64) -> u32 {
        match self.counting {
            Counting::Segments => self.agreed.mss,
            Counting::Bytes => len as u32,
        }
    }

    /// Payload of a full segment with `room` bytes left. Smaller while smart framing applies.
    pub(super) fn frame(&self, room: u32, window: u64) -> u32 {
        match self.recovery.framing {
            Some(FramingRule { parts, below }) if window < below => (room / parts.max(1)).max(1),
            _ => room,
        }
    }
}
