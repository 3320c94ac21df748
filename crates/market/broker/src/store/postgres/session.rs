//! A connection to PostgreSQL with time limits.
//!
//! A server that is cut off or stopped gives no signal. So each call has a time limit here. The server has limits for
//! us, so that a broker that is cut off does not block the others.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::StoreError;
use super::schema;

/// Time limit of a call, and of a reconnect.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit of the first connect. Longer, because other brokers may be migrating the schema.
pub(super) const START: Duration = Duration::from_secs(30);

/// Session settings. The server aborts statements after the client's limit and releases locks of idle transactions. An
/// acknowledged commit is on its disk, independently of its configuration.
fn settings() -> String {
    let seconds = PATIENCE.as_secs();
    format!(
        "SET search_path TO posthaste;
         SET statement_timeout TO '{seconds}s';
         SET idle_in_transaction_session_timeout TO '{seconds}s';
         SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off';"
    )
}

macro_rules! statements {
    ($($name:ident: $sql:expr,)*) => {
        /// Prepared statements.
        pub(super) struct Statements { $(pub(super) $name: Statement,)* }

        impl Statements {
            async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
                Ok(Self { $($name: client.prepare($sql).await?,)* })
            }
        }
    };
}

statements! {
    // The holder of this row lock is the only writer, so changes are numbered in the order of their commits.
    lock: "SELECT last FROM log FOR UPDATE",
    number: "UPDATE log SET last = $1",
    notify: "SELECT pg_notify('posthaste_offers', '')",
    page: "SELECT kind, provider, name, body FROM offers
           WHERE (kind, provider, name) > ($1, $2, $3) ORDER BY kind, provider, name LIMIT $4",
    first_page: "SELECT kind, provider, name, body FROM offers ORDER BY kind, provider, name LIMIT $1",
    last: "SELECT last FROM log",
    standing: "SELECT expires, CASE WHEN $4 THEN body END, kind, provider, name
               FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (kind, provider, name)
               JOIN offers USING (kind, provider, name)",
    all_of: "SELECT expires, body, kind, provider, name
             FROM unnest($1::text[], $2::text[]) AS wanted (kind, provider) JOIN offers USING (kind, provider)",
    put: "INSERT INTO offers (kind, provider, name, expires, body)
          SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
          ON CONFLICT (kind, provider, name) DO UPDATE SET expires = excluded.expires, body = excluded.body",
    remove: "DELETE FROM offers USING unnest($1::text[], $2::text[], $3::text[]) AS gone (kind, provider, name)
             WHERE (offers.kind, offers.provider, offers.name) = (gone.kind, gone.provider, gone.name)",
    note: "INSERT INTO changes (number, at, token, kind, provider, name, body)
           SELECT number, $2, token, kind, provider, name, body
           FROM unnest($1::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[])
               AS made (number, token, kind, provider, name, body)",
    since: "SELECT number, at, token, kind, provider, name, body, last
            FROM log LEFT JOIN (SELECT * FROM changes WHERE number > $1 ORDER BY number LIMIT $2) AS behind ON true
            ORDER BY number",
    audit: "SELECT number, at, token, kind, provider, name, body FROM changes ORDER BY number DESC LIMIT $1",
    grants: "SELECT number, provider, hash, role FROM tokens WHERE revoked IS NULL ORDER BY number",
    tokens: "SELECT number, provider, hash, role, made, revoked FROM tokens ORDER BY number",
    grant: "INSERT INTO tokens (role, provider, hash, made) VALUES ($1, $2, $3, $4) RETURNING number",
    revoke: "UPDATE tokens SET revoked = $2 WHERE number = $1 AND revoked IS NULL",
    untidy: "SELECT EXISTS (SELECT FROM offers WHERE expires <= $1)
                 OR EXISTS (SELECT FROM changes, log WHERE number <= last - $2)",
    forget_offers: "DELETE FROM offers WHERE (kind, provider, name) IN
                        (SELECT kind, provider, name FROM offers WHERE expires <= $1 LIMIT $2)",
    forget_changes: "DELETE FROM changes WHERE number IN
                         (SELECT number FROM changes, log WHERE number <= last - $1 ORDER BY number LIMIT $2)",
    // The holder of this row lock is the only writer of accounts and charges.
    lock_accounts: "SELECT last FROM account_log FOR UPDATE",
    account_version: "UPDATE account_log SET last = $1",
    account: "SELECT name, key, certificate, currency, budget, period, max_price, made, closed, spent_in, spent
              FROM accounts WHERE name = ANY ($1::text[])",
    accounts: "SELECT name, key, certificate, currency, budget, period, max_price, made, closed, spent_in, spent
               FROM accounts WHERE name > $1 ORDER BY name LIMIT $2",
    changed_accounts: "SELECT name, key, certificate, currency, budget, period, max_price, made, closed, spent_in, spent,
                           version FROM accounts
                       WHERE version > (SELECT CASE WHEN $1::bigint > last THEN 0 ELSE $1 END FROM account_log)
                       ORDER BY version LIMIT $2",
    account_total: "SELECT count(*) FROM accounts",
    account_counts: "SELECT count(*) FILTER (WHERE closed IS NULL), count(closed),
                         count(*) FILTER (WHERE closed IS NULL AND spent > budget AND $1::bigint / period <= spent_in)
                     FROM accounts",
    account_taken: "SELECT EXISTS (SELECT FROM accounts WHERE key = $2 AND name <> $1),
                        EXISTS (SELECT FROM accounts WHERE certificate = $3 AND name <> $1)",
    put_account: "INSERT INTO accounts (name, key, certificate, currency, budget, period, max_price, made, closed,
                      spent_in, spent, version)
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                  ON CONFLICT (name) DO UPDATE SET key = excluded.key, certificate = excluded.certificate,
                      budget = excluded.budget, period = excluded.period, max_price = excluded.max_price,
                      closed = excluded.closed, spent_in = excluded.spent_in, spent = excluded.spent,
                      version = excluded.version",
    put_spent: "UPDATE accounts SET spent_in = made.spent_in, spent = made.spent, version = made.version
                FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS made (name, spent_in, spent, version)
                WHERE accounts.name = made.name",
    gateway: "SELECT last, seen, token FROM gateways WHERE gateway = $1",
    note_gateway: "INSERT INTO gateways (gateway, last, seen, token) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (gateway) DO UPDATE
                   SET last = greatest(gateways.last, excluded.last), seen = excluded.seen,
                       token = excluded.token",
    charge_numbers: "UPDATE charge_log SET last = last + $1 RETURNING last - $1 + 1",
    add_charges: "INSERT INTO charges (number, at, started, gateway, sequence, account, amount, requests, currency)
                  SELECT number, $1, started, $2, $3, account, amount, requests, currency
                  FROM unnest($4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::text[])
                      AS made (number, started, account, amount, requests, currency)",
    charges: "SELECT number, at, started, gateway, sequence, account, amount, requests, currency FROM charges
              WHERE ($1::text IS NULL OR account = $1) AND number > $2 AND ($3::bigint IS NULL OR at >= $3)
                  AND ($4::bigint IS NULL OR at < $4)
              ORDER BY number LIMIT $5",
    untidy_accounts: "SELECT EXISTS (SELECT FROM charges, charge_log WHERE number <= last - $1)
                          OR EXISTS (SELECT FROM gateways WHERE seen <= $2)",
    forget_charges: "DELETE FROM charges WHERE number IN
                         (SELECT number FROM charges, charge_log WHERE number <= last - $1 ORDER BY number LIMIT $2)",
    forget_gateways: "DELETE FROM gateways WHERE seen <= $1",
}

