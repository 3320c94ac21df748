//! PostgreSQL, asked for each request by a prepared statement on one connection.
//!
//! The offers are in a temporary table, all of it in the server's memory, that goes with the connection: the database
//! stays as it is.

use std::pin::pin;

use posthaste_wsqos::index::Index;
use posthaste_wsqos::qos::{Definition, Offer, World};
use tokio::runtime::Runtime;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Statement};

use super::Error;
use super::table::{BEST, Bounds, COLUMNS, INDEX, first_adequate};
use crate::store::postgres::{connect, runtime};

/// As is best for it: the table stays in memory, and planning once is enough, since all questions are of one kind.
const SETTINGS: &str = "SET temp_buffers = '1GB'; SET plan_cache_mode = force_generic_plan";

/// The types of the table's columns.
const TYPES: [Type; 10] = [
    Type::INT4,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::FLOAT8,
    Type::FLOAT8,
    Type::FLOAT8,
    Type::TEXT,
    Type::TEXT,
];

/// The offers of an index.
pub(super) struct Postgres {
    /// Only turns while it is asked; what drives the connection lives on it.
    runtime: Runtime,
    client: Client,
    best: Statement,
}

impl Postgres {
    pub(super) fn of(config: &Config, index: &Index, world: &World<'_>) -> Result<Self, Error> {
        let runtime = runtime()?;
        let filled = async {
            let (client, connection) = connect(config, || ()).await?;
            // It ends with the client; why, the client's calls say.
            tokio::spawn(connection);
            client.batch_execute(SETTINGS).await?;
            let make = format!("CREATE TEMPORARY TABLE offers {COLUMNS}");
            client.batch_execute(&make).await?;
            fill(&client, index, world).await?;
            client.batch_execute(INDEX).await?;
            // Also marks what everybody sees, so that the index alone is enough to compare.
            client.batch_execute("VACUUM ANALYZE offers").await?;
            let best = client.prepare(BEST).await?;
            Ok::<_, Error>((client, best))
        };
        let (client, best) = runtime.block_on(filled)?;
        Ok(Self {
            runtime,
            client,
            best,
        })
    }

    pub(super) fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, Error> {
        let bounds = Bounds::of(wanted, world.now, world);
        first_adequate(wanted, world, |skipped| {
            let found = self.runtime.block_on(self.client.query_opt(
                &self.best,
                &[
                    &kind,
                    &bounds.price,
                    &bounds.time,
                    &bounds.processing_time,
                    &bounds.requests,
                    &bounds.reliability,
                    &bounds.availability,
                    &skipped,
                ],
            ))?;
            let read = |row: Row| Ok((row.try_get(0)?, row.try_get(1)?));
            found.map(read).transpose()
        })
    }
}

async fn fill(client: &Client, index: &Index, world: &World<'_>) -> Result<(), Error> {
    let sink = client.copy_in("COPY offers FROM STDIN BINARY").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &TYPES));
    let found = index
        .kinds()
        .flat_map(|kind| index.offers(kind).map(move |found| (kind, found)));
    for (number, (kind, found)) in (0i32..).zip(found) {
        let bounds = Bounds::of(&found.offer.qos, found.offer.expires, world);
        let body = serde_json::to_string(&found.offer)?;
        let row: [&(dyn ToSql + Sync); 10] = [
            &number,
            &kind,
            &bounds.price,
            &bounds.time,
            &bounds.processing_time,
            &bounds.requests,
            &bounds.reliability,
            &bounds.availability,
            &found.provider,
            &body,
        ];
        writer.as_mut().write(&row).await?;
    }
    writer.finish().await?;
    Ok(())
}
