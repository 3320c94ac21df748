//! The choice of a route between offers and its configured upstreams.

use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use posthaste_serve::Peer;
use posthaste_units::Dscp;
use tokio::time::Instant;

use super::router::Route;
use crate::error::Rejection;
use crate::offers::{Destination, Selection, strip_terms};
use crate::record::journal::Journal;
use crate::request::body::RequestBody;
use crate::request::preferences::Preferences;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;

/// A request for an upstream.
pub(crate) struct OutboundRequest {
    /// `None` if the route has no offers.
    pub(crate) selection: Option<Selection>,
    pub(crate) request: Request<RequestBody>,
    /// Mark of its packets.
    pub(crate) mark: Dscp,
}

impl Route {
    /// Chooses the offer of a request. `None` if the route has no offers. A rejection counts as
    /// refused, unless the request cannot be read.
    pub(crate) fn select_offer(
        &self,
        head: &Parts,
        preferences: &Preferences,
        journal: &Journal<'_>,
    ) -> Result<Option<Selection>, Rejection> {
        let Some(offers) = &self.offers else {
            return Ok(None);
        };
        let has_fallback = self.upstreams.has_any();
        let selected = offers.select(head, preferences, has_fallback);
        selected.map(Some).inspect_err(|rejection| {
            if rejection.status != StatusCode::BAD_REQUEST {
                journal.refused();
            }
        })
    }

    /// Rejects calls of gRPC if no upstream has HTTP/2. The log names the route once for each thread.
    pub(crate) fn check_call(&self) -> Result<(), Rejection> {
        if !self.upstreams.lacks_http2() {
            return Ok(());
        }
        let reason =
            "a call of gRPC needs HTTP/2 to the upstream: set protocol = \"http2\" for the route";
        if !self.has_reported_call.replace(true) {
            tracing::warn!(route = self.times.name, "{reason}");
        }
        Err(Rejection::new(StatusCode::NOT_IMPLEMENTED, reason))
    }

    /// Turns a failure into a rejection, see [`Upstreams::rejection`](crate::upstream::Upstreams::rejection).
    pub(crate) fn rejection(&self, failure: UpstreamError) -> Rejection {
        self.upstreams.rejection(failure)
    }

    /// Sends a request to its offer, or to the least busy configured upstream.
    pub(crate) async fn send(
        &self,
        outbound: OutboundRequest,
        peer: &Peer,
        deadline: Option<Instant>,
    ) -> Result<(Response<UpstreamBody>, Destination<'_>), UpstreamError> {
        let (upstreams, retries) = (&self.upstreams, self.upstreams.retries());
        let OutboundRequest {
            selection,
            mut request,
            mark,
        } = outbound;
        let selection = match (&self.offers, selection) {
            (Some(offers), Some(Selection::Offer(offered))) => {
                Some(offers.confirm(offered, upstreams.has_any())?)
            }
            (_, selection) => selection,
        };
        let reason = match (&self.offers, selection) {
            (Some(offers), Some(Selection::Offer(offered))) => {
                // Boxed, because every copy of a longer future costs requests of other routes time, too.
                let sending = offers.send(offered, request, mark, peer, deadline, retries);
                return Box::pin(sending).await;
            }
            (_, Some(Selection::Fallback(reason))) => {
                strip_terms(request.headers_mut());
                Some(reason)
            }
            _ => None,
        };
        let sent = upstreams.send(request, mark, peer, deadline).await;
        sent.map(|(reply, target)| (reply, Destination::Upstream(target, reason)))
    }
}
