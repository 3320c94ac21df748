//! End of slow start before a queue overflows, detected in each round trip of data.
//!
//! Linux's HyStart (Ha and Rhee 2008; `hystart_update` in tcp_cubic.c) ends slow start at once, on a long train of
//! acknowledgements or on delay. HyStart++ (RFC 9406) uses only delay. It first grows more slowly for a while, to check
//! that the delay persists.

use posthaste_units::{Instant, Span};

use super::{AckProgress, Exit};
use crate::Offset;

/// `hystart_low_window`: smallest window, in segments, for a decision.
const LOW: u64 = 16;
/// `hystart_ack_delta_us`: largest gap between acknowledgements of one train.
const TRAIN: Span = Span::from_millis(2);
/// `hystart_ack_delay`: allowance for the peer's aggregation; 1 ms below 260 MB/s.
const AGGREGATION: Span = Span::from_millis(1);
/// Samples of a round trip before its minimum counts: `HYSTART_MIN_SAMPLES`, `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// Bounds of the delay that shows a queue, an eighth of the round trip (`MIN_RTT_THRESH`, `MAX_RTT_THRESH`, RFC 9406,
/// section 4.3, and `HYSTART_DELAY_THRESH`).
const THRESHOLD: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
const THRESHOLD_PART: u64 = 8;
/// `CSS_GROWTH_DIVISOR`: conservative slow start grows by a quarter.
const SLOWER: u64 = 4;
/// `CSS_ROUNDS`: round trips of conservative slow start before slow start ends.
const ROUNDS: u32 = 5;

/// Decision in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HyStartVerdict {
    /// Continue.
    Stay,
    /// Continue, with growth divided by this number.
    Slower(u64),
    /// End slow start.
    Leave,
}

#[derive(Clone, Debug, Default)]
pub(super) struct HyStartState {
    /// Shortest round-trip time of all.
    shortest: Option<Span>,
    round: Option<Round>,
    /// RFC 9406: shortest round-trip time of the previous round.
    before: Option<Span>,
    /// RFC 9406: conservative slow start, with its baseline and its round trips so far.
    conservative: Option<(Span, u32)>,
}

/// A round trip of data.
#[derive(Clone, Debug)]
struct Round {
    end: Offset,
    start: Instant,
    /// Last acknowledgement of the train.
    train: Instant,
    shortest: Option<Span>,
    samples: u32,
}

impl Round {
    const fn begin(progress: &AckProgress) -> Self {
        Self {
            end: progress.next,
            start: progress.now,
            train: progress.now,
            shortest: None,
            samples: 0,
        }
    }
}

fn least(one: Option<Span>, other: Span) -> Span {
    one.map_or(other, |one| one.min(other))
}

/// Increase over `shortest` that shows a queue.
fn threshold(shortest: Span) -> Span {
    (shortest / THRESHOLD_PART).clamp(THRESHOLD.0, THRESHOLD.1)
}

impl HyStartState {
    /// Handles an acknowledgement in slow start, at a window of `segments`.
    pub(super) fn acked(
        &mut self,
        exit: Exit,
        progress: &AckProgress,
        segments: u64,
    ) -> HyStartVerdict {
        match (exit, progress.rtt) {
            (Exit::AtLoss, _) => HyStartVerdict::Stay,
            (Exit::HyStart, Some(rtt)) => self.linux(progress, rtt, segments),
            (Exit::HyStart, None) => HyStartVerdict::Stay,
            (Exit::HyStartPlusPlus, rtt) => self.standard(progress, rtt),
        }
    }

    fn linux(&mut self, progress: &AckProgress, rtt: Span, segments: u64) -> HyStartVerdict {
        let shortest = least(self.shortest, rtt);
        self.shortest = Some(shortest);
        let round = match &mut self.round {
            Some(round) if progress.acked <= round.end => round,
            round => round.insert(Round::begin(progress)),
        };
        if segments < LOW {
            return HyStartVerdict::Stay;
        }
        if progress.now.saturating_since(round.train) <= TRAIN {
            round.train = progress.now;
            if progress.now.saturating_since(round.start) > (shortest + AGGREGATION) / 2 {
                return HyStartVerdict::Leave;
            }
        }
        let current = least(round.shortest, rtt);
        round.shortest = Some(current);
        if round.samples < SAMPLES {
            round.samples += 1;
            return HyStartVerdict::Stay;
        }
        if current > shortest + threshold(shortest) {
            return HyStartVerdict::Leave;
        }
        HyStartVerdict::Stay
    }

    /// Implements RFC 9406, section 4.2.
    fn standard(&mut self, progress: &AckProgress, rtt: Option<Span>) -> HyStartVerdict {
        if self
            .round
            .as_ref()
            .is_none_or(|round| progress.acked > round.end)
        {
            if let Some(round) = self.round.take() {
                self.before = round.shortest;
                if let Some((_, rounds)) = &mut self.conservative {
                    *rounds += 1;
                }
            }
            self.round = Some(Round::begin(progress));
        }
        if let (Some(round), Some(rtt)) = (&mut self.round, rtt) {
            round.shortest = Some(least(round.shortest, rtt));
            round.samples += 1;
            if let (true, Some(current)) = (round.samples >= SAMPLES, round.shortest) {
                self.compare(current);
            }
        }
        match self.conservative {
            None => HyStartVerdict::Stay,
            Some((_, rounds)) if rounds >= ROUNDS => HyStartVerdict::Leave,
            Some(_) => HyStartVerdict::Slower(SLOWER),
        }
    }

    fn compare(&mut self, current: Span) {
        match (self.conservative, self.before) {
            (Some((baseline, _)), _) if current < baseline => self.conservative = None,
            (None, Some(before)) if current >= before + threshold(before) => {
                self.conservative = Some((current, 0));
            }
            _ => {}
        }
    }
}
