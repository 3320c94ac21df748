//! Granularity of a stack's timers, and the real expiry of a timer.

use posthaste_units::{Instant, Span};

/// The clock behind a stack's timers. Its ticks lie at multiples of the tick from the origin of time. Runs that must
/// not depend on the phase begin at different instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Timers expire exactly when due.
    Exact,
    /// Expires at ticks: a timer of n ticks expires at the n-th tick after the last tick before it was set (FreeBSD's
    /// callout of 2005).
    Ticks(Span),
    /// Linux since 4.8 (kernel/time/timer.c, calc_wheel_index): nine wheels of 64 slots, each eight times as coarse as
    /// the previous one. Never early. The span is a jiffy.
    Wheel(Span),
}

/// Slots of one wheel, and the bits by which each wheel is coarser (LVL_SIZE, LVL_CLK_SHIFT).
const SLOTS: u64 = 64;
const COARSER: u32 = 3;
const WHEELS: u32 = 9;

impl TimerClock {
    /// Returns the expiry of a timer of `span` that is set at `now`.
    pub fn expiry(self, now: Instant, span: Span) -> Instant {
        let expiry = self.rounded(now, span);
        debug_assert!(expiry >= now, "a timer expires before it is set");
        expiry
    }

    fn rounded(self, now: Instant, span: Span) -> Instant {
        match self {
            Self::Exact => now + span,
            Self::Ticks(tick) => {
                let tick = tick.as_nanos().max(1);
                let began = now.as_nanos() / tick;
                let ticks = began.saturating_add(span.as_nanos().div_ceil(tick).max(1));
                Instant::from_nanos(ticks.saturating_mul(tick))
            }
            Self::Wheel(jiffy) => {
                let jiffy = jiffy.as_nanos().max(1);
                let ticks = span.as_nanos().div_ceil(jiffy).max(1);
                let expires = (now.as_nanos() / jiffy).saturating_add(ticks);
                let wheel = (0..WHEELS - 1)
                    .find(|wheel| ticks < (SLOTS - 1) << (COARSER * wheel))
                    .unwrap_or(WHEELS - 1);
                let shift = COARSER * wheel;
                let slot = ((expires >> shift) + 1) << shift;
                Instant::from_nanos(slot.saturating_mul(jiffy))
            }
        }
    }
}

/// Timestamp clock with the given tick. Never 0, because 0 means that there is no timestamp.
pub(crate) fn stamp(now: Instant, tick: Span) -> u32 {
    match (now.as_nanos() / tick.as_nanos().max(1)) as u32 {
        u32::MAX => u32::MAX,
        ticks => ticks + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wheel_is_as_coarse_as_the_kernel_says() {
        let clock = TimerClock::Wheel(Span::from_millis(4));
        let late = |ms| {
            let due = clock.expiry(Instant::ORIGIN, Span::from_millis(ms));
            due.as_nanos() / 1_000_000 - ms
        };
        assert_eq!(late(40), 4);
        assert_eq!(late(248), 4);
        assert_eq!(late(256), 32);
        assert_eq!(late(300), 20);
        assert_eq!(late(2048), 256);
    }

    proptest! {
        #[test]
        fn nothing_runs_out_early_by_more_than_a_tick(now in 0u64..1 << 50, ns in 1u64..1 << 45) {
            let (now, span) = (Instant::from_nanos(now), Span::from_nanos(ns));
            prop_assert_eq!(TimerClock::Exact.expiry(now, span), now + span);
            let tick = Span::from_millis(1);
            let due = TimerClock::Ticks(tick).expiry(now, span);
            prop_assert!(due + tick >= now + span && due <= now + span + tick);
            prop_assert!(TimerClock::Wheel(tick).expiry(now, span) >= now + span);
        }
    }
}
