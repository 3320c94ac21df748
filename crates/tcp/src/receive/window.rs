//! The window a receiver offers, and when opening it is worth a segment of its own.
//!
//! Bytes and edges only; the header's field and its scale are made by [`Window::field`]. The edge
//! once offered is never pulled back (RFC 9293, section 3.8.6).

use crate::Offset;

/// The largest window a header can hold unscaled.
const FIELD: u64 = u16::MAX as u64;

/// A stack's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// RFC 9293, section 3.8.6.2.2: the edge stays until it can move by a full segment or half
    /// the buffer. The next acknowledgement says so; an update goes only where less than two
    /// segments are left to the peer, since two are acknowledged at once (section 3.8.6.3).
    Rfc,
    /// BSD (FreeBSD 6, tcp_output.c): all there is, but nothing rather than less than a
    /// segment and a quarter of the buffer. An update goes once the edge can move by two
    /// segments or half the buffer; asked after each read, which makes every third segment of a
    /// steady reader be acknowledged by one.
    Bsd,
    /// The same offer (FreeBSD 14, tcp_output.c), but no update while an acknowledgement is delayed,
    /// which will carry it. Two segments are enough only where the buffer holds eight at most, or the
    /// window is an eighth of it at most; else an update goes once the edge can move by a quarter of
    /// the buffer.
    BsdQuarter,
    /// Linux (`__tcp_select_window` in tcp_output.c, `tcp_cleanup_rbuf` in tcp.c): whole segments
    /// where nothing is scaled, rounded up to the scale where it is; nothing rather than less
    /// than a segment or a sixteenth of the buffer. An update goes once the window has doubled.
    Linux {
        /// Where the offer begins; it grows by two segments with every arrival of at least 128
        /// bytes until it is the buffer (`rcv_ssthresh`, `tcp_grow_window`).
        first: u64,
    },
}

/// What a receiver's buffer holds, and what it has promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes in order and not read yet.
    pub unread: u64,
    /// Bytes out of order. Linux keeps them in the same buffer, BSD beside it.
    pub early: u64,
    /// The edge offered last: one past the last byte that the peer may send.
    pub edge: Offset,
    /// The next byte expected.
    pub next: Offset,
}

impl Room {
    const fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }
}

/// A receiver's window.
#[derive(Clone, Debug)]
pub struct Window {
    rule: WindowRule,
    buffer: u64,
    mss: u64,
    shift: u8,
    /// Linux: the most that is offered so far.
    ceiling: u64,
}

impl Window {
    /// A buffer of so many bytes, for segments of at most `mss`; nothing is scaled yet.
    pub fn new(rule: WindowRule, buffer: u64, mss: u32) -> Self {
        let ceiling = match rule {
            WindowRule::Linux { first } => first.min(buffer),
            WindowRule::Rfc | WindowRule::Bsd | WindowRule::BsdQuarter => buffer,
        };
        Self {
            rule,
            buffer,
            mss: u64::from(mss).max(1),
            shift: 0,
            ceiling,
        }
    }

    /// Both ends have agreed on scales; ours is `shift`, at most 14 (RFC 7323, section 2.3).
    pub fn scale(&mut self, shift: u8) {
        self.shift = shift.min(14);
    }

    /// The segments to come are of at most `mss` bytes.
    pub fn resize(&mut self, mss: u32) {
        self.mss = u64::from(mss).max(1);
    }

    /// A segment of so many bytes has come in order. Returns whether the offer has grown, which
    /// in Linux is worth an acknowledgement at once.
    pub fn arrived(&mut self, bytes: u32) -> bool {
        if bytes < 128 || self.ceiling >= self.buffer {
            return false;
        }
        self.ceiling = (self.ceiling + 2 * self.mss).min(self.buffer);
        true
    }

