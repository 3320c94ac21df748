//! Smoothed round-trip times and the retransmission timeout.
//!
//! The sender decides which segments may be timed (Karn's rule, timestamps). Three differences between stacks decide
//! results:
//! - the scale of the computation: BSD and old Linux count in ticks, rounded down;
//! - the weight of a falling round-trip time: small in Linux;
//! - the lower bound or addition: at least a second in RFC 6298, always 200 ms more in BSD, at least 200 ms in Linux.

use posthaste_units::Span;

use crate::Offset;

/// Smoothing of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttRule {
    /// RFC 6298, section 2: gains 1/8 and 1/4, in nanoseconds.
    Rfc6298,
    /// BSD (FreeBSD 6, `tcp_xmit_timer` in tcp_input.c): in ticks of the timeout's granularity, the mean in units of
    /// 1/32 and the deviation in units of 1/16. A measured time counts one tick more.
    Bsd,
    /// Linux (`tcp_rtt_estimator` in tcp_input.c): the gains of RFC 6298, but the deviation grows with 1/32 while the
    /// round-trip time falls. The timeout uses the largest deviation within a round trip; this value decays by a
    /// quarter per round trip.
    Linux {
        /// Unit of the computation: a jiffy until 3.14, a microsecond since.
        unit: Span,
    },
}

/// Timeout from smoothed times: `smoothed + max(4 deviations, floor, granularity) + slop`, within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRule {
    /// Timeout before the first sample.
    pub initial: Span,
    /// Shortest timeout (RFC 6298: 1 s). BSD applies it before it adds the slop.
    pub minimum: Span,
    /// Added to every timeout: BSD's `tcp_rexmit_slop`.
    pub slop: Span,
    /// Lower bound of four deviations: Linux's `TCP_RTO_MIN`.
    pub variance_floor: Span,
    /// Granularity of the clock (RFC 6298, section 2). BSD counts in it, Linux rounds up to it.
    pub granularity: Span,
    /// Longest timeout.
    pub maximum: Span,
    /// Maximum number of doublings (BSD's `tcp_backoff`), up to 32. Every timeout has reached the longest before that.
    pub doublings: u32,
}

/// Longest accepted round-trip time. A stack's arithmetic would overflow some time beyond it.
const LONGEST: Span = Span::from_secs(3600);

/// State of the round-trip time of a sender.
#[derive(Clone, Debug)]
pub struct Rtt {
    rule: RttRule,
    timeouts: TimeoutRule,
    minimum: Option<Span>,
    timeout: Span,
    /// BSD: the timeout before its slop and its bounds.
    value: Span,
    /// The mean on the rule's scale; 0 before the first sample.
    smoothed: i64,
    /// The mean deviation on the rule's scale.
    deviation: i64,
    /// Linux: the largest deviation of this round trip, and the one used for the timeout.
    largest: i64,
    variance: i64,
    round_end: Offset,
}

impl Rtt {
    /// Creates the state without a sample.
    pub const fn new(rule: RttRule, timeouts: TimeoutRule) -> Self {
        Self {
            rule,
            timeouts,
            minimum: None,
            timeout: timeouts.initial,
            value: timeouts.initial,
            smoothed: 0,
            deviation: 0,
            largest: 0,
            variance: 0,
            round_end: 0,
        }
    }

    /// Adds a sample: a segment sent `rtt` ago was acknowledged. Everything below `acked` is acknowledged now, and
    /// `next` is the next offset to send. A round trip lasts until `next` is passed.
    pub fn sample(&mut self, rtt: Span, acked: Offset, next: Offset) {
        let rtt = rtt.min(LONGEST);
        self.minimum = Some(self.minimum.map_or(rtt, |least| least.min(rtt)));
        self.timeout = match self.rule {
            RttRule::Rfc6298 => self.sample_rfc(rtt),
            RttRule::Bsd => self.sample_bsd(rtt),
            RttRule::Linux { unit } => self.sample_linux(rtt, unit, acked, next),
        }
        .min(self.timeouts.maximum);
        debug_assert!(self.smoothed > 0, "a mean without a sample");
        debug_assert!(self.deviation >= 0, "a negative deviation");
    }

