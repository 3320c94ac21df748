//! The stages of a request until it is sent: check, route, prefer, admit.
//!
//! Each stage takes the value that the stage before gave. A stage that waits borrows its value and returns a result for
//! the next, because the future of an async function holds each argument twice.

use hyper::body::Body as _;
use hyper::header::{HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::{Request, Response, Version};
use posthaste_serve::Incoming;

use super::exchange::Exchange;
use super::reply_stages::{AwaitedReply, ReplyTerms};
use crate::admission::admitted::AdmissionGuard;
use crate::admission::tier_rules::TierFacts;
use crate::error::Rejection;
use crate::listening::verifies_clients;
use crate::offers::Selection;
use crate::request::account::find;
use crate::request::body::RequestBody;
use crate::request::client_certificate::set_client_certificate;
use crate::request::forwarded::{RequestConditions, forwarded};
use crate::request::preferences::Preferences;
use crate::request::rewrite::LocationReversal;
use crate::request::validate::{is_asterisk, validate_head};
use crate::response::body::ReplyBody;
use crate::response::{marking, redirect};
use crate::routing::forwarding::OutboundRequest;
use crate::routing::router::Route;
use crate::tunnel::Switch;
use crate::upload_progress::Upload;

/// A request whose head is valid.
pub(super) struct CheckedRequest {
    head: Parts,
    body: Incoming,
    /// Version of the client's message.
    version: Version,
}

/// A request with its route.
pub(super) struct RoutedRequest<'r> {
    checked: CheckedRequest,
    route: &'r Route,
    /// The switch of protocol that it requests.
    switch: Option<Box<Switch>>,
}

/// A request whose body is received within its limits, and whose account is identified.
pub(super) struct ReceivedRequest<'r> {
    head: Parts,
    body: RequestBody,
    version: Version,
    route: &'r Route,
    switch: Option<Box<Switch>>,
}

/// A request with the preferences of its client and its offer.
pub(super) struct PreparedRequest<'r> {
    received: ReceivedRequest<'r>,
    preferences: Preferences,
    selection: Option<Selection>,
}

impl CheckedRequest {
    /// Rejects a request that no upstream should get, and normalises the head.
    pub(super) fn check(request: Request<Incoming>) -> Result<Self, Rejection> {
        let (mut head, body) = request.into_parts();
        let version = head.version;
        validate_head(&mut head)?;
        Ok(Self {
            head,
            body,
            version,
        })
    }

    /// The reply to a request that needs no route: a redirect to HTTPS, or the page with the current offer.
    pub(super) fn own_reply(
        &self,
        exchange: &Exchange<'_, '_>,
    ) -> Result<Option<Response<ReplyBody>>, Rejection> {
        let (context, config) = (&exchange.gateway.context, exchange.config());
        match context.redirect {
            Some(port) if !exchange.peer.is_encrypted() => {
                let reply = redirect::to_https(&self.head, port)?;
                context.metrics.redirected();
                Ok(Some(reply))
            }
            _ => {
                let account = || {
                    let accounts = config.accounts.as_ref();
                    let client = || exchange.client();
                    find(
                        &self.head,
                        &exchange.peer,
                        client,
                        accounts,
                        &context.accounts,
                    )
                };
                let (admission, identity) = (&context.admission, exchange.identity);
                admission.offer_page(&config.protection, &self.head, identity, account)
            }
        }
    }

    /// Selects the route, rewrites the path, and recognises a request for another protocol.
    pub(super) fn route<'r>(
        mut self,
        exchange: &Exchange<'_, 'r>,
    ) -> Result<RoutedRequest<'r>, Rejection> {
        let head = &mut self.head;
        // OPTIONS for the server as a whole has the route of its root.
        let is_asterisk = is_asterisk(&head.uri);
        let path = if is_asterisk { "/" } else { head.uri.path() };
        let route = exchange.router.route(&head.headers, path)?;
        exchange.journal.routed(&route.times);
        exchange.reply_fields.set(route.fields.reply.clone());
        if exchange.is_call {
            route.check_call()?;
        }
        if let Some(rewrite) = route.rewrite.as_ref().filter(|_| !is_asterisk) {
            head.uri = rewrite.apply(&head.uri)?;
        }
        let (rules, metrics) = (&route.switches, &exchange.gateway.context.metrics);
        let has_body = !self.body.is_end_stream();
        let switch =
            Switch::requested(head, has_body, self.version, rules, &exchange.peer, metrics)?;
        Ok(RoutedRequest {
            checked: self,
            route,
            switch,
        })
    }
}

