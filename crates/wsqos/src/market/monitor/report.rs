//! What was counted, and what it says of each promise.

use posthaste_units::Span;

use super::Promise;

/// What a processing time is called in the vocabulary of offers.
pub const PROCESSING_TIME: &str = "processingTime";
/// What a rate is called there.
pub const REQUESTS_PER_SECOND: &str = "requestsPerSecond";

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Answered well, in so much time.
    Served(Span),
    /// Let in, and not answered well.
    Failed,
    /// Not let in.
    Refused,
}

/// How many requests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests answered well.
    pub served: u64,
    /// Those of them that took longer than promised.
    pub late: u64,
    /// Requests let in and not answered well.
    pub failed: u64,
    /// Requests not let in.
    pub refused: u64,
    /// What those answered well took in all.
    pub time: Span,
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Kept,
    /// It was not.
    Broken,
    /// Too few requests to say.
    Unknown,
}

/// One thing that can be promised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judged {
    /// What was promised, at least; `None` where nothing was.
    pub promised: Option<f64>,
    /// What was delivered; `None` where no request shows it.
    pub delivered: Option<f64>,
    /// Whether that is enough; `None` where nothing was promised.
    pub verdict: Option<Verdict>,
}

/// What was seen in the last one to two windows, and what it says of each promise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The requests.
    pub seen: Tally,
    /// Over how long.
    pub over: Span,
    /// The share of those answered well that kept the promised time.
    pub processing_time: Judged,
    /// Requests answered well per second.
    pub rate: Judged,
    /// The share of those let in that were answered well.
    pub reliability: Judged,
    /// The share that was let in.
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
    /// All of them.
    pub const fn asked(&self) -> u64 {
        self.served + self.failed + self.refused
    }

    /// How long those answered well took in the mean.
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
    /// Holds what was `seen` in so long against a promise; `share` of the requests must keep its processing time.
    pub(super) fn of(seen: Tally, over: Span, promise: &Promise, share: f64) -> Self {
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
            availability: Judged::share(entered, seen.asked(), availability),
        }
    }

    /// Everything that can be promised, by its name in the vocabulary of offers.
    pub const fn judged(&self) -> [(&'static str, Judged); 4] {
        [
            (PROCESSING_TIME, self.processing_time),
            (REQUESTS_PER_SECOND, self.rate),
            ("reliability", self.reliability),
            ("availability", self.availability),
        ]
    }

    /// Whether any promise was broken.
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
        let (served, asked) = (per_second(seen.served), per_second(seen.asked()));
        Self {
            promised,
            delivered: (seen.asked() > 0).then_some(served),
            verdict: promised.map(|promised| match () {
                () if served >= promised => Verdict::Kept,
                () if asked >= promised => Verdict::Broken,
                () => Verdict::Unknown,
            }),
        }
    }
}

/// Fewer requests are no ground for a verdict: Wilson's interval says too much of a handful.
const FEWEST: u64 = 20;

/// Whether at least `least` of all are good, if `good` of `count` seen were: where 95 % certainty leaves
/// it open, it is not known.
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
