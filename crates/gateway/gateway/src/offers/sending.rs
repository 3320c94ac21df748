//! The stage that sends a request to its offer, and to the next adequate one if nothing of it was sent.

use std::cell::RefCell;
use std::rc::Rc;

use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request, Response};
use posthaste_qos::selection::Choice;
use posthaste_serve::Peer;
use posthaste_units::Dscp;
use tokio::time::Instant;

use super::offer_request::{FallbackReason, OfferRequest, Selection};
use super::reply;
use super::selection::is_valid;
use super::terms;
use super::thread::{OfferUpstreams, ThreadTable};
use crate::clock::timestamp;
use crate::request::body::RequestBody;
use crate::upload_progress::Upload;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;
use crate::upstream::retry::{Retries, copy_to_retry};
use crate::upstream::target::UpstreamTarget;

/// The upstream that has replied to a request.
pub(crate) enum Destination<'a> {
    /// A configured upstream, with the reason if the route has offers.
    Upstream(&'a UpstreamTarget, Option<FallbackReason>),
    /// The endpoint of an offer.
    Offer(Box<OfferReply>),
}

/// The offer of a reply.
pub(crate) struct OfferReply {
    table: Rc<ThreadTable>,
    position: usize,
    decision: HeaderValue,
}

/// Endpoints of one request over its attempts.
#[derive(Default)]
struct TriedEndpoints {
    /// Took nothing of the request.
    failed: Vec<u32>,
    /// Got the request, and failed. They get it again only if there is no other.
    attempted: Vec<u32>,
}

impl Destination<'_> {
    pub(crate) fn target(&self) -> &UpstreamTarget {
        match self {
            Self::Upstream(target, _) => target,
            Self::Offer(offer) => {
                let endpoint = offer.table.published.table.offers()[offer.position].endpoint;
                offer.table.published.endpoints[endpoint as usize].target()
            }
        }
    }

    /// Name of the offer for the access log.
    pub(crate) fn offer(&self) -> Option<&str> {
        match self {
            Self::Upstream(..) => None,
            Self::Offer(offer) => {
                let offers = offer.table.published.table.offers();
                Some(&offers[offer.position].data.label)
            }
        }
    }

    /// Adds the offer and the reason for it to a reply.
    pub(crate) fn add_fields(&self, headers: &mut HeaderMap) {
        match self {
            Self::Upstream(_, None) => {}
            Self::Upstream(_, Some(reason)) => {
                headers.insert(reply::DECISION, reply::fallback_decision(*reason));
            }
            Self::Offer(offer) => {
                let offers = offer.table.published.table.offers();
                let shown = offers[offer.position].data.shown.clone();
                headers.insert(terms::SELECTED, shown);
                headers.insert(reply::DECISION, offer.decision.clone());
            }
        }
    }
}

impl OfferUpstreams {
    /// Chooses again if the offer has ended while the request waited. Without a valid offer the request goes to the
    /// configured upstreams, if there are any.
    pub(crate) fn confirm(
        &self,
        mut offered: OfferRequest,
        has_fallback: bool,
    ) -> Result<Selection, UpstreamError> {
        let offers = offered.table.published.table.offers();
        let now = timestamp();
        if is_valid(offers[offered.choice.position].expires, now) {
            return Ok(Selection::Offer(offered));
        }
        if let Some(choice) = self.another(&offered, &TriedEndpoints::default()) {
            offered.choice = choice;
            return Ok(Selection::Offer(offered));
        }
        if has_fallback && offers.iter().all(|offer| !is_valid(offer.expires, now)) {
            return Ok(Selection::Fallback(FallbackReason::NoOffer));
        }
        Err(UpstreamError::NoneHealthy)
    }

