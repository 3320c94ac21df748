//! Where this kernel's timer wheel stands, told by its own timeouts.
//!
//! Ticks lie at multiples of their length of CLOCK_MONOTONIC (kernel/time/tick-sched.c), but their number,
//! which says at which of them the slots of the coarser wheels end, is known to nobody outside: counting
//! began some ticks after the clock. Timers of 252 ms to 2 s run out at every eighth tick only, so that
//! the times at which segments were sent again show which of the eight it is.

use posthaste_units::{Instant, Span};

/// A tick at 250 of them a second.
pub(super) const TICK: Span = Span::from_millis(4);

/// Ticks of a slot of the second wheel (LVL_CLK_DIV).
const SLOT: u64 = 8;

/// What must be taken from CLOCK_MONOTONIC so that slots of the second wheel end at its multiples.
/// `timeouts` is when timers ran out; shorter ones among them, which run out at any tick, do no harm.
pub(super) fn phase(timeouts: impl IntoIterator<Item = Instant>) -> Span {
    let mut seen = [0_u32; SLOT as usize];
    for time in timeouts {
        seen[(time.as_nanos() / TICK.as_nanos() % SLOT) as usize] += 1;
    }
    let most = (0..SLOT).max_by_key(|place| seen[*place as usize]);
    TICK * most.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_timeouts_are_right() {
        let at = |micros| Instant::ORIGIN + Span::from_micros(micros);
        // Two at the end of a slot, a little late; two at ticks between.
        let timeouts = [32_000 * 9 + 20_150, 32_000 * 70 + 20_020, 4_100, 8_050];
        assert_eq!(phase(timeouts.map(at)), Span::from_millis(20));
    }
}
