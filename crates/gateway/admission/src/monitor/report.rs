//! Counts of deliveries and their verdict on each promise.

use posthaste_units::Span;

use super::Promise;

/// Name of a processing time in the vocabulary of offers.
pub const PROCESSING_TIME: &str = "processingTime";
/// Name of a request rate in the vocabulary of offers.
pub const REQUESTS_PER_SECOND: &str = "requestsPerSecond";

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Served well, in this time.
    Served(Span),
    /// Admitted, but not served well.
    Failed,
    /// Rejected.
    Refused,
}

/// Counts of requests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests served well.
    pub served: u64,
    /// Requests served well, but later than promised.
    pub late: u64,
    /// Requests admitted and not served well.
    pub failed: u64,
    /// Requests rejected.
    pub refused: u64,
    /// Sum of the times of the requests served well.
    pub time: Span,
}

/// Verdict on a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The promise was kept.
    Kept,
    /// The promise was broken.
    Broken,
    /// Too few requests for a verdict.
    Unknown,
}

/// One promise and its delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judged {
    /// Promised minimum; `None` without a promise.
    pub promised: Option<f64>,
    /// Delivered value; `None` without a request that shows it.
    pub delivered: Option<f64>,
    /// Verdict; `None` without a promise.
    pub verdict: Option<Verdict>,
}

/// Counts of the last one to two windows and a verdict on each promise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The requests.
    pub seen: Tally,
    /// Length of the observed time.
    pub over: Span,
    /// Share of the requests served well that met the promised time.
    pub processing_time: Judged,
    /// Requests served well, per second.
    pub rate: Judged,
    /// Share of the admitted requests that were served well.
    pub reliability: Judged,
    /// Share of the requests that were admitted.
    pub availability: Judged,
}

impl Verdict {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

impl Tally {
    /// Number of all requests.
    pub const fn requests(&self) -> u64 {
        self.served + self.failed + self.refused
    }

    /// Mean time of the requests served well.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.time.as_secs_f64() / self.served as f64;
        (self.served > 0).then(|| Span::from_secs_f64(mean))
    }

    pub(super) fn add(&mut self, delivery: Delivery, limit: Option<Span>) {
        match delivery {
            Delivery::Served(time) => {
                self.served += 1;
                self.late += u64::from(limit.is_some_and(|limit| time > limit));
                self.time += time;
            }
            Delivery::Failed => self.failed += 1,
            Delivery::Refused => self.refused += 1,
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            served: self.served + other.served,
            late: self.late + other.late,
            failed: self.failed + other.failed,
            refused: self.refused + other.refused,
            time: self.time + other.time,
        }
    }
}

impl Report {
    /// Judges the counts `seen` over a time against a promise. `share` of the requests must meet the processing time.
    pub(super) fn new(seen: Tally, over: Span, promise: &Promise, share: f64) -> Self {
        let entered = seen.served + seen.failed;
        let processing_time = match promise.processing_time {
            Some(_) => Judged::share(seen.served - seen.late, seen.served, Some(share)),
            None => Judged::default(),
        };
        let reliability = promise.reliability.map(|least| least.get());
        let availability = promise.availability.map(|least| least.get());
        Self {
            seen,
            over,
            processing_time,
            rate: Judged::rate(&seen, over, promise.rate),
            reliability: Judged::share(seen.served, entered, reliability),
            availability: Judged::share(entered, seen.requests(), availability),
        }
    }

    /// Every promise with its name in the vocabulary of offers.
    pub const fn judged(&self) -> [(&'static str, Judged); 4] {
        [
            (PROCESSING_TIME, self.processing_time),
            (REQUESTS_PER_SECOND, self.rate),
            ("reliability", self.reliability),
            ("availability", self.availability),
        ]
    }

    /// Returns true if any promise was broken.
    pub fn is_broken(&self) -> bool {
        let mut verdicts = self.judged().into_iter();
        verdicts.any(|(_, judged)| judged.verdict == Some(Verdict::Broken))
    }
}

impl Judged {
    fn share(good: u64, count: u64, promised: Option<f64>) -> Self {
        Self {
            promised,
            delivered: (count > 0).then(|| good as f64 / count as f64),
            verdict: promised.map(|least| judge(good, count, least)),
        }
    }

    fn rate(seen: &Tally, over: Span, promised: Option<f64>) -> Self {
        let per_second = |count: u64| count as f64 / over.as_secs_f64().max(1e-9);
        let (served, requested) = (per_second(seen.served), per_second(seen.requests()));
        Self {
            promised,
            delivered: (seen.requests() > 0).then_some(served),
            verdict: promised.map(|promised| match () {
                () if served >= promised => Verdict::Kept,
                () if requested >= promised => Verdict::Broken,
                () => Verdict::Unknown,
            }),
        }
    }
}

/// Minimum number of requests for a verdict. Wilson's interval is too confident below.
const FEWEST: u64 = 20;

/// Judges from `good` of `count` if the share of good requests is at least `least`. Returns [`Verdict::Unknown`] if a
/// confidence of 95 % does not decide it.
fn judge(good: u64, count: u64, least: f64) -> Verdict {
    if count < FEWEST {
        return Verdict::Unknown;
    }
    let (count, z2) = (count as f64, 1.96 * 1.96);
    let share = good as f64 / count;
    let middle = (share + z2 / (2.0 * count)) / (1.0 + z2 / count);
    let spread = (share * (1.0 - share) / count + z2 / (4.0 * count * count)).sqrt();
    let half = 1.96 * spread / (1.0 + z2 / count);
    match () {
        () if middle - half >= least => Verdict::Kept,
        () if middle + half < least => Verdict::Broken,
        () => Verdict::Unknown,
    }
}
