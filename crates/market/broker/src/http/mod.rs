//! HTTP interface: from request to reply.
//!
//! Lookups are answered from the registry without waiting. Publishing requires authentication and valid offers; the
//! reply follows when the change is stored. [`BrokerHandler::answer`] maps paths to handlers, each in its own file.

mod accounts;
mod accounts_page;
mod authenticate;
mod body;
mod charges;
mod description;
mod exposition;
mod lookup;
mod measured;
mod page;
mod path;
mod problem;
mod publish;
mod query;
mod reply;
mod soap;
mod status;
mod stream;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::http::request::Parts;
use hyper::{Method, Request, Response};
use posthaste_serve::{Handler, Incoming, Peer};

pub(crate) use self::description::service;
pub use self::reply::BrokerReplyBody;

use self::path::Path;
use self::problem::ProblemDetails;
use self::reply::BrokerReply;
use crate::context::BrokerContext;

/// HTTP handler of one thread.
pub struct BrokerHandler {
    context: Arc<BrokerContext>,
}

impl BrokerHandler {
    pub(crate) fn new(context: Arc<BrokerContext>) -> Self {
        Self { context }
    }

    /// Path to handler. A handler authenticates before it reads the body.
    async fn answer(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let path = Path::read(parts.uri.path())?;
        match (path, &parts.method) {
            (Path::BestOffer, &Method::POST) => self.best_offer(parts, body, peer).await,
            (Path::Offers, &Method::GET) => self.list(parts),
            (Path::Offer(key), &Method::GET) => self.get(&key),
            (Path::Offer(key), &Method::PUT) => self.put(key, parts, body, peer).await,
            (Path::Offer(key), &Method::DELETE) => self.withdraw(key, parts).await,
            (Path::Provider(group), &Method::PUT) => self.put_all(group, parts, body, peer).await,
            (Path::Measured(key), &Method::PUT) => {
                self.put_measurements(key, parts, body, peer).await
            }
            (Path::Measurements, &Method::GET) => Ok(self.list_measurements(parts)),
            (Path::Changes, &Method::GET) => self.changes(parts).map(BrokerReply::events),
            (Path::Accounts, &Method::GET) => self.list_accounts(parts).await,
            (Path::Accounts, &Method::POST) => self.add_account(parts, body, peer).await,
            (Path::Account(name), &Method::GET) => self.get_account(name, parts).await,
            (Path::Account(name), &Method::PATCH) => {
                self.change_account(name, parts, body, peer).await
            }
            (Path::Account(name), &Method::DELETE) => self.close_account(name, parts).await,
            (Path::Charges, &Method::GET) => self.charges(parts).await,
            (Path::Charges, &Method::POST) => self.report(parts, body, peer).await,
            (Path::AccountsPage, &Method::GET) => self.accounts_page(parts).await,
            (Path::Soap, &Method::POST) => Ok(self.soap(parts, body, peer).await),
            (Path::Soap, &Method::GET) => self.describe(parts),
            (Path::OpenApi, &Method::GET) => Ok(BrokerReply::json(include_str!("openapi.json"))),
            (Path::Status, &Method::GET) => Ok(self.status()),
            (Path::Metrics, &Method::GET) => Ok(self.metrics(parts)),
            (Path::Health, &Method::GET) => self.health(),
            (path, method) => Err(ProblemDetails::method(method, path.methods())),
        }
    }
}

impl Handler for BrokerHandler {
    type Body = BrokerReplyBody;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<Self::Body> {
        let (mut parts, body) = request.into_parts();
        let head = parts.method == Method::HEAD;
        if head {
            parts.method = Method::GET;
        }
        let reply = self.answer(&parts, body, &peer).await;
        let reply = reply.unwrap_or_else(BrokerReply::from);
        self.context.metrics.replies[reply.class()].fetch_add(1, Relaxed);
        reply.send(self.context.registry.age())
    }
}
