//! What has come of a stream: how far without a gap, and the pieces beyond it.
//!
//! Sequence numbers are unfolded to 64 bits around the edge, so that nothing below has to think
//! of their wrap-around (RFC 9293, section 3.4).

/// Pieces that are remembered: more holes than that in one window are no tail loss.
const PIECES: usize = 64;

/// More pieces have come than are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyPieces;

/// A receiver's side of one stream.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// Everything before it has come.
    edge: u64,
    /// What has come beyond: first place and the place after the last, in order, never touching.
    pieces: Vec<(u64, u64)>,
    /// The place after the last that the receiver has ever said it would take.
    limit: u64,
}

impl Received {
    /// Nothing has come; the first place is `sequence`, and so many are offered.
    pub(super) fn new(sequence: u32, window: u64) -> Self {
        // High enough that half the space of numbers fits below.
        let edge = (1 << 32) + u64::from(sequence);
        Self {
            edge,
            pieces: Vec::new(),
            limit: edge + window,
        }
    }

    /// The first place that has not come, as it is on the wire.
    pub(super) fn edge(&self) -> u32 {
        self.edge as u32
    }

    /// Whether something has come beyond the edge.
    pub(super) fn has_hole(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The place after the last that has come.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last().map_or(self.edge, |piece| piece.1)
    }

    /// Whether the receiver has offered to take data up to here; what lies beyond it throws away.
    pub(super) fn takes(&self, sequence: u32, payload: u32) -> bool {
        self.place(sequence) + u64::from(payload) <= self.limit
    }

    /// So much has come from `sequence` on.
    pub(super) fn add(&mut self, sequence: u32, length: u32) -> Result<(), TooManyPieces> {
        let start = self.place(sequence);
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

    /// The receiver itself says that it has everything before `number`, and takes so much more.
    pub(super) fn acknowledged(&mut self, number: u32, window: u64) {
        let place = self.place(number);
        self.edge = self.edge.max(place);
        self.limit = self.limit.max(place + window);
        self.tidy();
    }

    /// The place of a number: the one of its 2^32 that is nearest to the edge.
    fn place(&self, number: u32) -> u64 {
        let distance = number.wrapping_sub(self.edge as u32) as i32;
        self.edge.saturating_add_signed(i64::from(distance))
    }

    /// Joins the pieces that touch, and moves the edge over those that touch it.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holes_open_and_close_over_the_wrap_around() {
        let mut received = Received::new(u32::MAX - 9, 1000);
        received.add(u32::MAX - 9, 10).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (0, false));
        received.add(10, 5).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (0, true));
        received.add(0, 10).unwrap();
        assert_eq!((received.edge(), received.has_hole()), (15, false));
    }

    #[test]
    fn the_receiver_knows_better() {
        let mut received = Received::new(100, 1000);
        received.add(200, 100).unwrap();
        received.acknowledged(300, 1000);
        assert!(!received.has_hole());
        // An older acknowledgement takes nothing back.
        received.acknowledged(200, 10);
        assert_eq!(received.edge(), 300);
        assert!(received.takes(1200, 100) && !received.takes(1200, 101));
    }

    #[test]
    fn pieces_are_bounded() {
        let mut received = Received::new(0, 1 << 20);
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
            let mut received = Received::new(first, 1000);
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
