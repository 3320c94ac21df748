//! When an acknowledgement is sent: at once, later, or not at all.
//!
//! What it says (SACK blocks, the window) is left to others; so are acknowledgements that
//! protect a connection (RFC 5961), which are always sent at once.

use posthaste_units::{Instant, Span};

use crate::Clock;

/// A stack's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// RFC 5681, section 4.2, and RFC 9293, section 3.8.6.3: at least every second full segment,
    /// and whatever fills or shows a gap, at once; the rest within `delay`.
    Rfc {
        /// How long one waits; less than 500 ms.
        delay: Span,
    },
    /// BSD (FreeBSD 6 and 14, `DELAY_ACK` in tcp_input.c): who arrives while another waits is
    /// acknowledged at once, whatever its length.
    Bsd {
        /// How long one waits: `net.inet.tcp.delacktime`.
        delay: Span,
    },
    /// Linux (`__tcp_ack_snd_check` in tcp_input.c, `tcp_send_delayed_ack` in tcp_output.c):
    /// every segment at once for a while, later by an estimate of the gaps between segments.
    Linux {
        /// Most segments acknowledged at once from the first segment on, after a pause of a
        /// timeout, and after a duplicate: `TCP_MAX_QUICKACKS`, 16. Half a window of segments
        /// where that is fewer.
        quick: u32,
        /// Shortest delay: `TCP_DELACK_MIN`, 40 ms.
        min: Span,
        /// Longest delay: `TCP_DELACK_MAX`, 200 ms.
        max: Span,
        /// Fewer acknowledgements of segments beyond a gap.
        compression: Option<Compression>,
        /// A full segment with PSH is acknowledged once everything has been read (since 6.7), as a
        /// small one always is.
        push_ends: bool,
    },
}

/// Linux since 4.18: acknowledgements of segments beyond a gap are held back for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Sent at once before that: `TCP_FASTRETRANS_THRESH`, 3.
    pub free: u32,
    /// Held back at most: `tcp_comp_sack_nr`, 44.
    pub held: u32,
    /// For at most: `tcp_comp_sack_delay_ns`, 1 ms; a twentieth of a round trip where that is less.
    pub delay: Span,
}

/// Where a segment falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the next one, and nothing waits beyond a gap.
    Next,
    /// It is the next one, while something waits beyond a gap.
    Fills,
    /// Beyond a gap.
    Beyond,
    /// All of it was there already.
    Old,
}

/// What the policy must know of a segment with data or a FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes of data.
    pub len: u32,
    /// Where it falls.
    pub place: Place,
    /// It ends the stream.
    pub fin: bool,
    /// It says PSH.
    pub push: bool,
    /// The window offered last, in bytes from the next one expected.
    pub window: u64,
    /// An acknowledgement sent now would offer no less than the last one did.
    pub window_holds: bool,
    /// The offer has just grown (`receive::window`).
    pub window_grew: bool,
    /// This end has sent its FIN: it waits for nothing but the peer's.
    pub closed: bool,
    /// SACK is in use.
    pub sack: bool,
    /// This end's smoothed round-trip time, once it has one.
    pub rtt: Option<Span>,
    /// This end's retransmission timeout.
    pub timeout: Span,
}

/// What to do about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckNow {
    /// Acknowledge at once.
    Now,
    /// Acknowledge by the deadline.
    Later,
    /// Nothing new to do.
    None,
}

/// When this end acknowledges.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    rule: AckRule,
    clock: Clock,
    mss: u32,
    /// Something has come that no acknowledgement has covered.
    owed: bool,
    unacknowledged: u64,
    timer: Option<Instant>,
    linux: Adaptive,
}

/// What Linux keeps (`icsk_ack`).
#[derive(Clone, Debug, Default)]
struct Adaptive {
    /// Acknowledgements at once that are left.
    quick: u32,
    /// This end answers: its data carry the acknowledgements.
    pingpong: bool,
    /// The delay: an estimate of the gaps between segments; zero before the first.
    delay: Span,
    last: Instant,
    /// The peer's full segment, as far as one can see, and the last that was shorter.
    full: u32,
    short: u32,
    /// Segments since the last acknowledgement that look like the end of something.
    ends: u32,
    timeout: Span,
    /// Acknowledgements of one and the same gap: sent, held back, and until when.
    repeated: u32,
    held: u32,
    release: Option<Instant>,
}

