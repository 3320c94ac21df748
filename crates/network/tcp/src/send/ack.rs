//! An acknowledgement, and its effect on the segments in flight.

use posthaste_units::{Instant, Span};

use crate::Offset;

/// An acknowledgement with unwrapped sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    pub(crate) number: Offset,
    /// The window in bytes.
    pub(crate) window: u64,
    /// Offset of the acknowledging segment in the peer's stream.
    pub(crate) seq: Offset,
    /// The segment has data or a FIN.
    pub(crate) carries: bool,
    pub(crate) blocks: &'a [(Offset, Offset)],
    /// The echoed timestamp and its age.
    pub(crate) echo: Option<(u32, Span)>,
}

/// Data newly acknowledged or SACKed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Their charges.
    pub(super) bytes: u64,
    pub(super) segments: u32,
}

/// Effect of one acknowledgement: Linux's FLAG_*.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckEffect {
    /// Bytes in flight before it arrived.
    pub(super) in_flight: u64,
    /// It moved `una`.
    pub(super) advanced: bool,
    /// It moved `una`, and no segment was marked as lost.
    pub(super) clean: bool,
    /// It ended fast recovery.
    pub(super) ended: bool,
    /// A mere repetition.
    pub(super) duplicate: bool,
    pub(super) delivered: Delivered,
    pub(super) sacked: u32,
    /// Some of the delivered segments were never sent again and lie before `recover`: FLAG_ORIG_SACK_ACKED.
    pub(super) original: bool,
    pub(super) dsack: bool,
    /// The retransmission timer must be restarted.
    pub(super) timer: bool,
    /// Transmission times of the first and last acknowledged segments, if all were sent once.
    pub(super) sent: Option<(Instant, Instant)>,
    /// Transmission time of the first SACKed segment, if it was sent once.
    pub(super) sack_sent: Option<Instant>,
    /// The lowest offset acknowledged late without a retransmission.
    pub(super) late: Option<Offset>,
}
