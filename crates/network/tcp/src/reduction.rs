//! The window during recovery: reduction of the bytes in flight to the new threshold.
//!
//! Starts after a loss and is updated with every acknowledgement until all data in flight at that time are
//! acknowledged. The sender decides about the data sent within the window and about the end of recovery.

/// A rule for the transition from the old window to the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionRule {
    /// RFC 6675, section 5: the threshold at once. Sending waits until fewer bytes are in flight.
    AtOnce,
    /// Linux until 3.1 (`tcp_cwnd_down`; Mathis, Semke, Mahdavi 1999): a segment less for every second acknowledgement,
    /// and at most a segment more than the bytes in flight.
    RateHalving,
    /// Proportional rate reduction, RFC 6937 (Linux since 3.2, `tcp_cwnd_reduction`).
    Proportional {
        /// Speed of growth once fewer bytes are in flight than the threshold.
        bound: ReductionBound,
    },
}

/// RFC 6937's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionBound {
    /// Packet conservation: at most the bytes delivered (CRB).
    Conservative,
    /// One segment more than was delivered (SSRB).
    SlowStart,
    /// Linux since 4.2: SSRB while acknowledgements advance and no further loss is found, else CRB.
    Heuristic,
}

/// The window of a recovery.
#[derive(Clone, Debug)]
pub struct Reduction {
    rule: ReductionRule,
    mss: u64,
    /// Window at the end of the reduction.
    threshold: u64,
    window: u64,
    /// The window at the time of the loss: RFC 6937's `RecoverFS`, as in Linux.
    before: u64,
    delivered: u64,
    sent: u64,
    odd: bool,
}

impl Reduction {
    /// Creates the state without a recovery.
    pub const fn new(rule: ReductionRule) -> Self {
        Self {
            rule,
            mss: 1,
            threshold: 0,
            window: 0,
            before: 1,
            delivered: 0,
            sent: 0,
            odd: false,
        }
    }

    /// Returns true if the window equals the threshold from the start.
    pub const fn is_at_once(&self) -> bool {
        matches!(self.rule, ReductionRule::AtOnce)
    }

    /// Starts a recovery: from a window of `window` bytes down to `threshold`.
    pub fn begin(&mut self, window: u64, threshold: u64, mss: u32) {
        *self = Self {
            mss: u64::from(mss).max(1),
            threshold,
            window: match self.rule {
                ReductionRule::AtOnce => threshold,
                ReductionRule::RateHalving | ReductionRule::Proportional { .. } => window,
            },
            before: window.max(1),
            ..Self::new(self.rule)
        };
    }

    /// Handles an acknowledgement in recovery, including the one that begins it. `delivered` bytes were newly
    /// acknowledged or SACKed (a duplicate without SACK counts as a segment); `in_flight` bytes are in flight now.
    /// `clean` means that the cumulative acknowledgement advanced and no further loss was found. Returns the window.
    pub fn acked(&mut self, delivered: u64, in_flight: u64, clean: bool) -> u64 {
        self.window = match self.rule {
            ReductionRule::AtOnce => self.threshold,
            ReductionRule::RateHalving => self.halve(in_flight),
            ReductionRule::Proportional { bound } => {
                self.proportional(delivered, in_flight, clean, bound)
            }
        };
        self.window
    }

    fn halve(&mut self, in_flight: u64) -> u64 {
        let less = if self.odd && self.window > self.threshold {
            self.mss
        } else {
            0
        };
        self.odd = !self.odd;
        self.window.saturating_sub(less).min(in_flight + self.mss)
    }

    /// RFC 6937, section 3, in whole segments (Linux) if all inputs are whole segments.
    fn proportional(
        &mut self,
        delivered: u64,
        in_flight: u64,
        clean: bool,
        bound: ReductionBound,
    ) -> u64 {
        if delivered == 0 {
            return self.window;
        }
        self.delivered += delivered;
        debug_assert!(
            self.before > 0,
            "RFC 6937 divides by the flight before the loss"
        );
        let send = if in_flight > self.threshold {
            let share = u128::from(self.delivered) * u128::from(self.threshold);
            let share = share.div_ceil(u128::from(self.before)) as u64;
            self.whole(share).saturating_sub(self.sent)
        } else {
            let free = self.delivered.saturating_sub(self.sent);
            let most = match bound {
                ReductionBound::Conservative => free,
                ReductionBound::Heuristic if !clean => free.max(delivered),
                ReductionBound::SlowStart | ReductionBound::Heuristic => {
                    free.max(delivered) + self.mss
                }
            };
            most.min(self.threshold - in_flight)
        };
        // The first retransmission leaves in any case.
        let least = if self.sent == 0 { self.mss } else { 0 };
        in_flight + send.max(least)
    }

    /// Rounds up to segments if the windows are whole segments.
    const fn whole(&self, bytes: u64) -> u64 {
        if self.before.is_multiple_of(self.mss) && self.threshold.is_multiple_of(self.mss) {
            bytes.next_multiple_of(self.mss)
        } else {
            bytes
        }
    }

