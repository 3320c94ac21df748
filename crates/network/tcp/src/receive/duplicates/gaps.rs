//! Gaps between the segments of a connection, and the waiting time for a missing segment.
//!
//! Mean and mean deviation are computed as in RFC 6298, section 2, with the same gains. The gains correspond to a
//! memory of eight and four segments, enough for a reply of nine.

use posthaste_units::{Instant, Span};

use super::AdaptiveAcks;

/// The gaps between the segments of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    last: Option<Instant>,
    known: Option<GapEstimate>,
}

#[derive(Clone, Copy, Debug)]
struct GapEstimate {
    mean: Span,
    deviation: Span,
}

impl Gaps {
    /// Records new data. Counts the gap before it if the previous arrival was new data, too.
    pub fn arrival(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.measure(now.saturating_since(last));
        }
    }

    /// Ends the current gap without measuring it, because the sender waited for something else.
    pub fn pause(&mut self) {
        self.last = None;
    }

    fn measure(&mut self, gap: Span) {
        let known = match self.known {
            None => GapEstimate {
                mean: gap,
                deviation: gap / 2,
            },
            Some(GapEstimate { mean, deviation }) => {
                let off = mean.saturating_sub(gap) + gap.saturating_sub(mean);
                GapEstimate {
                    mean: mean.saturating_sub(mean / 8) + gap / 8,
                    deviation: deviation.saturating_sub(deviation / 4) + off / 4,
                }
            }
        };
        self.known = Some(known);
    }

    /// Time after the last segment within which a merely late one would have arrived.
    pub fn patience(&self, rule: &AdaptiveAcks) -> Span {
        self.known.map_or(rule.longest, |known| {
            let wait = known.mean + known.deviation * u64::from(rule.deviations);
            wait.max(rule.shortest).min(rule.longest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(gaps: &Gaps) -> u64 {
        gaps.patience(&AdaptiveAcks::default()).as_nanos() / 1_000
    }

    #[test]
    fn the_mean_and_four_deviations() {
        let mut gaps = Gaps::default();
        let mut at = Instant::ORIGIN;
        assert_eq!(patience(&gaps), 200_000, "nothing measured");
        gaps.arrival(at);
        for (gap, expected) in [
            (20, 60_000),                        // 20 + 4 * 10
            (20, 50_000),                        // 20 + 4 * 7.5
            (60, 25_000 + 4 * (5_625 + 10_000)), // the mean moves by 1/8 of 40
        ] {
            at += Span::from_millis(gap);
            gaps.arrival(at);
            assert_eq!(patience(&gaps), expected);
        }
    }

    #[test]
    fn it_is_kept_within_its_limits() {
        let after = |gap| {
            let mut gaps = Gaps::default();
            gaps.arrival(Instant::ORIGIN);
            gaps.arrival(Instant::ORIGIN + gap);
            patience(&gaps)
        };
        assert_eq!(after(Span::from_micros(10)), 10_000);
        assert_eq!(after(Span::from_secs(3)), 200_000);
        assert_eq!(after(Span::MAX), 200_000);
    }

    #[test]
    fn a_pause_is_no_gap() {
        let mut gaps = Gaps::default();
        gaps.arrival(Instant::ORIGIN);
        gaps.pause();
        gaps.arrival(Instant::ORIGIN + Span::from_secs(1));
        assert_eq!(patience(&gaps), 200_000);
        gaps.arrival(Instant::ORIGIN + Span::from_millis(1020));
        assert_eq!(patience(&gaps), 60_000);
    }
}
