//! Linux's growing receive buffer: memory, the part of it that is advertised, and growth with the speed of the reader.
//!
//! Linux limits memory, not bytes of data: each segment occupies its data, headers and descriptor. The window is the
//! memory times the share of data in the largest segment so far (`scaling_ratio`). The memory grows once the program
//! reads more in a round trip than before (dynamic right-sizing, `tcp_rcv_space_adjust`).
//!
//! Not modelled: memory pressure, merged segments, `SO_RCVBUF`.

use posthaste_units::{Instant, Span};

use super::{ReceiveSpace, WindowArrival};
use crate::Offset;

/// Bytes of memory in units of the share: `TCP_RMEM_TO_WIN_SCALE`.
const WHOLE: u64 = 256;
/// Share before any segment: `TCP_DEFAULT_SCALING_RATIO`.
const SHARE_AT_FIRST: u64 = WHOLE / 2;
/// Size of a full segment before Linux has seen one: `TCP_MSS_DEFAULT`.
const FULL_AT_FIRST: u32 = 536;
/// Segments of the first window that the reader is measured by: `TCP_INIT_CWND`.
const FIRST_SEGMENTS: u64 = 10;
/// Bytes in the same allocation as the data: headers, headroom, and `struct skb_shared_info`.
const BESIDE_DATA: u64 = 418;
/// Bytes of `struct sk_buff`, in whole cache lines.
const DESCRIPTOR: u64 = 256;

/// Memory of a segment with `len` bytes of data as a packet socket delivers it (`skb->truesize`): one allocation of
/// `kmalloc`, and the descriptor. Observed on 6.18: 2,304 bytes for 1,448.
const fn memory_of(len: u32) -> u64 {
    (len as u64 + BESIDE_DATA).next_power_of_two() + DESCRIPTOR
}

/// A receive buffer that grows.
#[derive(Clone, Debug)]
pub(super) struct GrowingBuffer {
    /// `sk_rcvbuf`.
    memory: u64,
    /// Largest window of any memory, in bytes.
    most: u64,
    /// Window of the whole memory (`tcp_full_space`).
    pub(super) window: u64,
    /// Largest window now (`window_clamp`): that of the memory, at first less one segment.
    pub(super) limit: u64,
    /// Data in [`WHOLE`] bytes of memory.
    share: u64,
    /// Largest segment so far (`rcv_mss`).
    full: u32,
    /// Time of the last arrival.
    last: Instant,
    round_trip: RoundTrip,
    measurement: ReadMeasurement,
}

/// Round-trip time as a receiver of data sees it (`rcv_rtt_est`).
#[derive(Clone, Debug, Default)]
struct RoundTrip {
    estimate: Option<Span>,
    /// The last echoed timestamp. Each counts once.
    echo: u32,
    /// Edge of an earlier window, and its time. Data beyond it answer that window.
    edge: Offset,
    since: Instant,
}

/// Bytes that the program reads in a round trip (`rcvq_space`).
#[derive(Clone, Debug, Default)]
struct ReadMeasurement {
    since: Instant,
    start: Offset,
    /// Largest number of bytes in one round trip so far.
    bytes: u64,
}

impl GrowingBuffer {
    /// Creates a buffer of `memory` bytes whose window grows up to `most` bytes.
    pub(super) fn new(memory: u64, most: u64) -> Self {
        let mut growing = Self {
            memory,
            most,
            window: 0,
            limit: 0,
            share: SHARE_AT_FIRST,
            full: FULL_AT_FIRST,
            last: Instant::ORIGIN,
            round_trip: RoundTrip::default(),
            measurement: ReadMeasurement::default(),
        };
        growing.measure();
        growing
    }

    /// Computes the window of the whole memory, and allows all of it.
    fn measure(&mut self) {
        self.window = (self.memory * self.share / WHOLE).min(self.most);
        self.limit = self.window;
    }

    /// Begins a connection with segments of at most `mss` bytes (`tcp_init_buffer_space`).
    pub(super) fn open(&mut self, mss: u64) {
        let window = self.window;
        self.limit = window.saturating_sub(mss).max(2 * mss).min(window);
        self.measurement.start = 1;
        self.measurement.bytes = (FIRST_SEGMENTS * mss).min(self.limit).max(1);
    }

    /// Learns the share of data from a segment larger than all before (`tcp_measure_rcv_mss`). Returns true for one.
    fn learn(&mut self, len: u32, mss: u32) -> bool {
        if len <= self.full || self.full >= mss {
            return false;
        }
        self.full = len.min(mss);
        self.share = (u64::from(len) * WHOLE / memory_of(len)).max(1);
        self.measure();
        self.measurement.bytes = self.measurement.bytes.min(self.limit).max(1);
        true
    }

    /// Returns true if this echo differs from the last one.
    pub(super) fn is_new_echo(&self, echo: u32) -> bool {
        echo != self.round_trip.echo
    }

    /// Handles an arriving segment of a connection with segments of at most `mss` bytes. Returns true if the share of
    /// data has been learnt anew.
    pub(super) fn arrived(
        &mut self,
        arrival: &WindowArrival,
        mss: u32,
        room: &ReceiveSpace,
    ) -> bool {
        if let Some((echo, age)) = arrival.echo {
            let is_full = arrival.len >= self.full;
            self.round_trip.echoed(echo, age, is_full);
        }
        self.last = arrival.now;
        let learnt = self.learn(arrival.len, mss);
        if arrival.beyond {
            // Since 6.16, for data beyond a gap.
            self.reserve(2 * self.measurement.bytes + room.early);
        } else {
            self.round_trip.advanced(arrival.now, room);
        }
        learnt
    }