    /// Adds `bytes` that were sent or sent again in recovery.
    pub fn sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Returns the window after recovery.
    pub const fn end(&self) -> u64 {
        match self.rule {
            ReductionRule::RateHalving if self.window < self.threshold => self.window,
            _ => self.threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const M: u64 = 1000;

    /// Loses `losses` segments of a window of `window` segments. The sender follows the rule at each acknowledgement of
    /// the rest. Returns the times of transmission, as numbers of acknowledgements, and the segments in flight at the
    /// end.
    fn recovery(rule: ReductionRule, window: u64, losses: u64) -> (Vec<u64>, u64) {
        let threshold = window / 2;
        let mut reduction = Reduction::new(rule);
        reduction.begin(window * M, threshold * M, 1000);
        let (mut out, mut sent) = (window - losses, Vec::new());
        let acks = window - losses;
        for ack in 1..=acks {
            out -= 1;
            reduction.acked(M, out * M, false);
            while (out + 1) * M <= reduction.window {
                out += 1;
                reduction.sent(M);
                sent.push(ack);
            }
        }
        (sent, out)
    }

    /// RFC 6937, section 4, the worked example: one of 20 segments is lost, and the window falls from 20 to 10. One
    /// segment leaves for every second acknowledgement, ten in all.
    #[test]
    fn proportional_as_in_the_example() {
        for bound in [
            ReductionBound::Conservative,
            ReductionBound::SlowStart,
            ReductionBound::Heuristic,
        ] {
            let (sent, out) = recovery(ReductionRule::Proportional { bound }, 20, 1);
            // At the seventeenth the bytes in flight reach the limit. The rest follows.
            let expected: Vec<u64> = (0..8).map(|n| 1 + 2 * n).chain([18, 19]).collect();
            assert_eq!(sent, expected, "{bound:?}");
            assert_eq!(out, 10);
        }
    }

    /// RFC 6937, section 4: after the loss of a burst, the conservative bound sends the delivered amount. The other
    /// bound sends one segment more each time up to the threshold.
    #[test]
    fn bounds_differ_after_a_burst() {
        let (conservative, out) = recovery(
            ReductionRule::Proportional {
                bound: ReductionBound::Conservative,
            },
            20,
            15,
        );
        assert_eq!((conservative, out), ((1..=5).collect(), 5));
        let (slow_start, out) = recovery(
            ReductionRule::Proportional {
                bound: ReductionBound::SlowStart,
            },
            20,
            15,
        );
        assert_eq!(slow_start, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(out, 10);
    }

    /// One segment for two acknowledgements, down to half.
    #[test]
    fn rate_halving_halves_within_a_round_trip() {
        let (sent, out) = recovery(ReductionRule::RateHalving, 20, 1);
        assert!((9..=10).contains(&out), "{out}");
        assert!((9..=10).contains(&sent.len()), "{sent:?}");
        let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (1..=2).contains(gap)), "{sent:?}");
    }

    proptest! {
        /// RFC 6937, section 3: PRR sends at most the delivered amount (a segment more per acknowledgement with SSRB),
        /// and always sends the first retransmission. No rule exceeds the former bytes in flight.
        #[test]
        fn recovery_never_bursts(
            window in 2u64..100, threshold in 1u64..100,
            acks in proptest::collection::vec((1u64..4, any::<bool>()), 1..80),
        ) {
            let threshold = threshold.min(window).max(2);
            for rule in [
                ReductionRule::AtOnce,
                ReductionRule::RateHalving,
                ReductionRule::Proportional { bound: ReductionBound::Conservative },
                ReductionRule::Proportional { bound: ReductionBound::SlowStart },
                ReductionRule::Proportional { bound: ReductionBound::Heuristic },
            ] {
                let mut reduction = Reduction::new(rule);
                reduction.begin(window * M, threshold * M, 1000);
                let (mut out, mut delivered, mut sent) = (window, 0, 0);
                for (count, clean) in &acks {
                    let count = (*count).min(out);
                    if count == 0 {
                        break;
                    }
                    out -= count;
                    delivered += count;
                    reduction.acked(count * M, out * M, *clean);
                    let before = sent;
                    while (out + 1) * M <= reduction.window {
                        out += 1;
                        sent += 1;
                        reduction.sent(M);
                    }
                    prop_assert!(out <= window.max(threshold) + 1, "{rule:?}");
                    if rule == (ReductionRule::Proportional { bound: ReductionBound::Conservative }) {
                        prop_assert!(sent <= delivered.max(1), "{sent} {delivered}");
                    }
                    if matches!(rule, ReductionRule::Proportional { .. }) {
                        prop_assert!(sent >= 1);
                        prop_assert!(sent - before <= delivered + 1);
                    }
                }
                prop_assert!(reduction.end() <= window.max(threshold) * M);
            }
        }
    }
}
