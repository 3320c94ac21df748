//! Prototypes: the two lookup methods of the brokers in the thesis, for comparison with the broker's index.
//!
//! They contain the offers that exist at their creation, and no later ones.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod table;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "postgres")]
use posthaste_broker::StoreUrl;
use posthaste_broker::{OfferSearch, SearchError};
use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Offer, World, is_adequate};

#[cfg(feature = "postgres")]
use self::postgres::PostgresTable;
use self::sqlite::SqliteTable;
use posthaste_study::Failure;

/// Lookup method of a prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// Compares all offers in memory one after the other (thesis, section 7.2, offers in RAM).
    Walk,
    /// Queries a database per request (offers in a database): SQLite, with an index that covers all compared columns.
    Database,
}

/// Offers and a lookup method.
pub(super) struct Prototype(Method);

enum Method {
    Walk(HashMap<String, Vec<(String, Offer)>>),
    Sqlite(SqliteTable),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresTable>),
}

impl Prototype {
    /// Copies the offers in `index`. `world` has the rates and ontologies for the comparison.
    pub(super) fn from_index(
        design: Design,
        index: &Index,
        world: &World<'_>,
    ) -> Result<Self, Failure> {
        let kinds: Vec<&str> = index.kinds().collect();
        Ok(Self(match design {
            Design::Walk => {
                let offers = |kind| {
                    let offers = index.offers(kind);
                    offers
                        .map(|found| (found.provider.to_owned(), found.offer))
                        .collect()
                };
                Method::Walk(
                    kinds
                        .into_iter()
                        .map(|kind| (kind.to_owned(), offers(kind)))
                        .collect(),
                )
            }
            Design::Database => Method::Sqlite(SqliteTable::from_index(index, world)?),
        }))
    }

    /// Copies the offers to a PostgreSQL database, which is queried per request and not changed permanently. Queries
    /// block the thread and must run outside of an async runtime.
    #[cfg(feature = "postgres")]
    pub(super) fn on(store: &StoreUrl, index: &Index, world: &World<'_>) -> Result<Self, Failure> {
        let StoreUrl::Postgres(config) = store else {
            return Err(format!("{store} is no PostgreSQL database").into());
        };
        let database = PostgresTable::from_index(config, index, world)?;
        Ok(Self(Method::Postgres(Box::new(database))))
    }

    /// Returns the cheapest adequate offer for the type `kind`, with its provider.
    pub(super) fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, Failure> {
        match &self.0 {
            Method::Walk(offers) => {
                let offers = offers.get(kind).into_iter().flatten();
                let adequate = offers.filter(|(_, offer)| is_adequate(offer, wanted, world));
                let price =
                    |offer: &Offer| offer.qos.price.and_then(|price| world.rates.in_base(price));
                Ok(adequate.min_by_key(|(_, offer)| price(offer)).cloned())
            }
            Method::Sqlite(database) => database.best(kind, wanted, world),
            #[cfg(feature = "postgres")]
            Method::Postgres(database) => database.best(kind, wanted, world),
        }
    }
}

/// Prototype shared by the event loops of a broker.
pub(super) struct SharedPrototype(Mutex<Prototype>);

impl SharedPrototype {
    pub(super) fn new(prototype: Prototype) -> Self {
        Self(Mutex::new(prototype))
    }
}

impl OfferSearch for SharedPrototype {
    fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, SearchError> {
        let prototype = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        prototype.best(kind, wanted, world)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use posthaste_qos::{Money, Ontologies, Priority, Rates};
    use posthaste_units::{Rate, Ratio, Span};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    #[cfg(feature = "postgres")]
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    prop_compose! {
        fn definition()(
            price in option::of(1u64..6),
            time in option::of(1u64..6),
            rate in option::of(1u32..6),
            shares in [option::of(0u32..=5), option::of(0u32..=5)],
            delay in option::of(0u8..=3),
        ) -> Definition {
            let mut qos = Definition::default();
            let server = &mut qos.default.server;
            server.processing_time = time.map(Span::from_millis);
            server.requests_per_second = rate.and_then(|rate| Rate::per_second(rate.into()));
            let share = |share: Option<u32>| Ratio::new(f64::from(share?) / 5.0);
            server.availability = share(shares[0]);
            server.reliability = share(shares[1]);
            qos.default.transport.delay = delay.and_then(Priority::new);
            qos.price = price.and_then(|price| Money::from_micros(price, "EUR".parse().unwrap()));
            qos
        }
    }

    prop_compose! {
        fn index()(
            offers in vec((any::<bool>(), definition(), 1u64..6, -1i64..3), 0..30),
        ) -> Index {
            let mut index = Index::new(Rates::new("EUR".parse().unwrap()), Ontologies::new());
            for (name, (other, mut qos, price, seconds)) in offers.into_iter().enumerate() {
                qos.price = Money::from_micros(price, "EUR".parse().unwrap());
                let expires = now() + jiff::SignedDuration::from_secs(seconds);
                let offer = Offer { name: name.to_string(), expires, endpoint: None, qos };
                index.put(if other { "films" } else { "books" }, "ada", &offer).unwrap();
            }
            index
        }
    }

    /// Asserts that the prototype's best offer has the same price as the index's.
    fn agree(prototype: &Prototype, index: &Index, wanted: &Definition) {
        let ours = index.best("books", wanted, now());
        let theirs = prototype.best("books", wanted, &index.world(now()));
        let theirs = theirs.unwrap().map(|(_, offer)| offer.qos.price);
        assert_eq!(theirs, ours.map(|found| found.offer.qos.price));
    }

    proptest! {
        #[test]
        fn every_design_finds_an_offer_of_the_best_price(index in index(), wanted in definition()) {
            for design in [Design::Walk, Design::Database] {
                let prototype = Prototype::from_index(design, &index, &index.world(now()));
                agree(&prototype.unwrap(), &index, &wanted);
            }
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    #[ignore = "needs PostgreSQL: cargo xtask test runs it"]
    fn postgres_finds_an_offer_of_the_best_price() {
        let server =
            std::env::var("POSTHASTE_POSTGRES").expect("POSTHASTE_POSTGRES names a server");
        let store: StoreUrl = format!("{server}/postgres").parse().unwrap();
        let questions = vec(definition(), 1..20);
        let once = Config {
            cases: 64,
            failure_persistence: None,
            ..Config::default()
        };
        TestRunner::new(once)
            .run(&(index(), questions), |(index, questions)| {
                let prototype = Prototype::on(&store, &index, &index.world(now())).unwrap();
                for wanted in &questions {
                    agree(&prototype, &index, wanted);
                }
                Ok(())
            })
            .unwrap();
    }
}
