//! Follower of another broker: applies its changes as they happen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_broker_client::{Client, Event, Follower, News, Put};
use posthaste_qos::index::{Full, Limits};

use crate::change::{Change, Key};
use crate::filling::Filling;
use crate::registry::Registry;

/// State of the follower.
struct Told {
    registry: Arc<Registry>,
    limits: Limits,
    /// Index build in progress: the initial transfer of all offers.
    beginning: Option<Filling>,
}

/// Keeps `registry` in step with the broker at `url`, which need not be reachable yet. If that broker has more offers
/// than `limits` allow, the previous offers stay in use, and the transfer is repeated until the offers fit.
pub(crate) fn follow(
    url: &str,
    registry: Arc<Registry>,
    limits: Limits,
) -> Result<Follower, crate::Error> {
    let client = Client::new(url)?;
    let upstream = url.to_owned();
    let mut told = Told {
        registry,
        limits,
        beginning: None,
    };
    Ok(Follower::start(client, move |news| {
        match news {
            News::Told(event) => return Ok(told.take(event)?),
            News::Lost(error) => {
                tracing::warn!(%error, upstream, "no longer in step");
                told.beginning = None;
            }
            // Offers expire by the clock of this machine.
            News::Second => drop(told.registry.expire(Timestamp::now())),
        }
        Ok(())
    })?)
}

impl Told {
    fn take(&mut self, event: Event) -> Result<(), Full> {
        let mut ago = Duration::ZERO;
        match event {
            Event::Begin => self.beginning = Some(Filling::of(self.registry.empty())),
            Event::Ready(number) => {
                if let Some(offers) = self.beginning.take() {
                    self.registry.replace(offers.done(), number);
                }
                tracing::info!(number, "in step");
            }
            Event::Changed { number, put } => self.change(number, *put)?,
            Event::Alive => {}
            Event::Late(age) => ago = age,
        }
        if self.beginning.is_none() {
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
        let key = Key {
            kind,
            provider,
            name,
        };
        match (&mut self.beginning, offer, number) {
            (Some(offers), Some(offer), _) => offers.take_within(&self.limits, key, offer)?,
            (None, offer, Some(number)) => {
                if let Some(offer) = &offer {
                    let seen = self.registry.seen();
                    seen.index
                        .admits(&self.limits, &key.kind, &key.provider, offer)?;
                }
                let at = at.unwrap_or_else(Timestamp::now);
                self.registry.apply(vec![Change {
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
