//! The states of a connection, by their names in RFC 9293, section 3.3.2.

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Its SYN is out.
    SynSent,
    /// SYN seen and sent, not acknowledged.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// Closed here, the FIN not acknowledged.
    FinWait1,
    /// Closed here and acknowledged; the peer still sends.
    FinWait2,
    /// Closed by the peer; this end still sends.
    CloseWait,
    /// Both closed at once, the FIN not acknowledged.
    Closing,
    /// Closed by the peer, then here; the FIN not acknowledged.
    LastAck,
    /// Both closed; late segments are answered for a while.
    TimeWait,
    /// Over.
    Closed(End),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both directions were closed and acknowledged.
    Finished,
    /// The peer reset it.
    Reset,
    /// Nothing came back for too long.
    TimedOut,
    /// This end reset it.
    Aborted,
}

impl State {
    /// Whether both SYNs have been exchanged and acknowledged and it is not over.
    pub const fn is_synchronised(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed(_)
        )
    }

    /// Whether nothing will happen any more.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }
}
