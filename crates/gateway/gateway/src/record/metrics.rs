//! Counters of a gateway: replies by status, decisions by preference, origin and reason, marks, compressions by step,
//! failures by kind, and times.
//!
//! Counters are arrays with one entry per possible label value: counting is one addition, and no label comes from
//! outside. `exposition` formats them for Prometheus.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use posthaste_compression::{
    LoadEstimate, Origin, Preference, REASONS, Reason, STEPS, ScanResult, Step, Wish, Work,
};
use posthaste_qos::marking::{Mark, MarkOrigin};
use posthaste_units::Span;

use super::fine_histogram::FineHistogram;
use super::grpc_counters::GrpcCounters;
use super::outcomes::Outcomes;
use super::times::{RouteTimes, TimeHistogram};
use super::tunnels::TunnelCounters;
use super::upstream_counters::UpstreamCounters;

/// Request fields that may be unreadable, in the order in which they are counted.
pub(crate) const UNREAD: [&str; 5] = [
    "accept-encoding",
    "prefer",
    "transport-priorities",
    "x-forwarded-for",
    "forwarded",
];

/// Fields about the client of a trusted proxy, as positions in [`UNREAD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreadField {
    ForwardedFor = 3,
    Forwarded = 4,
}

/// Versions of unreadable requests, in the order in which they are counted.
pub(crate) const VERSIONS: [&str; 2] = ["HTTP/1.1", "HTTP/2"];

/// Kinds of failures of upstreams, in the order in which they are counted.
pub(crate) const FAILURES: [&str; 12] = [
    "none-healthy",
    "connect",
    "connect-timeout",
    "broken",
    "reply-timeout",
    "codec",
    "stalled",
    "closed",
    "switched",
    "not-http2",
    "deadline",
    "unresolved",
];

/// Counters since the start, shared by all threads.
#[derive(Debug)]
pub(crate) struct GatewayMetrics {
    /// By status code minus 100.
    pub(crate) replies: [AtomicU64; 900],
    pub(crate) compression: CompressionCounters,
    pub(crate) scans: [AtomicU64; ScanResult::NAMES.len()],
    /// In the order of [`UNREAD`].
    pub(crate) unread: [AtomicU64; UNREAD.len()],
    /// Requests that the parser refused, in the order of [`VERSIONS`].
    pub(crate) unreadable: [AtomicU64; VERSIONS.len()],
    pub(crate) marks: MarkCounters,
    /// Requests over plain HTTP redirected to HTTPS.
    pub(crate) redirected: AtomicU64,
    /// Requests that waited for a permit.
    pub(crate) queued: AtomicU64,
    pub(crate) failures: [AtomicU64; FAILURES.len()],
    pub(crate) upstreams: UpstreamCounters,
    pub(crate) grpc: GrpcCounters,
    /// From a request's head to the head of its reply, and the upstream's part of it.
    pub(crate) service: TimeHistogram,
    pub(crate) upstream: TimeHistogram,
    /// Times of requests without a route.
    pub(crate) unrouted: RouteTimes,
    pub(crate) ends: EndCounters,
    /// Optional compression, by thread.
    pub(crate) work: Vec<ThreadWork>,
    pub(crate) estimates: ThreadEstimates,
    pub(crate) tunnels: TunnelCounters,
}

/// Decisions about compression, and compressions carried out.
#[derive(Debug, Default)]
pub(crate) struct CompressionCounters {
    pub(crate) decisions: [[AtomicU64; REASONS.len()]; Wish::ALL.len()],
    /// Replies that a dry run left uncompressed, by the reason for which the policy would compress them.
    pub(crate) would_compress: [AtomicU64; REASONS.len()],
    pub(crate) origins: [AtomicU64; Origin::ALL.len()],
    pub(crate) steps: [StepCounters; STEPS.len()],
    /// Replies whose compressed form was cached.
    pub(crate) cached: StepCounters,
}

/// Marks of replies and of connections to upstreams.
#[derive(Debug)]
pub(crate) struct MarkCounters {
    /// Replies by origin and code point.
    pub(crate) replies: [[AtomicU64; 64]; MarkOrigin::ALL.len()],
    /// Replies whose client requested a mark that is not allowed.
    pub(crate) denied: AtomicU64,
    /// Connections to upstreams that the kernel refused to mark.
    pub(crate) refused: AtomicU64,
}

/// Ends of requests.
#[derive(Debug, Default)]
pub(crate) struct EndCounters {
    /// Times of requests that an upstream answered with a status below 500.
    pub(crate) answered: FineHistogram,
    /// Admitted requests that got a reply 5xx or none.
    pub(crate) failed: AtomicU64,
    /// Replies of admission to requests that it refused, by the first digit of their status.
    pub(crate) refused: [AtomicU64; 10],
    /// Requests without a reply: the client left, or its connection was ended.
    pub(crate) cancelled: AtomicU64,
}

/// Replies compressed with one step, or taken from the cache.
#[derive(Debug, Default)]
pub(crate) struct StepCounters {
    pub(crate) replies: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) written: AtomicU64,
    pub(crate) nanos: AtomicU64,
}

/// The current load estimate of each thread.
#[derive(Debug)]
pub(crate) struct ThreadEstimates(Mutex<Vec<LoadEstimate>>);

/// The last published [`Work`] of one thread, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadWork {
    wanted: AtomicU64,
    spent: AtomicU64,
}

