//! Segments from hell into one TCP endpoint: numbers near what it expects and numbers from nowhere,
//! overlaps, wrong options, closed windows, floods of SYNs, and a program that does what it likes.

use std::sync::Arc;

use posthaste_tcp::{Endpoint, Options, Profile, Segment, Timestamps, profile, unwrap};
use posthaste_units::{Instant, Span};

use crate::within;

/// Bytes of input for one event: kind, twice three numbers, window, length, options, time.
const EVENT: usize = 12;
/// Smallest segment that any stack cuts its data into, whatever the peer says.
const SMALLEST: u64 = 48;
/// What is sent beside data and its repetitions within one instant.
const BESIDE: u64 = 16;
/// Timers that run out one after the other until an end without a peer has nothing left to do.
const TIMERS: usize = 400;
/// Bytes that may be allocated per byte of input, and at any rate: the scoreboard of a full send
/// buffer in the smallest segments, as it grew.
const PER_BYTE: usize = 200;
const FIXED: usize = 4 << 20;

/// Any bytes as two that choose an endpoint, and events.
pub fn endpoint(input: &[u8]) {
    let [stack, role, events @ ..] = input else {
        return;
    };
    let names = profile::names();
    let name = names[usize::from(*stack) % names.len()];
    let stack = Arc::new(profile::named(name).expect("a name from the list"));
    within("an endpoint", input.len(), PER_BYTE, FIXED, || {
        let mut victim = Victim::new(&stack, *role);
        for event in events.chunks_exact(EVENT) {
            victim.suffer(event);
        }
        victim.outlive();
    });
}

/// The endpoint, and what an attacker who sees its segments knows.
struct Victim {
    endpoint: Endpoint,
    now: Instant,
    /// What it expects of us, and what it sends next.
    expected: u32,
    next: u32,
    stamp: u32,
    written: u64,
    pushed: u64,
}

