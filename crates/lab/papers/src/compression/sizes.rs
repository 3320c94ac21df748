//! Lengths of a proxy's plain and compressed replies, and the compressed share of a run derived from them.
//!
//! Third-party proxies do not report their compressed replies. If every reply has one of two lengths, the bytes
//! determine the share.

use std::sync::atomic::AtomicBool;

use posthaste_compression::Wish;
use posthaste_load::{Connections, Pace};
use posthaste_study::Failure;
use posthaste_units::Span;

use crate::testbed::Testbed;
use crate::testbed::measured::MeasuredRun;
use crate::testbed::proxy::ProxyUnderTest;

/// Bytes of a reply with its header. NaN if stopped.
pub(super) struct Sizes {
    plain: f64,
    packed: f64,
}

impl Sizes {
    /// Measures an idle proxy's replies to clients without `Accept-Encoding` and to clients that ask for compression.
    pub(super) fn measure(
        testbed: &Testbed,
        proxy: &ProxyUnderTest,
        stop: &AtomicBool,
    ) -> Result<Self, Failure> {
        let bytes = |wish, accepts: bool| {
            let pace = Pace::Closed {
                clients: 1,
                length: Span::from_millis(50),
            };
            let mut plan = testbed.plan(proxy, &[(wish, 1.0)], Connections::KeepAlive, pace);
            let fields = &mut plan.requests[0].headers;
            fields.retain(|(name, _)| accepts || name != "Accept-Encoding");
            let measured = proxy.measure(&plan, stop)?;
            Ok::<_, Failure>(measured.map_or(f64::NAN, |measured| measured.bytes()))
        };
        Ok(Self {
            plain: bytes(Wish::Never, false)?,
            packed: bytes(Wish::Always, true)?,
        })
    }

    /// Compressed share of a run's replies.
    pub(super) fn share(&self, measured: &MeasuredRun) -> f64 {
        match self.plain - self.packed {
            saved if saved > 1.0 => (self.plain - measured.bytes()) / saved,
            unknown if unknown.is_nan() => f64::NAN,
            _ => 0.0,
        }
    }
}
