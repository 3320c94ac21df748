//! One connection of a stack: two halves, and the transfer between them.

use std::sync::Arc;

use posthaste_tcp::wire::{ReceivedPacket, SegmentRoute};
use posthaste_tcp::{ConnectionEnd, Profile, Segment, TcpState};
use posthaste_units::Instant;

use super::StackSide;
use super::counters::StackCounters;
use super::half::{SpliceHalf, reset};

/// Difference between the header lengths of IPv6 and IPv4 in bytes. Profiles state the MSS for IPv4.
const LONGER: u16 = 20;

/// Profiles of both sides, for IPv4 and for IPv6.
#[derive(Clone, Debug)]
pub(super) struct SideProfiles {
    link: [Arc<Profile>; 2],
    host: [Arc<Profile>; 2],
}

impl SideProfiles {
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

    fn choose(&self, side: StackSide, route: &SegmentRoute) -> &Arc<Profile> {
        let both = match side {
            StackSide::Link => &self.link,
            StackSide::Host => &self.host,
        };
        &both[usize::from(route.to().is_ipv6())]
    }
}

/// A connection with its two halves.
#[derive(Debug)]
pub(super) struct Splice {
    /// Indexed by side.
    halves: [SpliceHalf; 2],
    /// The side that opened the connection.
    opener: StackSide,
    syn_state: SynState,
}

/// State of the SYN.
#[derive(Debug)]
enum SynState {
    /// Waiting until the other side accepts. `refusal` is the reset to send if it does not.
    Waiting { syn: Segment, refusal: Vec<u8> },
    /// Admitted.
    Admitted,
    /// Refused, or unanswered. Holds the reset if it is still to be sent.
    Refused(Option<Vec<u8>>),
}

impl Splice {
    /// Opens a connection for a SYN from `opener`. The other side is connected first.
    pub(super) fn open(
        profiles: &SideProfiles,
        opener: StackSide,
        syn: &ReceivedPacket<'_>,
        isns: [u32; 2],
        now: Instant,
    ) -> Self {
        let onward = opener.other();
        let profile = |side| profiles.choose(side, &syn.route);
        let accepts = SpliceHalf::listen(profile(opener), syn.route.reverse(), isns[0]);
        let connects = SpliceHalf::connect(profile(onward), syn.route, isns[1], now);
        let halves = match opener {
            StackSide::Link => [accepts, connects],
            StackSide::Host => [connects, accepts],
        };
        Self {
            halves,
            opener,
            syn_state: SynState::Waiting {
                syn: Segment {
                    len: 0,
                    fin: false,
                    ..syn.segment
                },
                refusal: reset(syn),
            },
        }
    }

    fn half(&mut self, side: StackSide) -> &mut SpliceHalf {
        &mut self.halves[side as usize]
    }

    fn state(&self, side: StackSide) -> TcpState {
        self.halves[side as usize].endpoint.state()
    }

    /// Processes a segment from one side.
    pub(super) fn push(&mut self, now: Instant, side: StackSide, received: &ReceivedPacket<'_>) {
        if side != self.opener || matches!(self.syn_state, SynState::Admitted) {
            self.half(side)
                .push(now, &received.segment, received.payload);
        } else if received.segment.rst {
            self.syn_state = SynState::Refused(None);
        }
        // A repeated SYN while the first one waits needs no action.
    }

    /// Does all due work, and passes packets to `send`.
    pub(super) fn run(&mut self, now: Instant, mut send: impl FnMut(StackSide, Vec<u8>)) {
        loop {
            for side in StackSide::BOTH {
                while let Some(packet) = self.half(side).pop(now) {
                    send(side, packet);
                }
            }
            if !self.answer(now) && !self.move_bytes(now) && !self.pass_resets() {
                break;
            }
        }
        if let SynState::Refused(refusal) = &mut self.syn_state
            && let Some(packet) = refusal.take()
        {
            send(self.opener, packet);
        }
    }

    /// Admits the SYN once the other side has accepted, or refuses it once that side has closed.
    fn answer(&mut self, now: Instant) -> bool {
        let SynState::Waiting { syn, refusal } = &mut self.syn_state else {
            return false;
        };
        let (syn, refusal) = (*syn, refusal);
        let onward = &self.halves[self.opener.other() as usize].endpoint;
        match onward.state() {
            TcpState::SynSent | TcpState::SynReceived => false,
            TcpState::Closed(end) => {
                let refused = matches!(end, ConnectionEnd::Reset).then(|| std::mem::take(refusal));
                self.syn_state = SynState::Refused(refused);
                true
            }
            _ => {
                self.syn_state = SynState::Admitted;
                self.half(self.opener).push(now, &syn, &[]);
                true
            }
        }
    }

    fn move_bytes(&mut self, now: Instant) -> bool {
        if !matches!(self.syn_state, SynState::Admitted) {
            return false;
        }
        let [link, host] = &mut self.halves;
        let there = link.move_to(host, now);
        host.move_to(link, now) || there
    }

    /// Aborts the other half if one half ended abnormally.
    fn pass_resets(&mut self) -> bool {
        let mut passed = false;
        for side in StackSide::BOTH {
            // A half that is reset in its handshake listens again (RFC 9293, section 3.10.7.4).
            let broken = match self.state(side) {
                TcpState::Closed(end) => end != ConnectionEnd::Finished,
                TcpState::Listen => matches!(self.syn_state, SynState::Admitted),
                _ => false,
            };
            let abandoned = matches!(self.syn_state, SynState::Refused(_)) && side == self.opener;
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
        if matches!(self.syn_state, SynState::Refused(_)) {
            return true;
        }
        self.is_waiting_only()
            && StackSide::BOTH
                .iter()
                .all(|side| self.state(*side).is_closed())
    }

    /// Counters of the half in the link.
    pub(super) fn counters(&self) -> StackCounters {
        StackCounters::from_endpoint(&self.halves[StackSide::Link as usize].endpoint)
    }
}
