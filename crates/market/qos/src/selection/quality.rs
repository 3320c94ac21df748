//! Measured quality: response times and failures in a sliding window.

use posthaste_units::{Instant, LogBucket, Span};

/// Minimum number of requests in a window for a judgement. A p99 of fewer is their maximum, so one slow request of
/// a cold connection would decide.
pub const MIN_REQUESTS: u32 = 20;

/// Slots of a window. A slot that is older than the window is forgotten as a whole, so 7/8 of the window are always
/// covered.
const SLOTS: usize = 8;

/// Times below 2^17 ns (131 µs) share the first bucket: no bound of a request over a network is shorter.
const FIRST_OCTAVE: u32 = 17;
/// Powers of two with buckets, up to 2^36 ns (69 s). Longer times are slower than any bound.
const OCTAVES: u32 = 19;
/// Times are counted in units of 2^UNIT ns. 2^FIRST_OCTAVE ns is then the first number whose power of two is divided.
const UNIT: u32 = FIRST_OCTAVE - LogBucket::PARTS.ilog2();
/// Difference between the numbers of a [`LogBucket`] and of a bucket here: all undivided ones are the first bucket.
const SHORTER: usize = LogBucket::PARTS - 1;
const BUCKETS: usize = 2 + OCTAVES as usize * LogBucket::PARTS;
/// The bucket of failures and of times above all octaves.
const UNBOUNDED: usize = BUCKETS - 1;

/// Ticks for which requests in flight are counted apart. Older ones share one count.
const TICKS: usize = 64;
/// Length of a tick. A request that hangs is noticed this much late at most.
const TICK: Span = Span::from_millis(250);

/// Response times and failures of one class of offers in the last window.
#[derive(Clone, Debug)]
pub struct QualityWindow {
    slot_length: Span,
    /// Number of the current slot since the origin of time.
    slot: u64,
    /// Empty until the first request has ended: most offers of a broker never get one.
    slots: Vec<WindowSlot>,
    in_flight: InFlight,
}

/// The tick in which a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartTick(u64);

/// End of a measured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredEnd {
    /// Answered after this time.
    Served(Span),
    /// Failed, or abandoned by its client after a time in which an answer was due.
    Failed,
    /// Says nothing about the offer: its client failed.
    Unjudged,
}

/// Summary of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredQuality {
    /// Requests that ended in the window.
    pub requests: u32,
    /// Failed ones of them.
    pub failures: u32,
    /// Requests in flight for longer than the 99th percentile of the served ones.
    pub overdue: u32,
    /// Median of the served requests alone. `None` without one.
    pub usual: Option<Span>,
    /// Upper bound of the median. [`Span::MAX`] is slower than any bound.
    pub p50: Span,
    /// Upper bound of the 99th percentile. [`Span::MAX`] is slower than any bound.
    pub p99: Span,
}

#[derive(Clone, Debug)]
struct WindowSlot {
    counts: [u32; BUCKETS],
    /// Sum of `counts`.
    ended: u32,
    failures: u32,
}

/// Requests in flight by the tick in which they were sent.
#[derive(Clone, Debug)]
struct InFlight {
    /// Number of the newest tick.
    tick: u64,
    counts: [u32; TICKS],
    /// Requests of earlier ticks.
    older: u32,
    /// Requests of all ticks.
    total: u32,
}

impl MeasuredQuality {
    /// True if there are enough requests for a judgement.
    pub const fn is_enough(&self) -> bool {
        self.seen() >= MIN_REQUESTS
    }

    /// Requests on which the percentiles rest.
    pub const fn seen(&self) -> u32 {
        self.requests.saturating_add(self.overdue)
    }

    /// Share of the ended requests that did not fail, 0 to 1. 1 without one.
    pub fn success(&self) -> f64 {
        match self.requests {
            0 => 1.0,
            requests => 1.0 - f64::from(self.failures) / f64::from(requests),
        }
    }
}

impl QualityWindow {
    /// Creates an empty window of this length, at least 8 ns.
    pub fn new(window: Span) -> Self {
        let slot_length = window / SLOTS as u64;
        assert!(!slot_length.is_zero(), "a window has no length");
        Self {
            slot_length,
            slot: 0,
            slots: Vec::new(),
            in_flight: InFlight {
                tick: 0,
                counts: [0; TICKS],
                older: 0,
                total: 0,
            },
        }
    }

    /// Counts a request that is sent now.
    pub fn start(&mut self, now: Instant) -> StartTick {
        self.in_flight.start(now)
    }

    /// Counts the end of a request. Each [`QualityWindow::start`] needs one.
    pub fn end(&mut self, started: StartTick, now: Instant, end: MeasuredEnd) {
        self.in_flight.end(started);
        self.advance(now);
        self.slots.resize(SLOTS, WindowSlot::EMPTY);
        let slot = &mut self.slots[(self.slot % SLOTS as u64) as usize];
        let bucket = match end {
            MeasuredEnd::Unjudged => return,
            MeasuredEnd::Served(time) => bucket(time),
            MeasuredEnd::Failed => {
                slot.failures = slot.failures.saturating_add(1);
                UNBOUNDED
            }
        };
        slot.counts[bucket] = slot.counts[bucket].saturating_add(1);
        slot.ended = slot.ended.saturating_add(1);
    }

