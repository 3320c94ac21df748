//! Following another broker: its changes, as they happen.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use posthaste_offers::{Client, Event, Follower, News, Put};

use crate::change::{Change, Key};
use crate::filling::Filling;
use crate::registry::Registry;

/// What has been told so far.
struct Told {
    registry: Arc<Registry>,
    /// What there is, while it is being told.
    beginning: Option<Filling>,
}

/// Brings `registry` into step with the broker at `url`, whether it is there yet or not.
pub(crate) fn follow(url: &str, registry: Arc<Registry>) -> Result<Follower, crate::Error> {
    let client = Client::new(url)?;
    let upstream = url.to_owned();
    let mut told = Told {
        registry,
        beginning: None,
    };
    Ok(Follower::start(client, move |news| match news {
        News::Told(event) => told.take(event),
        News::Lost(error) => {
            tracing::warn!(%error, upstream, "no longer in step");
            told.beginning = None;
        }
        // By this machine's clock.
        News::Second => drop(told.registry.expire(Timestamp::now())),
    })?)
}

impl Told {
    fn take(&mut self, event: Event) {
        let mut ago = Duration::ZERO;
        match event {
            Event::Begin => self.beginning = Some(Filling::of(self.registry.empty())),
            Event::Ready(number) => {
                if let Some(offers) = self.beginning.take() {
                    self.registry.replace(offers.done(), number);
                }
                tracing::info!(number, "in step");
            }
            Event::Changed { number, put } => self.change(number, *put),
            Event::Alive => {}
            Event::Late(age) => ago = age,
        }
        if self.beginning.is_none() {
            self.registry.in_step(ago);
        }
    }

    fn change(&mut self, number: Option<u64>, put: Put) {
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
            (Some(offers), Some(offer), _) => offers.take(key, offer),
            (None, offer, Some(number)) => {
                let at = at.unwrap_or_else(Timestamp::now);
                self.registry.apply(vec![Change {
                    number,
                    at,
                    key,
                    offer,
                }]);
            }
            // Nothing else is told.
            _ => {}
        }
    }
}