/// A connection and its statements.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

impl Session {
    /// Connects within `limit` and migrates the schema. The connection task runs on `runtime`.
    pub(super) fn open(
        runtime: &Runtime,
        config: &Config,
        limit: Duration,
    ) -> Result<Self, StoreError> {
        let opened = async {
            let (mut client, connection) = connect(config, || ()).await?;
            // The task ends with the client. The client's calls report the error.
            tokio::spawn(connection);
            schema::migrate(&mut client).await?;
            client.batch_execute(&settings()).await?;
            let statements = Statements::prepare(&client).await?;
            Ok(Self { client, statements })
        };
        runtime.block_on(within(limit, opened))
    }
}

/// Returns a client and the future that drives its connection. Calls `notified` for each notification.
///
/// With `sslmode=require` the connection uses TLS and verifies the server's name. Otherwise it uses no TLS.
pub(super) async fn connect<'n>(
    config: &Config,
    notified: impl Fn() + Send + 'n,
) -> Result<(Client, ConnectionDriver<'n>), StoreError> {
    if config.get_ssl_mode() != SslMode::Require {
        let (client, connection) = config.connect(NoTls).await?;
        return Ok((client, drive(connection, notified)));
    }
    let trust = posthaste_serve::trust(None);
    let trust = trust.map_err(|error| StoreError::Unusable(error.to_string()))?;
    let (client, connection) = config.connect(MakeRustlsConnect::new(trust)).await?;
    Ok((client, drive(connection, notified)))
}

/// Future that drives a connection until it ends.
pub(super) type ConnectionDriver<'n> =
    Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'n>>;

fn drive<'n, S: TlsStream + Unpin + Send + 'n>(
    mut connection: Connection<Socket, S>,
    notified: impl Fn() + Send + 'n,
) -> ConnectionDriver<'n> {
    Box::pin(async move {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(_) = message? {
                notified();
            }
        }
        Ok(())
    })
}

/// Runtime that drives a connection only while its thread waits for a result.
pub(super) fn runtime() -> Result<Runtime, StoreError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Result of a call, limited to [`PATIENCE`].
pub(super) async fn in_time<T>(
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    within(PATIENCE, call).await
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| {
        let seconds = limit.as_secs();
        StoreError::Unavailable(format!("no answer within {seconds} s"))
    };
    timeout(limit, call).await.map_err(late)?
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unavailable(error_message(&error))
    }
}

/// Message of an error with its cause, which the error's own text may omit.
pub(crate) fn error_message(error: &tokio_postgres::Error) -> String {
    let message = error.to_string();
    match std::error::Error::source(error).map(ToString::to_string) {
        Some(cause) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message,
    }
}
