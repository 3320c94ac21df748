//! Connection setup: SYN, SYN-ACK, simultaneous open, and negotiation of options (RFC 9293, sections 3.5 and 3.10.7.2
//! to 3.10.7.4).

use posthaste_units::{Instant, Span};

use super::Connection;
use crate::profile::{Handshake, Retries};
use crate::{EndpointCounters, Options, Parity, Segment, TcpState, wrap};

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

impl Opening {
    const fn retries(&self, handshake: &Handshake) -> Retries {
        if self.passive {
            handshake.syn_ack
        } else {
            handshake.syn
        }
    }

    /// Handles expiry of the SYN or SYN-ACK timer. Returns false if no retransmission is left.
    pub(super) const fn expire(
        &mut self,
        handshake: &Handshake,
        counters: &mut EndpointCounters,
    ) -> bool {
        if self.tries >= self.retries(handshake).count {
            return false;
        }
        self.tries += 1;
        self.send = true;
        self.due = Instant::FAR_FUTURE;
        counters.timeouts += 1;
        counters.retransmissions += 1;
        counters.after_timeout += 1;
        true
    }
}

impl Retries {
    /// Returns the timeout after `tries` retransmissions.
    pub fn timeout(&self, tries: u32) -> Span {
        self.initial * (1 << tries.saturating_sub(self.linear).min(16))
    }
}

impl Connection {
    /// Builds the SYN, or the SYN-ACK if the peer's SYN has arrived.
    pub(super) fn syn(&mut self, now: Instant) -> Segment {
        self.opening.send = false;
        if self.opening.sent == 0 {
            self.opening.began = now;
        }
        self.opening.sent += 1;
        let wait = self
            .opening
            .retries(&self.profile.handshake)
            .timeout(self.opening.tries);
        self.opening.due = self.profile.clock.expiry(now, wait);
        let offer = self.profile.offer;
        let answers = self.negotiated.peer_isn.is_some();
        let window = self.receiver.advertise(true);
        let timestamps = if answers {
            self.negotiated.timestamps
        } else {
            offer.timestamps
        };
        let scaled = !answers || self.negotiated.scaled;
        let sack = if answers {
            self.receiver.sack
        } else {
            offer.sack
        };
        let parity =
            self.profile.recovery.tail_parity > 0 && (!answers || self.negotiated.agreed.parity);
        if answers {
            self.receiver.acknowledges(now, false);
        }
        Segment {
            seq: self.negotiated.isn,
            ack: self
                .negotiated
                .peer_isn
                .map(|isn| wrap(isn, self.receiver.next)),
            syn: true,
            window,
            options: Options {
                mss: Some(offer.mss),
                window_scale: offer.window_scale.filter(|_| scaled),
                sack_permitted: sack,
                timestamps: timestamps.then(|| self.negotiated.timestamps_option(now)),
                parity: parity.then(Parity::default),
                ..Options::default()
            },
            ..Segment::default()
        }
    }

    /// Negotiates the options from the peer's SYN.
    fn learn(&mut self, now: Instant, syn: &Segment) {
        let offer = self.profile.offer;
        let scale = self.negotiated.learn(now, syn, &self.profile);
        let mss = u32::from(offer.mss) - self.negotiated.timestamps_len();
        self.receiver.open(mss, scale, self.negotiated.agreed.sack);
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
        let expected = wrap(self.negotiated.isn, 1);
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
        let rtt = match self.negotiated.echo_of(now, segment) {
            Some((_, rtt)) if again > 0 => Some(rtt),
            _ if again == 0 => Some(now.saturating_since(self.opening.began)),
            _ => None,
        };
        let agreed = self.negotiated.agreed;
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
