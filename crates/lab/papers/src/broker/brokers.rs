//! SOAP lookups of the thesis's 27 offers at rates from low to past the limit, with three designs: comparison of all
//! offers, a database query per request, and our index.
//!
//! Each design is our broker with another search for the best offer. Every request has a connection of its own.

use jiff::Timestamp;
use posthaste_broker::{Admin, BrokerConfig, OfferSearch, StoreUrl};
use posthaste_broker_client::BrokerClient;
use posthaste_load::{Pace, Plan, RequestSpec, soap_request};
use posthaste_qos::index::Index;
use posthaste_qos::{Document, Offer, Ontologies, Rates, Requirement};
use posthaste_soap::Version;
use posthaste_study::{
    Conditions, Failure, Needs, RecordTable, Records, Study,
    lab::{Cores, starting},
};
use posthaste_units::{Seed, Span};

use super::lookups::QUESTIONS;
use super::prototype::{Design, Prototype, SharedPrototype};
use super::qws;
use crate::testbed::measured::runs;
use crate::testbed::proxy::ProxyUnderTest;
use crate::testbed::{TIMEOUT, describe, describe_slowdown, plan_of, sweep};

pub(super) static STUDY: Study = Study {
    name: "wsqos-brokers",
    needs: Needs::Processor,
    core: false,
    run: |conditions| study(conditions, &BrokersExtent::new(conditions.full)),
};

/// The designs: name, and lookup method. `None` is our index.
pub(super) const DESIGNS: [(&str, Option<Design>); 3] = [
    (MEMORY, Some(Design::Walk)),
    (DATABASE, Some(Design::Database)),
    (OURS, None),
];
/// The thesis's first design.
pub(super) const MEMORY: &str = "compared in memory";
/// Its second.
pub(super) const DATABASE: &str = "asked of a database";
/// Our design.
pub(super) const OURS: &str = "index in memory";

/// Offers and providers of the thesis. Its 22 services do not affect a lookup of the cheapest.
const OFFERS: usize = 27;
const PROVIDERS: [&str; 4] = ["ada", "bob", "cleo", "dora"];
const KIND: &str = "uddi:thesis:service";

/// Slowdown of the broker. A connection costs the generator more CPU time than the broker.
const SLOWDOWN: u32 = 4;

const BACKLOG: u32 = 128;
const CONNECTIONS: usize = 32;

/// Multiple of the capacity from which a broker is overloaded.
pub(super) const OVERLOADED: f64 = 1.2;

/// Quantities in the pictures.
const QUANTITIES: [&str; 4] = ["response_ms", "throughput_per_s", "rejected_per_s", "busy"];

struct BrokersExtent {
    /// Rates as multiples of a design's capacity.
    rates: &'static [f64],
    repetitions: u64,
    length: Span,
}

impl BrokersExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                rates: &[
                    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5,
                    2.0, 3.0,
                ],
                repetitions: 5,
                length: Span::from_secs(2),
            }
        } else {
            Self {
                rates: &[0.3, 0.6, 0.8, 1.0, 1.5, 2.5],
                repetitions: 3,
                length: Span::from_millis(500),
            }
        }
    }
}

fn study(conditions: &Conditions<'_>, extent: &BrokersExtent) -> Result<Records, Failure> {
    let mut records = Records::new();
    let cores = Cores::here();
    describe(&mut records, conditions, cores);
    records.set_parameter("timeout", TIMEOUT);
    records.set_parameter(
        "offers",
        format!("{OFFERS} of {} providers, one type", PROVIDERS.len()),
    );
    records.set_parameter("request", "SOAP 1.1 GetBestOffer, typical bounds");
    describe_slowdown(&mut records, SLOWDOWN);
    records.set_parameter("connection", "a new one for each request");
    records.set_parameter(
        "queue",
        format!("{BACKLOG} waiting, {CONNECTIONS} in service"),
    );
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    let folder = tempfile::tempdir()?;
    let store = StoreUrl::Sqlite(folder.path().join("offers.db"));
    let offers = qws::offers(OFFERS, conditions.seed)?;
    publish(&store, &offers)?;
    let mut table = runs();
    for (number, (who, design)) in DESIGNS.into_iter().enumerate() {
        let search = design.map(|design| search(design, &offers)).transpose()?;
        let config = BrokerConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            store: store.clone(),
            cpus: cores.server.into_iter().collect(),
            backlog: BACKLOG,
            connections: Some(CONNECTIONS),
            ..BrokerConfig::default()
        };
        let proxy = ProxyUnderTest::broker(config, search, SLOWDOWN)?;
        let request = question(&format!("http://{}/soap", proxy.address));
        let plan = |pace| plan_of(request.clone(), pace, cores);
        let done = number as u64;
        if sweep_one(conditions, extent, who, done, &proxy, &plan, &mut table)?.is_none() {
            break;
        }
    }
    records.set_table("runs", table);
    let whos = DESIGNS.map(|(who, _)| who);
    sweep::capacities(&mut records, &whos, OVERLOADED);
    let ours = records.number(&format!("capacity {OURS}"));
    sweep::points(&mut records, &whos, &QUANTITIES, ours);
    Ok(records)
}

