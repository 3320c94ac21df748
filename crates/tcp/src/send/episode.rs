//! Where a sender stands between two losses: what both families of recovery keep.

use posthaste_units::Instant;

use crate::Offset;

/// Phases of recovery, by Linux's names (tcp.h, enum tcp_ca_state); BSD knows the first and the
/// fourth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing strange.
    #[default]
    Open,
    /// Duplicates or SACKs, not enough of them.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Episode {
    pub(crate) phase: Phase,
    /// An episode ends once this is acknowledged: `snd_recover`, `high_seq`.
    pub(crate) recover: Offset,
    /// Duplicate acknowledgements in a row: BSD's `t_dupacks`. Without SACK each stands for a
    /// segment that has come: Linux's `sacked_out`.
    pub(crate) duplicates: u32,
    /// The first segment is sent at once, whatever the window.
    pub(crate) force: bool,
    /// Full segments that may be sent beyond the window now (limited transmit), and how many
    /// have been in this run of duplicates: `snd_limited`.
    pub(crate) credit: u32,
    pub(crate) limited: u32,
    /// BSD with SACK: what was sent next when recovery began, `sack_newdata`.
    pub(crate) new_data: Offset,
    /// BSD: until when an acknowledgement shows that the first timeout was wrong, `t_badrxtwin`.
    pub(crate) bad_until: Option<Instant>,
    /// BSD: what `snd_recover` was, and whether fast recovery was on, before that timeout.
    pub(crate) before: (Offset, bool),
    /// Linux: where the episode can be undone, `undo_marker`.
    pub(crate) undo: Option<Offset>,
    /// Linux: retransmissions that no D-SACK has shown to be unnecessary, `undo_retrans`.
    pub(crate) undo_repeats: u32,
    /// RFC 6675: nothing is rescued before this is acknowledged, `RescueRxt`.
    pub(crate) rescued: Offset,
    /// Counted as unnecessary before their D-SACKs have come.
    pub(crate) forgiven: u32,
    /// Linux: the timestamp of the first retransmission of the episode, `retrans_stamp`.
    pub(crate) first_repeat: Option<u32>,
    /// Linux: whether F-RTO looks on; and whether only new data may be sent now.
    pub(crate) frto: bool,
    pub(crate) only_new: bool,
    /// Linux: what was sent last when a probe went (`tlp_high_seq`), and whether it was a repeat.
    pub(crate) probe: Option<(Offset, bool)>,
    /// A probe is to be sent.
    pub(crate) probing: bool,
    /// Linux: the second of two segments that leave together follows at once.
    pub(crate) pair: bool,
    /// Linux: duplicates before a loss is believed; grows with reordering seen.
    pub(crate) threshold: u32,
    pub(crate) reordered: bool,
    pub(crate) rack: Rack,
}

/// RACK's memory (RFC 8985, section 5.2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// The latest sending of what has been acknowledged: when, and the end of the segment.
    pub(crate) latest: Option<(Instant, Offset)>,
    /// Its round-trip time.
    pub(crate) rtt: posthaste_units::Span,
    /// Something has changed since the last look.
    pub(crate) advanced: bool,
    /// Quarters of the shortest round-trip time waited, grown by D-SACKs: `reo_wnd_steps`.
    pub(crate) steps: u32,
    /// Recoveries until the steps fall back: `reo_wnd_persist`.
    pub(crate) persist: u32,
    /// No more growth before this is acknowledged: `rtt_seq`.
    pub(crate) round: Offset,
}
