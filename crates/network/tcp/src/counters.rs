//! Counters of an endpoint: segments sent and received, recovery events, and refused segments by reason.

/// Segments, retransmissions and recovery events since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Segments received, including refused ones.
    pub segments_in: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments with data or FIN that were sent again, all kinds together.
    pub retransmissions: u64,
    /// Retransmissions caused by duplicate acknowledgements, SACK, RACK or early retransmit.
    pub fast: u64,
    /// Retransmissions after the retransmission timer expired, including all of the recovery that follows.
    pub after_timeout: u64,
    /// Tail loss probes (TLP), and copies of the tail sent in advance.
    pub probes: u64,
    /// Retransmissions known to have been unnecessary (D-SACK, Eifel, F-RTO).
    pub spurious: u64,
    /// Expiries of the retransmission timer, including that of SYN and SYN-ACK.
    pub timeouts: u64,
    /// Starts of fast recovery.
    pub recoveries: u64,
    /// Recoveries and timeouts undone as unnecessary.
    pub undone: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Duplicate acknowledgements, as the profile counts them.
    pub duplicate_acks: u64,
    /// Acknowledgements repeated by the adaptive duplicate ACK remedy.
    pub adaptive_acks: u64,
    /// Acknowledgements that repeated the number and did not count as duplicates.
    pub uncounted_acks: u64,
    /// Segments whose data, or lone FIN, had all been received before.
    pub duplicate_data: u64,
    /// Segments kept out of order.
    pub out_of_order: u64,
    /// Parity segments sent. They are not retransmissions.
    pub parities: u64,
    /// Missing segments restored from parity.
    pub restored: u64,
    /// Answers to refused segments that the profile's limit suppressed.
    pub unanswered: u64,
    /// Segments refused, by reason.
    pub refused: RefusedSegments,
}

/// Segments that changed nothing, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedSegments {
    /// Outside the window (RFC 9293, section 3.10.7.4).
    pub out_of_window: u64,
    /// An old timestamp (PAWS, RFC 7323, section 5).
    pub paws: u64,
    /// No timestamp although both ends agreed on timestamps (RFC 7323, section 3.2).
    pub no_timestamp: u64,
    /// Acknowledges data that was never sent.
    pub ack_of_unsent: u64,
    /// Acknowledges less than the window ever allowed (RFC 5961, section 5).
    pub ack_too_old: u64,
    /// A segment without ACK where one is needed.
    pub no_ack: u64,
    /// A SYN in an open connection (RFC 5961, section 4).
    pub syn: u64,
    /// A RST without the exact sequence number (RFC 5961, section 3), or a wrong one during the handshake.
    pub rst: u64,
    /// More holes than the receiver remembers.
    pub holes: u64,
    /// Data after the FIN, a FIN at a different offset, or bytes that no application will read.
    pub after_fin: u64,
    /// The connection is closed, or expects a SYN and got another segment.
    pub no_connection: u64,
}

impl RefusedSegments {
    /// Sum over all reasons.
    pub const fn total(&self) -> u64 {
        self.out_of_window
            + self.paws
            + self.no_timestamp
            + self.ack_of_unsent
            + self.ack_too_old
            + self.no_ack
            + self.syn
            + self.rst
            + self.holes
            + self.after_fin
            + self.no_connection
    }
}
