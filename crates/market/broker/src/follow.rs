//! Follower of another broker: applies its changes as they happen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_broker_client::{BrokerClient, Event, Follower, FollowerEvent, Put};
use posthaste_qos::index::{Full, Limits};

use crate::change::{OfferChange, OfferKey};
use crate::index_build::IndexBuild;
use crate::registry::Registry;

/// State of the follower.
struct FollowedBroker {
    registry: Arc<Registry>,
    limits: Limits,
    /// Index build in progress: the initial transfer of all offers.
    build: Option<IndexBuild>,
}

/// Keeps `registry` in step with the broker at `url`, which need not be reachable yet. If that broker has more offers
/// than `limits` allow, the previous offers stay in use, and the transfer is repeated until the offers fit.
pub(crate) fn follow(
    url: &str,
    registry: Arc<Registry>,
    limits: Limits,
) -> Result<Follower, crate::BrokerError> {
    let client = BrokerClient::new(url)?;
    let upstream = url.to_owned();
    let mut followed = FollowedBroker {
        registry,
        limits,
        build: None,
    };
    Ok(Follower::start(client, move |event| {
        match event {
            FollowerEvent::Told(event) => return Ok(followed.take(event)?),
            FollowerEvent::Lost(error) => {
                tracing::warn!(%error, upstream, "out of step");
                followed.build = None;
            }
            // Offers expire by the clock of this machine.
            FollowerEvent::Second => drop(followed.registry.expire(Timestamp::now())),
        }
        Ok(())
    })?)
}

impl FollowedBroker {
    fn take(&mut self, event: Event) -> Result<(), Full> {
        let mut ago = Duration::ZERO;
        match event {
            Event::Begin => self.build = Some(IndexBuild::new(self.registry.empty())),
            Event::Ready(number) => {
                if let Some(build) = self.build.take() {
                    let (index, _) = build.done();
                    self.registry.replace(index, number);
                }
                tracing::info!(number, "in step");
            }
            Event::Changed { number, put } => self.change(number, *put)?,
            Event::Alive => {}
            Event::Late(age) => ago = age,
        }
        if self.build.is_none() {
            self.registry.in_step(ago);
        }
        Ok(())
    }

    fn change(&mut self, number: Option<u64>, put: Put) -> Result<(), Full> {
        let Put {
            kind,
            provider,
            name,
            at,
            offer,
        } = put;
        let key = OfferKey {
            kind,
            provider,
            name,
        };
        match (&mut self.build, offer, number) {
            (Some(offers), Some(offer), _) => offers.take_within(&self.limits, key, offer)?,
            (None, offer, Some(number)) => {
                if let Some(offer) = &offer {
                    let current = self.registry.read();
                    current
                        .index
                        .admits(&self.limits, &key.kind, &key.provider, offer)?;
                }
                let at = at.unwrap_or_else(Timestamp::now);
                self.registry.apply(vec![OfferChange {
                    number,
                    at,
                    key,
                    offer,
                }]);
            }
            // The upstream sends no other combination.
            _ => {}
        }
        Ok(())
    }
}