    /// Returns the summary of the window that ends now.
    ///
    /// A request in flight counts with its age so far, if that is above the p99 of the served ones: an endpoint that
    /// hangs is noticed before its requests time out. Younger ones say nothing yet. An age is less than the time in the
    /// end, so requests in flight never lower a percentile.
    pub fn quality(&mut self, now: Instant) -> MeasuredQuality {
        self.advance(now);
        if self.is_empty() {
            return MeasuredQuality::default();
        }
        let mut counts = [0_u32; BUCKETS];
        let mut failures = 0_u32;
        for slot in &self.slots {
            let pairs = counts.iter_mut().zip(&slot.counts);
            pairs.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            failures = failures.saturating_add(slot.failures);
        }
        let ended = counts;
        let mut served = ended;
        served[UNBOUNDED] = 0;
        let slow = quantile(&served, 99);
        let mut overdue = 0_u32;
        self.in_flight.for_each_age(now, |age, count| {
            let bucket = bucket(age);
            if upper_edge(bucket) > slow && !age.is_zero() {
                counts[bucket] = counts[bucket].saturating_add(count);
                overdue = overdue.saturating_add(count);
            }
        });
        let percentile = |percent| quantile(&ended, percent).max(quantile(&counts, percent));
        let quality = MeasuredQuality {
            requests: total(&ended).try_into().unwrap_or(u32::MAX),
            failures,
            overdue,
            usual: (total(&served) > 0).then(|| quantile(&served, 50)),
            p50: percentile(50),
            p99: percentile(99),
        };
        debug_assert!(
            quality.failures <= quality.requests && quality.p50 <= quality.p99,
            "failures are ended requests: {quality:?}"
        );
        quality
    }

    /// True without a request in the window or in flight.
    fn is_empty(&self) -> bool {
        self.in_flight.total == 0 && self.slots.iter().all(|slot| slot.ended == 0)
    }

    /// Forgets slots that are older than the window.
    fn advance(&mut self, now: Instant) {
        let slot = now.as_nanos() / self.slot_length.as_nanos();
        if slot <= self.slot {
            return;
        }
        let forgotten = (slot - self.slot).min(self.slots.len() as u64);
        for number in slot + 1 - forgotten..=slot {
            self.slots[(number % SLOTS as u64) as usize] = WindowSlot::EMPTY;
        }
        self.slot = slot;
    }
}

impl WindowSlot {
    const EMPTY: Self = Self {
        counts: [0; BUCKETS],
        ended: 0,
        failures: 0,
    };
}

impl InFlight {
    fn start(&mut self, now: Instant) -> StartTick {
        let tick = now.as_nanos() / TICK.as_nanos();
        self.advance(tick);
        self.counts[(self.tick % TICKS as u64) as usize] += 1;
        self.total += 1;
        StartTick(self.tick)
    }

    fn end(&mut self, StartTick(tick): StartTick) {
        debug_assert!(
            tick <= self.tick,
            "a request ends in a window where it began"
        );
        let count = if self.tick - tick < TICKS as u64 {
            &mut self.counts[(tick % TICKS as u64) as usize]
        } else {
            &mut self.older
        };
        debug_assert!(*count > 0, "a request ends that did not start");
        *count = count.saturating_sub(1);
        self.total = self.total.saturating_sub(1);
        debug_assert_eq!(
            self.older + self.counts.iter().sum::<u32>(),
            self.total,
            "each request in flight is counted in one tick"
        );
    }

    fn advance(&mut self, tick: u64) {
        if tick <= self.tick {
            return;
        }
        let moved = (tick - self.tick).min(TICKS as u64);
        for number in tick + 1 - moved..=tick {
            let count = &mut self.counts[(number % TICKS as u64) as usize];
            self.older += std::mem::take(count);
        }
        self.tick = tick;
    }

    /// Calls with the minimum age and the number of the requests of each tick.
    fn for_each_age(&self, now: Instant, mut take: impl FnMut(Span, u32)) {
        for back in 0..TICKS as u64 {
            let Some(tick) = self.tick.checked_sub(back) else {
                break;
            };
            let count = self.counts[(tick % TICKS as u64) as usize];
            if count > 0 {
                let end = Instant::from_nanos((tick + 1) * TICK.as_nanos());
                take(now.saturating_since(end), count);
            }
        }
        if self.older > 0 {
            let end = self.tick.saturating_sub(TICKS as u64 - 1);
            let end = Instant::from_nanos(end * TICK.as_nanos());
            take(now.saturating_since(end), self.older);
        }
    }
}

/// The bucket of a time.
fn bucket(time: Span) -> usize {
    let bucket = LogBucket::containing(time.as_nanos() >> UNIT);
    bucket.0.saturating_sub(SHORTER).min(UNBOUNDED)
}

/// Least time above all times of a bucket.
fn upper_edge(bucket: usize) -> Span {
    if bucket == UNBOUNDED {
        return Span::MAX;
    }
    Span::from_nanos(LogBucket(bucket + SHORTER).end() << UNIT)
}

fn total(counts: &[u32; BUCKETS]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// Upper edge of the bucket in which the percentile lies (nearest rank). Zero without requests.
fn quantile(counts: &[u32; BUCKETS], percent: u64) -> Span {
    let rank = (total(counts) * percent).div_ceil(100);
    let mut sum = 0;
    let found = counts.iter().position(|count| {
        sum += u64::from(*count);
        sum >= rank
    });
    match (rank, found) {
        (0, _) | (_, None) => Span::ZERO,
        (_, Some(bucket)) => upper_edge(bucket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_the_times_below_its_edge() {
        for bucket_index in 0..UNBOUNDED {
            let edge = upper_edge(bucket_index).as_nanos();
            assert_eq!(bucket(Span::from_nanos(edge - 1)), bucket_index);
            assert_eq!(bucket(Span::from_nanos(edge)), bucket_index + 1);
        }
        assert_eq!(bucket(Span::MAX), UNBOUNDED);
        assert_eq!(bucket(Span::ZERO), 0);
    }
}
