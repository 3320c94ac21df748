//! Connection setup: SYN, SYN-ACK, simultaneous open, and negotiation of options (RFC 9293, sections 3.5 and 3.10.7.2
//! to 3.10.7.4).

use posthaste_units::{Instant, Span};

use super::Endpoint;
use crate::profile::Retries;
use crate::send::Agreed;
use crate::{Options, Parity, Segment, TcpState, wrap};

/// Largest payload if a SYN has no MSS option (RFC 9293, section 3.7.1).
const UNSAID_MSS: u16 = 536;
/// Lower bound of the peer's MSS: Linux's `TCP_MIN_MSS`.
const SMALLEST_MSS: u16 = 88;
/// Bytes of the timestamps option, padded.
const TIMESTAMPS: u32 = 12;

/// Bytes of the parity option. Segments are shorter by this length, so that their parity fits in a packet.
const PARITY: u32 = 8;

/// State of a handshake.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// A SYN or SYN-ACK must be sent now.
    pub(super) send: bool,
    /// Time of the first transmission.
    pub(super) began: Instant,
    /// Time of the next retransmission; `tries` counts the retransmissions by timeout.
    pub(super) due: Instant,
    pub(super) tries: u32,
    /// Transmissions for any reason.
    sent: u32,
    /// The peer opened the connection.
    pub(super) passive: bool,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            send: false,
            began: Instant::ORIGIN,
            due: Instant::FAR_FUTURE,
            tries: 0,
            sent: 0,
            passive: false,
        }
    }
}

impl Retries {
    /// Returns the timeout after `tries` retransmissions.
    pub fn timeout(&self, tries: u32) -> Span {
        self.initial * (1 << tries.saturating_sub(self.linear).min(16))
    }
}

impl Endpoint {
    fn syn_retries(&self) -> Retries {
        if self.opening.passive {
            self.profile.handshake.syn_ack
        } else {
            self.profile.handshake.syn
        }
    }

    /// Handles expiry of the SYN or SYN-ACK timer. Returns false if no retransmission is left.
    pub(super) fn expire_opening(&mut self) -> bool {
        if self.opening.tries >= self.syn_retries().count {
            return false;
        }
        self.opening.tries += 1;
        self.opening.send = true;
        self.opening.due = Instant::FAR_FUTURE;
        self.counters.timeouts += 1;
        self.counters.retransmissions += 1;
        self.counters.after_timeout += 1;
        true
    }

    /// Builds the SYN, or the SYN-ACK if the peer's SYN has arrived.
    pub(super) fn syn(&mut self, now: Instant) -> Segment {
        self.opening.send = false;
        if self.opening.sent == 0 {
            self.opening.began = now;
        }
        self.opening.sent += 1;
        let wait = self.syn_retries().timeout(self.opening.tries);
        self.opening.due = self.profile.clock.expiry(now, wait);
        let offer = self.profile.offer;
        let answers = self.peer_isn.is_some();
        let window = self.receiver.advertise(true);
        let timestamps = if answers {
            self.timestamps
        } else {
            offer.timestamps
        };
        let scaled = !answers || self.opening_scaled;
        let sack = if answers {
            self.receiver.sack
        } else {
            offer.sack
        };
        let parity = self.profile.recovery.tail_parity > 0 && (!answers || self.agreed.parity);
        if answers {
            self.receiver.acknowledges(now, false);
        }
        Segment {
            seq: self.isn,
            ack: self.peer_isn.map(|isn| wrap(isn, self.receiver.next)),
            syn: true,
            window,
            options: Options {
                mss: Some(offer.mss),
                window_scale: offer.window_scale.filter(|_| scaled),
                sack_permitted: sack,
                timestamps: timestamps.then(|| self.timestamps_option(now)),
                parity: parity.then(Parity::default),
                ..Options::default()
            },
            ..Segment::default()
        }
    }

