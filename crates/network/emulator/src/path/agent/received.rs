//! The received part of a stream: the contiguous prefix, and the pieces beyond it.
//!
//! Sequence numbers are unfolded to 64 bits around the edge, so that the code below ignores their wrap-around (RFC
//! 9293, section 3.4).

/// Maximum number of remembered pieces. More holes than that in one window are not a tail loss.
const PIECES: usize = 64;

/// More pieces arrived than the agent remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyPieces;

/// The receiver's side of one stream.
#[derive(Clone, Debug)]
pub(super) struct ReceivedStream {
    /// First byte not received; everything before it has arrived.
    edge: u64,
    /// Pieces received beyond the edge, as [first, end) in order. They never touch.
    pieces: Vec<(u64, u64)>,
    /// End of the largest window that the receiver has offered.
    limit: u64,
}

impl ReceivedStream {
    /// An empty stream that begins at `sequence`, with `window` bytes offered.
    pub(super) fn new(sequence: u32, window: u64) -> Self {
        // High enough that half the sequence space fits below.
        let edge = (1 << 32) + u64::from(sequence);
        Self {
            edge,
            pieces: Vec::new(),
            limit: edge + window,
        }
    }

    /// Sequence number of the first byte not received, as on the wire.
    pub(super) fn edge(&self) -> u32 {
        self.edge as u32
    }

    /// True if data has arrived beyond the edge.
    pub(super) fn has_hole(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// End of the last byte received.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last().map_or(self.edge, |piece| piece.1)
    }

    /// True if the data lies within the offered window. The receiver discards data beyond it.
    pub(super) fn takes(&self, sequence: u32, payload: u32) -> bool {
        self.offset_of(sequence) + u64::from(payload) <= self.limit
    }

    /// Adds `length` bytes from `sequence` on.
    pub(super) fn add(&mut self, sequence: u32, length: u32) -> Result<(), TooManyPieces> {
        let start = self.offset_of(sequence);
        let end = start + u64::from(length);
        if end <= self.edge {
            return Ok(());
        }
        self.pieces.push((start, end));
        self.tidy();
        if self.pieces.len() > PIECES {
            return Err(TooManyPieces);
        }
        Ok(())
    }

    /// Notes the receiver's acknowledgement of everything before `number`, with space for `window` more bytes.
    pub(super) fn acknowledged(&mut self, number: u32, window: u64) {
        let offset = self.offset_of(number);
        self.edge = self.edge.max(offset);
        self.limit = self.limit.max(offset + window);
        self.tidy();
    }

    /// Position of a sequence number in 64 bits: the candidate nearest to the edge.
    fn offset_of(&self, number: u32) -> u64 {
        let distance = number.wrapping_sub(self.edge as u32) as i32;
        self.edge.saturating_add_signed(i64::from(distance))
    }

    /// Joins adjacent pieces, and moves the edge over pieces that touch it.
    fn tidy(&mut self) {
        self.pieces.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.pieces.len());
        for &(start, end) in &self.pieces {
            if start <= self.edge {
                self.edge = self.edge.max(end);
                continue;
            }
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        self.pieces = joined;
        debug_assert!(
            self.pieces.first().is_none_or(|first| first.0 > self.edge),
            "the first piece touches the edge"
        );
        debug_assert!(
            self.pieces.windows(2).all(|pair| pair[0].1 < pair[1].0),
            "two pieces touch"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holes_open_and_close_over_the_wrap_around() {
        let mut received = ReceivedStream::new(u32::MAX - 9, 1000);
        received.add(u32::MAX - 9, 10).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (0, false));
        received.add(10, 5).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (0, true));
        received.add(0, 10).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (15, false));
    }

    #[test]
    fn the_receiver_knows_better() {
        let mut received = ReceivedStream::new(100, 1000);
        received.add(200, 100).unwrap();
        received.acknowledged(300, 1000);
        assert!(!received.has_hole());
        // An older acknowledgement withdraws nothing.
        received.acknowledged(200, 10);
        assert_eq!(received.edge(), 300);
        assert!(received.takes(1200, 100) && !received.takes(1200, 101));
    }

    #[test]
    fn pieces_are_bounded() {
        let mut received = ReceivedStream::new(0, 1 << 20);
        let mut add = |number: u32| received.add(number * 20 + 10, 10);
        for number in 0..PIECES as u32 {
            assert_eq!(add(number), Ok(()));
        }
        assert_eq!(add(1000), Err(TooManyPieces));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list_of_places(
            first: u32,
            parts in proptest::collection::vec((0u32..60, 1u32..12), 1..30),
        ) {
            let mut received = ReceivedStream::new(first, 1000);
            let mut places = [false; 80];
            for (start, length) in parts {
                received.add(first.wrapping_add(start), length).unwrap();
                places[start as usize..(start + length) as usize].fill(true);
                let edge = places.iter().position(|come| !come).unwrap();
                let last = places.iter().rposition(|come| *come).unwrap();
                prop_assert_eq!(received.edge(), first.wrapping_add(edge as u32));
                prop_assert_eq!(received.has_hole(), last > edge);
                prop_assert_eq!(received.end() as u32, first.wrapping_add(edge.max(last + 1) as u32));
            }
        }
    }
}
