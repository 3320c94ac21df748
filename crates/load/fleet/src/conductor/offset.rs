//! Estimates an agent's clock relative to the conductor's from requests and replies.
//!
//! The exchange with the least round-trip time counts (the clock filter of RFC 5905, section 10). The agent has read its
//! clock between sending and receipt, so the error of the midpoint is at most half of the round-trip time, for any
//! asymmetry of the path. Times are CLOCK_MONOTONIC in nanoseconds; the clocks of two machines share no origin.

use posthaste_units::Span;

/// Exchanges before a run. A single one after a pause is slow, because idle cores sleep.
pub const EXCHANGES: usize = 32;

/// Exchanges of each check during a run.
pub const EXCHANGES_DURING_RUN: usize = 8;

/// A bound above this is a warning.
pub const COARSE: Span = Span::from_millis(5);

/// A bound above this is a refusal.
pub const TOO_COARSE: Span = Span::from_millis(50);

/// Drift above this between two checks is a warning: the clock of a virtual machine was set.
pub const DRIFTED: Span = Span::from_millis(5);

/// One request for an agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// Sending of the request, on the conductor's clock.
    pub sent_ns: u64,
    /// The reply's content, on the agent's clock.
    pub agent_ns: u64,
    /// Receipt of the reply, on the conductor's clock.
    pub received_ns: u64,
}

/// An agent's clock less the conductor's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// The difference in nanoseconds.
    pub offset_ns: i64,
    /// Maximum error of the difference.
    pub bound: Span,
    /// Least round-trip time.
    pub round_trip: Span,
}

/// Accuracy of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockAccuracy {
    /// Fit for a run.
    Fine,
    /// Worth a warning.
    Coarse,
    /// Not fit for a run, unless the user accepts it.
    TooCoarse,
}

/// Change of an estimate since an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDrift {
    /// Later estimate less earlier estimate, in nanoseconds.
    pub change_ns: i64,
    /// Maximum error of the change: the sum of both bounds.
    pub bound: Span,
}

/// Estimates the offset from exchanges. `None` if none is plausible: the reply before the request, or a clock that is
/// centuries away.
pub fn estimate(exchanges: &[ClockExchange]) -> Option<ClockEstimate> {
    let estimates = exchanges.iter().filter_map(ClockExchange::estimate);
    estimates.min_by_key(|estimate| estimate.round_trip)
}

impl ClockExchange {
    /// The estimate of this exchange alone.
    pub fn estimate(&self) -> Option<ClockEstimate> {
        let round_trip = self.received_ns.checked_sub(self.sent_ns)?;
        let (sent, received) = (i128::from(self.sent_ns), i128::from(self.received_ns));
        let twice = 2 * i128::from(self.agent_ns) - sent - received;
        Some(ClockEstimate {
            offset_ns: i64::try_from(twice.div_euclid(2)).ok()?,
            // Rounded up, because the midpoint is rounded.
            bound: Span::from_nanos(round_trip.div_ceil(2)),
            round_trip: Span::from_nanos(round_trip),
        })
    }
}

impl ClockEstimate {
    /// Accuracy for a common start.
    pub fn accuracy(&self) -> ClockAccuracy {
        match self.bound {
            bound if bound > TOO_COARSE => ClockAccuracy::TooCoarse,
            bound if bound > COARSE => ClockAccuracy::Coarse,
            _ => ClockAccuracy::Fine,
        }
    }

    /// An instant of the conductor on the agent's clock. `None` before the origin of that clock.
    pub fn to_agent(&self, conductor_ns: u64) -> Option<u64> {
        conductor_ns.checked_add_signed(self.offset_ns)
    }

    /// Change since `earlier`.
    pub fn drift_since(&self, earlier: &Self) -> ClockDrift {
        ClockDrift {
            change_ns: self.offset_ns.saturating_sub(earlier.offset_ns),
            bound: self.bound + earlier.bound,
        }
    }
}

impl ClockDrift {
    /// True if the clock has certainly moved by more than [`DRIFTED`].
    pub fn is_step(&self) -> bool {
        Span::from_nanos(self.change_ns.unsigned_abs()) > DRIFTED + self.bound
    }
}
