//! One connection of a stack: two halves, and the transfer between them.

use std::sync::Arc;

use posthaste_tcp::wire::{Received, Route};
use posthaste_tcp::{End, Profile, Segment, State};
use posthaste_units::Instant;

use super::Side;
use super::counters::Counters;
use super::half::{Half, reset};

/// Difference between the header lengths of IPv6 and IPv4 in bytes. Profiles state the MSS for IPv4.
const LONGER: u16 = 20;

/// Profiles of both sides, for IPv4 and for IPv6.
#[derive(Clone, Debug)]
pub(super) struct Stacks {
    link: [Arc<Profile>; 2],
    host: [Arc<Profile>; 2],
}

impl Stacks {
    pub(super) fn new(link: Arc<Profile>, host: Arc<Profile>) -> Self {
        let both = |v4: Arc<Profile>| {
            let mut v6 = Profile::clone(&v4);
            v6.offer.mss = v6.offer.mss.saturating_sub(LONGER);
            [v4, Arc::new(v6)]
        };
        Self {
            link: both(link),
            host: both(host),
        }
    }

    fn of(&self, side: Side, route: &Route) -> &Arc<Profile> {
        let both = match side {
            Side::Link => &self.link,
            Side::Host => &self.host,
        };
        &both[usize::from(route.to().is_ipv6())]
    }
}

/// A connection with its two halves.
#[derive(Debug)]
pub(super) struct Splice {
    /// Indexed by side.
    halves: [Half; 2],
    /// The side that opened the connection.
    opener: Side,
    door: Door,
}

/// State of the SYN.
#[derive(Debug)]
enum Door {
    /// Waiting until the other side accepts. `refusal` is the reset to send if it does not.
    Shut { syn: Segment, refusal: Vec<u8> },
    /// Admitted.
    Open,
    /// Refused, or unanswered. Holds the reset if it is still to be sent.
    Refused(Option<Vec<u8>>),
}

impl Splice {
    /// Opens a connection for a SYN from `opener`. The other side is connected first.
    pub(super) fn open(
        stacks: &Stacks,
        opener: Side,
        syn: &Received<'_>,
        isns: [u32; 2],
        now: Instant,
    ) -> Self {
        let onward = opener.other();
        let profile = |side| stacks.of(side, &syn.route);
        let accepts = Half::listen(profile(opener), syn.route.reverse(), isns[0]);
        let connects = Half::connect(profile(onward), syn.route, isns[1], now);
        let halves = match opener {
            Side::Link => [accepts, connects],
            Side::Host => [connects, accepts],
        };
        Self {
            halves,
            opener,
            door: Door::Shut {
                syn: Segment {
                    len: 0,
                    fin: false,
                    ..syn.segment
                },
                refusal: reset(syn),
            },
        }
    }

    fn half(&mut self, side: Side) -> &mut Half {
        &mut self.halves[side as usize]
    }

    fn state(&self, side: Side) -> State {
        self.halves[side as usize].endpoint.state()
    }

    /// Processes a segment from one side.
    pub(super) fn push(&mut self, now: Instant, side: Side, received: &Received<'_>) {
        if side != self.opener || matches!(self.door, Door::Open) {
            self.half(side)
                .push(now, &received.segment, received.payload);
        } else if received.segment.rst {
            self.door = Door::Refused(None);
        }
        // A repeated SYN while the first one waits needs no action.
    }

    /// Does all due work, and passes packets to `send`.
    pub(super) fn run(&mut self, now: Instant, mut send: impl FnMut(Side, Vec<u8>)) {
        loop {
            for side in Side::BOTH {
                while let Some(packet) = self.half(side).pop(now) {
                    send(side, packet);
                }
            }
            if !self.answer(now) && !self.move_bytes(now) && !self.pass_resets() {
                break;
            }
        }
        if let Door::Refused(refusal) = &mut self.door
            && let Some(packet) = refusal.take()
        {
            send(self.opener, packet);
        }
    }

    /// Admits the SYN once the other side has accepted, or refuses it once that side has closed.
    fn answer(&mut self, now: Instant) -> bool {
        let Door::Shut { syn, refusal } = &mut self.door else {
            return false;
        };
        let (syn, refusal) = (*syn, refusal);
        let onward = &self.halves[self.opener.other() as usize].endpoint;
        match onward.state() {
            State::SynSent | State::SynReceived => false,
            State::Closed(end) => {
                let refused = matches!(end, End::Reset).then(|| std::mem::take(refusal));
                self.door = Door::Refused(refused);
                true
            }
            _ => {
                self.door = Door::Open;
                self.half(self.opener).push(now, &syn, &[]);
                true
            }
        }
    }

    fn move_bytes(&mut self, now: Instant) -> bool {
        if !matches!(self.door, Door::Open) {
            return false;
        }
        let [link, host] = &mut self.halves;
        let there = link.move_to(host, now);
        host.move_to(link, now) || there
    }

    /// Aborts the other half if one half ended abnormally.
    fn pass_resets(&mut self) -> bool {
        let mut passed = false;
        for side in Side::BOTH {
            // A half that is reset in its handshake listens again (RFC 9293, section 3.10.7.4).
            let broken = match self.state(side) {
                State::Closed(end) => end != End::Finished,
                State::Listen => matches!(self.door, Door::Open),
                _ => false,
            };
            let abandoned = matches!(self.door, Door::Refused(_)) && side == self.opener;
            let other = self.half(side.other());
            if (broken || abandoned) && !other.endpoint.state().is_closed() {
                other.endpoint.abort();
                passed = true;
            }
        }
        passed
    }

    /// Next due time of both halves.
    pub(super) fn wake(&self) -> Option<Instant> {
        let wakes = self.halves.iter().filter_map(|half| half.endpoint.wake());
        wakes.min()
    }

    /// True if both halves only answer late packets. Frees the buffers.
    pub(super) fn is_waiting_only(&mut self) -> bool {
        let [link, host] = &mut self.halves;
        let link = link.is_waiting_only();
        host.is_waiting_only() && link
    }

    /// True if nothing will happen any more.
    pub(super) fn is_over(&mut self) -> bool {
        if matches!(self.door, Door::Refused(_)) {
            return true;
        }
        self.is_waiting_only() && Side::BOTH.iter().all(|side| self.state(*side).is_closed())
    }

    /// Counters of the half in the link.
    pub(super) fn counters(&self) -> Counters {
        Counters::of(&self.halves[Side::Link as usize].endpoint)
    }
}
