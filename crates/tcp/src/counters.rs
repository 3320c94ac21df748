//! What an endpoint did, and what it refused and why.

/// Segments, retransmissions and what is remarkable, since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments taken, refused ones included.
    pub segments_in: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments sent with data or FIN that had been sent before, all kinds together.
    pub retransmissions: u64,
    /// Of these: after duplicate acknowledgements, SACK, RACK or early retransmit.
    pub fast: u64,
    /// Of these: after the retransmission timer ran out, all of the recovery that follows.
    pub after_timeout: u64,
    /// Of these: probes of the tail (TLP) and copies of it sent in advance.
    pub probes: u64,
    /// Of these: known to have been unnecessary (D-SACK, Eifel, F-RTO).
    pub spurious: u64,
    /// Times the retransmission timer ran out, that of SYN and SYN-ACK included.
    pub timeouts: u64,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Recoveries and timeouts undone as unnecessary.
    pub undone: u64,
    /// Segments that probed a closed window.
    pub window_probes: u64,
    /// Duplicate acknowledgements counted, as the profile counts them.
    pub duplicate_acks: u64,
    /// Acknowledgements repeated by the adaptive-duplicate-ACK remedy.
    pub adaptive_acks: u64,
    /// Acknowledgements that repeated the number without saying anything counted.
    pub uncounted_acks: u64,
    /// Segments with data, or a FIN alone, that had all come before.
    pub duplicate_data: u64,
    /// Segments kept out of order.
    pub out_of_order: u64,
    /// Segments of parity sent, which are no retransmissions.
    pub parities: u64,
    /// Segments that had not come and were made of parity.
    pub restored: u64,
    /// Answers to refused segments that the profile's limit held back.
    pub unanswered: u64,
    /// Segments refused, by reason.
    pub refused: Refused,
}

/// Segments that changed nothing, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Outside of the window (RFC 9293, section 3.10.7.4).
    pub out_of_window: u64,
    /// An old timestamp (PAWS, RFC 7323, section 5).
    pub paws: u64,
    /// No timestamp although both ends have agreed on them (RFC 7323, section 3.2).
    pub no_timestamp: u64,
    /// Acknowledges what was never sent.
    pub ack_of_unsent: u64,
    /// Acknowledges less than the window ever allowed (RFC 5961, section 5).
    pub ack_too_old: u64,
    /// A segment without ACK where one is needed.
    pub no_ack: u64,
    /// A SYN in a living connection (RFC 5961, section 4).
    pub syn: u64,
    /// A RST that does not hit exactly (RFC 5961, section 3), or in a handshake the wrong one.
    pub rst: u64,
    /// More holes than are remembered.
    pub holes: u64,
    /// Data after the FIN, a FIN elsewhere than before, or bytes that nobody will read.
    pub after_fin: u64,
    /// The connection is over, or waits for a SYN and this was none.
    pub no_connection: u64,
}

impl Refused {
    /// All reasons together.
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
