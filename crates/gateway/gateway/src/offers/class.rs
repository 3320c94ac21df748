//! Measurements of one class of offers, shared by all threads.
//!
//! A class is the provider, the endpoint and the name of the offer before `@`. A provider with moving prices publishes
//! `standard@0.30` and `standard@0.31` for the same service, and each of these names alone would never be measured
//! enough.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::Response;
use posthaste_qos::selection::{
    MeasuredEnd, MeasuredQuality, PassReason, QualityWindow, StartTick,
};
use posthaste_units::{Instant, Span};

use crate::clock::now;
use crate::upload_progress::{Upload, UploadProgress};
use crate::upstream::error::UpstreamError;
use crate::upstream::grpc_outcome::is_failed_call;

/// Time after which an abandoned request counts as failed, if nothing is promised or known.
const UNKNOWN: Span = Span::from_secs(1);

/// Identity of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClassKey {
    pub(crate) provider: String,
    /// Name of the offers before `@`.
    pub(crate) name: String,
    /// Scheme, host and port.
    pub(crate) origin: String,
}

/// The measurements of a class.
#[derive(Debug)]
pub(crate) struct OfferClass {
    pub(crate) key: ClassKey,
    window: Mutex<QualityWindow>,
    /// Time in which an answer is due, in nanoseconds: the median of the served requests, or the promise.
    due: AtomicU64,
    /// Requests sent.
    pub(crate) requests: AtomicU64,
    /// Times that a decision named the class as passed over, in the order of [`PassReason::ALL`].
    pub(crate) passed: [AtomicU64; PassReason::ALL.len()],
}

/// A request under way to an offer of a class. Counts as abandoned if it is dropped.
pub(super) struct MeasuredRequest<'a> {
    class: &'a OfferClass,
    tick: StartTick,
    sent: Instant,
    upload: Upload,
    is_over: bool,
}

impl OfferClass {
    pub(super) fn new(key: ClassKey, window: Span) -> Self {
        Self {
            key,
            window: Mutex::new(QualityWindow::new(window)),
            due: AtomicU64::new(UNKNOWN.as_nanos()),
            requests: AtomicU64::new(0),
            passed: Default::default(),
        }
    }

    /// Summarises the window, and sets the time in which an answer is due.
    pub(super) fn judge(&self, now: Instant, promised: Option<Span>) -> MeasuredQuality {
        let quality = self.window().quality(now);
        // Without failures and requests in flight: those of an endpoint that hangs would put their own end off.
        let usual = quality.usual.filter(|_| quality.is_enough());
        let due = usual.or(promised).unwrap_or(UNKNOWN);
        self.due.store(due.as_nanos(), Relaxed);
        quality
    }

    /// Counts that a decision names the class as passed over.
    pub(super) fn pass(&self, reason: PassReason) {
        self.passed[reason as usize].fetch_add(1, Relaxed);
    }

