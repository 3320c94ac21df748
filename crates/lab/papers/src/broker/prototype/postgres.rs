//! Prototype with PostgreSQL: one connection and a prepared statement, executed per request.
//!
//! The offers are in a temporary table in the server's memory. It disappears with the connection, so the database is
//! not changed permanently. The connection uses no TLS: it is local, or it would dominate the measured time.

use std::pin::pin;

use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Offer, World};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::table::{BEST, Bounds, COLUMNS, INDEX, first_adequate};
use posthaste_study::Failure;

/// Fastest settings: the table stays in memory, and one plan serves all queries because they have the same form.
const SETTINGS: &str = "SET temp_buffers = '1GB'; SET plan_cache_mode = force_generic_plan";

/// Types of the table's columns.
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

/// Copy of an index.
pub(super) struct PostgresTable {
    /// Runs only during a query; the connection task lives on it.
    runtime: Runtime,
    client: Client,
    best: Statement,
}

impl PostgresTable {
    pub(super) fn from_index(
        config: &Config,
        index: &Index,
        world: &World<'_>,
    ) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let filled = async {
            let (client, connection) = config.connect(NoTls).await?;
            // The task ends with the client. The client's calls report the error.
            tokio::spawn(connection);
            client.batch_execute(SETTINGS).await?;
            let make = format!("CREATE TEMPORARY TABLE offers {COLUMNS}");
            client.batch_execute(&make).await?;
            fill(&client, index, world).await?;
            client.batch_execute(INDEX).await?;
            // Also marks pages as all-visible, so that index-only scans are possible.
            client.batch_execute("VACUUM ANALYZE offers").await?;
            let best = client.prepare(BEST).await?;
            Ok::<_, Failure>((client, best))
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
    ) -> Result<Option<(String, Offer)>, Failure> {
        let bounds = Bounds::from_definition(wanted, world.now, world);
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

async fn fill(client: &Client, index: &Index, world: &World<'_>) -> Result<(), Failure> {
    let sink = client.copy_in("COPY offers FROM STDIN BINARY").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &TYPES));
    let found = index
        .kinds()
        .flat_map(|kind| index.offers(kind).map(move |found| (kind, found)));
    for (number, (kind, found)) in (0i32..).zip(found) {
        let bounds = Bounds::from_definition(&found.offer.qos, found.offer.expires, world);
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
