//! Report of the measurements to the broker. A slow broker delays nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use posthaste_broker_client::{MAX_MEASURED, MeasuredOffer, QualityReport};
use posthaste_qos::selection::RoutedOffer;
use posthaste_units::Span;
use tokio::time::{MissedTickBehavior, interval};

use super::shared::{OfferData, RouteOffers};

/// Interval of reports. The broker forgets a report after 3 min.
const EVERY: Duration = Duration::from_secs(10);

/// Reports the measurements of a route's offers, forever. Ends at once if the configuration names no gateway.
pub(super) async fn report(offers: Arc<RouteOffers>) {
    let (Some(client), Some(settings)) = (&offers.reporter, &offers.config.report) else {
        return;
    };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_taken = true;
    loop {
        ticks.tick().await;
        let report = measured(&offers);
        if report.offers.is_empty() {
            continue;
        }
        let kind = &offers.config.kind;
        let sent = client
            .report_quality(kind, &settings.gateway, &report)
            .await;
        offers.counters.reports[usize::from(sent.is_err())].fetch_add(1, Relaxed);
        match &sent {
            Ok(()) if !was_taken => tracing::info!("measurements are reported again"),
            Err(error) if was_taken => tracing::warn!(%error, "no measurement can be reported"),
            _ => {}
        }
        was_taken = sent.is_ok();
    }
}

/// The measurements of each class with a request in the window.
fn measured(offers: &RouteOffers) -> QualityReport {
    let published = offers.published();
    let mut classes = BTreeSet::new();
    let measured =
        published.table.offers().iter().filter(|offer| {
            offer.measured.seen() > 0 && classes.insert(offer.data.class.key.clone())
        });
    let measured = measured.map(measured_offer).take(MAX_MEASURED);
    QualityReport {
        offers: measured.collect(),
        window: offers.config.window.as_secs_f64(),
    }
}

fn measured_offer(offer: &RoutedOffer<Arc<OfferData>>) -> MeasuredOffer {
    let (key, quality) = (&offer.data.class.key, &offer.measured);
    let time = |time: Span| (time != Span::MAX).then(|| time.as_millis_f64());
    MeasuredOffer {
        provider: key.provider.clone(),
        name: key.name.clone(),
        endpoint: key.origin.clone(),
        requests: quality.requests,
        failures: quality.failures.min(quality.requests),
        p50: time(quality.p50),
        p99: time(quality.p99),
    }
}
