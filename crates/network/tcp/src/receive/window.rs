//! The receiver's advertised window, and the condition for a separate window update.
//!
//! Handles bytes and edges only; [`ReceiveWindow::field`] computes the header's scaled field. An advertised edge never moves
//! back (RFC 9293, section 3.8.6).

mod growing;

use posthaste_units::{Instant, Span};

use crate::Offset;
use growing::GrowingBuffer;

/// The largest window a header can hold unscaled.
const FIELD: u64 = u16::MAX as u64;

/// A stack's rule for the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// RFC 9293, section 3.8.6.2.2: the edge stays until it can move by a full segment or half the buffer. The next
    /// acknowledgement advertises it. A window update leaves only if the peer has less than two segments left, since
    /// two are acknowledged at once (section 3.8.6.3).
    Rfc,
    /// BSD (FreeBSD 6, tcp_output.c): advertises all free space, but zero if it is less than both a segment and a
    /// quarter of the buffer. An update leaves once the edge can move by two segments or half the buffer. Checked after
    /// each read, so a steady reader sends an update for every third segment.
    Bsd,
    /// The same window (FreeBSD 14, tcp_output.c), but no update while a delayed acknowledgement will carry it. Two
    /// segments are enough only if the buffer holds at most eight, or the window is at most an eighth of the buffer.
    /// Otherwise an update leaves once the edge can move by a quarter of the buffer.
    BsdQuarter,
    /// Linux (`__tcp_select_window` in tcp_output.c, `tcp_cleanup_rbuf` in tcp.c): whole segments without scaling,
    /// rounded up to the scale with it. Zero if the space is less than a segment or a sixteenth of the buffer. An
    /// update leaves once the window has doubled.
    Linux {
        /// Initial window. It grows by two segments with every arrival in order of at least 128 bytes, up to the buffer
        /// size (`rcv_ssthresh`, `tcp_grow_window`).
        first: u64,
    },
    /// The same window in a buffer that grows with the speed of the reader (Linux since 6.1, tcp_input.c). The window
    /// begins with half of the memory. It grows by two segments with every arrival of at least 128 bytes while the
    /// free space is larger, so it stays the same in a short exchange after the first few arrivals.
    LinuxGrowing {
        /// Memory of the buffer at first: the second value of `tcp_rmem`. The largest window is the profile's
        /// `receive_buffer`.
        memory: u64,
    },
}

/// Segment with data at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowArrival {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes of data.
    pub len: u32,
    /// The data lie beyond a gap.
    pub beyond: bool,
    /// Timestamp of this end that the segment echoes, and its age.
    pub echo: Option<(u32, Span)>,
}

/// Content of a receiver's buffer, and its advertised window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveSpace {
    /// Bytes in order and not read yet.
    pub unread: u64,
    /// Bytes out of order. Linux keeps them in the same buffer, BSD outside it.
    pub early: u64,
    /// Edge advertised last: one past the last byte that the peer may send.
    pub edge: Offset,
    /// The next byte expected.
    pub next: Offset,
}

impl ReceiveSpace {
    const fn offered(&self) -> u64 {
        debug_assert!(self.edge >= self.next, "data lies beyond the window's edge");
        self.edge.saturating_sub(self.next)
    }
}

/// A receiver's window.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    rule: WindowRule,
    buffer: u64,
    mss: u64,
    shift: u8,
    /// Linux: current upper limit of the window.
    ceiling: u64,
    growing: Option<GrowingBuffer>,
}

impl ReceiveWindow {
    /// Creates the window of a buffer of `buffer` bytes for segments of at most `mss`, without scaling.
    pub fn new(rule: WindowRule, buffer: u64, mss: u32) -> Self {
        let mss = u64::from(mss).max(1);
        let growing = match rule {
            WindowRule::LinuxGrowing { memory } => Some(GrowingBuffer::new(memory, buffer)),
            _ => None,
        };
        let buffer = growing.as_ref().map_or(buffer, |growing| growing.window);
        let ceiling = match rule {
            WindowRule::Linux { first } => first.min(buffer),
            // tcp_select_initial_window().
            WindowRule::LinuxGrowing { .. } if buffer > mss => buffer - buffer % mss,
            _ => buffer,
        };
        Self {
            rule,
            buffer,
            mss,
            shift: 0,
            ceiling,
            growing,
        }
    }

