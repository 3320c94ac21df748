//! The context of a request in progress: its client, journal and trace, and the results of stages that a rejection needs.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use hyper::http::request::Parts;
use posthaste_admission::accounts::AccountHandle;
use posthaste_gateway_config::GatewayConfig;
use posthaste_serve::Peer;

use super::Gateway;
use crate::error::Rejection;
use crate::record::journal::Journal;
use crate::record::metrics::GatewayMetrics;
use crate::record::traces::TracedRequest;
use crate::request::account::identify;
use crate::request::client::ClientIdentity;
use crate::routing::field_changes::FieldChanges;
use crate::routing::router::{Route, Router};
use crate::upstream::error::UpstreamError;

/// A request and its reply, in progress.
pub(super) struct Exchange<'e, 'r> {
    pub(super) gateway: &'r Gateway,
    pub(super) router: &'r Router,
    pub(super) peer: Rc<Peer>,
    pub(super) identity: &'e ClientIdentity,
    pub(super) trace: Option<&'e TracedRequest<'e>>,
    pub(super) journal: &'e Journal<'r>,
    pub(super) is_call: bool,
    /// The deadline of a gRPC call.
    pub(super) deadline: Option<tokio::time::Instant>,
    /// Set when the account is identified. Its payment borrows it.
    pub(super) account: OnceCell<AccountHandle>,
    /// The route's changes of the reply's fields. They apply to rejections, too.
    pub(super) reply_fields: Cell<Option<Rc<FieldChanges>>>,
    /// The upstream has closed a kept connection under the request.
    pub(super) is_lost: Cell<bool>,
}

impl<'r> Exchange<'_, 'r> {
    pub(super) fn config(&self) -> &'r GatewayConfig {
        &self.router.resolved.config
    }

    pub(super) fn metrics(&self) -> &'r GatewayMetrics {
        &self.gateway.context.metrics
    }

    /// The name of the client for limits and accounts.
    pub(super) fn client(&self) -> String {
        let bits = self.config().protection.ipv6_prefix;
        self.identity.address.name(bits)
    }

    /// Identifies the account of the request.
    pub(super) fn identify(&self, head: &mut Parts) -> Result<(), Rejection> {
        let (config, accounts) = (self.config(), &self.gateway.context.accounts);
        let (config, client) = (config.accounts.as_ref(), || self.client());
        let account = identify(head, &self.peer, client, config, accounts)?;
        self.journal.identified(account.as_ref());
        if let Some(account) = account {
            let is_first = self.account.set(account).is_ok();
            debug_assert!(is_first, "a request is identified twice");
        }
        Ok(())
    }

    /// Turns a failure into a rejection.
    pub(super) fn reject(&self, route: &Route, failure: UpstreamError) -> Rejection {
        self.is_lost
            .set(matches!(failure, UpstreamError::Closed(_)));
        route.rejection(failure)
    }
}
