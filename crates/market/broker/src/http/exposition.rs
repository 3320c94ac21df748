//! Metrics for Prometheus (OpenMetrics text).

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_serve::exposition::{self, counters, gauge, gauges};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::context::BrokerContext;
use crate::metrics::{AccountMetrics, BrokerMetrics};
use crate::registry::Registry;
use crate::uddi::Directory;

/// Classes of replies, as label values.
const CLASSES: [&str; 3] = ["ok", "refused", "failed"];

/// All counters and gauges, as OpenMetrics text.
pub(super) fn text(context: &Arc<BrokerContext>) -> String {
    exposition::text("posthaste_broker", Shown(context.clone()))
}

struct Shown(Arc<BrokerContext>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

impl Collector for Shown {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        let (out, context) = (&mut out, &*self.0);
        requests(out, &context.metrics)?;
        index(out, &context.registry)?;
        accounts(out, &context.metrics.accounts)?;
        if let Some(known) = &context.directory {
            directory(out, known)?;
        }
        let connections = context.counters.snapshot();
        let open = connections.open as f64;
        gauge(out, "connections_open", "Connections open now", open)?;
        let events = connections.events();
        let events = events.map(|(event, count)| ([("event", event)], count as f64));
        let help = "Connections, by what became of them";
        counters(out, "connections", help, events)
    }
}

fn requests(out: &mut DescriptorEncoder, metrics: &BrokerMetrics) -> Result<(), Error> {
    let load = |counter: &AtomicU64| counter.load(Relaxed) as f64;
    let replies = CLASSES.iter().zip(&metrics.replies);
    let replies = replies.map(|(class, count)| ([("answer", *class)], load(count)));
    let replies_help = "Replies, by kind: refused is 4xx, failed 5xx";
    counters(out, "replies", replies_help, replies)?;
    let answers = [
        ([("answer", "offer")], load(&metrics.found)),
        ([("answer", "none")], load(&metrics.none_adequate)),
    ];
    let questions_help = "Questions for the best offer, by answer";
    counters(out, "questions", questions_help, answers)?;
    let fetched = [
        ([("outcome", "ok")], load(&metrics.fetched)),
        ([("outcome", "failed")], load(&metrics.not_fetched)),
    ];
    let fetches_help = "Sources of offers fetched, by outcome";
    counters(out, "fetches", fetches_help, fetched)?;
    let refused = [([], load(&metrics.refused_tokens))];
    let tokens_help = "Requests to publish without a valid token";
    counters(out, "refused_tokens", tokens_help, refused)
}

fn index(out: &mut DescriptorEncoder, registry: &Registry) -> Result<(), Error> {
    let (offers, number) = {
        let current = registry.read();
        (current.index.len() as f64, current.number as f64)
    };
    gauge(out, "offers", "Offers in the index", offers)?;
    let help = "Number of the last change in the index";
    gauge(out, "last_change", help, number)?;
    let age = registry.age().unwrap_or_default().as_secs_f64();
    let help = "How long the index has been out of step with its store; 0 in step";
    gauge(out, "age_seconds", help, age)
}

fn accounts(out: &mut DescriptorEncoder, metrics: &AccountMetrics) -> Result<(), Error> {
    let counts = metrics.counts();
    let states = [
        ([("state", "open")], counts.open as f64),
        ([("state", "closed")], counts.closed as f64),
        ([("state", "overdrawn")], counts.overdrawn as f64),
    ];
    let help =
        "Accounts by state, counted every 10 s: overdrawn ones are open ones beyond their budget";
    gauges(out, "accounts", help, states)?;
    let outcomes = ["booked", "repeated", "refused"];
    let batches = outcomes.iter().zip(&metrics.batches);
    let batches =
        batches.map(|(outcome, count)| ([("outcome", *outcome)], count.load(Relaxed) as f64));
    let help = "Batches of charges that gateways reported, by outcome";
    counters(out, "charge_batches", help, batches)?;
    let requests = [([], metrics.requests.load(Relaxed) as f64)];
    counters(
        out,
        "charged_requests",
        "Requests in booked batches",
        requests,
    )?;
    let charged = metrics.charged();
    let charged = charged
        .iter()
        .map(|(currency, sum)| ([("currency", &**currency)], *sum));
    counters(out, "charged", "Booked money, by currency", charged)
}

fn directory(out: &mut DescriptorEncoder, directory: &Directory) -> Result<(), Error> {
    let states = directory.states();
    let rounds = [
        ([("outcome", "ok")], states.rounds.0 as f64),
        ([("outcome", "failed")], states.rounds.1 as f64),
    ];
    let rounds_help = "Rounds of questions to the registry of services, by outcome";
    counters(out, "uddi_rounds", rounds_help, rounds)?;
    let services = states.services;
    let services = services.map(|(state, count)| ([("state", state)], count as f64));
    let services_help = "Services that the registry names for the requested types, by result";
    gauges(out, "uddi_services", services_help, services)?;
    let providers_help = "Providers that the registry names as trusted";
    gauge(out, "uddi_providers", providers_help, states.trusted as f64)?;
    let refused = [([], states.refused as f64)];
    let refused_help = "Types in requests of clients for which the registry is not queried";
    counters(out, "uddi_refused_types", refused_help, refused)?;
    // No age before the first complete answer.
    let age = states.age.map(|age| ([], age.as_secs_f64()));
    let age_help = "Time since the registry reported everything";
    gauges(out, "uddi_age_seconds", age_help, age)
}
