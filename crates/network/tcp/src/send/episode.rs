//! State of a sender between two losses, used by both families of recovery.

use posthaste_units::Instant;

use crate::Offset;

/// Phases of recovery, named as in Linux (tcp.h, enum tcp_ca_state). BSD does not use `Disorder`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryPhase {
    /// Normal operation.
    #[default]
    Open,
    /// Some duplicates or SACKs, below the threshold.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Episode {
    pub(crate) phase: RecoveryPhase,
    /// An episode ends once this offset is acknowledged: `snd_recover`, `high_seq`.
    pub(crate) recover: Offset,
    /// Duplicate acknowledgements in a row: BSD's `t_dupacks`. Without SACK each stands for an arrived segment: Linux's
    /// `sacked_out`.
    pub(crate) duplicates: u32,
    /// Sends the first segment at once, regardless of the window.
    pub(crate) force: bool,
    /// Full segments that may be sent beyond the window now (limited transmit), and the number already sent in this run
    /// of duplicates: `snd_limited`.
    pub(crate) credit: u32,
    pub(crate) limited: u32,
    /// BSD with SACK: next offset to send at the start of recovery, `sack_newdata`.
    pub(crate) new_data: Offset,
    /// BSD: end of the interval in which an acknowledgement shows that the first timeout was wrong, `t_badrxtwin`.
    pub(crate) bad_until: Option<Instant>,
    /// BSD: `snd_recover`, and whether fast recovery was active, before that timeout.
    pub(crate) before: (Offset, bool),
    /// Linux: offset from which the episode can be undone, `undo_marker`.
    pub(crate) undo: Option<Offset>,
    /// Linux: retransmissions that no D-SACK has shown to be unnecessary, `undo_retrans`.
    pub(crate) undo_repeats: u32,
    /// RFC 6675: no rescue before this offset is acknowledged, `RescueRxt`.
    pub(crate) rescued: Offset,
    /// Retransmissions counted as unnecessary before their D-SACKs have arrived.
    pub(crate) forgiven: u32,
    /// Linux: the timestamp of the first retransmission of the episode, `retrans_stamp`.
    pub(crate) first_repeat: Option<u32>,
    /// Linux: F-RTO is active; and only new data may be sent now.
    pub(crate) frto: bool,
    pub(crate) only_new: bool,
    /// Linux: end of the data sent at the time of a probe (`tlp_high_seq`), and whether the probe was a retransmission.
    pub(crate) probe: Option<(Offset, bool)>,
    /// A probe must be sent.
    pub(crate) probing: bool,
    /// Linux: the second of two segments that leave together follows at once.
    pub(crate) pair: bool,
    /// Linux: duplicates that prove a loss. Grows with observed reordering.
    pub(crate) threshold: u32,
    pub(crate) reordered: bool,
    pub(crate) rack: Rack,
}

/// State of RACK (RFC 8985, section 5.2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// Latest transmission of an acknowledged segment: its time, and the end of the segment.
    pub(crate) latest: Option<(Instant, Offset)>,
    /// Its round-trip time.
    pub(crate) rtt: posthaste_units::Span,
    /// Something has changed since the last check.
    pub(crate) advanced: bool,
    /// Reordering window in quarters of the shortest round-trip time, grown by D-SACKs: `reo_wnd_steps`.
    pub(crate) steps: u32,
    /// Recoveries until the steps are reset: `reo_wnd_persist`.
    pub(crate) persist: u32,
    /// No more growth before this offset is acknowledged: `rtt_seq`.
    pub(crate) round: Offset,
}