    /// Sets the agreed window scale of this end, at most 14 (RFC 7323, section 2.3).
    pub fn scale(&mut self, shift: u8) {
        self.shift = shift.min(14);
    }

    /// Sets the maximum size of the segments to come.
    pub fn resize(&mut self, mss: u32) {
        self.mss = u64::from(mss).max(1);
        if let Some(growing) = &mut self.growing {
            growing.open(self.mss);
            self.ceiling = self.ceiling.min(growing.limit);
        }
    }

    /// Returns true if [`WindowArrival::echo`] matters for a segment that echoes the timestamp `echo`.
    pub fn measures(&self, echo: u32) -> bool {
        let growing = self.growing.as_ref();
        growing.is_some_and(|growing| growing.is_new_echo(echo))
    }

    /// Handles an arriving segment, which is in the buffer already. Returns true if the limit of the window has grown.
    /// Linux acknowledges that at once.
    pub fn arrived(&mut self, arrival: &WindowArrival, room: &ReceiveSpace) -> bool {
        let len = u64::from(arrival.len);
        let limit = match &mut self.growing {
            // Before 3.12 only data in order made the window grow.
            None if arrival.beyond => return false,
            None => self.buffer,
            Some(growing) => {
                // tcp_data_queue_ofo() grows the window before it counts the segment.
                let [beyond, next] = if arrival.beyond { [len, 0] } else { [0, len] };
                if growing.arrived(arrival, self.mss as u32, room) {
                    // tcp_set_window_clamp(), until 6.18.
                    let advertised = (room.offered() + next).min(growing.limit);
                    self.ceiling = self.ceiling.max(advertised);
                }
                self.buffer = growing.window;
                let held = room.unread + room.early.saturating_sub(beyond);
                growing.limit.min(self.buffer.saturating_sub(held))
            }
        };
        if len < 128 || self.ceiling >= limit {
            return false;
        }
        self.ceiling = (self.ceiling + 2 * self.mss).min(limit);
        true
    }

    /// Handles a read by the program, after which `room` is left.
    pub fn read(&mut self, room: &ReceiveSpace, read: Offset) {
        if let Some(growing) = &mut self.growing {
            growing.read(read, room);
            self.buffer = growing.window;
        }
    }

    /// Window to advertise now, in bytes from [`ReceiveSpace::next`]. Never less than advertised before.
    #[inline]
    pub fn offer(&self, room: &ReceiveSpace) -> u64 {
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
            WindowRule::Linux { .. } | WindowRule::LinuxGrowing { .. } => {
                self.linux(space.saturating_sub(room.early), offered)
            }
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

    /// Returns true if the window justifies a separate update. Called after a read. `delayed` is true while an
    /// acknowledgement waits for its timer.
    pub fn update_due(&self, room: &ReceiveSpace, delayed: bool) -> bool {
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
            WindowRule::Linux { .. } | WindowRule::LinuxGrowing { .. } => {
                2 * offered <= self.buffer && window > 0 && window >= 2 * offered
            }
        }
    }

