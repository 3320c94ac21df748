//! Pauses at fixed times: conversion between time and time worked.

use posthaste_units::Span;

use crate::misbehaviour::Stall;

/// The pauses [k * period, k * period + lasting) for k >= 1, in ns. Without pauses, `lasting` is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    lasting: u64,
    period: u64,
}

impl Pauses {
    pub(crate) fn new(stall: Option<Stall>) -> Self {
        let stall = stall.unwrap_or(Stall {
            lasting: Span::ZERO,
            period: Span::MAX,
        });
        Self {
            lasting: stall.lasting.as_nanos(),
            period: stall.period.as_nanos(),
        }
    }

    /// The end of work that begins at `begin` and takes `work`. Pauses are added.
    pub(crate) fn end(self, begin: u64, work: u64) -> u64 {
        if self.lasting == 0 {
            return begin.saturating_add(work);
        }
        let begin = self.resume(begin);
        // Time left until the next pause.
        let first = (begin / self.period + 1).saturating_mul(self.period);
        let left = first - begin;
        if work <= left {
            return begin + work;
        }
        let per_period = self.period - self.lasting;
        let beyond = work - left;
        let pauses = beyond.div_ceil(per_period);
        begin
            .saturating_add(work)
            .saturating_add(pauses.saturating_mul(self.lasting))
    }

    /// The first time from `at` on that is in no pause.
    pub(crate) fn resume(self, at: u64) -> u64 {
        let into = at % self.period;
        if at >= self.period && into < self.lasting {
            at.saturating_add(self.lasting - into)
        } else {
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_skips_pauses() {
        let pauses = Pauses {
            lasting: 3,
            period: 10,
        };
        // Work until 10, pause until 13, work until 20, pause until 23.
        assert_eq!(pauses.end(2, 8), 10);
        assert_eq!(pauses.end(2, 9), 14);
        assert_eq!(pauses.end(11, 1), 14);
        assert_eq!(pauses.end(11, 7), 20);
        assert_eq!(pauses.end(11, 8), 24);
        assert_eq!(pauses.end(2, 8 + 7 + 7 + 1), 34);
        assert_eq!(pauses.resume(12), 13);
        assert_eq!(pauses.resume(1), 1);
        assert_eq!(Pauses::new(None).end(7, 8), 15);
    }
}