/// What Linux takes for a full segment before it has seen one: `TCP_MIN_RCVMSS`.
const FULL_AT_FIRST: u32 = 536;
/// The longest delay where nobody answers: half a second.
const LONGEST: Span = Span::from_millis(500);

impl AckPolicy {
    /// A connection's, for segments of at most `mss` bytes, with timers that run by `clock`.
    pub fn new(rule: AckRule, clock: Clock, mss: u32) -> Self {
        Self {
            rule,
            clock,
            mss,
            owed: false,
            unacknowledged: 0,
            timer: None,
            linux: Adaptive {
                full: mss.min(FULL_AT_FIRST),
                ..Adaptive::default()
            },
        }
    }

    /// The segments to come are of at most `mss` bytes.
    pub fn resize(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// A segment has come.
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) -> AckNow {
        if arrival.len == 0 && !arrival.fin {
            return AckNow::None;
        }
        self.owed = true;
        if matches!(arrival.place, Place::Next | Place::Fills) {
            self.unacknowledged += u64::from(arrival.len);
        }
        match self.rule {
            AckRule::Rfc { delay } => {
                let full = self.unacknowledged >= 2 * u64::from(self.mss);
                self.simple(now, arrival, full, delay)
            }
            AckRule::Bsd { delay } => {
                let second = self.timer.is_some() || arrival.window == 0;
                self.simple(now, arrival, second, delay)
            }
            AckRule::Linux { .. } => self.adaptive(now, arrival),
        }
    }

    fn simple(&mut self, now: Instant, arrival: &Arrival, enough: bool, delay: Span) -> AckNow {
        if enough || arrival.fin || arrival.place != Place::Next {
            return AckNow::Now;
        }
        let due = self.clock.expiry(now, delay);
        self.timer.get_or_insert(due);
        AckNow::Later
    }

    fn adaptive(&mut self, now: Instant, arrival: &Arrival) -> AckNow {
        let AckRule::Linux { quick, min, .. } = self.rule else {
            return AckNow::Now;
        };
        self.linux.timeout = arrival.timeout;
        match arrival.place {
            Place::Old => {
                self.linux.refill(quick, arrival.window);
                self.linux.pingpong = false;
                self.linux.delay = min;
                return AckNow::Now;
            }
            Place::Next | Place::Fills if arrival.len > 0 => self.learn(now, arrival),
            Place::Next | Place::Fills | Place::Beyond => {}
        }
        if arrival.fin && arrival.place != Place::Beyond {
            self.linux.pingpong = true;
        }
        let quickly = self.linux.quick > 0 && !self.linux.pingpong;
        let two = self.unacknowledged > u64::from(self.linux.full) && arrival.window_holds;
        match arrival.place {
            Place::Fills => AckNow::Now,
            Place::Next if arrival.fin && arrival.closed => AckNow::Now,
            _ if quickly || two => AckNow::Now,
            Place::Beyond => self.beyond(now, arrival),
            Place::Next | Place::Old => self.later(now, arrival.rtt),
        }
    }

    /// What a segment in order teaches (`tcp_event_data_recv`, `tcp_measure_rcv_mss`).
    fn learn(&mut self, now: Instant, arrival: &Arrival) {
        let AckRule::Linux {
            quick,
            min,
            push_ends,
            ..
        } = self.rule
        else {
            return;
        };
        let (linux, len) = (&mut self.linux, arrival.len);
        linux.repeated = 0;
        let short = std::mem::take(&mut linux.short);
        if len >= linux.full {
            linux.full = len.min(self.mss);
            linux.ends += u32::from(push_ends && arrival.push);
        } else if len >= FULL_AT_FIRST && len == short {
            linux.full = len;
        } else {
            linux.short = len;
            linux.ends += 1;
        }
        let gap = now.since(linux.last);
        if linux.delay.is_zero() {
            linux.refill(quick, arrival.window);
            linux.delay = min;
        } else if gap <= min / 2 {
            linux.delay = linux.delay / 2 + min / 2;
        } else if gap < linux.delay {
            linux.delay = (linux.delay / 2 + gap).min(arrival.timeout);
        } else if gap > arrival.timeout {
            linux.refill(quick, arrival.window);
        }
        linux.last = now;
        if arrival.window_grew {
            linux.quick |= 1;
        }
    }

