//! Store in PostgreSQL. Several brokers can share it and are notified of each other's changes immediately.

mod accounts;
mod listener;
mod schema;
mod session;
mod writing;

use jiff::Timestamp;
use posthaste_qos::Offer;
use posthaste_serve::Background;
use tokio::runtime::Runtime;
use tokio_postgres::{Config, Row};

pub(super) use self::session::{PATIENCE, error_message};
use self::session::{START, Session, in_time, runtime};
use self::writing::Value;
use super::plan::{self, WritePlan};
use super::row::{self, LogEntry};
use super::{AT_ONCE, Log, Store, StoreError, TokenRecord, Wake, Write, WriteOutcome, expired_by};
use crate::change::{OfferChange, OfferKey};
use crate::token::{Grant, Hash, TokenRole};

/// Number of offers loaded at once.
const PAGE: i64 = 5_000;

/// A PostgreSQL database. After any error the next call reconnects.
pub(super) struct Postgres {
    config: Config,
    /// Runs only during a call; the connection task lives on it.
    runtime: Runtime,
    session: Option<Session>,
    _listener: Option<Background>,
}

impl Postgres {
    /// Connects to the database.
    pub(super) fn open(config: &Config) -> Result<Self, StoreError> {
        let mut config = config.clone();
        config
            .connect_timeout(PATIENCE)
            .tcp_user_timeout(PATIENCE)
            .keepalives_idle(PATIENCE)
            .keepalives_interval(PATIENCE / 3)
            .keepalives_retries(3);
        let runtime = runtime()?;
        Ok(Self {
            session: Some(Session::open(&runtime, &config, START)?),
            config,
            runtime,
            _listener: None,
        })
    }

    /// Returns the first column of the first row of a result.
    #[cfg(test)]
    pub(super) fn ask(&mut self, sql: &str) -> String {
        let reply = self.call(async |session| Ok(session.client.simple_query(sql).await?));
        let rows = reply.unwrap();
        let first = rows.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        first.unwrap_or_default().to_owned()
    }

    /// Makes a call limited to [`PATIENCE`].
    fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.calls(async |session| in_time(call(session)).await)
    }

    /// Makes calls that each have their own time limit.
    fn calls<T>(
        &mut self,
        calls: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => Session::open(&self.runtime, &self.config, PATIENCE)?,
        };
        let done = self.runtime.block_on(calls(&mut session))?;
        self.session = Some(session);
        Ok(done)
    }
}

