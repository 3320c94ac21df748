//! The phase of this kernel's timer wheel, derived from its own timeouts.
//!
//! Ticks lie at multiples of their length of CLOCK_MONOTONIC (kernel/time/tick-sched.c). Their number determines the
//! ends of the slots of the coarser wheels, but no interface shows it: counting began some ticks after the clock.
//! Timers of 252 ms to 2 s expire at every eighth tick only. The times of retransmissions therefore show the phase
//! among the eight.

use posthaste_units::{Instant, Span};

/// Length of a tick at 250 ticks per second.
pub(super) const TICK: Span = Span::from_millis(4);

/// Ticks of a slot of the second wheel (LVL_CLK_DIV).
const SLOT: u64 = 8;

/// Returns the offset to subtract from CLOCK_MONOTONIC so that slots of the second wheel end at its multiples.
/// `timeouts` are the times when timers expired. Shorter timers among them expire at any tick and do no harm.
pub(super) fn phase(timeouts: impl IntoIterator<Item = Instant>) -> Span {
    let mut counts = [0_u32; SLOT as usize];
    for time in timeouts {
        counts[(time.as_nanos() / TICK.as_nanos() % SLOT) as usize] += 1;
    }
    let most = (0..SLOT).max_by_key(|slot| counts[*slot as usize]);
    TICK * most.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_timeouts_are_right() {
        let at = |micros| Instant::ORIGIN + Span::from_micros(micros);
        // Two at the end of a slot, a little late, and two at ticks between.
        let timeouts = [32_000 * 9 + 20_150, 32_000 * 70 + 20_020, 4_100, 8_050];
        assert_eq!(phase(timeouts.map(at)), Span::from_millis(20));
    }
}