impl GatewayMetrics {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            replies: [const { AtomicU64::new(0) }; 900],
            compression: CompressionCounters::default(),
            scans: Default::default(),
            unread: Default::default(),
            unreadable: Default::default(),
            marks: MarkCounters {
                replies: [const { [const { AtomicU64::new(0) }; 64] }; MarkOrigin::ALL.len()],
                denied: AtomicU64::new(0),
                refused: AtomicU64::new(0),
            },
            redirected: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            failures: Default::default(),
            upstreams: UpstreamCounters::default(),
            grpc: GrpcCounters::default(),
            service: TimeHistogram::default(),
            upstream: TimeHistogram::default(),
            unrouted: RouteTimes::default(),
            ends: EndCounters::default(),
            work: (0..threads).map(|_| ThreadWork::default()).collect(),
            tunnels: TunnelCounters::default(),
            estimates: ThreadEstimates(Mutex::new(vec![LoadEstimate::UNKNOWN; threads])),
        }
    }

    pub(crate) fn replied(&self, status: u16) {
        if let Some(counter) = self.replies.get(usize::from(status).wrapping_sub(100)) {
            add(counter, 1);
        }
    }

    pub(crate) fn decided(&self, preference: Preference, reason: Reason) {
        add(
            &self.compression.decisions[preference.wish as usize][reason.index()],
            1,
        );
        add(&self.compression.origins[preference.origin as usize], 1);
    }

    pub(crate) fn would_compress(&self, reason: Reason) {
        add(&self.compression.would_compress[reason.index()], 1);
    }

    /// Counts the scan for a SOAP header, if one took place, and unreadable fields in the order of [`UNREAD`].
    pub(crate) fn preferences(&self, scan: Option<ScanResult>, unread: [bool; 3]) {
        if let Some(seen) = scan {
            add(&self.scans[seen.index()], 1);
        }
        for (counter, unread) in self.unread.iter().zip(unread) {
            if unread {
                add(counter, 1);
            }
        }
    }

    /// Counts a field about the client that is not believed.
    pub(crate) fn unread(&self, field: UnreadField) {
        add(&self.unread[field as usize], 1);
    }

    pub(crate) fn marked(&self, mark: Mark) {
        let by_mark = &self.marks.replies[mark.origin as usize];
        add(&by_mark[usize::from(mark.dscp.get())], 1);
        if mark.denied {
            add(&self.marks.denied, 1);
        }
    }

    /// Counts a connection to an upstream that the kernel did not mark. The connection is used without a mark.
    pub(crate) fn mark_refused(&self, error: &io::Error) {
        if self.marks.refused.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(%error, "the kernel refuses to mark packets to an upstream");
        }
    }

    pub(crate) fn redirected(&self) {
        add(&self.redirected, 1);
    }

    pub(crate) fn queued(&self, waited: bool) {
        if waited {
            add(&self.queued, 1);
        }
    }

    pub(crate) fn failed(&self, kind: usize) {
        add(&self.failures[kind], 1);
    }

    pub(crate) fn compressed(&self, step: Step, read: u64, written: u64, spent: Span) {
        self.compression.steps[step.index()].add(read, written, spent);
    }

    pub(crate) fn cached(&self, read: usize, written: usize) {
        self.compression
            .cached
            .add(read as u64, written as u64, Span::ZERO);
    }

    /// Requests by outcome.
    pub(crate) fn outcomes(&self) -> Outcomes {
        let replied = |class: usize| -> u64 {
            let replies = &self.replies[class * 100 - 100..class * 100];
            replies.iter().map(|count| count.load(Relaxed)).sum()
        };
        let refused = |class: usize| self.ends.refused[class].load(Relaxed);
        let answered = |classes: std::ops::Range<usize>| {
            let answered = classes.map(|class| replied(class).saturating_sub(refused(class)));
            answered.sum()
        };
        Outcomes {
            succeeded: answered(1..4),
            client_errors: answered(4..5),
            refused: (1..10).map(refused).sum(),
            server_errors: answered(5..10),
            cancelled: self.ends.cancelled.load(Relaxed),
            failed: self.ends.failed.load(Relaxed),
        }
    }

    /// Optional compression of all threads.
    pub(crate) fn work(&self) -> Work {
        let mut sum = Work::default();
        for worked in &self.work {
            sum.wanted += Span::from_nanos(worked.wanted.load(Relaxed));
            sum.spent += Span::from_nanos(worked.spent.load(Relaxed));
        }
        sum
    }
}

impl StepCounters {
    fn add(&self, read: u64, written: u64, spent: Span) {
        add(&self.replies, 1);
        add(&self.read, read);
        add(&self.written, written);
        add(&self.nanos, spent.as_nanos());
    }
}

impl ThreadEstimates {
    /// Sets the estimate of one thread. Called a few times a second.
    pub(crate) fn set(&self, thread: usize, estimate: LoadEstimate) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all[thread] = estimate;
    }

    /// Combines the estimates of all threads: sums and means. High or known if at least one thread's is.
    pub(crate) fn all(&self) -> LoadEstimate {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.len() as f32;
        let mut sum = LoadEstimate::UNKNOWN;
        for estimate in &*all {
            sum.allowance += estimate.allowance;
            sum.plenty += estimate.plenty / count;
            sum.busy += estimate.busy / count;
            sum.is_high |= estimate.is_high;
            sum.is_known |= estimate.is_known;
        }
        sum
    }
}

impl ThreadWork {
    pub(crate) fn set(&self, work: Work) {
        self.wanted.store(work.wanted.as_nanos(), Relaxed);
        self.spent.store(work.spent.as_nanos(), Relaxed);
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Relaxed);
}