    /// A segment beyond a gap: at once, or held back for a moment.
    fn beyond(&mut self, now: Instant, arrival: &Arrival) -> AckNow {
        let AckRule::Linux {
            compression: Some(rule),
            ..
        } = self.rule
        else {
            return AckNow::Now;
        };
        let linux = &mut self.linux;
        if !arrival.sack || linux.held >= rule.held {
            return AckNow::Now;
        }
        if linux.repeated < rule.free {
            linux.repeated += 1;
            return AckNow::Now;
        }
        linux.held += 1;
        let delay = arrival
            .rtt
            .map_or(rule.delay, |rtt| rule.delay.min(rtt / 20));
        linux.release.get_or_insert(now + delay);
        AckNow::Later
    }

    /// Sets the timer (`tcp_send_delayed_ack`).
    fn later(&mut self, now: Instant, rtt: Option<Span>) -> AckNow {
        let AckRule::Linux { min, max, .. } = self.rule else {
            return AckNow::Later;
        };
        let mut delay = self.linux.delay.max(min);
        if delay > min {
            let answers = self.linux.pingpong || self.linux.ends > 0;
            let most = if answers { max } else { LONGEST };
            delay = delay.min(rtt.map_or(most, |rtt| most.min(rtt.max(min))));
        }
        let delay = delay.min(max);
        if self.timer.is_some_and(|due| due <= now + delay / 4) {
            return AckNow::Now;
        }
        let due = self.clock.expiry(now, delay);
        self.timer = Some(self.timer.map_or(due, |earlier| earlier.min(due)));
        AckNow::Later
    }

    /// The application has read; `emptied` says whether nothing is left to read. Only Linux
    /// acknowledges for this alone (`tcp_cleanup_rbuf`); window updates are `receive::window`'s.
    pub fn read(&mut self, emptied: bool) -> AckNow {
        if !self.owed || !matches!(self.rule, AckRule::Linux { .. }) {
            return AckNow::None;
        }
        let ended = self.linux.ends > 1 || (self.linux.ends == 1 && !self.linux.pingpong);
        if self.unacknowledged > u64::from(self.linux.full) || (emptied && ended) {
            return AckNow::Now;
        }
        AckNow::None
    }

    /// When an acknowledgement must leave, if one waits.
    pub fn deadline(&self) -> Option<Instant> {
        match (self.timer, self.linux.release) {
            (Some(timer), Some(release)) => Some(timer.min(release)),
            (timer, release) => timer.or(release),
        }
    }

    /// The deadline has passed: an acknowledgement leaves, and [`sent`](Self::sent) follows. Linux
    /// then takes the gaps for longer than it thought (`tcp_delack_timer_handler`).
    pub fn expired(&mut self, now: Instant) {
        let AckRule::Linux { min, .. } = self.rule else {
            return;
        };
        if self.timer.is_none_or(|due| due > now) {
            return;
        }
        if self.linux.pingpong {
            self.linux.pingpong = false;
            self.linux.delay = min;
        } else {
            self.linux.delay = (self.linux.delay * 2).min(self.linux.timeout);
        }
    }

    /// A segment with an acknowledgement has left, for whatever reason.
    pub fn sent(&mut self) {
        if let AckRule::Linux { min, .. } = self.rule
            && self.owed
            && self.linux.quick > 0
        {
            self.linux.quick -= 1;
            if self.linux.quick == 0 {
                self.linux.delay = min;
            }
        }
        self.owed = false;
        self.unacknowledged = 0;
        self.timer = None;
        self.linux.ends = 0;
        self.linux.held = 0;
        self.linux.release = None;
    }

    /// A segment with data has left: soon after one has come, this end answers and waits for its
    /// answers to carry acknowledgements (`tcp_event_data_sent`).
    pub fn sent_data(&mut self, now: Instant) {
        if now.since(self.linux.last) < self.linux.delay {
            self.linux.pingpong = true;
        }
    }
}

