//! Prototype with SQLite: a query per request, on a temporary file that is deleted with it.

use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Offer, World};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::table::{BEST, Bounds, COLUMNS, INDEX, first_adequate};
use posthaste_study::Failure;

const PUT: &str = "INSERT INTO offers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// Copy of an index.
pub(super) struct SqliteTable(Connection);

impl SqliteTable {
    pub(super) fn from_index(index: &Index, world: &World<'_>) -> Result<Self, Failure> {
        let mut database = Connection::open("")?;
        database.execute_batch(&format!("CREATE TABLE offers {COLUMNS}; {INDEX}"))?;
        let all = database.transaction()?;
        for kind in index.kinds() {
            for found in index.offers(kind) {
                let offer = &found.offer;
                let bounds = Bounds::from_definition(&offer.qos, offer.expires, world);
                all.prepare_cached(PUT)?.execute(params![
                    None::<i64>, // assigned by SQLite
                    kind,
                    bounds.price,
                    bounds.time,
                    bounds.processing_time,
                    bounds.requests,
                    bounds.reliability,
                    bounds.availability,
                    found.provider,
                    serde_json::to_string(offer)?,
                ])?;
            }
        }
        all.commit()?;
        database.execute_batch("ANALYZE")?;
        Ok(Self(database))
    }

    pub(super) fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, Failure> {
        let bounds = Bounds::from_definition(wanted, world.now, world);
        let mut best = self.0.prepare_cached(BEST)?;
        first_adequate(wanted, world, |skipped| {
            let values = params![
                kind,
                bounds.price,
                bounds.time,
                bounds.processing_time,
                bounds.requests,
                bounds.reliability,
                bounds.availability,
                skipped,
            ];
            let found = best.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)));
            Ok(found.optional()?)
        })
    }
}