    /// Header field of a window. Linux's windows are multiples of the scale; the others are rounded down.
    pub fn field(&self, window: u64) -> u16 {
        (window >> self.shift).min(FIELD) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1448;
    const RULES: [WindowRule; 5] = [
        WindowRule::Rfc,
        WindowRule::Bsd,
        WindowRule::BsdQuarter,
        WindowRule::Linux { first: 5792 },
        WindowRule::LinuxGrowing { memory: 131_072 },
    ];

    fn room(unread: u64, edge: u64, next: u64) -> ReceiveSpace {
        ReceiveSpace {
            unread,
            early: 0,
            edge,
            next,
        }
    }

    fn arrival(len: u32) -> WindowArrival {
        WindowArrival {
            now: Instant::ORIGIN,
            len,
            beyond: false,
            echo: None,
        }
    }

    /// The papers' FreeBSD receiver: with each third segment the edge can move by two.
    #[test]
    fn a_steady_reader_on_bsd_updates_after_every_third_segment() {
        let (buffer, mss) = (65_536, u64::from(MSS));
        let mut window = ReceiveWindow::new(WindowRule::Bsd, buffer, MSS);
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
        let window = ReceiveWindow::new(WindowRule::BsdQuarter, 40_000, MSS);
        let offering = |offered: u64, unread| room(unread, 1 + offered, 1);
        assert!(!window.update_due(&offering(20_000, 10_001), false));
        assert!(window.update_due(&offering(20_000, 10_000), false));
        assert!(!window.update_due(&offering(20_000, 10_000), true));
        // The peer has little left: two segments are enough.
        assert!(!window.update_due(&offering(1_000, 36_105), false));
        assert!(window.update_due(&offering(1_000, 36_104), false));
        let small = ReceiveWindow::new(WindowRule::BsdQuarter, 8 * u64::from(MSS), MSS);
        let (two, whole) = (2 * u64::from(MSS), 8 * u64::from(MSS));
        assert!(!small.update_due(&room(0, 1 + whole - two + 1, 1), false));
        assert!(small.update_due(&room(0, 1 + whole - two, 1), false));
    }

    #[test]
    fn linux_updates_when_the_window_doubles() {
        let window = ReceiveWindow::new(WindowRule::Linux { first: 65_535 }, 65_535, MSS);
        assert!(!window.update_due(&room(0, 40_001, 1), false));
        assert!(!window.update_due(&room(45_535, 12_001, 1), false));
        // 24,000 bytes are free, 16 whole segments.
        assert!(!window.update_due(&room(41_535, 12_001, 1), false));
        assert!(window.update_due(&room(41_535, 11_585, 1), false));
        assert!(window.update_due(&room(0, 1, 1), false));
    }

    #[test]
    fn linux_begins_small_and_grows_by_two_segments() {
        let mut window = ReceiveWindow::new(WindowRule::Linux { first: 5792 }, 65_535, MSS);
        assert_eq!(window.offer(&room(0, 1, 1)), 5792);
        let mut arrived = |len| window.arrived(&arrival(len), &room(0, 1, 1));
        assert!(arrived(MSS));
        assert!(!arrived(100));
        let grown = (0..100).filter(|_| arrived(MSS)).count();
        assert_eq!(grown, (65_535 - 8688_usize).div_ceil(2896));
        window.scale(7);
        assert_eq!(window.offer(&room(0, 1, 1)) % 128, 0);
    }

    proptest! {
        /// The edge never moves back. The window fits the field and, without an earlier promise, the buffer (Linux
        /// rounds up to its scale).
        #[test]
        fn nothing_promised_is_taken_back(
            buffer in 1u64..1 << 22, shift in 0u8..15, unread in 0u64..1 << 22, early in 0u64..1 << 20,
            offered in 0u64..1 << 22, next in 1u64..1 << 40, mss in 1u32..9000,
        ) {
            for rule in RULES {
                let mut window = ReceiveWindow::new(rule, buffer, mss);
                window.scale(shift);
                window.resize(mss);
                let mut room = ReceiveSpace { unread, early, edge: next + offered, next };
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

        /// A reader that empties its buffer always lets the peer continue. No small or closed window persists: RFC
        /// 1122, section 4.2.3.3.
        #[test]
        fn an_empty_buffer_opens_a_closed_window(buffer in 64u64..1 << 20, mss in 1u32..9000, next in 1u64..1 << 40) {
            for rule in RULES {
                let mut window = ReceiveWindow::new(rule, buffer, mss);
                window.scale(5);
                let closed = ReceiveSpace { unread: 0, early: 0, edge: next, next };
                prop_assert!(window.update_due(&closed, false), "{rule:?}");
                prop_assert!(window.offer(&closed) >= u64::from(mss).min(buffer / 2).min(5792));
            }
        }
    }
}