    /// Negotiates the options from the peer's SYN.
    fn learn(&mut self, now: Instant, syn: &Segment) {
        let offer = self.profile.offer;
        self.peer_isn = Some(syn.seq);
        self.timestamps = offer.timestamps && syn.options.timestamps.is_some();
        self.recent = syn
            .options
            .timestamps
            .filter(|_| self.timestamps)
            .map(|stamps| (stamps.value, now));
        let scales = offer.window_scale.zip(syn.options.window_scale);
        self.opening_scaled = scales.is_some();
        let (ours, theirs) = scales.unwrap_or((0, 0));
        self.peer_scale = theirs.min(14);
        let sack = offer.sack && syn.options.sack_permitted;
        let stamps = if self.timestamps { TIMESTAMPS } else { 0 };
        self.receiver
            .open(u32::from(offer.mss) - stamps, ours, sack);
        let mss = syn.options.mss.unwrap_or(UNSAID_MSS).max(SMALLEST_MSS);
        let parity = self.profile.recovery.tail_parity > 0 && syn.options.parity.is_some();
        self.agreed = Agreed {
            mss: u32::from(mss.min(offer.mss)) - stamps - if parity { PARITY } else { 0 },
            sack,
            parity,
        };
    }

    pub(super) fn arrive_in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.rst || !segment.syn || segment.fin {
            self.counters.refused.no_connection += 1;
            if segment.ack.is_some() && !segment.rst {
                self.reset = Some(answer_with_reset(segment));
            }
            return;
        }
        if segment.ack.is_some() {
            self.counters.refused.no_connection += 1;
            self.reset = Some(answer_with_reset(segment));
            return;
        }
        self.learn(now, segment);
        self.opening.passive = true;
        self.opening.send = true;
        self.state = TcpState::SynReceived;
    }

    pub(super) fn arrive_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let expected = wrap(self.isn, 1);
        if segment.ack.is_some_and(|ack| ack != expected) {
            self.counters.refused.ack_of_unsent += 1;
            if !segment.rst {
                self.reset = Some(answer_with_reset(segment));
            }
            return;
        }
        if segment.rst {
            if segment.ack.is_some() {
                self.finish(crate::ConnectionEnd::Reset);
            } else {
                self.counters.refused.rst += 1;
            }
            return;
        }
        if !segment.syn || segment.fin {
            self.counters.refused.syn += 1;
            return;
        }
        self.learn(now, segment);
        if segment.ack.is_some() {
            self.establish(now, segment, u64::from(segment.window));
            self.receiver.connected(now);
        } else {
            // Simultaneous open.
            self.opening.send = true;
            self.state = TcpState::SynReceived;
        }
    }

    /// Opens both directions once the SYN is acknowledged.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment, window: u64) {
        let again = self.opening.sent.saturating_sub(1);
        let rtt = match self.echo_of(now, segment) {
            Some((_, rtt)) if again > 0 => Some(rtt),
            _ if again == 0 => Some(now.saturating_since(self.opening.began)),
            _ => None,
        };
        let agreed = self.agreed;
        self.sender.open(&self.profile, now, agreed, window, rtt);
        let most = self.profile.handshake.single_after;
        if self.opening.tries > 0 && most.is_some_and(|most| again > most) {
            self.sender.begin_with_one();
        }
        self.opening = Opening {
            passive: self.opening.passive,
            ..Opening::default()
        };
        self.state = if self.sender.sequence().closing {
            TcpState::FinWait1
        } else {
            TcpState::Established
        };
    }
}

/// The reset that answers a segment without a connection (RFC 9293, section 3.5.2).
pub(super) fn answer_with_reset(segment: &Segment) -> Segment {
    let ack = match segment.ack {
        Some(_) => None,
        None => Some(segment.seq.wrapping_add(segment.places())),
    };
    Segment {
        seq: segment.ack.unwrap_or(0),
        ack,
        rst: true,
        ..Segment::default()
    }
}
