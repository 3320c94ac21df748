//! Offers known from a broker. A thread updates them; all event loops read them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_broker_client::{BrokerClient, Error, Follower, FollowerEvent};
use posthaste_qos::Money;
use posthaste_units::Span;

use super::Buying;
use super::known_offers::{KnownOffers, OfferChoice};
use crate::cause::Cause;
use crate::error::RunError;

/// Time limit for the broker to report its offers. A broker that exceeds it counts as unavailable.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Interval between checks for the offers.
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// The catalogue and the thread that updates it.
pub(crate) struct FollowedCatalogue {
    pub(crate) catalogue: Arc<Catalogue>,
    _follower: Follower,
}

/// The offers and the criteria of choice.
pub(crate) struct Catalogue {
    buying: Buying,
    offers: Mutex<KnownOffers>,
    /// Changes with `offers` locked, whenever a choice may have another result.
    version: AtomicU64,
}

impl FollowedCatalogue {
    /// Follows the broker and waits until it has reported all offers. `stop` ends the wait.
    pub(crate) fn follow(buying: &Buying, stop: &AtomicBool) -> Result<Self, RunError> {
        let client =
            BrokerClient::new(&buying.broker).map_err(|error| RunError::BrokerUrl(error.into()))?;
        let catalogue = Arc::new(Catalogue::new(buying.clone()));
        let receiver = catalogue.clone();
        let follower = Follower::start(client, move |news| receiver.apply(news, Timestamp::now()));
        let no_offers = |reason: Cause| RunError::Broker {
            broker: buying.broker.clone(),
            reason,
        };
        let follower = follower.map_err(|error| no_offers(error.into()))?;
        let begun = Instant::now();
        while !catalogue.offers().ready {
            if stop.load(Ordering::Relaxed) {
                return Err(no_offers("stopped meanwhile".into()));
            }
            if begun.elapsed() > TIME_LIMIT {
                let lost = catalogue.offers().lost.clone();
                let reason = lost.unwrap_or_else(|| "its list of offers does not end".to_owned());
                return Err(no_offers(
                    format!("{reason}, for {} s", TIME_LIMIT.as_secs()).into(),
                ));
            }
            std::thread::sleep(CHECK_EVERY);
        }
        let fixed = catalogue.offers().fix_kind(&buying.broker);
        fixed.map_err(RunError::Plan)?;
        Ok(Self {
            catalogue,
            _follower: follower,
        })
    }
}

impl Catalogue {
    fn new(buying: Buying) -> Self {
        Self {
            offers: Mutex::new(KnownOffers::new(&buying)),
            buying,
            version: AtomicU64::new(1),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(super) const fn max_price(&self) -> Option<Money> {
        self.buying.max_price()
    }

    pub(super) const fn ask_every(&self) -> Option<Span> {
        self.buying.ask_every
    }

    /// Returns the cheapest adequate offer, or the alternative if there is none, with the version of the catalogue.
    pub(super) fn choose(&self, now: Timestamp) -> (u64, OfferChoice) {
        let mut offers = self.offers();
        let choice = offers.choose(&self.buying, now);
        (self.version(), choice)
    }

    fn offers(&self) -> MutexGuard<'_, KnownOffers> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, news: FollowerEvent, now: Timestamp) -> Result<(), Error> {
        let mut offers = self.offers();
        if offers.apply(news, &self.buying, now)? {
            self.version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
