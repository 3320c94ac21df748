//! The two ways in which the thesis's brokers found offers, for comparison: nobody gets them who does not ask in code.
//!
//! Both know the offers that there are when they are made, and no later ones.

use std::collections::HashMap;
use std::fmt;

use posthaste_wsqos::index::{Found, Index};
use posthaste_wsqos::qos::{Definition, Offer, World, is_adequate};
use rusqlite::{Connection, params};

/// How a prototype finds the best offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Every offer in memory is compared, one after the other (thesis, section 7.2, offers in RAM).
    Walk,
    /// A database is asked for each request (offers in a database): SQLite, with an index that covers the question.
    Database,
}

/// Offers, and a way to find the best.
pub struct Prototype(Kept);

enum Kept {
    Walk(HashMap<String, Vec<(String, Offer)>>),
    Database(Box<Connection>),
}

const SCHEMA: &str = "
    CREATE TABLE offers (kind TEXT, price INTEGER, expires INTEGER, processing_time INTEGER, requests REAL,
        reliability REAL, availability REAL, provider TEXT, body TEXT);
    CREATE INDEX found ON offers (kind, price, processing_time, availability, reliability, requests, expires);";

const PUT: &str = "INSERT INTO offers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const BEST: &str =
    "SELECT provider, body FROM offers WHERE kind = ?1 AND price <= ?2 AND expires > ?3
    AND (?4 IS NULL OR processing_time <= ?4) AND (?5 IS NULL OR requests >= ?5)
    AND (?6 IS NULL OR reliability >= ?6) AND (?7 IS NULL OR availability >= ?7)
    ORDER BY price, expires DESC";

impl Prototype {
    /// Of the offers in `index`, which are compared in `world`.
    pub fn of(design: Design, index: &Index, world: &World<'_>) -> Result<Self, Error> {
        let kinds: Vec<&str> = index.kinds().collect();
        Ok(Self(match design {
            Design::Walk => {
                let offers = |kind| {
                    let offers = index.offers(kind);
                    offers
                        .map(|found| (found.provider.to_owned(), found.offer))
                        .collect()
                };
                Kept::Walk(
                    kinds
                        .into_iter()
                        .map(|kind| (kind.to_owned(), offers(kind)))
                        .collect(),
                )
            }
            Design::Database => {
                // A file of its own that goes with it.
                let mut database = Connection::open("")?;
                database.execute_batch(SCHEMA)?;
                let all = database.transaction()?;
                for kind in kinds {
                    for found in index.offers(kind) {
                        put(&all, kind, &found, world)?;
                    }
                }
                all.commit()?;
                database.execute_batch("ANALYZE")?;
                Kept::Database(Box::new(database))
            }
        }))
    }

    /// The provider and the cheapest adequate offer for the interface `kind`.
    pub fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, Error> {
        match &self.0 {
            Kept::Walk(offers) => {
                let offers = offers.get(kind).into_iter().flatten();
                let adequate = offers.filter(|(_, offer)| is_adequate(offer, wanted, world));
                let price =
                    |offer: &Offer| offer.qos.price.and_then(|price| world.rates.in_base(price));
                Ok(adequate.min_by_key(|(_, offer)| price(offer)).cloned())
            }
            Kept::Database(database) => ask(database, kind, wanted, world),
        }
    }
}

fn put(
    database: &Connection,
    kind: &str,
    found: &Found<'_>,
    world: &World<'_>,
) -> Result<(), Error> {
    let Found { provider, offer } = found;
    let server = &offer.qos.default.server;
    let price = offer.qos.price.and_then(|price| world.rates.in_base(price));
    database.prepare_cached(PUT)?.execute(params![
        kind,
        price.map(saturated),
        offer.expires.as_microsecond(),
        server
            .processing_time
            .map(|time| saturated(time.as_nanos())),
        server.requests_per_second.map(|rate| rate.as_per_second()),
        server.reliability.map(|share| share.get()),
        server.availability.map(|share| share.get()),
        provider,
        serde_json::to_string(offer)?,
    ])?;
    Ok(())
}

fn ask(
    database: &Connection,
    kind: &str,
    wanted: &Definition,
    world: &World<'_>,
) -> Result<Option<(String, Offer)>, Error> {
    let server = &wanted.default.server;
    let most = wanted
        .price
        .map_or(Some(u64::MAX), |price| world.rates.in_base(price));
    let mut best = database.prepare_cached(BEST)?;
    let mut rows = best.query(params![
        kind,
        most.map(saturated),
        world.now.as_microsecond(),
        server
            .processing_time
            .map(|time| saturated(time.as_nanos())),
        server.requests_per_second.map(|rate| rate.as_per_second()),
        server.reliability.map(|share| share.get()),
        server.availability.map(|share| share.get()),
    ])?;
    while let Some(row) = rows.next()? {
        let offer: Offer = serde_json::from_str(row.get_ref(1)?.as_str()?)?;
        // What has no column is compared here.
        if is_adequate(&offer, wanted, world) {
            return Ok(Some((row.get(0)?, offer)));
        }
    }
    Ok(None)
}

/// As a database counts.
fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What a prototype's database says.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

impl fmt::Debug for Prototype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prototype")
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use posthaste_units::{Rate, Ratio, Span};
    use posthaste_wsqos::qos::{Money, Ontologies, Priority, Rates};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    prop_compose! {
        fn definition()(
            price in proptest::option::of(1u64..6),
            time in proptest::option::of(1u64..6),
            rate in proptest::option::of(1u32..6),
            share in proptest::option::of(0u32..=5),
            delay in proptest::option::of(0u8..=3),
        ) -> Definition {
            let mut qos = Definition::default();
            let server = &mut qos.default.server;
            server.processing_time = time.map(Span::from_millis);
            server.requests_per_second = rate.and_then(|rate| Rate::per_second(rate.into()));
            server.availability = share.and_then(|share| Ratio::new(f64::from(share) / 5.0));
            qos.default.transport.delay = delay.and_then(Priority::new);
            qos.price = price.and_then(|price| Money::from_micros(price, "EUR".parse().unwrap()));
            qos
        }
    }

    proptest! {
        #[test]
        fn every_design_finds_an_offer_of_the_best_price(
            offers in vec((definition(), 1u64..6, -1i64..3), 0..30),
            wanted in definition(),
        ) {
            let mut index = Index::new(Rates::new("EUR".parse().unwrap()), Ontologies::new());
            for (name, (mut qos, price, seconds)) in offers.into_iter().enumerate() {
                qos.price = Money::from_micros(price, "EUR".parse().unwrap());
                let expires = now() + jiff::SignedDuration::from_secs(seconds);
                let offer = Offer { name: name.to_string(), expires, endpoint: None, qos };
                index.put("books", "ada", &offer).unwrap();
            }
            let world = index.world(now());
            let ours = index.best("books", &wanted, now()).map(|found| found.offer.qos.price);
            for design in [Design::Walk, Design::Database] {
                let prototype = Prototype::of(design, &index, &world).unwrap();
                let theirs = prototype.best("books", &wanted, &world).unwrap();
                prop_assert_eq!(theirs.map(|(_, offer)| offer.qos.price), ours, "{:?}", design);
            }
        }
    }
}
