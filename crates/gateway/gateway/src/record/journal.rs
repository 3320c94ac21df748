//! The journal of one request: facts that the stages of the pipeline report, for counters, histograms and the log.
//!
//! Without an access log a stage costs the test of an `Option`: nothing is allocated, and no clock is read. A journal
//! that is dropped before [`Journal::end`] is that of a request whose client left.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::{Request, StatusCode};
use posthaste_admission::accounts::AccountHandle;
use posthaste_gateway_config::Log;
use posthaste_serve::Rejection;
use posthaste_units::{Instant, Span};

use super::access_log::{AccessLog, Decided};
use super::log_entry::{LogEntry, Reply};
use super::metrics::GatewayMetrics;
use super::times::RouteTimes;
use crate::client_address::ClientAddress;
use crate::clock::now;
use crate::upload_progress::UploadProgress;

/// The journal of a request in service.
pub(crate) struct Journal<'g> {
    metrics: &'g GatewayMetrics,
    route: Cell<Option<&'g Arc<RouteTimes>>>,
    stage: Cell<Stage>,
    /// The head of the request was complete.
    start: Instant,
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
        client: ClientAddress,
        start: Instant,
    ) -> Self {
        let entry = log.map(|log| LogEntry::new(log.clone(), settings, request, client, start));
        Self {
            metrics,
            route: Cell::new(None),
            stage: Cell::new(Stage::Received),
            start,
            entry: entry.map(Box::new),
            is_over: false,
        }
    }

    /// The route was found.
    pub(crate) fn routed(&self, route: &'g Arc<RouteTimes>) {
        self.route.set(Some(route));
        route.begun.fetch_add(1, Relaxed);
    }

    /// The body of the request is being received.
    pub(crate) fn receives(&self, progress: impl FnOnce() -> Option<Rc<UploadProgress>>) {
        if let Some(entry) = &self.entry
            && let Some(progress) = progress()
        {
            entry.receives(progress);
        }
    }

    /// The request belongs to this tier, if there are tiers.
    pub(crate) fn tier(&self, name: Option<&str>) {
        if let (Some(entry), Some(name)) = (&self.entry, name) {
            entry.tier(name);
        }
    }

    /// The account of the request was identified.
    pub(crate) fn identified(&self, account: Option<&AccountHandle>) {
        if let (Some(entry), Some(account)) = (&self.entry, account) {
            entry.account(account.name.clone());
        }
    }

    /// Admission has refused the request.
    pub(crate) fn refused(&self) {
        self.stage.set(Stage::Refused);
    }

    /// The request was admitted, and waits for a permit. `would_reject` is the reason of the policy if a dry run has
    /// admitted it.
    pub(crate) fn admitted(&self, would_reject: Option<&'static str>) {
        self.stage.set(Stage::Admitted);
        if let Some(entry) = &self.entry {
            entry.admitted.set(Some(now()));
            entry.would_reject.set(would_reject);
        }
    }

    /// The request has a permit and is sent at `sent`.
    pub(crate) fn sent(&self, sent: Instant) {
        if let Some(entry) = &self.entry {
            entry.sent.set(Some(sent));
        }
    }

    /// The head of the reply has arrived from this upstream, chosen by this offer.
    pub(crate) fn replied(&self, upstream: &str, offer: Option<&str>) {
        if let Some(entry) = &self.entry {
            entry.replied.set(Some(now()));
            entry.upstream(upstream, offer);
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
        metrics.replied(code);
        let route = self.route.get();
        let times = route.map_or(&metrics.unrouted, |route| route);
        let is_own = decided.is_none() && self.stage.get() == Stage::Admitted;
        if is_own && status == StatusCode::GATEWAY_TIMEOUT {
            metrics.service.add_given_up(time);
            times.add_given_up(Some(code), time);
        } else {
            metrics.service.add(time);
            times.add(code, time);
        }
        match (self.stage.get(), decided) {
            (Stage::Refused, _) => {
                let class = usize::from(code / 100);
                metrics.ends.refused[class].fetch_add(1, Relaxed);
                times.rejected.fetch_add(1, Relaxed);
            }
            (Stage::Admitted, Some(_)) if !status.is_server_error() => {
                metrics.ends.answered.add(time)
            }
            (Stage::Admitted, _) if code >= 500 => drop(metrics.ends.failed.fetch_add(1, Relaxed)),
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
            self.metrics.ends.cancelled.fetch_add(1, Relaxed);
            if self.stage.get() == Stage::Admitted {
                self.metrics.ends.failed.fetch_add(1, Relaxed);
                let time = now().saturating_since(self.start);
                self.metrics.service.add_given_up(time);
                let route = self.route.get();
                let times = route.map_or(&self.metrics.unrouted, |route| route);
                times.add_given_up(None, time);
            }
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
    client: ClientAddress,
    rejection: Rejection,
) {
    let status = rejection.status.as_u16();
    metrics.service.add(Span::ZERO);
    metrics.replied(status);
    metrics.unrouted.add(status, Span::ZERO);
    if let Some(log) = log {
        LogEntry::new(log.clone(), settings, request, client, now()).rejected(rejection);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use posthaste_compression::{Origin, Preference, REASONS, Wish};

    use super::*;
    use crate::record::outcomes::Outcomes;

    /// Counts one request of a route, without an access log.
    fn count(
        metrics: &GatewayMetrics,
        route: &Arc<RouteTimes>,
        stages: impl FnOnce(&Journal<'_>),
        end: Option<(u16, bool)>,
    ) {
        let client = ClientAddress::Known(Ipv4Addr::LOCALHOST.into());
        let request = Request::new(());
        let journal = Journal::begin(metrics, None, Log::default(), &request, client, now());
        journal.routed(route);
        stages(&journal);
        if let Some((status, is_of_upstream)) = end {
            let preference = Preference {
                wish: Wish::Unstated,
                origin: Origin::Route,
            };
            let decided = is_of_upstream.then_some((preference, REASONS[0]));
            let status = StatusCode::from_u16(status).unwrap();
            let entry = journal.end(status, Span::from_millis(1), decided);
            assert!(entry.is_none(), "an entry without a log");
        }
    }

    #[test]
    fn each_request_counts_once_by_its_outcome() {
        let metrics = GatewayMetrics::new(1);
        let route = Arc::new(RouteTimes::default());
        let forwarded = |journal: &Journal<'_>| {
            journal.admitted(None);
            journal.sent(now());
            journal.replied("a", None);
        };
        for status in [200, 304, 404, 500] {
            count(&metrics, &route, forwarded, Some((status, true)));
        }
        // The gateway's own replies: the upstream failed, two were refused, one has no body that fits.
        count(
            &metrics,
            &route,
            |journal| journal.admitted(None),
            Some((504, false)),
        );
        count(
            &metrics,
            &route,
            |journal| journal.refused(),
            Some((503, false)),
        );
        count(
            &metrics,
            &route,
            |journal| journal.refused(),
            Some((429, false)),
        );
        count(&metrics, &route, |_| {}, Some((413, false)));
        count(&metrics, &route, |_| {}, Some((501, false)));
        // The client leaves, in service and before.
        count(&metrics, &route, forwarded, None);
        count(&metrics, &route, |_| {}, None);
        let expected = Outcomes {
            succeeded: 2,
            client_errors: 2,
            refused: 2,
            server_errors: 3,
            cancelled: 2,
            failed: 3,
        };
        assert_eq!(metrics.outcomes(), expected);
        let answered = metrics.ends.answered.counts();
        let none = GatewayMetrics::new(1).ends.answered.counts();
        assert_eq!(answered.since(&none).total(), 3);
        let by_class = route.classes.each_ref().map(|times| {
            let counts = times.buckets.iter().map(|bucket| bucket.load(Relaxed));
            counts.sum::<u64>()
        });
        assert_eq!(by_class, [0, 1, 1, 3, 4, 1]);
        // The 504 and the client that left in service were given up.
        let last = metrics.service.buckets.last().unwrap();
        assert_eq!(last.load(Relaxed), 2);
    }
}
