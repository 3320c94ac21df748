//! State of the offers of one route, shared by all threads.

use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::header::HeaderValue;
use posthaste_broker_client::{BrokerClient, Event, FollowerEvent};
use posthaste_gateway_config::{AllowedHosts, OfferReport, OfferRouting, RouteConfig};
use posthaste_qos::selection::OfferTable;
use posthaste_units::{Instant, Span};
use tokio::sync::{Notify, watch};

use super::book::{BookRules, Exclusion, MAX_ENDPOINTS, MAX_OFFERS, OfferBook};
use super::class::OfferClass;
use super::endpoint::OfferEndpoint;
use crate::clock::now;
use crate::error::ResolveError;

/// The offers of one route.
pub(crate) struct RouteOffers {
    pub(crate) config: OfferRouting,
    /// The route, for the rules of its endpoints.
    pub(super) route: RouteConfig,
    pub(super) client: BrokerClient,
    /// The client with this gateway's token. `None` if the measurements stay here.
    pub(super) reporter: Option<BrokerClient>,
    /// This gateway's token.
    token: Option<String>,
    pub(super) rules: BookRules,
    broker: Mutex<BrokerState>,
    /// Wakes the task that publishes the table.
    pub(super) changed: Notify,
    published: watch::Sender<Arc<PublishedTable>>,
    /// Tables published so far.
    version: AtomicU64,
    /// Earliest time of the next probe, in nanoseconds.
    probe_due: AtomicU64,
    /// Place of the last probe.
    pub(super) probed: AtomicUsize,
    pub(crate) counters: OfferCounters,
}

/// The offers as the broker tells them.
#[derive(Debug, Default)]
struct BrokerState {
    book: OfferBook,
    /// Changes of the book so far.
    changes: u64,
    /// A complete transfer under way.
    incoming: Option<OfferBook>,
    /// A complete transfer has ended.
    is_known: bool,
    /// Last moment of contact, if it is lost.
    away_since: Option<Instant>,
    /// An excluded offer was logged.
    has_warned: bool,
}

/// The offers at one moment, for all threads.
pub(crate) struct PublishedTable {
    pub(crate) state: OffersState,
    pub(crate) table: OfferTable<Arc<OfferData>>,
    /// By the numbers in the table.
    pub(crate) endpoints: Vec<Arc<OfferEndpoint>>,
}

/// Data of an offer, next to those of the choice.
pub(crate) struct OfferData {
    pub(crate) class: Arc<OfferClass>,
    /// The name for fields: printable, at most 64 bytes and the end of an escape.
    pub(super) label: String,
    /// `Selected-Offer` of replies.
    pub(super) shown: HeaderValue,
    /// `Selected-Offer` of requests to the provider. `None` if a field cannot carry the name.
    pub(super) sent: Option<HeaderValue>,
}

/// Validity of the offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OffersState {
    /// None have arrived yet.
    Waiting,
    /// In step with the broker.
    Current,
    /// The last ones are used without contact to the broker.
    Held,
    /// The broker has been away for longer than `hold`.
    Lapsed,
}

/// Counters of decisions.
#[derive(Debug, Default)]
pub(crate) struct OfferCounters {
    /// In the order of [`DECISIONS`].
    pub(crate) decisions: [AtomicU64; DECISIONS.len()],
    /// Reports to the broker: successful and failed.
    pub(crate) reports: [AtomicU64; 2],
}

/// Decisions about requests, in the order of [`OfferDecision`].
pub(crate) const DECISIONS: [&str; 6] = [
    "cheapest",
    "selected",
    "probe",
    "fallback",
    "too-expensive",
    "none",
];

/// A decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferDecision {
    Cheapest,
    Selected,
    Probe,
    /// The configured upstreams, without an offer.
    Fallback,
    /// Rejected: adequate offers cost more than the maximum price.
    TooExpensive,
    /// Rejected: no offer is adequate.
    None,
}

impl OffersState {
    pub(crate) const ALL: [Self; 4] = [Self::Waiting, Self::Current, Self::Held, Self::Lapsed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Current => "current",
            Self::Held => "held",
            Self::Lapsed => "lapsed",
        }
    }
}

impl RouteOffers {
    /// Creates the state of a route with `offers`. Nothing is followed yet.
    pub(crate) fn new(route: &RouteConfig, offers: &OfferRouting) -> Result<Self, ResolveError> {
        let path = route.rewrite.as_ref().unwrap_or(&route.path);
        let currency = offers.currency;
        let none = PublishedTable {
            state: OffersState::Waiting,
            table: OfferTable::new(currency, Vec::new()),
            endpoints: Vec::new(),
        };
        let client = BrokerClient::new(&offers.broker)?;
        let token = offers.report.as_ref().map(read_token).transpose()?;
        let reporter = token
            .is_some()
            .then(|| client.clone().with_token(token.clone()));
        Ok(Self {
            reporter,
            token,
            client,
            rules: BookRules {
                kind: offers.kind.clone(),
                providers: offers.providers.clone(),
                currency,
                allowed: AllowedHosts::read(&offers.allow).expect("entries are checked"),
                path: path.trim_end_matches('/').to_owned(),
                max_offers: MAX_OFFERS,
                max_endpoints: MAX_ENDPOINTS,
            },
            broker: Mutex::default(),
            changed: Notify::new(),
            published: watch::Sender::new(Arc::new(none)),
            version: AtomicU64::new(0),
            probe_due: AtomicU64::new(0),
            probed: AtomicUsize::new(usize::MAX - 1),
            counters: OfferCounters::default(),
            config: offers.clone(),
            route: route.clone(),
        })
    }

