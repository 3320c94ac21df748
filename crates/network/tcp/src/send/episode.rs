//! State of a sender between two losses, used by both families of recovery.

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

/// State of an episode that both families of recovery have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    pub(super) phase: RecoveryPhase,
    /// An episode ends once this offset is acknowledged: `snd_recover`, `high_seq`.
    pub(super) recover: Offset,
    /// Duplicate acknowledgements in a row: BSD's `t_dupacks`. Without SACK each stands for an arrived segment: Linux's
    /// `sacked_out`.
    pub(super) duplicates: u32,
    /// Sends the first segment at once, regardless of the window.
    pub(super) force: bool,
}
