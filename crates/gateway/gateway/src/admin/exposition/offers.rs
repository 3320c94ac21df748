//! Routing by offers: decisions, offers in use and excluded, and what was measured of each class.
//!
//! Names of offers come from outside. Only classes that got requests have series, at most [`MAX_CLASSES`] of a route.

use std::collections::BTreeSet;
use std::fmt::Error;
use std::sync::atomic::Ordering::Relaxed;

use posthaste_qos::selection::{PassReason, RoutedOffer};
use posthaste_serve::exposition::{counters, gauges};
use posthaste_units::Span;
use prometheus_client::encoding::DescriptorEncoder;

use super::load;
use crate::offers::shared::{DECISIONS, OfferData, OffersState, PublishedTable};
use crate::routing::resolved::{ResolvedConfig, ResolvedRoute};

/// Maximum number of classes of a route with series of their own: the cheapest.
const MAX_CLASSES: usize = 256;

type Offer = RoutedOffer<std::sync::Arc<OfferData>>;

/// A route with offers at one moment.
struct Shown<'a> {
    route: ResolvedRoute<'a>,
    published: std::sync::Arc<PublishedTable>,
}

pub(super) fn encode(out: &mut DescriptorEncoder, resolved: &ResolvedConfig) -> Result<(), Error> {
    let shown = resolved.routes().filter_map(|route| {
        let published = route.offers?.published();
        Some(Shown { route, published })
    });
    let shown: Vec<Shown<'_>> = shown.collect();
    if shown.is_empty() {
        return Ok(());
    }
    routes(out, &shown)?;
    classes(out, &shown)
}

fn routes(out: &mut DescriptorEncoder, shown: &[Shown<'_>]) -> Result<(), Error> {
    let offers = || {
        let with_offers = shown.iter();
        with_offers.filter_map(|shown| Some((shown.route.label, shown.route.offers?)))
    };
    let decisions = offers().flat_map(|(label, offers)| {
        let counts = DECISIONS.iter().zip(&offers.counters.decisions);
        counts.map(move |(decision, count)| {
            ([("route", label), ("decision", *decision)], load(count))
        })
    });
    let decisions_help = "Requests of routes with offers, by the decision about their offer";
    counters(out, "offer_decisions", decisions_help, decisions)?;
    let states = shown.iter().flat_map(|shown| {
        OffersState::ALL.map(|state| {
            let is_in = f64::from(u8::from(shown.published.state == state));
            (
                [("route", shown.route.label), ("state", state.name())],
                is_in,
            )
        })
    });
    let states_help =
        "1 for the validity of the offers: waiting, current, held without a broker, lapsed";
    gauges(out, "offers_state", states_help, states)?;
    let counts = shown.iter().map(|shown| {
        let count = shown.published.table.offers().len();
        ([("route", shown.route.label)], count as f64)
    });
    gauges(out, "offers", "Offers in use", counts)?;
    let excluded = offers().flat_map(|(label, offers)| {
        offers
            .excluded()
            .map(|(reason, count)| ([("route", label), ("reason", reason.name())], count as f64))
    });
    let excluded_help = "Offers of the type that cannot be used, by reason";
    gauges(out, "offers_excluded", excluded_help, excluded)?;
    let reports = offers().flat_map(|(label, offers)| {
        let [taken, failed] = &offers.counters.reports;
        [("taken", taken), ("failed", failed)]
            .map(|(outcome, count)| ([("route", label), ("outcome", outcome)], load(count)))
    });
    let reports_help = "Reports of measurements to the broker, by outcome";
    counters(out, "offer_reports", reports_help, reports)
}

fn classes(out: &mut DescriptorEncoder, shown: &[Shown<'_>]) -> Result<(), Error> {
    let each = || shown.iter().flat_map(used_classes);
    let requests = each().map(|(labels, offer)| (labels, load(&offer.data.class.requests)));
    let requests_help = "Requests sent to the offers of a class";
    counters(out, "offer_class_requests", requests_help, requests)?;
    let passed_over = each().flat_map(|(labels, offer)| {
        let [route, provider, name, endpoint] = labels;
        PassReason::ALL.into_iter().filter_map(move |reason| {
            let count = load(&offer.data.class.passed[reason as usize]);
            let labels = [route, provider, name, endpoint, ("reason", reason.name())];
            (count > 0.0).then_some((labels, count))
        })
    });
    let passed_over_help =
        "Decisions that name a class among the cheapest that they passed over, by reason";
    counters(
        out,
        "offer_class_passed_over",
        passed_over_help,
        passed_over,
    )?;
    let seconds = each().flat_map(|(labels, offer)| {
        let [route, provider, name, endpoint] = labels;
        let times = [("0.5", offer.measured.p50), ("0.99", offer.measured.p99)];
        times.map(|(quantile, time)| {
            let seconds = match time {
                Span::MAX => f64::INFINITY,
                time => time.as_secs_f64(),
            };
            (
                [route, provider, name, endpoint, ("quantile", quantile)],
                seconds,
            )
        })
    });
    let seconds_help =
        "Measured response times of a class in the window; infinite if it is a failure";
    gauges(out, "offer_class_seconds", seconds_help, seconds)?;
    let failures = each().map(|(labels, offer)| (labels, 1.0 - offer.measured.success()));
    let failures_help = "Measured share of failed requests of a class in the window";
    gauges(out, "offer_class_failures", failures_help, failures)
}

/// The classes of a route that got requests, with one offer of each.
fn used_classes<'a>(
    shown: &'a Shown<'_>,
) -> impl Iterator<Item = ([(&'static str, &'a str); 4], &'a Offer)> {
    let mut seen = BTreeSet::new();
    let used = shown.published.table.offers().iter().filter(move |offer| {
        let class = &offer.data.class;
        class.requests.load(Relaxed) > 0 && seen.insert(&class.key)
    });
    used.take(MAX_CLASSES).map(|offer| {
        let key = &offer.data.class.key;
        let labels = [
            ("route", shown.route.label),
            ("provider", &*key.provider),
            ("offer", &*key.name),
            ("endpoint", &*key.origin),
        ];
        (labels, offer)
    })
}
