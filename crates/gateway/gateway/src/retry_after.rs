//! The advice in `Retry-After`: a whole number of seconds, spread so that rejected clients do not return together.
//!
//! Clients that are rejected in the same second and get the same advice return in the same second, as a new overload.
//! So the advice is the estimated time, at least 1 s, plus a random part of 0 to half of it, and of 0 to 2 s at least.

use std::cell::Cell;

use posthaste_units::Span;

use crate::clock::now;

/// Minimum of the largest random part, and its maximum. Beyond a minute clients are spread enough.
const SPREAD: u64 = 2;
const WIDEST: u64 = 60;

/// Longest advice: an hour. Estimates beyond it are not reliable.
const LONGEST: u64 = 3600;

thread_local! {
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// The value of the field for a retry after `later`.
pub(crate) fn advice(later: Span) -> String {
    seconds(later, draw()).to_string()
}

/// Spreads the advice by a random number.
fn seconds(later: Span, draw: u64) -> u64 {
    let least = (later.as_secs_f64().ceil() as u64).clamp(1, LONGEST);
    let widest = (least / 2).clamp(SPREAD, WIDEST);
    least + draw % (widest + 1)
}

/// A pseudo-random number (SplitMix64), seeded by the clock in each thread. It protects nothing.
fn draw() -> u64 {
    let state = match DRAWN.get() {
        0 => now().as_nanos(),
        state => state,
    };
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    DRAWN.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_never_too_early_and_spread() {
        for (millis, least, most) in [
            (0, 1, 3),
            (1, 1, 3),
            (1_000, 1, 3),
            (1_001, 2, 4),
            (10_000, 10, 15),
            (600_000, 600, 660),
            (u64::MAX / 1_000_000, 3600, 3660),
        ] {
            let later = Span::from_millis(millis);
            let seen: Vec<u64> = (0..10_000).map(|_| seconds(later, draw())).collect();
            assert_eq!(seen.iter().min(), Some(&least), "{millis} ms");
            assert_eq!(seen.iter().max(), Some(&most), "{millis} ms");
            let first = seen.iter().filter(|seconds| **seconds == least).count();
            let share = first as f64 / 10_000.0 * (most - least + 1) as f64;
            assert!((0.5..1.5).contains(&share), "{millis} ms: {share}");
        }
    }
}
