//! Segments from hell at a TCP between a link and a host: near what it expects of either side, with
//! data, resets, and the same ports again. What comes from one side leaves by the other, in order.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_emulator::stack::{SentPacket, StackSide, TcpStack};
use posthaste_link::Direction;
use posthaste_tcp::wire::{self, SegmentRoute};
use posthaste_tcp::{Options, Segment, Timestamps, profile};
use posthaste_units::{Instant, Seed, Span};

use crate::within;

/// Bytes of input for one segment: whose, numbers, flags, window, length, options, time.
const EVENT: usize = 8;
/// Number of every SYN that comes: a byte's place in the stream can be told from its number.
const FIRST: u32 = u32::MAX - 3000;
const PORTS: u16 = 4;
/// Packets within one instant, and timers until nobody has anything to do.
const MOST: usize = 10_000;
/// Packets are allocated one by one, and what is not acknowledged leaves again and again.
const PER_BYTE: usize = 40_000;
const FIXED: usize = 8 << 20;

/// Any bytes as one that chooses the profile and its end, and segments.
pub fn stack(input: &[u8]) {
    let [which, events @ ..] = input else { return };
    let names = profile::names();
    let name = names[usize::from(which >> 1) % names.len()];
    let profile = profile::named(name).expect("a name from the list");
    let out = Direction::BOTH[usize::from(which & 1)];
    within("a stack", input.len(), PER_BYTE, FIXED, || {
        let mut world = World {
            stack: TcpStack::new(Arc::new(profile), out, Seed(1)),
            out,
            now: Instant::from_nanos(1_000_000_000),
            seen: HashMap::new(),
        };
        for event in events.chunks_exact(EVENT) {
            world.suffer(event);
        }
        world.outlive();
    });
}

/// What one side knows of a connection from the packets that it got.
#[derive(Clone, Copy)]
struct Seen {
    expected: u32,
    next: u32,
    stamp: u32,
    first: u32,
}

struct World {
    stack: TcpStack,
    out: Direction,
    now: Instant,
    seen: HashMap<(StackSide, u16), Seen>,
}

impl World {
    fn suffer(&mut self, event: &[u8]) {
        let pause = u64::from(event[7]);
        self.now += Span::from_millis(pause * pause);
        self.drain();
        let side = StackSide::BOTH[usize::from(event[0] & 1)];
        let port = u16::from(event[0] >> 1) % PORTS;
        let packet = self.packet(side, port, event);
        self.stack.push(self.now, side, &packet);
        self.drain();
        assert!(self.stack.connections() <= usize::from(PORTS));
    }

    fn packet(&self, side: StackSide, port: u16, event: &[u8]) -> Vec<u8> {
        let seen = self.seen.get(&(side, port)).copied().unwrap_or(Seen {
            expected: FIRST,
            next: 0,
            stamp: 0,
            first: 0,
        });
        let step = if event[0] & 8 == 0 { 1448 } else { 1 };
        let off = |number: u32, by: u8| number.wrapping_add_signed(i32::from(by as i8) * step);
        let flags = event[3];
        let syn = flags & 2 != 0;
        let segment = Segment {
            seq: if syn {
                FIRST
            } else {
                off(seen.expected, event[1])
            },
            ack: (flags & 8 != 0).then(|| off(seen.next, event[2])),
            fin: flags & 1 != 0,
            syn,
            rst: flags & 4 != 0,
            psh: flags & 16 != 0,
            window: u16::from(event[4]) << 8,
            len: u32::from(event[5]) * 8,
            options: self.options(event[6], syn, &seen),
        };
        let offset = segment
            .seq
            .wrapping_sub(FIRST)
            .wrapping_sub(u32::from(!syn));
        let payload: Vec<u8> = (0..segment.len)
            .map(|at| offset.wrapping_add(at) as u8)
            .collect();
        let mut packet = Vec::new();
        wire::write(
            &mut packet,
            &self.route(side, port),
            &segment,
            [&payload, &[]],
        )
        .expect("it fits");
        packet
    }

    fn options(&self, which: u8, syn: bool, seen: &Seen) -> Options {
        let mut options = Options::default();
        if syn {
            options.mss = (which & 1 != 0).then_some(1460);
            options.window_scale = (which & 2 != 0).then_some(which >> 4);
            options.sack_permitted = which & 4 != 0;
        } else if which & 4 != 0 {
            let end = seen.next.wrapping_sub(u32::from(which >> 4) * 1448);
            options.sack.push(end.wrapping_sub(1448), end);
        }
        options.timestamps = (which & 8 != 0).then(|| Timestamps {
            value: (self.now.as_nanos() / 1_000_000) as u32,
            echo: seen.stamp,
        });
        options
    }

    /// From that side through the stack.
    fn route(&self, side: StackSide, port: u16) -> SegmentRoute {
        let client = ([10, 0, 0, 1], 40_000 + port).into();
        let server = ([10, 0, 0, 2], 80).into();
        let up = SegmentRoute::new(client, server).expect("one version");
        if (self.out == Direction::Up) == (side == StackSide::Host) {
            up
        } else {
            up.reverse()
        }
    }

    fn drain(&mut self) {
        let mut count = 0;
        while let Some(sent) = self.stack.pop(self.now) {
            count += 1;
            assert!(count <= MOST, "packets without end");
            self.look(&sent);
        }
        let wake = self.stack.wake();
        assert!(wake.is_none_or(|at| at > self.now), "woken for ever");
    }

    /// Every byte is the one that stands at its place in the other side's stream.
    fn look(&mut self, sent: &SentPacket) {
        let received = wire::read(&sent.packet).expect("a stack sends segments");
        let segment = received.segment;
        let port = sent.flow.client.port() - 40_000;
        assert_eq!(received.route, self.route(sent.side, port).reverse());
        let seen = self.seen.entry((sent.side, port)).or_insert(Seen {
            expected: FIRST,
            next: 0,
            stamp: 0,
            first: 0,
        });
        if segment.syn {
            seen.first = segment.seq;
        }
        let offset = segment.seq.wrapping_sub(seen.first).wrapping_sub(1);
        for (byte, at) in received.payload.iter().zip(0..) {
            assert_eq!(*byte, offset.wrapping_add(at) as u8, "a wrong byte");
        }
        seen.expected = segment.ack.unwrap_or(FIRST);
        seen.next = segment.seq.wrapping_add(segment.places());
        let stamps = segment.options.timestamps;
        seen.stamp = stamps.map_or(seen.stamp, |stamps| stamps.value);
    }

    /// Nobody sends any more: timers come to an end.
    fn outlive(&mut self) {
        for _ in 0..MOST {
            let Some(at) = self.stack.wake() else { return };
            self.now = at;
            self.drain();
        }
        panic!("timers without end");
    }
}