    fn sample_rfc(&mut self, rtt: Span) -> Span {
        let rtt = (rtt.as_nanos() as i64).max(1);
        if self.smoothed == 0 {
            self.smoothed = rtt;
            self.deviation = rtt / 2;
        } else {
            let error = rtt - self.smoothed;
            self.deviation += (error.abs() - self.deviation) / 4;
            self.smoothed = (self.smoothed + error / 8).max(1);
        }
        let spread = Span::from_nanos(4 * self.deviation as u64)
            .max(self.timeouts.granularity)
            .max(self.timeouts.variance_floor);
        (Span::from_nanos(self.smoothed as u64) + spread + self.timeouts.slop)
            .max(self.timeouts.minimum)
    }

    fn sample_bsd(&mut self, rtt: Span) -> Span {
        let tick = self.timeouts.granularity.as_nanos().max(1);
        let rtt = (rtt.as_nanos() / tick) as i64 + 1;
        if self.smoothed == 0 {
            self.smoothed = rtt << 5;
            self.deviation = rtt << 3;
        } else {
            let error = ((rtt - 1) << 2) - (self.smoothed >> 3);
            self.smoothed = (self.smoothed + error).max(1);
            self.deviation = (self.deviation + error.abs() - (self.deviation >> 2)).max(1);
        }
        let ticks = |ticks: i64| Span::from_nanos(ticks as u64 * tick);
        // A timeout rounded down to zero ticks would stay zero however often it doubles.
        let value = (((self.smoothed >> 3) + self.deviation) >> 2).max(1);
        self.value = ticks(value).max(self.timeouts.minimum);
        (self.value + self.timeouts.slop).max(ticks(rtt + 2))
    }

    fn sample_linux(&mut self, rtt: Span, unit: Span, acked: Offset, next: Offset) -> Span {
        let unit = unit.as_nanos().max(1);
        let rtt = ((rtt.as_nanos() / unit) as i64).max(1);
        let floor = self.timeouts.variance_floor.as_nanos().div_ceil(unit) as i64;
        if self.smoothed == 0 {
            self.smoothed = rtt << 3;
            self.deviation = rtt << 1;
            self.variance = self.deviation.max(floor);
            self.largest = self.variance;
            self.round_end = next;
        } else {
            let error = rtt - (self.smoothed >> 3);
            self.smoothed = (self.smoothed + error).max(1);
            let change = error.abs() - (self.deviation >> 2);
            let falls = error < 0 && change > 0;
            self.deviation += if falls { change >> 3 } else { change };
            self.largest = self.largest.max(self.deviation);
            self.variance = self.variance.max(self.largest);
            if acked > self.round_end {
                self.variance -= (self.variance - self.largest) >> 2;
                self.round_end = next;
                self.largest = floor;
            }
        }
        let value = ((self.smoothed >> 3) + self.variance) as u64 * unit;
        let tick = self.timeouts.granularity.as_nanos().max(1);
        (Span::from_nanos(value.next_multiple_of(tick)) + self.timeouts.slop)
            .max(self.timeouts.minimum)
    }

    /// Handles `times` expiries in a row. From the fourth on BSD discards the smoothed time and treats the next sample
    /// as the first (FreeBSD 6, `tcp_timer_rexmt`).
    pub fn backed_off(&mut self, times: u32) {
        if self.rule == RttRule::Bsd && times > 3 {
            self.smoothed = 0;
        }
    }

    /// Sets a lower bound of the timeout until the first sample.
    pub fn doubt(&mut self, timeout: Span) {
        if self.minimum.is_none() {
            self.timeout = self.timeout.max(timeout);
            self.value = self.value.max(timeout);
        }
    }

    /// Smoothed round-trip time, once there is a sample.
    pub fn smoothed(&self) -> Option<Span> {
        self.minimum?;
        let smoothed = self.smoothed as u64;
        Some(Span::from_nanos(match self.rule {
            RttRule::Rfc6298 => smoothed,
            RttRule::Bsd => (smoothed * self.timeouts.granularity.as_nanos()) >> 5,
            RttRule::Linux { unit } => (smoothed * unit.as_nanos()) >> 3,
        }))
    }

    /// Shortest round-trip time measured.
    pub const fn minimum(&self) -> Option<Span> {
        self.minimum
    }

    /// Retransmission timeout without back-off.
    pub const fn timeout(&self) -> Span {
        self.timeout
    }