    /// How many bytes from [`Room::next`] to offer now, never less than was offered.
    #[inline]
    pub fn offer(&self, room: &Room) -> u64 {
        let (offered, most) = (room.offered(), FIELD << self.shift);
        let space = self.buffer.saturating_sub(room.unread);
        let window = match self.rule {
            WindowRule::Rfc if space.min(most) < offered + self.mss.min(self.buffer / 2) => offered,
            WindowRule::Rfc => space,
            WindowRule::Bsd | WindowRule::BsdQuarter
                if space < self.mss.min(self.buffer.div_ceil(4)) =>
            {
                0
            }
            WindowRule::Bsd | WindowRule::BsdQuarter => space,
            WindowRule::Linux { .. } => self.linux(space.saturating_sub(room.early), offered),
        };
        window.min(most).max(offered)
    }

    fn linux(&self, space: u64, offered: u64) -> u64 {
        let segment = self.mss.min(self.buffer);
        if space < self.buffer / 2 && (space < self.buffer / 16 || space < segment) {
            return 0;
        }
        let space = space.min(self.ceiling.max(segment));
        if self.shift > 0 {
            return space.next_multiple_of(1 << self.shift);
        }
        if offered + segment <= space || offered > space {
            space / segment * segment
        } else {
            offered
        }
    }

    /// Whether the window that can be offered now is worth a segment; asked after a read. `delayed`
    /// says that an acknowledgement waits for its timer.
    pub fn update_due(&self, room: &Room, delayed: bool) -> bool {
        let (offered, window) = (room.offered(), self.offer(room));
        let opens = window - offered;
        match self.rule {
            WindowRule::Rfc => opens > 0 && offered < 2 * self.mss,
            WindowRule::Bsd => opens >= 2 * self.mss || (opens > 0 && 2 * opens >= self.buffer),
            WindowRule::BsdQuarter if delayed => false,
            WindowRule::BsdQuarter => {
                let matters = opens >= self.buffer / 4
                    || window <= self.buffer / 8
                    || self.buffer <= 8 * self.mss
                    || opens >= FIELD << self.shift;
                (opens >= 2 * self.mss && matters) || (opens > 0 && 2 * opens >= self.buffer)
            }
            WindowRule::Linux { .. } => {
                2 * offered <= self.buffer && window > 0 && window >= 2 * offered
            }
        }
    }

