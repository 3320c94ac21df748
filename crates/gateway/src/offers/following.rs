//! The task of one route outside the path of requests: follow the broker, judge the measurements, publish the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::header::HeaderValue;
use jiff::Timestamp;
use posthaste_broker_client::Follower;
use posthaste_qos::selection::{MeasuredQuality, OfferTable, RoutedOffer};
use posthaste_units::Instant;
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;

use super::book::{BookedOffer, OfferKey};
use super::class::{ClassKey, OfferClass};
use super::endpoint::{OfferEndpoint, RunningEndpoint};
use super::reply::{offer_field, printable};
use super::report::report;
use super::shared::{OfferData, OffersState, PublishedTable, RouteOffers};
use crate::clock::now;
use crate::config::Resolver;
use crate::error::TargetError;

/// Interval of judgements. Changes of offers and of measurements take effect with the next one.
const TICK: Duration = Duration::from_millis(250);

/// Wait before another attempt with an endpoint whose name cannot be resolved.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the table of one route current, forever. Runs in a `LocalSet`.
pub(crate) async fn keep(offers: Arc<RouteOffers>, rules: Resolver) {
    let told = offers.clone();
    let follower = Follower::start(offers.client.clone(), move |news| {
        told.take(news);
        Ok(())
    });
    let _follower = match follower {
        Ok(follower) => follower,
        Err(error) => {
            let broker = &offers.config.broker;
            tracing::error!(broker, %error, "the broker cannot be followed: no thread");
            return;
        }
    };
    let mut reports = JoinSet::new();
    reports.spawn_local(report(offers.clone()));
    let mut builder = TableBuilder::new(offers.clone(), rules);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = offers.changed.notified() => {}
            _ = ticks.tick() => {}
            Some(found) = builder.lookups.join_next() => {
                match found {
                    Ok((origin, found)) => builder.found(origin, found),
                    Err(error) => builder.lookup_failed(&error),
                }
            }
        }
        builder.renew();
    }
}

/// A finished creation of an endpoint.
type Found = (String, Result<OfferEndpoint, TargetError>);

/// The parts of a route's table over time.
struct TableBuilder {
    offers: Arc<RouteOffers>,
    rules: Resolver,
    lookups: JoinSet<Found>,
    endpoints: HashMap<String, EndpointState>,
    /// With the time of the last offer.
    classes: HashMap<ClassKey, (Arc<OfferClass>, Instant)>,
    /// The published offers, in their order.
    known: BTreeMap<OfferKey, (BookedOffer, MeasuredQuality, Arc<OfferData>)>,
}

enum EndpointState {
    /// Its name is being looked up.
    Pending,
    /// Its name could not be resolved.
    Failed(Instant),
    Running(RunningEndpoint),
}