impl<'r> RoutedRequest<'r> {
    /// Takes the body, with its limits, and identifies the account.
    pub(super) fn receive(
        self,
        exchange: &Exchange<'_, 'r>,
    ) -> Result<ReceivedRequest<'r>, Rejection> {
        let route = self.route;
        let CheckedRequest {
            mut head,
            body,
            version,
        } = self.checked;
        let mut body = RequestBody::receive(body, route.body_limit, &exchange.peer)?;
        body.remove_trailers(&route.fields.removed_request_trailers);
        if exchange.is_call {
            body.limit_pauses(route.switches.idle);
        }
        exchange.journal.receives(|| body.progress());
        exchange.identify(&mut head)?;
        Ok(ReceivedRequest {
            head,
            body,
            version,
            route,
            switch: self.switch,
        })
    }
}

impl<'r> ReceivedRequest<'r> {
    /// Reads the client's preferences, in the body up to the end of a SOAP header.
    pub(super) async fn read_preferences(&mut self) -> Result<Preferences, Rejection> {
        let route = self.route;
        let read = Preferences::read(&self.head, &mut self.body, &route.described, route.wish);
        Ok(read.await?)
    }

    /// Counts the preferences, and selects the offer that satisfies the terms of the request.
    pub(super) fn prefer(
        self,
        preferences: Preferences,
        exchange: &Exchange<'_, 'r>,
    ) -> Result<PreparedRequest<'r>, Rejection> {
        exchange
            .metrics()
            .preferences(preferences.seen, preferences.unread);
        let selection = self
            .route
            .select_offer(&self.head, &preferences, exchange.journal)?;
        Ok(PreparedRequest {
            received: self,
            preferences,
            selection,
        })
    }
}

impl<'r> PreparedRequest<'r> {
    /// Admits the request in its tier.
    pub(super) async fn admit<'p>(
        &mut self,
        exchange: &'p Exchange<'_, 'r>,
    ) -> Result<AdmissionGuard<'p>, Rejection> {
        let (identity, journal, config) = (exchange.identity, exchange.journal, exchange.config());
        let (route, head) = (self.received.route, &mut self.received.head);
        let (tiers, account) = (&exchange.router.tiers, exchange.account.get());
        let tier = tiers.tier(&TierFacts {
            route: &route.times.name,
            headers: &head.headers,
            identity,
            account: account.map(|account| &*account.name),
            subject: exchange.peer.subject(),
        });
        journal.tier(tiers.name(tier));
        let (context, is_configured) = (&exchange.gateway.context, config.accounts.is_some());
        let paying = context.accounts.paying(is_configured, account);
        let subject = route.subject(identity, tier, paying);
        let (admission, protection) = (&context.admission, &config.protection);
        let guard = admission
            .admit(protection, head, &self.preferences, subject)
            .await;
        match &guard {
            Ok(guard) => journal.admitted(guard.would_reject()),
            Err(_) => journal.refused(),
        }
        guard
    }

    /// Separates the admitted request into the one for the upstream, and the terms of its reply.
    pub(super) fn into_outbound<'p>(
        self,
        guard: AdmissionGuard<'p>,
        exchange: &Exchange<'_, 'r>,
    ) -> (OutboundRequest, AwaitedReply<'p, 'r>) {
        let (mut received, preferences) = (self.received, self.preferences);
        let route = received.route;
        let marks = exchange.router.marks.as_ref();
        let mark = marking::decide(marks, &preferences, guard.priorities(), route.mark);
        let may_compress = route.compression.is_possible();
        let conditions = RequestConditions::read(&mut received.head, may_compress);
        let upload = Upload::new(received.body.progress());
        let (request, switch, reversal) = received.rewrite(exchange);
        let outbound = OutboundRequest {
            selection: self.selection,
            request,
            mark: marking::for_upstream(mark, &exchange.config().marking),
        };
        let terms = ReplyTerms {
            route,
            switch,
            preferences,
            conditions,
            mark,
        };
        let awaited = AwaitedReply {
            terms,
            upload,
            reversal,
            guard,
        };
        (outbound, awaited)
    }
}

/// A request for the upstream, with its switch of protocol and, if its path was rewritten, the reversal for the reply.
type RewrittenRequest<'r> = (
    Request<RequestBody>,
    Option<Box<Switch>>,
    Option<Box<LocationReversal<'r>>>,
);

impl<'r> ReceivedRequest<'r> {
    /// Builds the request for the upstream.
    fn rewrite(self, exchange: &Exchange<'_, 'r>) -> RewrittenRequest<'r> {
        let (route, peer) = (self.route, &exchange.peer);
        let forwards_te = route.upstreams.forwards_te(&self.head.headers);
        let mut request = forwarded(self.head, self.body, self.version, peer, exchange.identity);
        let headers = request.headers_mut();
        if forwards_te {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        set_client_certificate(headers, peer, verifies_clients(exchange.config()));
        if let Some(switch) = &self.switch {
            switch.announce(&mut request);
        }
        let reversal = route.change_request(request.headers_mut());
        (request, self.switch, reversal)
    }
}
