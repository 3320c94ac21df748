//! The states of a connection, named as in RFC 9293, section 3.3.2.

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// SYN received and sent, not acknowledged.
    SynReceived,
    /// Data may flow in both directions.
    Established,
    /// Closed by this end; the FIN is not acknowledged.
    FinWait1,
    /// Closed by this end and acknowledged; the peer still sends.
    FinWait2,
    /// Closed by the peer; this end still sends.
    CloseWait,
    /// Closed by both ends at once; the FIN is not acknowledged.
    Closing,
    /// Closed by the peer, then by this end; the FIN is not acknowledged.
    LastAck,
    /// Closed by both ends; late segments are still answered.
    TimeWait,
    /// No connection any more.
    Closed(ConnectionEnd),
}

/// Cause of the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Both directions were closed and acknowledged.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer in time.
    TimedOut,
    /// This end reset the connection.
    Aborted,
}

impl TcpState {
    /// Returns true between the acknowledgement of both SYNs and the end of the connection.
    pub const fn is_synchronised(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed(_)
        )
    }

    /// Returns true once the connection has ended.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }
}