impl Store for Postgres {
    fn load(&mut self, take: &mut dyn FnMut(OfferKey, Offer)) -> Result<u64, StoreError> {
        self.calls(async |Session { client, statements }| {
            // Longer than usual, because the index is built between pages. A read-only transaction blocks nobody.
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
                         SET LOCAL idle_in_transaction_session_timeout TO '60s'";
            let last = in_time(async {
                client.batch_execute(begin).await?;
                Ok(client.query_one(&statements.last, &[]).await?)
            });
            let last = number(&last.await?, 0);
            let page = in_time(async { Ok(client.query(&statements.first_page, &[&PAGE]).await?) });
            let mut rows = page.await?;
            while let Some(end) = rows.last().map(|row| key(row, 0)) {
                for row in rows {
                    let key = key(&row, 0);
                    if let Some(offer) = row::offer(&key, row.get(3)) {
                        take(key, offer);
                    }
                }
                let after = [&end.kind as Value<'_>, &end.provider, &end.name, &PAGE];
                let page = in_time(async { Ok(client.query(&statements.page, &after).await?) });
                rows = page.await?;
            }
            in_time(async { Ok(client.batch_execute("COMMIT").await?) }).await?;
            Ok(last)
        })
    }

    fn commit(
        &mut self,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        self.call(async |session| {
            let last = session.begin().await?;
            let there = session.standing(writes).await?;
            let WritePlan { outcomes, steps } = plan::plan(writes, now, there);
            if steps.is_empty() {
                session.end("ROLLBACK").await?;
            } else {
                session.make(&steps, last, now).await?;
            }
            Ok(outcomes)
        })
    }

    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError> {
        self.call(async |Session { client, statements }| {
            let values: [Value<'_>; 2] = [&(number as i64), &(limit as i64)];
            let rows = client.query(&statements.since, &values).await?;
            // At least one row, for the end of the log. Its change columns are null if there are no changes.
            let last = rows.first().map_or(0, |row| self::number(row, 7));
            let behind = rows
                .iter()
                .filter(|row| row.get::<_, Option<i64>>(0).is_some());
            Ok(row::log(number, last, behind.map(entry)))
        })
    }

    fn audit(&mut self, limit: usize) -> Result<Vec<(u64, OfferChange)>, StoreError> {
        self.call(async |Session { client, statements }| {
            let rows = client.query(&statements.audit, &[&(limit as i64)]).await?;
            Ok(rows.iter().map(|row| entry(row).audited()).collect())
        })
    }

    fn grants(&mut self) -> Result<Vec<Grant>, StoreError> {
        self.call(async |Session { client, statements }| {
            let rows = client.query(&statements.grants, &[]).await?;
            rows.iter().map(grant).collect()
        })
    }

    fn tokens(&mut self) -> Result<Vec<TokenRecord>, StoreError> {
        let time = |micros| Timestamp::from_microsecond(micros).unwrap_or_default();
        let token = |row: &Row| {
            Ok(TokenRecord {
                grant: grant(row)?,
                made: time(row.get(4)),
                revoked: row.get::<_, Option<i64>>(5).map(time),
            })
        };
        self.call(async |Session { client, statements }| {
            let rows = client.query(&statements.tokens, &[]).await?;
            rows.iter().map(token).collect()
        })
    }

    fn grant(
        &mut self,
        role: TokenRole,
        provider: &str,
        hash: Hash,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        self.call(async |Session { client, statements }| {
            let (role, now) = (role.name(), now.as_microsecond());
            let values: [Value<'_>; 4] = [&role, &provider, &&hash.0[..], &now];
            let row = client.query_one(&statements.grant, &values).await?;
            Ok(number(&row, 0))
        })
    }

    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.call(async |Session { client, statements }| {
            let values: [Value<'_>; 2] = [&(token as i64), &now.as_microsecond()];
            let rows = client.execute(&statements.revoke, &values).await?;
            Ok(rows > 0)
        })
    }

    fn tidy(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        let (expired, keep) = (expired_by(now), keep.max(1) as i64);
        self.call(async |session| {
            let untidy = &session.statements.untidy;
            let untidy = session.client.query_one(untidy, &[&expired, &keep]).await?;
            if !untidy.get::<_, bool>(0) {
                return Ok(false);
            }
            // The lock prevents the refresh of an offer during its deletion.
            session.begin().await?;
            let Session { client, statements } = &*session;
            let most = AT_ONCE as i64;
            let offers = client
                .execute(&statements.forget_offers, &[&expired, &most])
                .await?;
            let changes = client
                .execute(&statements.forget_changes, &[&keep, &most])
                .await?;
            session.end("COMMIT").await?;
            Ok(offers.max(changes) == AT_ONCE as u64)
        })
    }

    fn listen(&mut self, wake: Wake) -> Result<(), StoreError> {
        self._listener = Some(listener::start(self.config.clone(), wake)?);
        Ok(())
    }
}

fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column) as u64
}

fn key(row: &Row, from: usize) -> OfferKey {
    OfferKey {
        kind: row.get(from),
        provider: row.get(from + 1),
        name: row.get(from + 2),
    }
}

fn entry(row: &Row) -> LogEntry {
    LogEntry {
        number: number(row, 0),
        at: row.get(1),
        by: number(row, 2),
        key: key(row, 3),
        body: row.get(6),
    }
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    let hash = row.get::<_, &[u8]>(2).try_into();
    let wrong = |_| StoreError::Unusable("a token's hash has another length than ours".to_owned());
    Ok(Grant {
        number: number(row, 0),
        provider: row.get(1),
        hash: Hash(hash.map_err(wrong)?),
        role: TokenRole::of_name(row.get(3)),
    })
}
