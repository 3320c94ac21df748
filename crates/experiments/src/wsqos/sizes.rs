//! How long a proxy's replies are plain and compressed, and which share of a run's was compressed therefore.
//!
//! Proxies that are not ours do not say what they have compressed; where every reply has one of two lengths,
//! the bytes do.

use std::sync::atomic::AtomicBool;

use posthaste_load::{Connections, Pace};
use posthaste_units::Span;
use posthaste_wsqos::Wish;

use super::measured::Measured;
use super::rig::{Rig, Stand};
use crate::figure::Failure;

/// Bytes of a reply, its header included; not a number where it was stopped.
pub(super) struct Sizes {
    plain: f64,
    packed: f64,
}

impl Sizes {
    /// Of an idle proxy's replies to clients that know nothing of compression, and to those that ask.
    pub(super) fn of(rig: &Rig, stand: &Stand, stop: &AtomicBool) -> Result<Self, Failure> {
        let bytes = |wish, accepts: bool| {
            let pace = Pace::Closed {
                clients: 1,
                length: Span::from_millis(50),
            };
            let mut plan = rig.plan(stand, &[(wish, 1.0)], Connections::KeepAlive, pace);
            let fields = &mut plan.requests[0].headers;
            fields.retain(|(name, _)| accepts || name != "Accept-Encoding");
            let measured = rig.measure(stand, &plan, stop)?;
            Ok::<_, Failure>(measured.map_or(f64::NAN, |measured| measured.bytes()))
        };
        Ok(Self {
            plain: bytes(Wish::Never, false)?,
            packed: bytes(Wish::Always, true)?,
        })
    }

    /// Which share of a run's replies was compressed.
    pub(super) fn share(&self, measured: &Measured) -> f64 {
        match self.plain - self.packed {
            saved if saved > 1.0 => (self.plain - measured.bytes()) / saved,
            unknown if unknown.is_nan() => f64::NAN,
            _ => 0.0,
        }
    }
}