    /// Handles a read up to `read` (`tcp_rcv_space_adjust`, which counts to the time of the last arrival).
    pub(super) fn read(&mut self, read: Offset, room: &ReceiveSpace) {
        let Some(round_trip) = self.round_trip.estimate else {
            return;
        };
        let measurement = &mut self.measurement;
        if self.last.saturating_since(measurement.since) < round_trip {
            return;
        }
        let copied = (read - measurement.start).saturating_sub(room.unread);
        measurement.since = self.last;
        measurement.start = read;
        let before = measurement.bytes;
        if copied > before {
            measurement.bytes = copied;
            // A sender in slow start doubles its window by the time that it learns of this one.
            let twice = 2 * copied;
            let grown = twice.saturating_mul(2 * (copied - before)) / before;
            self.reserve(twice.saturating_add(grown).saturating_add(room.early));
        }
    }

    /// Grows the memory so that it has a window of `bytes`, up to the largest.
    fn reserve(&mut self, bytes: u64) {
        let memory = bytes.min(self.most) * WHOLE / self.share;
        if memory > self.memory {
            self.memory = memory;
            self.measure();
        }
    }
}

impl RoundTrip {
    /// Measures by the age of an echoed timestamp (`tcp_rcv_rtt_measure_ts`). A segment that is not full uses the echo up
    /// and measures nothing.
    fn echoed(&mut self, echo: u32, age: Span, is_full: bool) {
        self.echo = echo;
        if age.is_zero() || !is_full {
            return;
        }
        self.estimate = match self.estimate {
            Some(estimate) if age >= estimate => {
                Some(estimate.saturating_sub(estimate / 8) + age / 8)
            }
            _ => Some(age),
        };
    }

    /// Measures by the data that answer an earlier window (`tcp_rcv_rtt_measure`).
    fn advanced(&mut self, now: Instant, room: &ReceiveSpace) {
        if room.next < self.edge {
            return;
        }
        if self.edge > 0 {
            let age = now.saturating_since(self.since);
            self.estimate = Some(self.estimate.map_or(age, |estimate| estimate.min(age)));
        }
        self.edge = room.edge;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::window::{ReceiveWindow, WindowRule};

    const MSS: u32 = 1448;

    fn window() -> ReceiveWindow {
        let rule = WindowRule::LinuxGrowing { memory: 131_072 };
        let mut window = ReceiveWindow::new(rule, 20_971_520, 1460);
        window.scale(10);
        window.resize(MSS);
        window
    }

    /// A receiver of full segments in order, whose program reads them at once, or beyond a gap.
    struct Receiver {
        window: ReceiveWindow,
        room: ReceiveSpace,
        /// Time of the next arrivals, and the round trip that their echoes show.
        now: Instant,
        echo: Option<(u32, Span)>,
    }

    impl Receiver {
        fn new() -> Self {
            let mut receiver = Self {
                window: window(),
                room: ReceiveSpace {
                    unread: 0,
                    early: 0,
                    edge: 1,
                    next: 1,
                },
                now: Instant::ORIGIN,
                echo: None,
            };
            receiver.offer();
            receiver
        }

        /// Advertises a window.
        fn offer(&mut self) -> u64 {
            let offer = self.window.offer(&self.room);
            self.room.edge = self.room.next + offer;
            offer
        }

        /// Handles a segment. Returns the window of its acknowledgement.
        fn segment(&mut self, beyond: bool) -> u64 {
            let (now, echo) = (self.now, self.echo);
            let len = u64::from(MSS);
            if beyond {
                self.room.early += len;
            } else {
                self.room.next += len;
                self.room.unread = len;
            }
            self.window.arrived(
                &WindowArrival {
                    now,
                    len: MSS,
                    beyond,
                    echo,
                },
                &self.room,
            );
            self.room.unread = 0;
            self.window.read(&self.room, self.room.next);
            self.offer()
        }
    }

    /// Windows of 6.18 as a client, with a loss of the fifth segment.
    #[test]
    fn duplicates_have_equal_windows_once_the_buffer_is_full() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.offer(), 64_512);
        let in_order = [(); 4].map(|()| receiver.segment(false));
        assert_eq!(in_order, [67_584, 70_656, 73_728, 76_800]);
        let duplicates = [(); 4].map(|()| receiver.segment(true));
        assert_eq!(duplicates, [79_872; 4]);
    }

    /// The same with a loss of the third segment: the window stays once data beyond the gap fill the memory.
    #[test]
    fn duplicates_have_growing_windows_before() {
        let mut receiver = Receiver::new();
        let in_order = [(); 2].map(|()| receiver.segment(false));
        assert_eq!(in_order, [67_584, 70_656]);
        let duplicates = [(); 6].map(|()| receiver.segment(true));
        assert_eq!(duplicates, [73_728, 76_800, 77_824, 77_824, 77_824, 77_824]);
    }

    /// The buffer keeps its size until the program reads more than ten segments in a round trip.
    #[test]
    fn a_fast_reader_gets_a_larger_buffer() {
        let mut receiver = Receiver::new();
        let round_trip = Span::from_millis(100);
        let mut rounds = [5, 10, 10, 20, 40, 80]
            .into_iter()
            .zip(1..)
            .map(|(segments, round)| {
                receiver.now = Instant::ORIGIN + round_trip * u64::from(round);
                receiver.echo = Some((round, round_trip));
                (0..segments)
                    .map(|_| receiver.segment(false))
                    .last()
                    .expect("one")
            });
        assert_eq!(rounds.next(), Some(79_872));
        let steady = [(); 3].map(|()| rounds.next());
        assert_eq!(steady, [Some(80_896); 3]);
        let larger = rounds.next().expect("a round");
        assert!(larger > 81_920, "{larger}");
        assert!(rounds.next().expect("a round") > larger);
    }
}
