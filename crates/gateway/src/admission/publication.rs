//! Publication of offers at a broker. A slow broker delays nothing else.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_admission::Published;
use posthaste_broker_client::BrokerClient;
use posthaste_qos::{Definition, Offer};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Admission;
use crate::config::Publish;
use crate::error::ResolveError;

/// Delay before a failed publication is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Offers published together, and their expiry.
pub(super) type DatedOffers = (Vec<Published>, Timestamp);

/// The destination of offers and their content.
#[derive(Clone)]
pub(super) struct OfferPublisher {
    client: BrokerClient,
    kind: String,
    provider: String,
    endpoint: Option<String>,
    qos: Definition,
}

/// Publishes offers forever, always the newest, beginning with those that are there, and none in a dry run. Failed
/// publications are repeated.
pub(super) async fn publish(
    admission: &Admission,
    publisher: Option<OfferPublisher>,
    mut offers: watch::Receiver<Option<DatedOffers>>,
) {
    let mut was_published = true;
    offers.mark_changed();
    loop {
        if offers.changed().await.is_err() {
            return;
        }
        let Some(publisher) = &publisher else {
            continue;
        };
        let present = offers.borrow_and_update().clone();
        let Some((present, expires)) = present.filter(|_| !admission.state().is_dry) else {
            continue;
        };
        let done = publisher.put(present, expires).await;
        admission.counters.published(done.is_ok());
        match &done {
            Ok(()) if !was_published => tracing::info!("offers are published again"),
            Err(error) if was_published => tracing::warn!(%error, "no offer can be published"),
            _ => {}
        }
        if done.is_err() {
            sleep(RETRY_DELAY).await;
            offers.mark_changed();
        }
        was_published = done.is_ok();
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
    async fn put(
        &self,
        offers: Vec<Published>,
        expires: Timestamp,
    ) -> Result<(), posthaste_broker_client::Error> {
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
