//! The task of one route outside the path of requests: follow the broker, judge the measurements, publish the table.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::header::HeaderValue;
use posthaste_broker_client::Follower;
use posthaste_gateway_config::Resolver;
use posthaste_qos::selection::{MeasuredQuality, OfferTable, RoutedOffer};
use posthaste_serve::environment::is_simulated;
use posthaste_units::{Instant, Span};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;

use super::book::{BookedOffer, OfferBook, OfferKey};
use super::class::{ClassKey, OfferClass};
use super::endpoint::{OfferEndpoint, RunningEndpoint};
use super::reply::{offer_field, printable};
use super::report::report;
use super::shared::{OfferData, OffersState, PublishedTable, RouteOffers};
use crate::clock::{now, timestamp};
use crate::error::TargetError;

/// Interval of judgements. Changes of offers and of measurements take effect with the next one.
const TICK: Duration = Duration::from_millis(250);

/// Wait before another attempt with an endpoint whose name cannot be resolved.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the table of one route current, forever. Runs in a `LocalSet`.
pub(crate) async fn keep(offers: Arc<RouteOffers>, rules: Resolver) {
    let book = offers.clone();
    let follower = Follower::start(offers.client.clone(), move |news| {
        book.take(news);
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
            biased;
            Some(found) = builder.lookups.join_next() => {
                match found {
                    Ok((origin, found)) => builder.found(origin, found),
                    Err(error) => builder.lookup_failed(&error),
                }
            }
            _ = ticks.tick() => {}
            () = offers.changed.notified() => {}
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
    endpoints: BTreeMap<String, EndpointState>,
    classes: HashMap<ClassKey, ClassState>,
    book: KnownBook,
    /// The published offers, in their order.
    known: BTreeMap<OfferKey, KnownOffer>,
    /// Their classes, each once.
    judged: Vec<JudgedClass>,
    /// Offers or endpoints have changed since the last publication.
    is_stale: bool,
    /// The table before the published one. Threads seldom hold it, so its memory is freed here and not while a
    /// request waits.
    _before: Option<Arc<PublishedTable>>,
}

/// A copy of the book at the broker.
#[derive(Default)]
struct KnownBook {
    /// Its number of changes.
    changes: Option<u64>,
    state: Option<OffersState>,
    offers: Vec<(OfferKey, BookedOffer)>,
    /// Scheme, host and port of each endpoint.
    origins: BTreeSet<String>,
}

struct ClassState {
    class: Arc<OfferClass>,
    /// Time of the last offer. `None` if there is one.
    ended: Option<Instant>,
}

/// A published offer.
struct KnownOffer {
    offer: BookedOffer,
    data: Arc<OfferData>,
    /// Place of its class in `judged`.
    class: usize,
}

/// A class with its last judgement.
struct JudgedClass {
    class: Arc<OfferClass>,
    promised: Option<Span>,
    quality: MeasuredQuality,
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
            endpoints: BTreeMap::new(),
            classes: HashMap::new(),
            book: KnownBook::default(),
            known: BTreeMap::new(),
            judged: Vec::new(),
            is_stale: false,
            _before: None,
        }
    }

    /// Publishes the table, if anything has changed.
    fn renew(&mut self) {
        let at = now();
        self.read_book();
        self.keep_endpoints(at);
        if self.is_stale {
            self.collect(at);
        }
        let has_changed = self.judge(at);
        self.forget_classes(at);
        if has_changed || self.is_stale {
            self._before = Some(self.offers.publish(self.table()));
            self.is_stale = false;
        }
    }

    /// Copies the book, if it has changed.
    fn read_book(&mut self) {
        let book = &mut self.book;
        let copy = |book: &OfferBook| {
            let offers = book.offers();
            let offers = offers.map(|(key, offer)| (key.clone(), offer.clone()));
            (offers.collect(), book.origins().cloned().collect())
        };
        let time = timestamp();
        let (state, changes, copy) = self.offers.with_book(time, book.changes, copy);
        if let Some((offers, origins)) = copy {
            (book.offers, book.origins) = (offers, origins);
            book.changes = Some(changes);
            self.is_stale = true;
        }
        if book.state.replace(state) != Some(state) {
            self.is_stale = true;
        }
    }

    /// Collects the offers with a running endpoint, and their classes.
    fn collect(&mut self, at: Instant) {
        let mut before = std::mem::take(&mut self.known);
        self.judged.clear();
        let mut indexes = HashMap::<&ClassKey, usize>::new();
        for (key, offer) in self.book.valid() {
            let endpoint = self.endpoints.get(&offer.class.origin);
            if !matches!(endpoint, Some(EndpointState::Running(_))) {
                continue;
            }
            let index = *indexes.entry(&offer.class).or_insert_with(|| {
                let window = self.offers.config.window;
                let state = self.classes.entry(offer.class.clone());
                let state = state.or_insert_with(|| ClassState::new(&offer.class, window));
                self.judged.push(JudgedClass {
                    class: state.class.clone(),
                    promised: offer.promised.time,
                    quality: MeasuredQuality::default(),
                });
                self.judged.len() - 1
            });
            let data = match before.remove(key) {
                Some(known) if known.offer == *offer => known.data,
                _ => Arc::new(OfferData::new(key, offer, self.judged[index].class.clone())),
            };
            let known = KnownOffer {
                offer: offer.clone(),
                data,
                class: index,
            };
            self.known.insert(key.clone(), known);
        }
        for (key, state) in &mut self.classes {
            if indexes.contains_key(key) {
                state.ended = None;
            } else {
                state.ended.get_or_insert(at);
            }
        }
    }

    /// Judges each class. Returns true if a judgement has changed.
    fn judge(&mut self, at: Instant) -> bool {
        let mut has_changed = false;
        for judged in &mut self.judged {
            let quality = judged.class.judge(at, judged.promised);
            has_changed |= quality != judged.quality;
            judged.quality = quality;
        }
        has_changed
    }

    /// Forgets classes without an offer: at once if they got no request, otherwise after the window.
    fn forget_classes(&mut self, at: Instant) {
        let window = self.offers.config.window;
        self.classes.retain(|_, state| {
            // A class without a request has nothing to remember. Providers choose the names.
            let is_used = state.class.requests.load(Relaxed) > 0;
            let is_recent = |ended: Instant| at.saturating_since(ended) <= window;
            state.ended.is_none_or(|ended| is_used && is_recent(ended))
        });
    }

    fn table(&self) -> PublishedTable {
        let mut numbers = HashMap::new();
        let mut endpoints = Vec::new();
        let offers = self.known.iter().map(|((_, name), known)| {
            let offer = &known.offer;
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
                measured: self.judged[known.class].quality,
                data: known.data.clone(),
            }
        });
        let offers = offers.collect();
        PublishedTable {
            state: self.book.state.expect("the book is read first"),
            table: OfferTable::new(self.offers.config.currency, offers),
            endpoints,
        }
    }

    /// Creates endpoints for new origins, and drops those without an offer.
    fn keep_endpoints(&mut self, at: Instant) {
        let origins = &self.book.origins;
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
            let create = move || {
                let endpoint = OfferEndpoint::new(&origin, &offers.route, &rules);
                (origin, endpoint)
            };
            if is_simulated() {
                self.lookups.spawn_local(async { create() });
            } else {
                self.lookups.spawn_blocking(create);
            }
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
        self.is_stale = true;
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

impl KnownBook {
    /// The offers that may be used.
    fn valid(&self) -> &[(OfferKey, BookedOffer)] {
        match self.state {
            Some(OffersState::Current | OffersState::Held) => &self.offers,
            Some(OffersState::Waiting | OffersState::Lapsed) | None => &[],
        }
    }
}

impl ClassState {
    fn new(key: &ClassKey, window: Span) -> Self {
        Self {
            class: Arc::new(OfferClass::new(key.clone(), window)),
            ended: None,
        }
    }
}

impl OfferData {
    fn new(key: &OfferKey, offer: &BookedOffer, class: Arc<OfferClass>) -> Self {
        let (provider, name) = key;
        let label = printable(name);
        Self {
            class,
            shown: offer_field(&label, Some(&printable(provider)), offer.price),
            sent: HeaderValue::from_str(name).ok(),
            label,
        }
    }
}
