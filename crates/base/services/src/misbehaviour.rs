//! Values of the misbehaviours of a service.

use posthaste_units::{Rate, Span};

use crate::values::Percent;

/// Pauses of the whole service at fixed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Duration of a pause, shorter than the period.
    pub lasting: Span,
    /// Time from the start of a pause to the start of the next. The first one starts one period after the origin.
    pub period: Span,
}

/// A limit of the arrival rate, as a bucket of tokens that starts full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    /// Tokens per second.
    pub rate: Rate,
    /// Tokens in a full bucket, at least 1.
    pub burst: u32,
}

/// Slow service at the beginning of activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// Factor of the service time.
    pub factor: f64,
    /// Active time until full speed.
    pub lasting: Span,
}

/// Faster service after some activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warm {
    /// Divisor of the service time.
    pub factor: f64,
    /// Active time before the change.
    pub after: Span,
}

/// Slow service from an overload on, until the load is low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hysteresis {
    /// Arrival rate above which the service becomes slow.
    pub above: Rate,
    /// Arrival rate below which it recovers.
    pub below: Rate,
    /// Factor of the service time while slow.
    pub factor: f64,
}

/// Servers that are added under load and removed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autoscale {
    /// Maximum number of servers.
    pub most: u32,
    /// Time between two decisions.
    pub every: Span,
}

/// A share of requests that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorShare {
    /// Share of the served requests.
    pub share: Percent,
    /// Status of their replies, 400 to 599.
    pub status: u16,
}