    /// Sends a request to the chosen offer. Offers follow in the order of the choice, while nothing of the request was
    /// sent; with `retries`, further attempts go to offers that have not had the request first.
    pub(crate) async fn send(
        &self,
        mut offered: OfferRequest,
        mut request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
        deadline: Option<Instant>,
        retries: Option<&Retries>,
    ) -> Result<(Response<UpstreamBody>, Destination<'static>), UpstreamError> {
        terms::strip(request.headers_mut());
        if let Some(retries) = retries {
            retries.count_request();
        }
        let mut attempts = retries.map_or(0, Retries::attempts);
        let tried = RefCell::<TriedEndpoints>::default();
        loop {
            let table = offered.table.clone();
            let offer = &table.published.table.offers()[offered.choice.position];
            let upstreams = table.upstreams(offer.endpoint);
            self.name_offer(&mut request, offer.data.sent.as_ref());
            let again = match (attempts, retries) {
                (1.., Some(retries)) => copy_to_retry(&request).map(|copy| (copy, retries)),
                _ => None,
            };
            let measured = offer
                .data
                .class
                .start(Upload::new(request.body().progress()));
            let sent = upstreams.send_once(request, mark, peer, deadline).await;
            let outcome = sent.as_ref().map(|(reply, _)| reply);
            let outcome = outcome.map_err(|(failure, _)| failure);
            measured.end(outcome);
            if let Some((copy, retries)) = again
                && !matches!(sent, Err((_, Some(_))))
                && retries.permit(outcome, upstreams.counters())
            {
                attempts -= 1;
                tried.borrow_mut().attempted.push(offer.endpoint);
                if let Some(choice) = self.another(&offered, &tried.borrow()) {
                    offered.choice = choice;
                    request = copy;
                    continue;
                }
            }
            match sent {
                Ok((reply, _)) => return Ok((reply, offered.replied(&tried.borrow()))),
                Err((failure, None)) => {
                    upstreams.count_failure(&failure);
                    return Err(failure);
                }
                Err((failure, Some(unsent))) => {
                    tried.borrow_mut().failed.push(offer.endpoint);
                    match self.another(&offered, &tried.borrow()) {
                        Some(choice) => offered.choice = choice,
                        None => {
                            upstreams.count_failure(&failure);
                            return Err(failure);
                        }
                    }
                    request = unsent;
                }
            }
        }
    }

    /// States the offer to its provider, who may ask for it.
    fn name_offer(&self, request: &mut Request<RequestBody>, name: Option<&HeaderValue>) {
        let headers = request.headers_mut();
        match name {
            Some(name) => drop(headers.insert(terms::SELECTED, name.clone())),
            None => drop(headers.remove(terms::SELECTED)),
        }
    }

    /// Chooses again at this moment, without endpoints that took nothing, and with those that had the request last.
    fn another(&self, offered: &OfferRequest, tried: &TriedEndpoints) -> Option<Choice> {
        let bounds = offered.bounds.at(timestamp());
        let choose = |excluded: &dyn Fn(u32) -> bool| {
            let in_flight = |endpoint: u32| {
                if excluded(endpoint) {
                    None
                } else {
                    offered.table.in_flight(endpoint)
                }
            };
            let table = &offered.table.published.table;
            table
                .choose(&bounds, None, self.next_position(), in_flight)
                .ok()
        };
        let has_failed = |endpoint: u32| tried.failed.contains(&endpoint);
        let was_attempted =
            |endpoint: u32| has_failed(endpoint) || tried.attempted.contains(&endpoint);
        choose(&was_attempted).or_else(|| choose(&has_failed))
    }
}

impl OfferRequest {
    /// The offer of the reply, with the reason for it.
    fn replied(self, tried: &TriedEndpoints) -> Destination<'static> {
        let in_flight = |endpoint: u32| {
            let was_tried = tried.failed.contains(&endpoint) || tried.attempted.contains(&endpoint);
            if was_tried {
                None
            } else {
                self.table.in_flight(endpoint)
            }
        };
        let decision = reply::decision(&self, in_flight);
        Destination::Offer(Box::new(OfferReply {
            position: self.choice.position,
            table: self.table,
            decision,
        }))
    }
}