    /// True if the route of a new configuration has the same offers and endpoints. Files count by their content: a route
    /// with certificates of its own always begins anew.
    pub(crate) fn serves(&self, new: &Self) -> bool {
        let (known, route) = (&self.route, &new.route);
        new.config == self.config
            && new.token == self.token
            && route.authority.is_none()
            && known.normal_host() == route.normal_host()
            && known.path == route.path
            && known.rewrite == route.rewrite
            && known.health == route.health
            && known.authority == route.authority
            && known.protocol == route.protocol
            && known.ejection == route.ejection
    }

    /// The current table.
    pub(crate) fn published(&self) -> Arc<PublishedTable> {
        self.published.borrow().clone()
    }

    /// Number of tables published so far. Costs one load.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Publishes a table. Returns the one before.
    pub(super) fn publish(&self, table: PublishedTable) -> Arc<PublishedTable> {
        let before = self.published.send_replace(Arc::new(table));
        // The lock of the table orders the change itself, which precedes its count.
        self.version.fetch_add(1, Relaxed);
        before
    }

    /// Number of offers that cannot be used, by reason.
    pub(crate) fn excluded(&self) -> [(Exclusion, usize); Exclusion::ALL.len()] {
        let broker = self.broker();
        Exclusion::ALL.map(|reason| (reason, broker.book.excluded(reason)))
    }

    /// Applies news of the broker.
    pub(super) fn take(&self, news: FollowerEvent) {
        let mut broker = self.broker();
        let state = &mut *broker;
        match news {
            FollowerEvent::Second => return,
            FollowerEvent::Lost(error) => {
                state.incoming = None;
                if state.away_since.is_none() {
                    tracing::warn!(broker = self.config.broker, %error, "no contact to the broker");
                    state.away_since = Some(now());
                }
            }
            FollowerEvent::Told(Event::Begin) => {
                state.incoming = Some(OfferBook::default());
                return;
            }
            FollowerEvent::Told(Event::Changed { put, .. }) => {
                state.changes += 1;
                let book = state.incoming.as_mut().unwrap_or(&mut state.book);
                let (provider, name) = (put.provider.clone(), put.name.clone());
                let excluded = book.take(*put, &self.rules);
                if let Some(reason) = excluded
                    && !state.has_warned
                {
                    state.has_warned = true;
                    let reason = reason.name();
                    tracing::warn!(
                        provider,
                        name,
                        reason,
                        "an offer cannot be used: /status counts all of them"
                    );
                }
                return;
            }
            FollowerEvent::Told(Event::Late(late)) => {
                let since = Instant::from_nanos(
                    now().as_nanos().saturating_sub(Span::from(late).as_nanos()),
                );
                state.away_since = Some(since);
            }
            FollowerEvent::Told(Event::Ready(_)) => {
                if let Some(book) = state.incoming.take() {
                    state.book = book;
                    state.changes += 1;
                }
                state.is_known = true;
                state.is_back(&self.config.broker);
            }
            FollowerEvent::Told(Event::Alive) => {
                if state.away_since.is_none() {
                    return;
                }
                state.is_back(&self.config.broker);
            }
        }
        drop(broker);
        self.changed.notify_one();
    }

    /// Removes ended offers. Returns the validity of the others, the number of changes of the book, and, if that is not
    /// `known`, the result of `read`.
    pub(super) fn with_book<T>(
        &self,
        time: jiff::Timestamp,
        known: Option<u64>,
        read: impl FnOnce(&OfferBook) -> T,
    ) -> (OffersState, u64, Option<T>) {
        let mut broker = self.broker();
        if broker.book.expire(time) {
            broker.changes += 1;
        }
        let (state, changes) = (broker.state(self.config.hold), broker.changes);
        let is_new = known != Some(changes);
        (state, changes, is_new.then(|| read(&broker.book)))
    }

    /// Returns true if a request may be a probe at this time.
    pub(super) fn is_probe_due(&self) -> bool {
        !self.config.probe.is_zero() && now().as_nanos() >= self.probe_due.load(Relaxed)
    }

    /// Takes the turn of a probe. Returns true for one request only.
    pub(super) fn take_probe(&self) -> bool {
        let (now, due) = (now(), self.probe_due.load(Relaxed));
        let next = (now + self.config.probe).as_nanos();
        let take = || self.probe_due.compare_exchange(due, next, Relaxed, Relaxed);
        now.as_nanos() >= due && take().is_ok()
    }

    pub(super) fn count(&self, decision: OfferDecision) {
        self.counters.decisions[decision as usize].fetch_add(1, Relaxed);
    }

    /// A panic with the lock held cannot leave the book inconsistent.
    fn broker(&self) -> MutexGuard<'_, BrokerState> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the token of this gateway.
fn read_token(report: &OfferReport) -> Result<String, ResolveError> {
    let token = fs::read_to_string(&report.token).map_err(|error| ResolveError::ReportToken {
        file: report.token.clone(),
        error,
    })?;
    Ok(token.trim().to_owned())
}

impl BrokerState {
    fn state(&self, hold: Span) -> OffersState {
        match self.away_since {
            _ if !self.is_known => OffersState::Waiting,
            None => OffersState::Current,
            Some(since) if now().saturating_since(since) <= hold => OffersState::Held,
            Some(_) => OffersState::Lapsed,
        }
    }

    fn is_back(&mut self, broker: &str) {
        if self.away_since.take().is_some() {
            tracing::info!(broker, "the broker is followed again");
        }
    }
}
