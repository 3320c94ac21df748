//! Definitions, offers and ontologies, random and fixed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_qos::index::Index;
use posthaste_qos::{
    Contract, Currency, Custom, Definition, Direction, Info, Metric, Money, Number, Offer,
    Ontologies, Ontology, Party, Priorities, Priority, Protocols, Rates, Requires, Server, Term,
    World,
};
use posthaste_units::{Rate, Ratio, Span};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// URL of the tests' ontology.
pub(crate) const ONTOLOGY: &str = "http://example.org/ontology";

pub(crate) fn currency(code: &str) -> Currency {
    code.parse().unwrap()
}

pub(crate) fn euros(amount: &str) -> Money {
    Money::new(amount, currency("EUR")).unwrap()
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn term(name: &str) -> Term {
    Term {
        name: name.to_owned(),
        ontology: ONTOLOGY.to_owned(),
    }
}

pub(crate) fn custom<T>(name: &str, value: T) -> Custom<T> {
    Custom {
        name: name.to_owned(),
        ontology: ONTOLOGY.to_owned(),
        value,
    }
}

/// A context in which a lower "age" is better, a higher "depth" is better, and 1 USD is worth 0.5 EUR.
pub(crate) struct Known {
    rates: Rates,
    ontologies: Ontologies,
}

impl Known {
    pub(crate) fn new() -> Self {
        let mut rates = Rates::new(currency("EUR"));
        rates.set(currency("USD"), 0.5).unwrap();
        let metric = |direction| Metric {
            direction,
            unit: "m".to_owned(),
            percentile: None,
        };
        let ontology = Ontology {
            metrics: BTreeMap::from([
                ("age".to_owned(), metric(Direction::Decreasing)),
                ("depth".to_owned(), metric(Direction::Increasing)),
            ]),
            ..Ontology::default()
        };
        Self {
            rates,
            ontologies: Ontologies::from([(ONTOLOGY.to_owned(), ontology)]),
        }
    }

    /// An empty index in this context.
    pub(crate) fn index(&self) -> Index {
        Index::new(self.rates.clone(), self.ontologies.clone())
    }

    pub(crate) fn world(&self) -> World<'_> {
        World {
            now: at("2026-01-01T00:00:00Z"),
            rates: &self.rates,
            ontologies: &self.ontologies,
        }
    }
}

pub(crate) fn offer(qos: Definition) -> Offer {
    Offer {
        name: "Gold".to_owned(),
        expires: at("2026-01-01T00:02:00Z"),
        endpoint: None,
        qos,
    }
}

prop_compose! {
    fn server()(
        time in option::of(0u64..8), rate in option::of(0u32..8), reliability in option::of(0u32..=4),
        availability in option::of(0u32..=4), age in option::of(-3i32..3), depth in option::of(-3i32..3),
    ) -> Server {
        let custom = [("age", age), ("depth", depth)].into_iter();
        let number = |value| Number::new(f64::from(value) / 4.0).unwrap();
        Server {
            processing_time: time.map(|time| Span::from_micros(time * 2_500)),
            requests_per_second: rate.and_then(|rate| Rate::per_second(f64::from(rate) * 0.7)),
            reliability: reliability.and_then(|share| Ratio::new(f64::from(share) / 4.0)),
            availability: availability.and_then(|share| Ratio::new(f64::from(share) / 4.0)),
            custom: custom
                .filter_map(|(name, value)| Some(super::made::custom(name, number(value?))))
                .collect(),
        }
    }
}

prop_compose! {
    fn priorities()(
        delay in option::of(0u8..=10), jitter in option::of(0u8..=10), throughput in option::of(0u8..=10),
        packet_loss in option::of(0u8..=10), colour in option::of(0u8..=10),
    ) -> Priorities {
        let priority = |value: Option<u8>| value.and_then(Priority::new);
        Priorities {
            delay: priority(delay),
            jitter: priority(jitter),
            throughput: priority(throughput),
            packet_loss: priority(packet_loss),
            custom: priority(colour).map(|value| super::made::custom("colour", value)).into_iter().collect(),
        }
    }
}

fn requires() -> impl Strategy<Value = Requires> {
    prop_oneof![
        Just(Requires::None),
        Just(Requires::One),
        Just(Requires::All)
    ]
}

fn terms() -> impl Strategy<Value = Vec<Term>> {
    let names = ["TLS", "WS-Security", "SAML"].map(term).to_vec();
    proptest::sample::subsequence(names, 0..=3)
}

prop_compose! {
    fn security()(protocols in terms(), requires in requires()) -> Protocols {
        Protocols { protocols, requires }
    }
}

prop_compose! {
    fn contract()(
        protocols in terms(), requires in requires(),
        parties in proptest::sample::subsequence(vec!["http://a.example/", "http://b.example/?q=1&r=2"], 0..=2),
    ) -> Contract {
        let party = |url: &str| Party { name: "A \"third\" party".to_owned(), url: url.to_owned() };
        Contract { protocols, parties: parties.into_iter().map(party).collect(), requires }
    }
}

prop_compose! {
    fn info()(
        server in server(), transport in priorities(), security in vec(security(), 0..2),
    ) -> Info {
        Info { server, transport, security }
    }
}

fn sparse_info() -> impl Strategy<Value = Info> {
    prop_oneof![2 => Just(Info::default()), 1 => info()]
}

prop_compose! {
    pub(crate) fn definition()(
        default in sparse_info(), operations in btree_map("[AB]", sparse_info(), 0..3),
        contracts in vec(contract(), 0..2),
        price in option::of((0u64..8, prop_oneof![4 => Just("EUR"), 2 => Just("USD"), 1 => Just("XTS")])),
    ) -> Definition {
        let money = |(tenths, code)| Money::from_micros(tenths * 100_000, currency(code));
        Definition { default, operations, contracts, price: price.and_then(money) }
    }
}

prop_compose! {
    pub(crate) fn any_offer()(
        name in "\\PC{1,8}", seconds in 0i64..4, endpoint in option::of("http://[a-z&<\"]{1,8}"), qos in definition(),
    ) -> Offer {
        Offer {
            // Documents trim attributes, so names have no white space at their ends.
            name: format!("{}!", name.trim()),
            expires: Timestamp::from_second(1_767_225_599 + seconds).unwrap(),
            endpoint,
            qos,
        }
    }
}