impl Adaptive {
    /// `tcp_incr_quickack`: half a window of segments, two at least.
    fn refill(&mut self, quick: u32, window: u64) {
        let half = match window / (2 * u64::from(self.full.max(1))) {
            0 => 2,
            half => half,
        };
        self.quick = self.quick.max((half.min(u64::from(quick))) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1448;

    const fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(ms)
    }

    const BSD: AckRule = AckRule::Bsd { delay: ms(100) };
    const RFC: AckRule = AckRule::Rfc { delay: ms(200) };
    const LINUX: AckRule = AckRule::Linux {
        quick: 16,
        min: ms(40),
        max: ms(200),
        compression: Some(Compression {
            free: 3,
            held: 44,
            delay: ms(1),
        }),
        push_ends: true,
    };

    fn segment(len: u32, place: Place) -> Arrival {
        Arrival {
            len,
            place,
            fin: false,
            push: false,
            window: 65_535,
            window_holds: true,
            window_grew: false,
            closed: false,
            sack: true,
            rtt: Some(ms(30)),
            timeout: ms(230),
        }
    }

    fn policy(rule: AckRule) -> AckPolicy {
        AckPolicy::new(rule, Clock::Exact, MSS)
    }

    /// Which of `count` segments in order, one per millisecond, are acknowledged at once.
    fn at_once(rule: AckRule, count: u64, len: u32) -> Vec<u64> {
        let mut policy = policy(rule);
        (1..=count)
            .filter(|n| {
                let now = policy.arrived(at(*n), &segment(len, Place::Next)) == AckNow::Now;
                if now {
                    policy.sent();
                }
                now
            })
            .collect()
    }

    #[test]
    fn every_second_segment_at_once() {
        assert_eq!(at_once(BSD, 7, MSS), [2, 4, 6]);
        assert_eq!(at_once(RFC, 7, MSS), [2, 4, 6]);
        // BSD counts segments, the standard full ones.
        assert_eq!(at_once(BSD, 7, 100), [2, 4, 6]);
        assert_eq!(at_once(RFC, 31, 100), [29]);
    }

    #[test]
    fn a_single_segment_waits() {
        for (rule, wait) in [(BSD, 100), (RFC, 200)] {
            let mut policy = policy(rule);
            assert_eq!(
                policy.arrived(at(5), &segment(MSS, Place::Next)),
                AckNow::Later
            );
            assert_eq!(policy.deadline(), Some(at(5 + wait)));
            policy.sent();
            assert_eq!(policy.deadline(), None);
        }
    }

    /// RFC 5681, section 4.2: a gap shown or filled is acknowledged at once; BSD so acknowledges
    /// a FIN and what comes while its window is closed.
    #[test]
    fn gaps_and_ends_do_not_wait() {
        for rule in [BSD, RFC, LINUX] {
            for place in [Place::Beyond, Place::Fills, Place::Old] {
                let mut policy = policy(rule);
                assert_eq!(
                    policy.arrived(at(1), &segment(MSS, place)),
                    AckNow::Now,
                    "{rule:?}"
                );
            }
        }
        let fin = Arrival {
            fin: true,
            ..segment(10, Place::Next)
        };
        assert_eq!(policy(BSD).arrived(at(1), &fin), AckNow::Now);
        let closed = Arrival {
            window: 0,
            ..segment(10, Place::Next)
        };
        assert_eq!(policy(BSD).arrived(at(1), &closed), AckNow::Now);
        assert_eq!(
            policy(BSD).arrived(at(1), &segment(0, Place::Next)),
            AckNow::None
        );
    }

    /// Sixteen at once, then every second as soon as more than one full segment is owed.
    #[test]
    fn linux_begins_quickly() {
        let acks = at_once(LINUX, 24, MSS);
        let expected: Vec<u64> = (1..=16).chain([18, 20, 22, 24]).collect();
        assert_eq!(acks, expected);
        // With a window of four segments two are acknowledged quickly.
        let mut policy = policy(LINUX);
        let small = Arrival {
            window: 4 * u64::from(MSS),
            ..segment(MSS, Place::Next)
        };
        for _ in 0..2 {
            assert_eq!(policy.arrived(at(1), &small), AckNow::Now);
            policy.sent();
        }
        assert_eq!(policy.arrived(at(1), &small), AckNow::Later);
    }

    fn used_up() -> AckPolicy {
        let mut policy = policy(LINUX);
        for n in 0..16 {
            policy.arrived(at(n), &segment(MSS, Place::Next));
            policy.sent();
        }
        policy
    }

    #[test]
    fn linux_waits_as_long_as_gaps_are() {
        let mut policy = used_up();
        assert_eq!(
            policy.arrived(at(16), &segment(MSS, Place::Next)),
            AckNow::Later
        );
        assert_eq!(policy.deadline(), Some(at(56)));
        policy.expired(at(56));
        policy.sent();
        // The delay has doubled; a round trip of 30 ms bounds it by the minimum.
        policy.arrived(at(100), &segment(MSS, Place::Next));
        assert_eq!(policy.deadline(), Some(at(140)));
        policy.sent();
        let far = Arrival {
            rtt: Some(ms(500)),
            ..segment(MSS, Place::Next)
        };
        policy.arrived(at(200), &far);
        assert!(policy.deadline() > Some(at(260)), "{:?}", policy.deadline());
    }

    #[test]
    fn linux_that_answers_waits_for_its_answer() {
        let mut policy = policy(LINUX);
        policy.arrived(at(1), &segment(MSS, Place::Next));
        policy.sent();
        policy.sent_data(at(5));
        assert_eq!(
            policy.arrived(at(6), &segment(MSS, Place::Next)),
            AckNow::Later
        );
        assert_eq!(policy.deadline(), Some(at(46)));
        policy.expired(at(46));
        policy.sent();
        assert_eq!(
            policy.arrived(at(47), &segment(MSS, Place::Next)),
            AckNow::Now
        );
    }

    /// A short segment ends something: once the reader has it all, it is acknowledged, as a full
    /// one that says PSH.
    #[test]
    fn linux_acknowledges_an_end_when_it_is_read() {
        for (len, push) in [(700, false), (MSS, true)] {
            let mut policy = used_up();
            let end = Arrival {
                push,
                ..segment(len, Place::Next)
            };
            assert_eq!(policy.arrived(at(17), &end), AckNow::Later);
            assert_eq!(policy.read(false), AckNow::None);
            assert_eq!(policy.read(true), AckNow::Now);
        }
        let mut policy = used_up();
        policy.arrived(at(17), &segment(MSS, Place::Next));
        assert_eq!(policy.read(true), AckNow::None);
    }

    #[test]
    fn linux_holds_back_the_fourth_duplicate() {
        let mut policy = used_up();
        for n in 0..3 {
            assert_eq!(
                policy.arrived(at(20 + n), &segment(MSS, Place::Beyond)),
                AckNow::Now
            );
            policy.sent();
        }
        assert_eq!(
            policy.arrived(at(30), &segment(MSS, Place::Beyond)),
            AckNow::Later
        );
        assert_eq!(policy.deadline(), Some(at(31)));
        let near = Arrival {
            rtt: Some(ms(2)),
            ..segment(MSS, Place::Beyond)
        };
        policy.sent();
        policy.arrived(at(40), &near);
        assert_eq!(policy.deadline(), Some(at(40) + Span::from_micros(100)));
        // Without SACK nothing may be held back.
        let plain = Arrival {
            sack: false,
            ..segment(MSS, Place::Beyond)
        };
        assert_eq!(policy.arrived(at(41), &plain), AckNow::Now);
    }

    #[test]
    fn linux_is_quick_again_after_a_duplicate_and_after_a_pause() {
        let mut policy = used_up();
        policy.arrived(at(20), &segment(MSS, Place::Old));
        policy.sent();
        assert_eq!(
            policy.arrived(at(21), &segment(MSS, Place::Next)),
            AckNow::Now
        );
        let mut policy = used_up();
        assert_eq!(
            policy.arrived(at(15 + 231), &segment(MSS, Place::Next)),
            AckNow::Now
        );
    }

    proptest! {
        /// RFC 1122, section 4.2.3.2: no acknowledgement waits for 500 ms or behind a second
        /// full segment; nothing is owed without a deadline.
        #[test]
        fn nobody_waits_too_long(
            segments in proptest::collection::vec((0u64..400, 1u32..=MSS, any::<bool>()), 1..80),
        ) {
            for rule in [BSD, RFC, LINUX] {
                let (mut policy, mut now, mut owed) = (policy(rule), Instant::ORIGIN, Vec::new());
                for (gap, len, push) in &segments {
                    now += ms(*gap);
                    if let Some(due) = policy.deadline().filter(|due| *due <= now) {
                        policy.expired(due);
                        policy.sent();
                        owed.clear();
                    }
                    owed.push((now, *len));
                    let arrival = Arrival { push: *push, ..segment(*len, Place::Next) };
                    match policy.arrived(now, &arrival) {
                        AckNow::Now => { policy.sent(); owed.clear(); }
                        AckNow::Later => {
                            let due = policy.deadline().expect("what waits has a deadline");
                            prop_assert!(due.since(owed[0].0) < ms(500), "{rule:?}");
                        }
                        AckNow::None => prop_assert!(false),
                    }
                    let full = owed.iter().filter(|(_, len)| *len == MSS).count();
                    prop_assert!(full < 2, "{rule:?}: {owed:?}");
                }
            }
        }
    }
}
