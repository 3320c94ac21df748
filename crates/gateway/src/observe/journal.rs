//! The journal of one request: facts that the stages of the pipeline report, for counters, histograms and the log.
//!
//! Without an access log a stage costs the test of an `Option`: nothing is allocated, and no clock is read. A journal
//! that is dropped before [`Journal::end`] is that of a request whose client left.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::{Request, StatusCode};
use posthaste_units::{Instant, Span};

use super::access_log::{AccessLog, Decided};
use super::log_entry::{LogEntry, Reply};
use super::metrics::GatewayMetrics;
use super::times::RouteTimes;
use crate::clock::now;
use crate::config::Log;
use crate::request::progress::UploadProgress;

/// The journal of a request in service.
pub(crate) struct Journal<'g> {
    metrics: &'g GatewayMetrics,
    route: Cell<Option<&'g Arc<RouteTimes>>>,
    stage: Cell<Stage>,
    /// `None` without an access log.
    entry: Option<Box<LogEntry>>,
    is_over: bool,
}

/// The stage that a request has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not admitted yet, or needs no admission.
    Received,
    /// Admission has refused it.
    Refused,
    /// Admitted: it waits for a permit, the upstream, or compression.
    Admitted,
}

impl<'g> Journal<'g> {
    /// Begins the journal of a request whose head was complete at `start`.
    pub(crate) fn begin<B>(
        metrics: &'g GatewayMetrics,
        log: Option<&Arc<AccessLog>>,
        settings: Log,
        request: &Request<B>,
        client: IpAddr,
        start: Instant,
    ) -> Self {
        let entry = log.map(|log| LogEntry::new(log.clone(), settings, request, client, start));
        Self {
            metrics,
            route: Cell::new(None),
            stage: Cell::new(Stage::Received),
            entry: entry.map(Box::new),
            is_over: false,
        }
    }

    /// The route was found.
    pub(crate) fn routed(&self, route: &'g Arc<RouteTimes>) {
        self.route.set(Some(route));
    }

    /// The body of the request is being received.
    pub(crate) fn receives(&self, progress: impl FnOnce() -> Option<Rc<UploadProgress>>) {
        if let Some(entry) = &self.entry
            && let Some(progress) = progress()
        {
            entry.receives(progress);
        }
    }

    /// Admission has refused the request.
    pub(crate) fn refused(&self) {
        self.stage.set(Stage::Refused);
    }

    /// The request was admitted, and waits for a permit.
    pub(crate) fn admitted(&self) {
        self.stage.set(Stage::Admitted);
        if let Some(entry) = &self.entry {
            entry.admitted.set(Some(now()));
        }
    }

    /// The request has a permit and is sent at `sent`.
    pub(crate) fn sent(&self, sent: Instant) {
        if let Some(entry) = &self.entry {
            entry.sent.set(Some(sent));
        }
    }

    /// The head of the reply has arrived from this upstream.
    pub(crate) fn replied(&self, upstream: &str) {
        if let Some(entry) = &self.entry {
            entry.replied.set(Some(now()));
            entry.upstream(upstream);
        }
    }

    /// Ends the journal with the head of the reply, `time` after that of the request. Returns the log entry, which is
    /// written at the end of the reply's body.
    pub(crate) fn end(
        mut self,
        status: StatusCode,
        time: Span,
        decided: Option<Decided>,
    ) -> Option<Box<LogEntry>> {
        self.is_over = true;
        let (metrics, code) = (self.metrics, status.as_u16());
        metrics.service.add(time);
        metrics.replied(code);
        let route = self.route.get();
        let times = route.map_or(&metrics.unrouted, |route| route);
        times.add(code, time);
        match (self.stage.get(), decided) {
            (Stage::Refused, _) => {
                let class = usize::from(code / 100);
                metrics.refused[class].fetch_add(1, Relaxed);
            }
            (Stage::Admitted, Some(_)) if !status.is_server_error() => metrics.answered.add(time),
            (Stage::Admitted, _) if code >= 500 => drop(metrics.failed.fetch_add(1, Relaxed)),
            _ => {}
        }
        let mut entry = self.entry.take()?;
        entry.end(Reply {
            time,
            status,
            decided,
            route: route.cloned(),
        });
        Some(entry)
    }
}

impl Drop for Journal<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.metrics.cancelled.fetch_add(1, Relaxed);
            if let Some(entry) = self.entry.take() {
                entry.cancelled(self.route.get().cloned());
            }
        }
    }
}

/// Records a request that was rejected below the gateway, because it is ambiguous.
pub(crate) fn reject<B>(
    metrics: &GatewayMetrics,
    log: Option<&Arc<AccessLog>>,
    settings: Log,
    request: &Request<B>,
    client: IpAddr,
    status: StatusCode,
) {
    metrics.service.add(Span::ZERO);
    metrics.replied(status.as_u16());
    metrics.unrouted.add(status.as_u16(), Span::ZERO);
    if let Some(log) = log {
        LogEntry::new(log.clone(), settings, request, client, now()).rejected(status);
    }
}