impl TableBuilder {
    fn new(offers: Arc<RouteOffers>, rules: Resolver) -> Self {
        Self {
            offers,
            rules,
            lookups: JoinSet::new(),
            endpoints: HashMap::new(),
            classes: HashMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// Publishes the table, if anything has changed.
    fn renew(&mut self) {
        let at = now();
        let offers = self.offers.clone();
        let (state, booked, origins) = offers.with_book(Timestamp::now(), |state, book| {
            let booked = book
                .offers()
                .map(|(key, offer)| (key.clone(), offer.clone()));
            let origins = book.origins().cloned();
            (
                state,
                booked.collect::<Vec<_>>(),
                origins.collect::<Vec<_>>(),
            )
        });
        self.keep_endpoints(&origins, at);
        let booked = match state {
            OffersState::Current | OffersState::Held => booked,
            OffersState::Waiting | OffersState::Lapsed => Vec::new(),
        };
        let is_running = |(_, offer): &(OfferKey, BookedOffer)| {
            let endpoint = self.endpoints.get(&offer.class.origin);
            matches!(endpoint, Some(EndpointState::Running(_)))
        };
        let booked: Vec<_> = booked.into_iter().filter(is_running).collect();
        let judged = self.judge(&booked, at);
        let mut known = BTreeMap::new();
        for (key, offer) in booked {
            let (class, quality) = &judged[&offer.class];
            let data = match self.known.remove(&key) {
                Some((before, _, data)) if before == offer => data,
                _ => Arc::new(OfferData::new(&key, &offer, class.clone())),
            };
            known.insert(key, (offer, *quality, data));
        }
        let before = offers.published();
        let is_same = before.state == state && !self.has_changed(&before, &known);
        self.known = known;
        if !is_same {
            offers.publish(self.table(state));
        }
    }

    /// Judges each class once, and forgets those without an offer: at once if they got no request, otherwise after the
    /// window.
    fn judge(
        &mut self,
        booked: &[(OfferKey, BookedOffer)],
        at: Instant,
    ) -> HashMap<ClassKey, (Arc<OfferClass>, MeasuredQuality)> {
        let window = self.offers.config.window;
        let mut judged = HashMap::new();
        for (_, offer) in booked {
            if judged.contains_key(&offer.class) {
                continue;
            }
            let (class, seen) = self.classes.entry(offer.class.clone()).or_insert_with(|| {
                let class = OfferClass::new(offer.class.clone(), window);
                (Arc::new(class), at)
            });
            *seen = at;
            let quality = class.judge(at, offer.promised.time);
            judged.insert(offer.class.clone(), (class.clone(), quality));
        }
        // A class without a request has nothing to remember. Providers choose the names.
        self.classes.retain(|_, (class, seen)| {
            let is_used = class.requests.load(Relaxed) > 0;
            *seen == at || is_used && at.saturating_since(*seen) <= window
        });
        judged
    }

    fn has_changed(
        &self,
        before: &PublishedTable,
        known: &BTreeMap<OfferKey, (BookedOffer, MeasuredQuality, Arc<OfferData>)>,
    ) -> bool {
        let published = before.table.offers();
        let same = published.len() == known.len()
            && published.iter().all(|offer| {
                let key = (offer.data.provider.clone(), offer.name.clone());
                let now = known.get(&key);
                let endpoint = &before.endpoints[offer.endpoint as usize];
                now.is_some_and(|(_, quality, data)| {
                    Arc::ptr_eq(data, &offer.data)
                        && *quality == offer.measured
                        && self.is_running(endpoint)
                })
            });
        !same
    }

    fn is_running(&self, endpoint: &Arc<OfferEndpoint>) -> bool {
        match self.endpoints.get(&endpoint.origin) {
            Some(EndpointState::Running(running)) => Arc::ptr_eq(&running.endpoint, endpoint),
            _ => false,
        }
    }

    fn table(&self, state: OffersState) -> PublishedTable {
        let mut numbers = HashMap::new();
        let mut endpoints = Vec::new();
        let offers = self
            .known
            .iter()
            .map(|((_, name), (offer, quality, data))| {
                let origin = offer.class.origin.as_str();
                let endpoint = *numbers.entry(origin).or_insert_with(|| {
                    let Some(EndpointState::Running(running)) = self.endpoints.get(origin) else {
                        unreachable!("offers without an endpoint are not published");
                    };
                    endpoints.push(running.endpoint.clone());
                    endpoints.len() as u32 - 1
                });
                RoutedOffer {
                    name: name.clone(),
                    price: offer.price,
                    promised: offer.promised,
                    expires: offer.expires,
                    endpoint,
                    measured: *quality,
                    data: data.clone(),
                }
            });
        let offers = offers.collect();
        PublishedTable {
            state,
            table: OfferTable::new(self.offers.config.currency, offers),
            endpoints,
        }
    }

    /// Creates endpoints for new origins, and drops those without an offer.
    fn keep_endpoints(&mut self, origins: &[String], at: Instant) {
        self.endpoints.retain(|origin, state| {
            let is_due = matches!(state, EndpointState::Failed(until) if *until <= at);
            !is_due && origins.contains(origin)
        });
        for origin in origins {
            if self.endpoints.contains_key(origin) {
                continue;
            }
            self.endpoints
                .insert(origin.clone(), EndpointState::Pending);
            let (origin, offers, rules) = (origin.clone(), self.offers.clone(), self.rules.clone());
            self.lookups.spawn_blocking(move || {
                let endpoint = OfferEndpoint::new(&origin, &offers.route, &rules);
                (origin, endpoint)
            });
        }
    }

    /// A lookup has panicked, as if the system gives no thread. All that are under way are begun again later.
    fn lookup_failed(&mut self, error: &JoinError) {
        tracing::error!(%error, "a lookup of an endpoint of offers has failed");
        self.lookups.detach_all();
        for state in self.endpoints.values_mut() {
            if matches!(state, EndpointState::Pending) {
                *state = EndpointState::Failed(now() + RETRY.into());
            }
        }
    }

    fn found(&mut self, origin: String, found: Result<OfferEndpoint, TargetError>) {
        // Its offers may have ended meanwhile.
        let Some(state @ EndpointState::Pending) = self.endpoints.get_mut(&origin) else {
            return;
        };
        *state = match found {
            Ok(endpoint) => {
                let route = &self.offers.route;
                EndpointState::Running(RunningEndpoint::start(endpoint, route, &self.rules))
            }
            Err(error) => {
                tracing::warn!(endpoint = origin, %error, "an endpoint of offers cannot be used");
                EndpointState::Failed(now() + RETRY.into())
            }
        };
    }
}

impl OfferData {
    fn new((provider, name): &OfferKey, offer: &BookedOffer, class: Arc<OfferClass>) -> Self {
        let label = printable(name);
        Self {
            provider: provider.clone(),
            class,
            shown: offer_field(&label, Some(&printable(provider)), offer.price),
            sent: HeaderValue::from_str(name).ok(),
            label,
        }
    }
}
