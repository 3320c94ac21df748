//! The stages of a reply: record, compress, mark.
//!
//! Each stage takes the value that the stage before gave.

use std::future::Future;
use std::pin::Pin;

use hyper::{HeaderMap, Response};
use posthaste_qos::marking::Mark;

use super::exchange::Exchange;
use super::queue::QueuedRequest;
use super::recording::record;
use crate::admission::admitted::AdmissionGuard;
use crate::error::Rejection;
use crate::offers::Destination;
use crate::record::access_log::Decided;
use crate::request::forwarded::RequestConditions;
use crate::request::preferences::Preferences;
use crate::request::rewrite::LocationReversal;
use crate::response::body::ReplyBody;
use crate::response::compress::CompressionStage;
use crate::response::{head, marking};
use crate::routing::router::Route;
use crate::tunnel::Switch;
use crate::upload_progress::Upload;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;
use crate::upstream::switched::SwitchedUpstream;

/// The end of the forwarding stage: the reply with the upstream that has sent it, or a failure.
pub(super) type ForwardingOutcome<'r> =
    Result<(Response<UpstreamBody>, Destination<'r>), UpstreamError>;

/// The facts about a request that decide about its reply.
pub(super) struct ReplyTerms<'r> {
    pub(super) route: &'r Route,
    pub(super) switch: Option<Box<Switch>>,
    pub(super) preferences: Preferences,
    pub(super) conditions: RequestConditions,
    pub(super) mark: Option<Mark>,
}

/// The reply to an admitted request, before its head has arrived.
pub(super) struct AwaitedReply<'p, 'r> {
    pub(super) terms: ReplyTerms<'r>,
    pub(super) upload: Upload,
    /// Present if the path of the request was rewritten.
    pub(super) reversal: Option<Box<LocationReversal<'r>>>,
    pub(super) guard: AdmissionGuard<'p>,
}

/// A reply whose head is prepared for the client. Its request is no longer in service.
pub(super) struct UpstreamReply<'r> {
    terms: ReplyTerms<'r>,
    reply: Response<UpstreamBody>,
    /// The upstream's stream, if it has switched the protocol.
    switched: Option<SwitchedUpstream>,
}

/// A reply whose body has its final form.
pub(super) struct FinalReply {
    reply: Response<ReplyBody>,
    decided: Option<Decided>,
    mark: Option<Mark>,
    /// The client requests the reason for the mark.
    explains_mark: bool,
}

/// A reply and, if it comes from an upstream, the decision about it.
pub(super) struct ServedReply {
    pub(super) reply: Response<ReplyBody>,
    pub(super) decided: Option<Decided>,
}

impl<'r> AwaitedReply<'_, 'r> {
    /// Runs the forwarding stage. The request is not in service while the gateway waits for its client.
    pub(super) async fn wait<T>(&self, sending: Pin<&mut impl Future<Output = T>>) -> T {
        self.guard.run(sending, self.upload.progress()).await
    }

    /// Releases the permit, and records the upstream's part of the request.
    pub(super) fn record(
        &self,
        queued: QueuedRequest<'_>,
        outcome: &ForwardingOutcome<'_>,
        exchange: &Exchange<'_, '_>,
    ) {
        let QueuedRequest { permit, sent } = queued;
        drop(permit);
        let reply = outcome.as_ref().map(|(reply, _)| reply);
        let (metrics, upload) = (exchange.metrics(), self.upload.waited());
        record(metrics, &self.guard, exchange.trace, sent, upload, reply);
    }

    /// Prepares the head of the reply for the client, and ends the service of the request.
    pub(super) fn prepare(
        self,
        outcome: ForwardingOutcome<'_>,
        exchange: &Exchange<'_, '_>,
    ) -> Result<UpstreamReply<'r>, Rejection> {
        let (route, switch) = (self.terms.route, &self.terms.switch);
        let (mut reply, destination) = outcome.map_err(|failure| {
            if let Some(switch) = switch {
                switch.failed();
            }
            exchange.reject(route, failure)
        })?;
        take_report(&destination, reply.headers_mut(), exchange);
        let switched = match switch {
            Some(switch) => switch.accepted(&mut reply)?,
            None => None,
        };
        head::prepare(&mut reply, &route.fields.removed_reply_trailers);
        if let Some(reversal) = self.reversal {
            reversal.apply(reply.headers_mut());
        }
        destination.add_fields(reply.headers_mut());
        self.guard.add_fields(reply.headers_mut());
        Ok(UpstreamReply {
            terms: self.terms,
            reply,
            switched,
        })
    }
}

impl UpstreamReply<'_> {
    /// Decides about the compression of the reply and carries out the decision. A reply that switches the protocol has
    /// no content: its tunnel begins.
    pub(super) async fn compress(
        self,
        exchange: &Exchange<'_, '_>,
    ) -> Result<FinalReply, Rejection> {
        let (terms, peer) = (&self.terms, &exchange.peer);
        let (mark, explains_mark) = (terms.mark, terms.preferences.prefer.mark_reason);
        if let (Some(switch), Some(switched)) = (&terms.switch, self.switched) {
            return Ok(FinalReply {
                reply: switch.begin(self.reply, switched, peer)?,
                decided: None,
                mark,
                explains_mark,
            });
        }
        let stage = CompressionStage {
            worker: &exchange.gateway.worker,
            cache: &exchange.router.cache,
            settings: &terms.route.compression,
            preferences: &terms.preferences,
            peer,
            conditions: &terms.conditions,
        };
        let (reply, reason) = stage.apply(self.reply).await?;
        Ok(FinalReply {
            reply,
            decided: Some((terms.preferences.preference, reason)),
            mark,
            explains_mark,
        })
    }
}

impl FinalReply {
    /// Sets and counts the mark.
    pub(super) fn mark(mut self, exchange: &Exchange<'_, '_>) -> ServedReply {
        marking::apply(
            self.mark,
            &mut self.reply,
            self.explains_mark,
            exchange.metrics(),
        );
        ServedReply {
            reply: self.reply,
            decided: self.decided,
        }
    }
}

/// Records the upstream that has replied, and takes its report of its load.
fn take_report(
    destination: &Destination<'_>,
    headers: &mut HeaderMap,
    exchange: &Exchange<'_, '_>,
) {
    let target = destination.target();
    exchange.journal.replied(&target.name, destination.offer());
    head::take_report(&exchange.config().demand.watch, &target.reported, headers);
}