/// Runs every rate for one design. `None` if stopped.
fn sweep_one(
    conditions: &Conditions<'_>,
    extent: &BrokersExtent,
    who: &str,
    number: u64,
    proxy: &ProxyUnderTest,
    plan: &impl Fn(Pace) -> Plan,
    table: &mut RecordTable,
) -> Result<Option<()>, Failure> {
    // The maximum of a few runs, because disturbances only reduce the capacity.
    let mut capacity = 0.0f64;
    for _ in 0..extent.repetitions {
        let length = extent.length + extent.length;
        let closed = plan(Pace::Closed {
            clients: 64,
            length,
        });
        let Some(measured) = proxy.measure(&closed, conditions.stop)? else {
            return Ok(None);
        };
        capacity = capacity.max(measured.throughput());
    }
    let capacity = conditions.capacity(capacity);
    let total = (extent.rates.len() * DESIGNS.len()) as u64;
    for (index, &load) in extent.rates.iter().enumerate() {
        let done = number * extent.rates.len() as u64 + index as u64;
        conditions
            .progress
            .step(done, total, &format!("{who}, {load} x {capacity:.0}/s"));
        for repetition in 1..=extent.repetitions {
            let pace = sweep::load(load * capacity, capacity, extent.length)?;
            let mut plan = plan(pace);
            plan.seed = Seed(conditions.seed.0.wrapping_add(repetition));
            let Some(measured) = proxy.measure(&plan, conditions.stop)? else {
                return Ok(None);
            };
            table.push(
                measured
                    .acted(SLOWDOWN)
                    .row(who, load, repetition, f64::NAN),
            );
        }
    }
    Ok(Some(()))
}

/// A search with this design over the published offers.
fn search(design: Design, offers: &[Offer]) -> Result<Box<dyn OfferSearch>, Failure> {
    let mut index = Index::new(Rates::new(qws::euro()?), Ontologies::new());
    for (offer, provider) in offers.iter().zip(PROVIDERS.iter().cycle()) {
        index.put(KIND, provider, offer)?;
    }
    let prototype = Prototype::from_index(design, &index, &index.world(Timestamp::now()))?;
    Ok(Box::new(SharedPrototype::new(prototype)))
}

/// Publishes the offers, as their providers.
fn publish(store: &StoreUrl, offers: &[Offer]) -> Result<(), Failure> {
    let mut admin = Admin::open(store)?;
    let tokens = PROVIDERS.iter().map(|provider| admin.make_token(provider));
    // A broker knows only the tokens that exist at its start.
    let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
    let start_guard = starting();
    let broker = posthaste_broker::start(BrokerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        store: store.clone(),
        ..BrokerConfig::default()
    })?;
    drop(start_guard);
    let url = format!("http://{}", broker.addr);
    for (number, (provider, (_, token))) in PROVIDERS.iter().zip(tokens).enumerate() {
        let client = BrokerClient::new(&url)?.with_token(Some(token));
        let own = offers
            .iter()
            .skip(number)
            .step_by(PROVIDERS.len())
            .cloned()
            .collect();
        posthaste_broker_client::wait(client.put_all(KIND, provider, own))??;
    }
    Ok(())
}

/// The request, with the typical question.
fn question(url: &str) -> RequestSpec {
    let mut requirement = Requirement::default();
    let (_, ask) = QUESTIONS[0];
    ask(&mut requirement.qos);
    let mut content = format!(
        "<b:GetBestOffer xmlns:b=\"urn:posthaste:broker\"><b:tModelKey>{KIND}</b:tModelKey><b:requirements>"
    );
    Document::Requirement(requirement).write_into(&mut content);
    content.push_str("</b:requirements></b:GetBestOffer>");
    soap_request(
        url,
        Version::Soap11,
        "urn:posthaste:broker/GetBestOffer",
        &content,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn a_tiny_study_asks_every_design_past_its_limit() {
        let extent = BrokersExtent {
            rates: &[0.3, 2.0],
            repetitions: 1,
            length: Span::from_millis(100),
        };
        let records = test_study::run(Some(1000.0), |conditions| study(conditions, &extent));
        assert_eq!(records.table("runs").len(), 6);
        for check in instrument::accounting(&records) {
            assert!(check.holds, "{}", check.sentence);
        }
        // A busy machine may answer no request past the limit in such a short time.
        for (who, _) in DESIGNS {
            let answered = sweep::places(&records, who, "throughput_per_s");
            assert!(
                answered[0].1 > 0.0 && answered.len() == 2,
                "{who}: {answered:?}"
            );
        }
    }
}
