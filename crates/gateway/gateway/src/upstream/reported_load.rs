//! An upstream's report of its own busy share, from a field of its replies.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use posthaste_units::{Instant, Ratio, Span};

/// The last report.
#[derive(Debug, Default)]
pub(crate) struct ReportedLoad {
    share: AtomicU32,
    /// Time of the report, from [`now`](crate::clock::now); 0 for never.
    at: AtomicU64,
}

impl ReportedLoad {
    /// Records a share, as `0.83` or `83%`. Other values are ignored.
    pub(crate) fn note(&self, field: &str, now: Instant) {
        if let Ok(share) = Ratio::from_document(field) {
            self.share.store((share.get() as f32).to_bits(), Relaxed);
            self.at.store(now.as_nanos(), Relaxed);
        }
    }

    /// The share, if it was reported within `limit` before `now`.
    pub(crate) fn within(&self, limit: Span, now: Instant) -> Option<f64> {
        let at = self.at.load(Relaxed);
        // Another thread may have stored a later time.
        let fresh = at != 0 && now.saturating_since(Instant::from_nanos(at)) <= limit;
        fresh.then(|| f32::from_bits(self.share.load(Relaxed)).into())
    }
}