impl Victim {
    fn new(stack: &Arc<Profile>, role: u8) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        // Close to the wrap-around, from both sides.
        let isn = u32::MAX - u32::from(role >> 1) * 64;
        let endpoint = match role & 1 {
            0 => Endpoint::connect(stack, isn, now),
            _ => Endpoint::listen(stack, isn),
        };
        let mut victim = Self {
            endpoint,
            now,
            expected: u32::MAX - 2000,
            next: isn,
            stamp: 0,
            written: 0,
            pushed: 0,
        };
        victim.drain();
        victim
    }

    fn suffer(&mut self, event: &[u8]) {
        let pause = u64::from(event[11]);
        self.now += Span::from_millis(pause * pause);
        self.drain();
        match event[0] % 4 {
            0 | 3 => self.push(&self.near(event)),
            1 => self.program(event),
            _ => self.push(&raw(event)),
        }
        self.drain();
        // Windows rounded up to their scale promise a little more than there is (Linux).
        let profile = self.endpoint.profile();
        let scale = profile.offer.window_scale.unwrap_or(0);
        let room = profile.receive_buffer + (1 << scale);
        assert!(
            self.endpoint.readable() <= room,
            "more than there is room for"
        );
        assert!(
            self.endpoint.received() <= self.pushed,
            "more than was sent"
        );
        assert!(
            self.endpoint.acknowledged() <= self.written,
            "more than was written"
        );
    }

    fn push(&mut self, segment: &Segment) {
        let taken = self.endpoint.push(self.now, segment);
        if let Some(taken) = taken {
            assert!(taken.end - taken.start <= u64::from(segment.len));
        }
        self.pushed += u64::from(segment.len);
    }

    /// A segment that has to do with what went before.
    fn near(&self, event: &[u8]) -> Segment {
        let step = if event[0] & 4 == 0 { 1448 } else { 1 };
        let off = |number: u32, by: u8| number.wrapping_add_signed(i32::from(by as i8) * step);
        let flags = event[4];
        let mut segment = flagged(flags);
        segment.seq = off(self.expected, event[1]);
        segment.ack = (flags & 8 != 0).then(|| off(self.next, event[3]));
        segment.window = u16::from_be_bytes([event[5], event[6]]);
        segment.len = u32::from(u16::from_be_bytes([event[7], event[8]]) % 3000);
        segment.options = self.options(event[9], event[10], event[2]);
        segment
    }

    fn options(&self, which: u8, value: u8, other: u8) -> Options {
        let mut options = Options {
            mss: (which & 1 != 0).then(|| u16::from(value) * 8),
            window_scale: (which & 2 != 0).then_some(value % 20),
            sack_permitted: which & 4 != 0,
            timestamps: (which & 8 != 0).then(|| Timestamps {
                value: (self.now.as_nanos() / 1_000_000) as u32 - u32::from(value & 15),
                echo: self.stamp.wrapping_sub(u32::from(value >> 4)),
            }),
            ..Options::default()
        };
        if which & 16 != 0 {
            let end = self.next.wrapping_sub(u32::from(value) * 1448);
            options.sack.push(end.wrapping_sub(1448), end);
        }
        if which & 32 != 0 {
            for block in 0..4_u32 {
                let start = self.next.wrapping_sub(u32::from(other) * (block + 1));
                options
                    .sack
                    .push(start, start.wrapping_add(u32::from(value)));
            }
        }
        options
    }

    fn program(&mut self, event: &[u8]) {
        let bytes = u64::from(u16::from_be_bytes([event[5], event[6]]));
        match event[1] % 6 {
            0 | 1 => {
                let taken = self.endpoint.write(self.now, bytes);
                assert!(taken <= bytes);
                self.written += taken;
            }
            2 | 3 => {
                let readable = self.endpoint.readable();
                assert_eq!(self.endpoint.read(bytes), bytes.min(readable));
            }
            4 if event[2] < 64 => self.endpoint.abort(),
            4 => self.endpoint.set_no_delay(event[2] & 1 != 0),
            _ if event[2] & 1 != 0 => self.endpoint.leave(self.now),
            _ => self.endpoint.close(),
        }
    }

    /// All that it sends now; bounded by what it has to send.
    fn drain(&mut self) {
        let most = 2 * self.endpoint.profile().send_buffer / SMALLEST + BESIDE;
        let mut count = 0;
        while let Some(segment) = self.endpoint.pop(self.now) {
            count += 1;
            assert!(count <= most, "{count} segments within one instant");
            let start = unwrap(
                self.endpoint.isn(),
                segment.seq,
                self.endpoint.acknowledged(),
            );
            if let (Some(start), false) = (start, segment.rst) {
                let end = start + u64::from(segment.places());
                assert!(end <= self.written + 2, "never written: {segment:?}");
                self.next = segment.seq.wrapping_add(segment.places());
            }
            self.expected = segment.ack.unwrap_or(self.expected);
            self.stamp = segment
                .options
                .timestamps
                .map_or(self.stamp, |stamps| stamps.value);
        }
        let wake = self.endpoint.wake();
        assert!(wake.is_none_or(|at| at > self.now), "woken for ever");
    }

    /// Nobody sends any more: its timers come to an end.
    fn outlive(&mut self) {
        for _ in 0..TIMERS {
            let Some(at) = self.endpoint.wake() else {
                return;
            };
            self.now = at;
            self.drain();
        }
        panic!("timers without end in {:?}", self.endpoint.state());
    }
}

/// Flags as bits: FIN, SYN, RST, (ACK), PSH.
fn flagged(flags: u8) -> Segment {
    Segment {
        fin: flags & 1 != 0,
        syn: flags & 2 != 0,
        rst: flags & 4 != 0,
        psh: flags & 16 != 0,
        ..Segment::default()
    }
}

/// A segment from nowhere.
fn raw(event: &[u8]) -> Segment {
    let number = |at: [usize; 4]| u32::from_be_bytes(at.map(|index| event[index]));
    let mut segment = flagged(event[4]);
    segment.seq = number([1, 2, 3, 7]);
    segment.ack = (event[4] & 8 != 0).then(|| number([5, 6, 8, 9]));
    segment.window = u16::from_be_bytes([event[6], event[5]]);
    segment.len = u32::from(event[10]) * 300;
    segment.options.timestamps = (event[4] & 32 != 0).then(|| Timestamps {
        value: number([8, 7, 6, 5]),
        echo: number([3, 2, 1, 10]),
    });
    segment
}