    /// Retransmission timeout after `times` expiries in a row: doubled each time (RFC 6298, section 5.5) up to the
    /// longest, as often as the rule allows. BSD does not double its slop.
    pub fn timeout_after(&self, times: u32) -> Span {
        let factor = 1_u64 << times.min(self.timeouts.doublings).min(32);
        let doubled = match (self.rule, times) {
            (_, 0) => return self.timeout,
            (RttRule::Bsd, _) => self.value * factor + self.timeouts.slop,
            (RttRule::Rfc6298 | RttRule::Linux { .. }, _) => self.timeout * factor,
        };
        doubled.min(self.timeouts.maximum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    const RFC: TimeoutRule = TimeoutRule {
        initial: ms(1000),
        minimum: ms(1000),
        slop: Span::ZERO,
        variance_floor: Span::ZERO,
        granularity: ms(1),
        maximum: ms(60_000),
        doublings: 32,
    };
    const BSD: TimeoutRule = TimeoutRule {
        initial: ms(3000),
        minimum: ms(30),
        slop: ms(200),
        variance_floor: Span::ZERO,
        granularity: ms(1),
        maximum: ms(64_000),
        doublings: 6,
    };
    const LINUX: TimeoutRule = TimeoutRule {
        initial: ms(1000),
        minimum: Span::ZERO,
        slop: Span::ZERO,
        variance_floor: ms(200),
        granularity: ms(4),
        maximum: ms(120_000),
        doublings: 32,
    };
    const MICROSECONDS: RttRule = RttRule::Linux {
        unit: Span::from_micros(1),
    };

    /// One sample per round trip of one segment.
    fn after(rule: RttRule, timeouts: TimeoutRule, samples: &[Span]) -> Rtt {
        let mut rtt = Rtt::new(rule, timeouts);
        for (trip, sample) in (1..).zip(samples) {
            rtt.sample(*sample, trip * 2, trip * 2 + 1);
        }
        rtt
    }

    /// RFC 6298, (2.2) and (2.3), computed by hand: R = 400 ms, then R' = 600 ms.
    #[test]
    fn the_standard_by_hand() {
        let first = after(RttRule::Rfc6298, RFC, &[ms(400)]);
        assert_eq!(first.smoothed(), Some(ms(400)));
        assert_eq!(first.timeout(), ms(400 + 4 * 200));
        let second = after(RttRule::Rfc6298, RFC, &[ms(400), ms(600)]);
        assert_eq!(second.smoothed(), Some(ms(425)));
        assert_eq!(second.timeout(), ms(425 + 4 * 200));
        let third = after(RttRule::Rfc6298, RFC, &[ms(400), ms(600), ms(425)]);
        assert_eq!(third.timeout(), ms(425 + 4 * 150));
        assert_eq!(after(RttRule::Rfc6298, RFC, &[ms(10)]).timeout(), ms(1000));
    }

    /// Timeouts after one exchange at 30 ms: RFC 6298's `R + 4 R/2` with BSD's tick and slop, and with Linux's floor.
    #[test]
    fn after_one_sample() {
        assert_eq!(
            after(RttRule::Bsd, BSD, &[ms(30)]).timeout(),
            ms(31 + 62 + 200)
        );
        assert_eq!(after(MICROSECONDS, LINUX, &[ms(30)]).timeout(), ms(232));
        assert_eq!(after(MICROSECONDS, LINUX, &[ms(400)]).timeout(), ms(1200));
        assert_eq!(Rtt::new(RttRule::Bsd, BSD).timeout(), ms(3000));
        assert_eq!(Rtt::new(RttRule::Bsd, BSD).smoothed(), None);
    }

    /// A falling round-trip time grows the deviation with 1/32, not with 1/4.
    #[test]
    fn linux_hardly_believes_a_fall() {
        let fallen = |rule, timeouts| after(rule, timeouts, &[ms(1000), ms(100)]).timeout();
        let (linux, rfc) = (fallen(MICROSECONDS, LINUX), fallen(RttRule::Rfc6298, RFC));
        // mean 1000 - 900/8; deviation 500 + (900 - 500) / 32, and the largest stays.
        assert_eq!(linux, ms(888 + 2052));
        assert_eq!(rfc, Span::from_micros(887_500 + 4 * 600_000));
    }

    /// The largest deviation of a round trip counts and decays by a quarter per round trip.
    #[test]
    fn linux_keeps_the_largest_deviation_of_a_round_trip() {
        let mut rtt = Rtt::new(MICROSECONDS, LINUX);
        rtt.sample(ms(400), 1, 100);
        for acked in 2..100 {
            rtt.sample(ms(400), acked, 100 + acked);
        }
        assert_eq!(rtt.timeout(), ms(1200), "within the first round trip");
        rtt.sample(ms(400), 101, 200);
        rtt.sample(ms(400), 201, 300);
        let one = 800 - (800 - 200) / 4;
        assert_eq!(rtt.timeout(), ms((400_u64 + one).next_multiple_of(4)));
    }

    #[test]
    fn bsd_waits_a_tick_where_nothing_else_is_the_least() {
        let bare = TimeoutRule {
            minimum: Span::ZERO,
            slop: Span::ZERO,
            ..BSD
        };
        let rtt = after(RttRule::Bsd, bare, &[Span::from_micros(600); 40]);
        assert_eq!(rtt.timeout_after(3), ms(8));
    }

    #[test]
    fn bsd_forgets_after_four_timeouts() {
        let mut rtt = after(RttRule::Bsd, BSD, &[ms(30), ms(30)]);
        rtt.backed_off(3);
        rtt.sample(ms(3000), 9, 10);
        assert!(rtt.smoothed() < Some(ms(1000)));
        rtt.backed_off(4);
        rtt.sample(ms(3000), 9, 10);
        assert_eq!(rtt.smoothed(), Some(ms(3001)));
    }

    #[test]
    fn back_off_doubles() {
        let bsd = after(RttRule::Bsd, BSD, &[ms(30)]);
        assert_eq!(
            [0, 1, 2].map(|times| bsd.timeout_after(times)),
            [ms(293), ms(386), ms(572)]
        );
        assert_eq!(bsd.timeout_after(12), ms(93 * 64 + 200));
        let later = TimeoutRule {
            doublings: 9,
            ..BSD
        };
        let later = after(RttRule::Bsd, later, &[ms(30)]);
        assert_eq!(later.timeout_after(12), ms(93 * 512 + 200));
        let linux = after(MICROSECONDS, LINUX, &[ms(30)]);
        assert_eq!(
            [0, 1, 2].map(|times| linux.timeout_after(times)),
            [ms(232), ms(464), ms(928)]
        );
        assert_eq!(linux.timeout_after(u32::MAX), LINUX.maximum);
    }

    fn samples() -> impl Strategy<Value = Vec<Span>> {
        let ms = prop_oneof![1u64..50, 1u64..5_000, 100_000u64..10_000_000];
        proptest::collection::vec(ms.prop_map(Span::from_millis), 1..60)
    }

    proptest! {
        /// Scaled integers stay close to the standard's formula, computed in real numbers.
        #[test]
        fn scales_hardly_matter(samples in proptest::collection::vec(20u64..2_000, 1..40)) {
            let (mut mean, mut deviation) = (0.0_f64, 0.0_f64);
            for (n, sample) in samples.iter().enumerate() {
                let sample = *sample as f64;
                if n == 0 {
                    (mean, deviation) = (sample, sample / 2.0);
                } else {
                    deviation += ((mean - sample).abs() - deviation) / 4.0;
                    mean += (sample - mean) / 8.0;
                }
            }
            let spans: Vec<Span> = samples.iter().map(|ms| Span::from_millis(*ms)).collect();
            let rfc = after(RttRule::Rfc6298, RFC, &spans);
            let bsd = after(RttRule::Bsd, BSD, &spans);
            let exact = mean + 4.0 * deviation;
            prop_assert!((rfc.smoothed().unwrap().as_millis_f64() - mean).abs() < 1e-3);
            prop_assert!((rfc.timeout().as_millis_f64() - exact.max(1000.0)).abs() < 1e-3);
            // One tick more at first, and rounding: a few ticks in all.
            let timeout = bsd.timeout().as_millis_f64();
            let last = samples[samples.len() - 1] as f64;
            prop_assert!((timeout - (exact.max(30.0) + 200.0).max(last + 3.0)).abs() < 12.0, "{timeout} {exact}");
        }

        #[test]
        fn a_timeout_lies_within_its_bounds(samples in samples()) {
            for (rule, timeouts) in [(RttRule::Rfc6298, RFC), (RttRule::Bsd, BSD), (MICROSECONDS, LINUX)] {
                let rtt = after(rule, timeouts, &samples);
                prop_assert!(rtt.timeout() <= timeouts.maximum);
                let smoothed = rtt.smoothed().unwrap();
                let spread = timeouts.variance_floor.max(timeouts.slop);
                prop_assert!(rtt.timeout() >= timeouts.minimum.max(smoothed + spread).min(timeouts.maximum));
                prop_assert_eq!(rtt.minimum(), samples.iter().min().copied().map(|least| least.min(LONGEST)));
            }
        }
    }
}
