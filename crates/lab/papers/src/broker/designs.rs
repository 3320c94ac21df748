//! Methods to find the best offer: our index, the thesis's two designs, and a PostgreSQL if available.

use super::prototype::{Design, Prototype};
use jiff::Timestamp;
use posthaste_broker::StoreUrl;
use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Money};
use posthaste_study::Failure;

/// The designs by their names in records: our index, the thesis's two, and another database.
pub(super) const DESIGNS: [&str; 4] = ["index", "walk", "SQLite", POSTGRES];
pub(super) const POSTGRES: &str = "PostgreSQL";

/// Environment variable with the URL of a PostgreSQL, in the form of the broker's `store`.
const VARIABLE: &str = "POSTHASTE_POSTGRES";

/// The configured PostgreSQL, if any.
pub(super) fn postgres() -> Result<Option<StoreUrl>, Failure> {
    let Ok(url) = std::env::var(VARIABLE) else {
        return Ok(None);
    };
    match url.parse() {
        Ok(store) if !matches!(store, StoreUrl::Sqlite(_)) => Ok(Some(store)),
        Ok(_) => Err(format!("{VARIABLE} names no PostgreSQL").into()),
        Err(error) => Err(format!("{VARIABLE}: {error}").into()),
    }
}

/// A design that answers lookups.
pub(super) enum LookupMethod<'i> {
    Index(&'i Index),
    Prototype(&'i Index, Prototype),
}

impl<'i> LookupMethod<'i> {
    /// Creates the design of this name. `None` without a PostgreSQL.
    pub(super) fn by_name(
        design: &str,
        index: &'i Index,
        postgres: Option<&StoreUrl>,
    ) -> Result<Option<Self>, Failure> {
        let world = index.world(Timestamp::now());
        let prototype = match (design, postgres) {
            ("walk", _) => Prototype::from_index(Design::Walk, index, &world)?,
            ("SQLite", _) => Prototype::from_index(Design::Database, index, &world)?,
            #[cfg(feature = "postgres")]
            (POSTGRES, Some(store)) => Prototype::on(store, index, &world).map_err(|error| {
                format!("{VARIABLE}, {store}: {error}; from a network of its own name a Unix socket: postgres://USER@%2Frun%2Fpostgresql/DATABASE")
            })?,
            (POSTGRES, _) => return Ok(None),
            _ => return Ok(Some(Self::Index(index))),
        };
        Ok(Some(Self::Prototype(index, prototype)))
    }

    /// Price of the cheapest adequate offer.
    pub(super) fn price(
        &self,
        kind: &str,
        wanted: &Definition,
        now: Timestamp,
    ) -> Result<Option<Money>, Failure> {
        let offer = match self {
            Self::Index(index) => index.best(kind, wanted, now).map(|found| found.offer),
            Self::Prototype(index, prototype) => prototype
                .best(kind, wanted, &index.world(now))?
                .map(|(_, offer)| offer),
        };
        Ok(offer.and_then(|offer| offer.qos.price))
    }
}