    /// The header's field for a window: Linux offers multiples of the scale, the others lose what
    /// does not fit it.
    pub fn field(&self, window: u64) -> u16 {
        (window >> self.shift).min(FIELD) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1448;
    const RULES: [WindowRule; 4] = [
        WindowRule::Rfc,
        WindowRule::Bsd,
        WindowRule::BsdQuarter,
        WindowRule::Linux { first: 5792 },
    ];

    fn room(unread: u64, edge: u64, next: u64) -> Room {
        Room {
            unread,
            early: 0,
            edge,
            next,
        }
    }

    /// The papers' FreeBSD receiver: with each third segment the edge can move by two.
    #[test]
    fn a_steady_reader_on_bsd_updates_after_every_third_segment() {
        let (buffer, mss) = (65_536, u64::from(MSS));
        let mut window = Window::new(WindowRule::Bsd, buffer, MSS);
        window.scale(1);
        let (mut edge, mut delayed, mut acks) = (1 + buffer, false, Vec::new());
        for segment in 1..=9 {
            let next = 1 + segment * mss;
            // Every second segment is acknowledged on arrival, before the reader wakes.
            if delayed {
                edge = next + window.offer(&room(mss, edge, next));
                acks.push(segment);
            }
            delayed = !delayed;
            if window.update_due(&room(0, edge, next), delayed) {
                edge = next + window.offer(&room(0, edge, next));
                delayed = false;
                acks.push(segment);
            }
        }
        assert_eq!(acks, [2, 3, 5, 6, 8, 9]);
    }

    #[test]
    fn later_bsd_wants_a_quarter_of_a_large_buffer() {
        let window = Window::new(WindowRule::BsdQuarter, 40_000, MSS);
        let offering = |offered: u64, unread| room(unread, 1 + offered, 1);
        assert!(!window.update_due(&offering(20_000, 10_001), false));
        assert!(window.update_due(&offering(20_000, 10_000), false));
        assert!(!window.update_due(&offering(20_000, 10_000), true));
        // Little is left to the peer: two segments are enough.
        assert!(!window.update_due(&offering(1_000, 36_105), false));
        assert!(window.update_due(&offering(1_000, 36_104), false));
        let small = Window::new(WindowRule::BsdQuarter, 8 * u64::from(MSS), MSS);
        let (two, whole) = (2 * u64::from(MSS), 8 * u64::from(MSS));
        assert!(!small.update_due(&room(0, 1 + whole - two + 1, 1), false));
        assert!(small.update_due(&room(0, 1 + whole - two, 1), false));
    }

    #[test]
    fn linux_updates_when_the_window_doubles() {
        let window = Window::new(WindowRule::Linux { first: 65_535 }, 65_535, MSS);
        assert!(!window.update_due(&room(0, 40_001, 1), false));
        assert!(!window.update_due(&room(45_535, 12_001, 1), false));
        // 24,000 bytes are free, 16 whole segments.
        assert!(!window.update_due(&room(41_535, 12_001, 1), false));
        assert!(window.update_due(&room(41_535, 11_585, 1), false));
        assert!(window.update_due(&room(0, 1, 1), false));
    }

    #[test]
    fn linux_begins_small_and_grows_by_two_segments() {
        let mut window = Window::new(WindowRule::Linux { first: 5792 }, 65_535, MSS);
        assert_eq!(window.offer(&room(0, 1, 1)), 5792);
        assert!(window.arrived(MSS));
        assert_eq!(window.offer(&room(0, 1, 1)), 8688);
        assert!(!window.arrived(100));
        let grown = (0..100).filter(|_| window.arrived(MSS)).count();
        assert_eq!(grown, (65_535 - 8688_usize).div_ceil(2896));
        window.scale(7);
        assert_eq!(window.offer(&room(0, 1, 1)) % 128, 0);
    }

    proptest! {
        /// The edge never moves back; what is offered fits the field and, where nothing was
        /// promised before, the buffer (Linux rounds up to its scale).
        #[test]
        fn nothing_promised_is_taken_back(
            buffer in 1u64..1 << 22, shift in 0u8..15, unread in 0u64..1 << 22, early in 0u64..1 << 20,
            offered in 0u64..1 << 22, next in 1u64..1 << 40, mss in 1u32..9000,
        ) {
            for rule in RULES {
                let mut window = Window::new(rule, buffer, mss);
                window.scale(shift);
                let mut room = Room { unread, early, edge: next + offered, next };
                let offer = window.offer(&room);
                prop_assert!(offer >= offered);
                window.update_due(&room, false);
                room.edge = next;
                let offer = window.offer(&room);
                prop_assert!(offer <= (buffer.saturating_sub(unread)).next_multiple_of(1 << shift));
                prop_assert!(offer <= FIELD << shift);
                prop_assert!(u64::from(window.field(offer)) << shift <= offer);
            }
        }

        /// A reader that empties its buffer always gets the peer going again (no silly or closed
        /// window for ever): RFC 1122, section 4.2.3.3.
        #[test]
        fn an_empty_buffer_opens_a_closed_window(buffer in 64u64..1 << 20, mss in 1u32..9000, next in 1u64..1 << 40) {
            for rule in RULES {
                let mut window = Window::new(rule, buffer, mss);
                window.scale(5);
                let closed = Room { unread: 0, early: 0, edge: next, next };
                prop_assert!(window.update_due(&closed, false), "{rule:?}");
                prop_assert!(window.offer(&closed) >= u64::from(mss).min(buffer / 2).min(5792));
            }
        }
    }
}