    /// Counts a request that is sent now.
    pub(super) fn start(&self, upload: Upload) -> MeasuredRequest<'_> {
        let sent = now();
        self.requests.fetch_add(1, Relaxed);
        MeasuredRequest {
            class: self,
            tick: self.window().start(sent),
            sent,
            upload,
            is_over: false,
        }
    }

    /// A panic with the lock held cannot leave the counts inconsistent.
    fn window(&self) -> MutexGuard<'_, QualityWindow> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MeasuredRequest<'_> {
    /// Counts the outcome.
    ///
    /// | outcome | counts as |
    /// |---|---|
    /// | a status from 500 on, 402, 429, a failed gRPC call | failed: the offer was not delivered |
    /// | another reply | served after this time, without the time spent waiting for the client |
    /// | a failure of the upstream | failed |
    /// | a deadline of the client | abandoned |
    /// | a failure of the client or of this machine, or an endpoint that was not asked | nothing |
    pub(super) fn end<T>(mut self, outcome: Result<&Response<T>, &UpstreamError>) {
        let end = match outcome {
            Ok(reply) if is_delivered(reply) => MeasuredEnd::Served(self.time()),
            Ok(_) => MeasuredEnd::Failed,
            Err(UpstreamError::Deadline) => self.abandoned(),
            // No endpoint was asked.
            Err(UpstreamError::NoneHealthy) => MeasuredEnd::Unjudged,
            // It may be no fault of the endpoint, but the request is lost.
            Err(UpstreamError::Closed(_)) => MeasuredEnd::Failed,
            Err(failure) if failure.says_nothing() => MeasuredEnd::Unjudged,
            Err(_) => MeasuredEnd::Failed,
        };
        self.record(end);
    }

    fn record(&mut self, end: MeasuredEnd) {
        self.is_over = true;
        self.class.window().end(self.tick, now(), end);
    }

    fn time(&self) -> Span {
        let time = now().saturating_since(self.sent);
        time.saturating_sub(self.upload.waited())
    }

    /// An abandoned request counts as failed if an answer was due. With less time it says nothing, so that clients
    /// cannot make an offer look bad by leaving at once.
    fn abandoned(&self) -> MeasuredEnd {
        let progress = self.upload.progress();
        let is_sent = progress.is_none_or(UploadProgress::is_over);
        let due = Span::from_nanos(self.class.due.load(Relaxed));
        if is_sent && self.time() >= due {
            MeasuredEnd::Failed
        } else {
            MeasuredEnd::Unjudged
        }
    }
}

impl Drop for MeasuredRequest<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let end = self.abandoned();
            self.record(end);
        }
    }
}

/// True if the reply is what an offer is for. An endpoint that refuses quickly is not a fast one.
fn is_delivered<T>(reply: &Response<T>) -> bool {
    let status = reply.status();
    let is_refusal = matches!(status.as_u16(), 402 | 429);
    !status.is_server_error() && !is_refusal && !is_failed_call(reply)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn class() -> OfferClass {
        let key = ClassKey {
            provider: "ada".to_owned(),
            name: "standard".to_owned(),
            origin: "http://127.0.0.1:9001".to_owned(),
        };
        OfferClass::new(key, Span::from_secs(120))
    }

    fn counts(class: &OfferClass) -> (u32, u32) {
        let quality = class.judge(now(), None);
        (quality.requests, quality.failures)
    }

    #[test]
    fn outcomes_count_as_what_they_say_about_the_offer() {
        let reply = |status: u16| Response::builder().status(status).body(()).unwrap();
        for (status, failures) in [(200, 0), (404, 0), (402, 1), (429, 1), (500, 1), (503, 1)] {
            let class = class();
            class.start(Upload::new(None)).end(Ok(&reply(status)));
            assert_eq!(counts(&class), (1, failures), "{status}");
        }
        let refused = || UpstreamError::Connect(io::ErrorKind::ConnectionRefused.into());
        for (failure, expected) in [
            (refused(), (1, 1)),
            (UpstreamError::ReplyTimeout, (1, 1)),
            (UpstreamError::Authority, (0, 0)),
            (UpstreamError::NoneHealthy, (0, 0)),
            // Before an answer is due.
            (UpstreamError::Deadline, (0, 0)),
        ] {
            let class = class();
            class.due.store(u64::MAX, Relaxed);
            class.start(Upload::new(None)).end::<()>(Err(&failure));
            assert_eq!(counts(&class), expected, "{failure}");
        }
    }

    #[test]
    fn abandoned_requests_count_while_most_requests_fail() {
        let class = class();
        let reply = Response::builder().status(500).body(()).unwrap();
        (0..20).for_each(|_| class.start(Upload::new(None)).end(Ok(&reply)));
        class.judge(now(), Some(Span::ZERO));
        drop(class.start(Upload::new(None)));
        assert_eq!(counts(&class), (21, 21));
    }

    #[test]
    fn an_abandoned_request_counts_if_an_answer_was_due() {
        let class = class();
        class.due.store(u64::MAX, Relaxed);
        drop(class.start(Upload::new(None)));
        assert_eq!(counts(&class), (0, 0));
        class.due.store(0, Relaxed);
        drop(class.start(Upload::new(None)));
        assert_eq!(counts(&class), (1, 1));
    }
}
