//! Memory that the stages of a loop share.

/// Buffers of an event loop. Their content does not outlive a call.
pub(crate) struct LoopBuffers {
    /// Bytes read from a socket.
    pub(crate) input: Vec<u8>,
    /// Bytes that are put together before they are sent, and packets of QUIC.
    pub(crate) scratch: Vec<u8>,
}

impl LoopBuffers {
    pub(crate) fn new() -> Self {
        Self {
            input: vec![0; 64 * 1024],
            scratch: Vec::new(),
        }
    }
}
