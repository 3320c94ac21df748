//! The offers of each route on the status page: promised and measured quality, requests, reasons against them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use maud::{Markup, html};
use posthaste_qos::selection::{MeasuredQuality, PassReason, Promised, RoutedOffer};
use posthaste_units::Span;
use serde::Serialize;

use crate::offers::shared::{DECISIONS, OfferData, OffersState, PublishedTable, RouteOffers};
use crate::routing::resolved::ResolvedConfig;
use crate::upstream::health::UpstreamState;

/// Maximum number of offers of a route that are shown: the cheapest.
const SHOWN: usize = 100;

type Offer = RoutedOffer<Arc<OfferData>>;

/// The offers of a route.
#[derive(Serialize)]
pub(super) struct OffersStatus<'a> {
    route: &'a str,
    broker: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    state: OffersState,
    /// Number of all offers in use.
    count: usize,
    /// The cheapest of them.
    offers: Vec<OfferStatus>,
}

/// An offer with its measurement.
#[derive(Serialize)]
struct OfferStatus {
    name: String,
    provider: String,
    endpoint: String,
    state: UpstreamState,
    price: String,
    expires: String,
    promised_milliseconds: Option<f64>,
    promised_reliability: Option<f64>,
    /// Requests in the window.
    measured: u32,
    failures: u32,
    p50_milliseconds: Option<f64>,
    p99_milliseconds: Option<f64>,
    /// Requests of the class since the start.
    requests: u64,
    /// Decisions that name the class as passed over, by reason.
    passed_over: Vec<(&'static str, u64)>,
}

impl<'a> OffersStatus<'a> {
    /// The offers of every route that has some.
    pub(super) fn all(resolved: &'a ResolvedConfig) -> Vec<Self> {
        let routes = resolved.routes();
        routes
            .filter_map(|route| Some(Self::from_route(route.label, route.offers?)))
            .collect()
    }

    fn from_route(route: &'a str, offers: &'a RouteOffers) -> Self {
        let published = offers.published();
        let all = published.table.offers();
        let shown = all.iter().take(SHOWN);
        Self {
            route,
            broker: &offers.config.broker,
            kind: &offers.config.kind,
            state: published.state,
            count: all.len(),
            offers: shown
                .map(|offer| OfferStatus::from_table(&published, offer))
                .collect(),
        }
    }
}

impl OfferStatus {
    fn from_table(published: &PublishedTable, offer: &Offer) -> Self {
        let (class, measured) = (&offer.data.class, &offer.measured);
        let time = |time: Span| {
            let is_known = measured.seen() > 0 && time != Span::MAX;
            is_known.then(|| time.as_millis_f64())
        };
        let passed = PassReason::ALL.into_iter().zip(&class.passed);
        let passed = passed.map(|(reason, count)| (reason.name(), count.load(Relaxed)));
        Self {
            name: offer.name.clone(),
            provider: class.key.provider.clone(),
            endpoint: class.key.origin.clone(),
            state: published.endpoints[offer.endpoint as usize]
                .target()
                .state(),
            price: offer.price.to_string(),
            expires: offer.expires.to_string(),
            promised_milliseconds: offer.promised.time.map(Span::as_millis_f64),
            promised_reliability: offer.promised.reliability.map(|share| share.get()),
            measured: measured.requests,
            failures: measured.failures,
            p50_milliseconds: time(measured.p50),
            p99_milliseconds: time(measured.p99),
            requests: class.requests.load(Relaxed),
            passed_over: passed.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Renders the offers of each route. Empty without any.
pub(super) fn tables(resolved: &ResolvedConfig) -> Markup {
    html! {
        @for route in resolved.routes() {
            @if let Some(offers) = route.offers {
                (table(route.label, offers))
            }
        }
    }
}

fn table(route: &str, offers: &RouteOffers) -> Markup {
    let published = offers.published();
    let all = published.table.offers();
    let excluded = offers.excluded();
    let decisions = DECISIONS.iter().zip(&offers.counters.decisions);
    html! {
        h2 { "Offers of " (route) }
        p {
            (all.len()) " offers of the type " b { (offers.config.kind) } " from " (offers.config.broker) ": "
            b { (published.state.name()) } ". Requests by decision:"
            @for (decision, count) in decisions { " " (decision) " " (count.load(Relaxed)) }
            "."
            @for (reason, count) in excluded.iter().filter(|(_, count)| *count > 0) {
                " " (count) " offers cannot be used: " (reason.name()) "."
            }
        }
        table {
            tr {
                th { "Offer" } th { "Provider" } th.n { "Price" } th { "Endpoint" }
                th { "Promised" } th { "Measured" } th.n { "Requests" } th { "Passed over" }
            }
            @for offer in all.iter().take(SHOWN) {
                @let class = &offer.data.class;
                tr {
                    td { (offer.name) }
                    td { (class.key.provider) }
                    td.n { (offer.price) }
                    @let endpoint = published.endpoints[offer.endpoint as usize].target().state().name();
                    td class=(endpoint) { (class.key.origin) " " (endpoint) }
                    td { (promised(&offer.promised)) }
                    td { (measured(&offer.measured)) }
                    td.n { (class.requests.load(Relaxed)) }
                    td {
                        @for (reason, count) in PassReason::ALL.iter().zip(&class.passed) {
                            @if count.load(Relaxed) > 0 { (reason.name()) " " (count.load(Relaxed)) " " }
                        }
                    }
                }
            }
        }
        @if all.len() > SHOWN { p { "The cheapest " (SHOWN) " of " (all.len()) "." } }
    }
}

fn promised(promised: &Promised) -> String {
    let time = promised.time.map(|time| format!("at most {time}"));
    let share = promised
        .reliability
        .map(|share| format!("reliability {share}"));
    let promises: Vec<String> = time.into_iter().chain(share).collect();
    if promises.is_empty() {
        "nothing".to_owned()
    } else {
        promises.join(", ")
    }
}

fn measured(measured: &MeasuredQuality) -> String {
    let time = |time: Span| match time {
        Span::MAX => "failure".to_owned(),
        time => format!("{:.1} ms", time.as_millis_f64()),
    };
    match measured.seen() {
        0 => "nothing".to_owned(),
        _ => format!(
            "p50 {}, p99 {}, {} of {} failed, {} overdue{}",
            time(measured.p50),
            time(measured.p99),
            measured.failures,
            measured.requests,
            measured.overdue,
            if measured.is_enough() {
                ""
            } else {
                " (too few to judge)"
            }
        ),
    }
}
