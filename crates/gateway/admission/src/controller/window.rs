//! Moving average over a time window, in bounded memory at any rate of samples.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

/// Slices of a window. Old values are removed one slice at a time.
const SLICES: u64 = 60;

/// Samples, weighted by the time that they cover.
#[derive(Clone, Debug)]
pub(super) struct SampleWindow {
    length: Span,
    slices: VecDeque<Slice>,
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    began: Instant,
    seconds: f64,
    sum: f64,
}

impl SampleWindow {
    pub(super) fn new(length: Span) -> Self {
        Self {
            length,
            slices: VecDeque::new(),
        }
    }

    /// Adds a value that held for `passed` until `now`. Returns the mean over the window.
    pub(super) fn push(&mut self, now: Instant, passed: Span, value: f64) -> f64 {
        debug_assert!(value.is_finite(), "a sample of {value}");
        let seconds = passed.as_secs_f64();
        match self.slices.back_mut() {
            Some(slice) if now.since(slice.began) < self.length / SLICES => {
                slice.seconds += seconds;
                slice.sum += seconds * value;
            }
            _ => self.slices.push_back(Slice {
                began: now - passed,
                seconds,
                sum: seconds * value,
            }),
        }
        let is_old = |slice: &Slice| now.since(slice.began) > self.length;
        while self.slices.len() > 1 && self.slices.front().is_some_and(is_old) {
            self.slices.pop_front();
        }
        let total = |part: fn(&Slice) -> f64| self.slices.iter().map(part).sum::<f64>();
        total(|slice| slice.sum) / total(|slice| slice.seconds)
    }
}
