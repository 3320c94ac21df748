//! Publication of offers at a broker. A slow broker delays nothing else.

use std::cell::Cell;
use std::fs;
use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_admission::Published;
use posthaste_broker_client::BrokerClient;
use posthaste_gateway_config::Publish;
use posthaste_qos::{Definition, Offer};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Admission;
use crate::error::ResolveError;

/// Delay before a failed publication is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Offers to publish together.
#[derive(Clone)]
pub(super) struct DatedOffers {
    pub(super) offers: Vec<Published>,
    pub(super) expires: Timestamp,
    /// Number of changes of the configuration before them.
    pub(super) changes: u64,
}

/// The newest offers, and whether their publication fails. It outlives a change of settings: offers whose publication
/// the change cut off are published after it, unless they come from an earlier configuration.
pub(super) struct Publication {
    newest: watch::Sender<Option<DatedOffers>>,
    is_failing: Cell<bool>,
}

/// The destination of offers and their content.
#[derive(Clone)]
pub(super) struct OfferPublisher {
    client: BrokerClient,
    kind: String,
    provider: String,
    endpoint: Option<String>,
    qos: Definition,
}

impl Publication {
    pub(super) fn new() -> Self {
        Self {
            newest: watch::channel(None).0,
            is_failing: Cell::new(false),
        }
    }

    /// Replaces the offers to publish.
    pub(super) fn offer(&self, offers: DatedOffers) {
        self.newest.send_replace(Some(offers));
    }

    /// Publishes offers forever, always the newest, and none in a dry run. Failed publications are repeated.
    pub(super) async fn run(&self, admission: &Admission, publisher: Option<OfferPublisher>) {
        let Some(publisher) = publisher else {
            return pending().await;
        };
        let mut newest = self.newest.subscribe();
        newest.mark_changed();
        while newest.changed().await.is_ok() {
            let offers = newest.borrow_and_update().clone();
            let Some(offers) = offers.filter(|offers| admission.state().publishes(offers.changes))
            else {
                continue;
            };
            let done = publisher.put(offers).await;
            admission.counters.published(done.is_ok());
            let was_failing = self.is_failing.replace(done.is_err());
            match &done {
                Ok(()) if was_failing => tracing::info!("offers are published again"),
                Err(error) if !was_failing => tracing::warn!(%error, "no offer can be published"),
                _ => {}
            }
            if done.is_err() {
                sleep(RETRY_DELAY).await;
                newest.mark_changed();
            }
        }
    }
}

impl OfferPublisher {
    pub(super) fn new(broker: &Publish, qos: Definition) -> Result<Self, ResolveError> {
        let Publish {
            url,
            kind,
            provider,
            token,
            endpoint,
        } = broker;
        let client = BrokerClient::new(url)?;
        let secret = fs::read_to_string(token).map_err(|error| ResolveError::Token {
            file: token.clone(),
            error,
        })?;
        Ok(Self {
            client: client.with_token(Some(secret.trim().to_owned())),
            kind: kind.clone(),
            provider: provider.clone(),
            endpoint: endpoint.clone(),
            qos,
        })
    }

    /// Replaces all offers of this provider for the service type.
    async fn put(&self, offers: DatedOffers) -> Result<(), posthaste_broker_client::Error> {
        let DatedOffers {
            offers, expires, ..
        } = offers;
        let offers = offers.into_iter().map(|offer| {
            let mut qos = self.qos.clone();
            qos.price = Some(offer.price);
            qos.default.security.extend(offer.condition());
            Offer {
                name: offer.name,
                expires,
                endpoint: self.endpoint.clone(),
                qos,
            }
        });
        let put = self
            .client
            .put_all(&self.kind, &self.provider, offers.collect());
        put.await
    }
}
