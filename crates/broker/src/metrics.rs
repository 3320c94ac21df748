//! What is counted, and how Prometheus reads it (OpenMetrics text).

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::house::House;
use crate::registry::Registry as Shared;

/// The media type of [`text`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const COUNTER: MetricType = MetricType::Counter;
const GAUGE: MetricType = MetricType::Gauge;

/// How replies are told apart.
const CLASSES: [&str; 3] = ["ok", "refused", "failed"];

/// The counters of a broker's front.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By class: ok, refused, failed.
    pub(crate) replies: [AtomicU64; 3],
    found: AtomicU64,
    none_adequate: AtomicU64,
    refused_tokens: AtomicU64,
    fetched: AtomicU64,
    not_fetched: AtomicU64,
}

impl Metrics {
    /// A question for the best offer was answered.
    pub(crate) fn count_answer(&self, found: bool) {
        let counter = if found {
            &self.found
        } else {
            &self.none_adequate
        };
        counter.fetch_add(1, Relaxed);
    }

    /// A token was missing or wrong.
    pub(crate) fn count_refused_token(&self) {
        self.refused_tokens.fetch_add(1, Relaxed);
    }

    /// A source was fetched, or could not be.
    pub(crate) fn count_fetch(&self, well: bool) {
        let counter = if well {
            &self.fetched
        } else {
            &self.not_fetched
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Questions answered with an offer, and without.
    pub(crate) fn answers(&self) -> (u64, u64) {
        (self.found.load(Relaxed), self.none_adequate.load(Relaxed))
    }
}

/// Everything that is counted and measured now.
pub(crate) fn text(house: &Arc<House>) -> String {
    let mut registry = Registry::with_prefix("posthaste_broker");
    registry.register_collector(Box::new(Shown(house.clone())));
    let mut text = String::with_capacity(4 << 10);
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

struct Shown(Arc<House>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

impl Collector for Shown {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        let (out, house) = (&mut out, &*self.0);
        front(out, &house.metrics)?;
        registry(out, &house.registry)?;
        let connections = house.counters.snapshot();
        let open = [([], connections.open as f64)];
        family(out, "connections_open", "Connections open now", GAUGE, open)?;
        let events = connections.events();
        let events = events.map(|(event, count)| ([("event", event)], count as f64));
        let help = "Connections, by what became of them";
        family(out, "connections", help, COUNTER, events)
    }
}

fn front(out: &mut DescriptorEncoder, metrics: &Metrics) -> Result<(), Error> {
    let load = |counter: &AtomicU64| counter.load(Relaxed) as f64;
    let replies = CLASSES.iter().zip(&metrics.replies);
    let replies = replies.map(|(class, count)| ([("answer", *class)], load(count)));
    let help = "Replies, by kind: refused is 4xx, failed 5xx";
    family(out, "replies", help, COUNTER, replies)?;
    let answers = [
        ([("answer", "offer")], load(&metrics.found)),
        ([("answer", "none")], load(&metrics.none_adequate)),
    ];
    let help = "Questions for the best offer, by answer";
    family(out, "questions", help, COUNTER, answers)?;
    let fetched = [
        ([("outcome", "ok")], load(&metrics.fetched)),
        ([("outcome", "failed")], load(&metrics.not_fetched)),
    ];
    let help = "Sources of offers fetched, by outcome";
    family(out, "fetches", help, COUNTER, fetched)?;
    let refused = [([], load(&metrics.refused_tokens))];
    let help = "Requests to publish without a valid token";
    family(out, "refused_tokens", help, COUNTER, refused)
}

fn registry(out: &mut DescriptorEncoder, shared: &Shared) -> Result<(), Error> {
    let (offers, number) = {
        let seen = shared.seen();
        (seen.index.len() as f64, seen.number as f64)
    };
    family(out, "offers", "Offers in the index", GAUGE, [([], offers)])?;
    let help = "Number of the last change in the index";
    family(out, "last_change", help, GAUGE, [([], number)])?;
    let age = shared.age().unwrap_or_default().as_secs_f64();
    let help = "How long the index has been out of step with its store; 0 in step";
    family(out, "age_seconds", help, GAUGE, [([], age)])
}

fn family<const N: usize>(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    kind: MetricType,
    rows: impl IntoIterator<Item = ([(&'static str, &'static str); N], f64)>,
) -> Result<(), Error> {
    let mut family = out.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in rows {
        let mut metric = family.encode_family(&labels)?;
        match kind {
            MetricType::Counter => metric.encode_counter::<NoLabelSet, f64, f64>(&value, None)?,
            _ => metric.encode_gauge(&value)?,
        }
    }
    Ok(())
}
