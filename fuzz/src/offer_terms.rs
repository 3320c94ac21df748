//! The fields with the terms of a request for offers.

use posthaste_qos::Money;
use posthaste_qos::selection::{LatencyBound, Percentile};
use posthaste_units::{Ratio, Span};

use crate::within;

/// Any text as `Max-Latency`, `Max-Price` and `Min-Reliability`: a bound is understood only in its form, with the time
/// that stands there.
pub fn offer_terms(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let bound = within("a latency bound", bytes.len(), 8, 256, || {
        text.parse::<LatencyBound>().ok()
    });
    if let Some(bound) = bound {
        let (time, parameter) = text.split_once(';').unwrap_or((text, "p=99"));
        assert_eq!(time.trim().parse::<Span>(), Ok(bound.most), "{text:?}");
        let percentile = match parameter.trim() {
            "p=50" => Percentile::P50,
            "p=99" => Percentile::P99,
            other => panic!("{other:?} is no percentile"),
        };
        assert_eq!(bound.percentile, percentile, "{text:?}");
    }
    let _ = (text.parse::<Money>(), Ratio::from_document(text));
}
