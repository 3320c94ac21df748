//! The state that both families of recovery share: segments in flight, offsets, windows, the timer.
//!
//! `bsd` and `pipe` decide about losses and add their own state. `transmit` sends segments, `rearm` restarts the timer.

mod rearm;
pub(super) mod transmit;

use posthaste_units::Instant;

use super::BoardCounts;
use super::ack::{Ack, Delivered};
use super::episode::{Episode, RecoveryPhase};
use super::peer_window::PeerWindow;
use super::rules::SendRules;
use super::scoreboard::Scoreboard;
use super::sequence::SendSequence;
use super::small::SmallSegments;
use super::timer::RetransmissionTimer;
use crate::Profile;
use crate::congestion::{AckProgress, Congestion};
use crate::profile::RecoveryEngine;
use crate::reduction::Reduction;

#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) rules: SendRules,
    pub(super) sequence: SendSequence,
    pub(super) peer: PeerWindow,
    pub(super) small: SmallSegments,
    pub(super) board: Scoreboard,
    pub(super) timer: RetransmissionTimer,
    pub(super) congestion: Congestion,
    pub(super) reduction: Reduction,
    pub(super) episode: Episode,
    /// Time of the last transmission.
    pub(super) spoke: Instant,
}

impl Flight {
    #[inline(always)]
    pub(super) fn new(profile: &Profile) -> Self {
        let mss = u32::from(profile.offer.mss);
        Self {
            rules: SendRules::new(profile),
            sequence: SendSequence::new(),
            peer: PeerWindow::new(profile.strictness.any_window),
            small: SmallSegments::new(profile.nagle),
            board: Scoreboard::default(),
            timer: RetransmissionTimer::new(profile),
            congestion: Congestion::new(profile.control, mss, profile.initial_window.bytes(mss)),
            reduction: Reduction::new(profile.reduction),
            episode: Episode::default(),
            spoke: Instant::ORIGIN,
        }
    }

    /// Panics if the parts contradict each other.
    pub(super) fn assert_invariants(&self) {
        let SendSequence { una, max, .. } = self.sequence;
        self.sequence.assert_invariants();
        self.board.assert_invariants(una, max);
        self.congestion.assert_invariants();
        assert!(
            self.episode.recover <= max,
            "a recovery lasts beyond the data sent"
        );
        assert!(
            self.small.last_end <= max,
            "a small segment lies beyond the data sent"
        );
    }

    pub(super) const fn phase(&self) -> RecoveryPhase {
        self.episode.phase
    }

    /// Bytes in flight, as the profile counts them.
    pub(super) fn in_flight(&self) -> u64 {
        match self.rules.recovery.engine {
            RecoveryEngine::Bsd { .. } => self.sequence.up_to_next(),
            RecoveryEngine::Pipe { .. } => {
                let heard = u64::from(self.reno_sacked()) * self.rules.mss();
                self.board.in_flight().saturating_sub(heard)
            }
        }
    }

    /// Segments that duplicates have reported as arrived, without SACK.
    pub(super) const fn reno_sacked(&self) -> u32 {
        if self.rules.sack() {
            0
        } else {
            self.episode.duplicates
        }
    }

    /// Forgets the segments that duplicates have reported, if there is no SACK (`tcp_reset_reno_sack`).
    pub(super) const fn forget_duplicates(&mut self) {
        if !self.rules.sack() {
            self.episode.duplicates = 0;
        }
    }

    pub(super) const fn progress(
        &self,
        now: Instant,
        delivered: Delivered,
        ack: &Ack<'_>,
    ) -> AckProgress {
        AckProgress {
            now,
            bytes: delivered.bytes,
            segments: delivered.segments,
            rtt: None,
            acked: ack.number,
            next: self.sequence.max,
            in_flight: 0,
            limited: false,
        }
    }

    /// Basis of the new threshold. With BSD's rule, the smaller window. Otherwise the bytes sent and not acknowledged,
    /// without limited transmit (RFC 5681, equation 4).
    pub(super) fn basis(&self) -> u64 {
        if self.rules.usable_basis {
            return self.congestion.window().min(self.peer.size);
        }
        let SendSequence { una, max, .. } = self.sequence;
        let sent = match self.phase() {
            // Limited transmit sends beyond the end of the data that was out when `Disorder` began.
            RecoveryPhase::Disorder => self.episode.recover.max(una),
            _ => max,
        };
        debug_assert!(sent >= una, "acknowledged data is in flight");
        sent - una
    }

    /// Sets `Disorder` while segments are SACKed, lost or sent again, else `Open` (`tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self) {
        let strange = self.board.sacked_segments() > 0
            || self.reno_sacked() > 0
            || self.board.lost_segments() > 0
            || self.board.again_segments() > 0;
        let phase = if strange {
            RecoveryPhase::Disorder
        } else {
            RecoveryPhase::Open
        };
        if self.episode.phase != phase {
            self.episode.phase = phase;
            self.episode.recover = self.sequence.max;
        }
    }

    /// Keeps the window at the end of recovery after an undo.
    pub(super) fn keep_window(&mut self) {
        let window = self.congestion.window();
        self.reduction.begin(window, window, self.rules.agreed.mss);
    }

    pub(super) fn board_counts(&self) -> BoardCounts {
        BoardCounts {
            outstanding: self.board.len() as u32,
            sacked: self.board.sacked_segments() + self.reno_sacked(),
            lost: self.board.lost_segments(),
            repeated: self.board.again_segments(),
        }
    }
}
