//! A TCP segment: header fields as on the wire, the payload only as a length.

/// Bytes of a header without options (RFC 9293, section 3.1).
const HEADER: u32 = 20;

/// One segment; plain data, cheap to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgement number. None without the ACK flag.
    pub ack: Option<u32>,
    /// Opens the sender's direction.
    pub syn: bool,
    /// Closes the sender's direction.
    pub fin: bool,
    /// Ends the connection at once.
    pub rst: bool,
    /// The sender's buffer is empty after this.
    pub psh: bool,
    /// Window field of the header, not scaled.
    pub window: u16,
    /// Options of the header.
    pub options: Options,
    /// Bytes of payload.
    pub len: u32,
}

/// The options that the profiles use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest payload that the sender accepts; on a SYN only (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Shift of the sender's windows; on a SYN only (RFC 7323, section 2.2).
    pub window_scale: Option<u8>,
    /// The sender accepts SACK blocks; on a SYN only (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323, section 3.2).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (RFC 2018, section 3). The first may be a D-SACK (RFC 2883).
    pub sack: SackBlocks,
    /// On a SYN: the sender supports parity. Otherwise the payload is parity and takes no sequence numbers.
    pub parity: Option<Parity>,
}

/// A non-standard option for the tail parity remedy. The payload is the exclusive or of the segments that it covers. It
/// would be an experimental option (RFC 6994) on the wire. No packet carries it, so it is agreed on only if both ends
/// are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parity {
    /// Number of sequence numbers covered, up to the segment's number.
    pub covered: u32,
    /// The last of them is the FIN.
    pub fin: bool,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// Value of the sender's clock.
    pub value: u32,
    /// Value of the receiver's clock, as last received in order. 0 without ACK.
    pub echo: u32,
}

/// Up to four ranges of sequence numbers, each as start and exclusive end, newest first.
///
/// The count precedes the blocks, so that there is no padding in front of them. Padding would be copied together with
/// the blocks, at unaligned addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SackBlocks {
    count: u32,
    blocks: [[u32; 2]; 4],
}

impl SackBlocks {
    /// Appends a block. Returns false if there are four already.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let Some(slot) = self.blocks.get_mut(self.count as usize) else {
            return false;
        };
        *slot = [start, end];
        self.count += 1;
        true
    }

    /// The blocks in order.
    pub fn as_slice(&self) -> &[[u32; 2]] {
        &self.blocks[..self.count as usize]
    }

    /// Returns true if there is no block.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Options {
    /// Length in bytes in a header, padded to a multiple of four. As in real stacks, each option is aligned separately,
    /// except that SACK-permitted fills the padding of the timestamps.
    pub fn bytes(&self) -> u32 {
        let mut bytes = 0;
        if self.mss.is_some() {
            bytes += 4;
        }
        if self.window_scale.is_some() {
            bytes += 4;
        }
        match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => bytes += 12,
            (false, true) => bytes += 4,
            (false, false) => {}
        }
        if !self.sack.is_empty() {
            bytes += 4 + 8 * self.sack.count;
        }
        if let Some(parity) = self.parity {
            bytes += if parity.covered == 0 { 4 } else { 8 };
        }
        bytes
    }
}

impl Segment {
    /// Bytes of the TCP header, including options.
    pub fn header_bytes(&self) -> u32 {
        HEADER + self.options.bytes()
    }

    /// Sequence numbers that the segment takes: SYN and FIN take one each, parity none.
    pub fn places(&self) -> u32 {
        if self.options.parity.is_some() && !self.syn {
            return 0;
        }
        self.len + u32::from(self.syn) + u32::from(self.fin)
    }

    /// Returns true if the segment only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        self.ack.is_some() && self.len == 0 && !(self.syn || self.fin || self.rst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_long_as_on_the_wire() {
        let mut segment = Segment::default();
        assert_eq!(segment.header_bytes(), 20);
        segment.options.timestamps = Some(Timestamps::default());
        assert_eq!(segment.header_bytes(), 32);
        assert!(segment.options.sack.push(1, 2));
        assert_eq!(segment.header_bytes(), 44);
        segment.options.sack = SackBlocks::default();
        segment.options.mss = Some(1460);
        segment.options.sack_permitted = true;
        segment.options.window_scale = Some(7);
        assert_eq!(segment.header_bytes(), 40, "the SYN of Linux");
    }

    #[test]
    fn there_are_four_blocks_at_most() {
        let mut blocks = SackBlocks::default();
        for number in 0..4 {
            assert!(blocks.push(number, number + 1));
        }
        assert!(!blocks.push(9, 10));
        assert_eq!(blocks.as_slice().len(), 4);
    }
}
