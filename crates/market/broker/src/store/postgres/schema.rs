//! Tables, and migration from earlier versions.
//!
//! All tables are in a schema of their own. If several brokers start at once, one migrates and the others wait. A
//! released step never changes; further steps are appended.

use tokio_postgres::Client;

use super::super::StoreError;

const STEPS: [&str; 3] = [
    r#"
    CREATE TABLE posthaste.offers (
        kind text COLLATE "C" NOT NULL,
        provider text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        expires bigint NOT NULL, -- microseconds since 1970, as all times here
        body text NOT NULL,      -- the offer as JSON
        PRIMARY KEY (kind, provider, name)
    );
    CREATE INDEX offers_by_end ON posthaste.offers (expires);

    CREATE TABLE posthaste.changes (
        number bigint PRIMARY KEY,
        at bigint NOT NULL,
        token bigint NOT NULL,
        kind text NOT NULL,
        provider text NOT NULL,
        name text NOT NULL,
        body text                -- null where it was withdrawn
    );
    CREATE TABLE posthaste.log (last bigint NOT NULL);
    INSERT INTO posthaste.log (last) VALUES (0);

    CREATE TABLE posthaste.tokens (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        provider text NOT NULL,
        hash bytea NOT NULL UNIQUE,
        made bigint NOT NULL,
        revoked bigint
    );
"#,
    r#"
    ALTER TABLE posthaste.tokens ADD COLUMN role text NOT NULL DEFAULT 'provider';

    CREATE TABLE posthaste.accounts (
        name text COLLATE "C" NOT NULL PRIMARY KEY,
        key bytea UNIQUE,          -- SHA-256 of its API key
        certificate text UNIQUE,   -- subject
        currency text NOT NULL,
        budget bigint NOT NULL,    -- millionths, as all amounts here
        period bigint NOT NULL,    -- microseconds
        max_price bigint,
        made bigint NOT NULL,
        closed bigint,
        spent_in bigint NOT NULL,  -- number of the period of `spent`, from 1970
        spent bigint NOT NULL,
        version bigint NOT NULL UNIQUE
    );
    CREATE TABLE posthaste.account_log (last bigint NOT NULL);
    INSERT INTO posthaste.account_log (last) VALUES (0);

    CREATE TABLE posthaste.gateways (
        gateway bytea NOT NULL PRIMARY KEY,
        last bigint NOT NULL,      -- number of its last booked batch
        seen bigint NOT NULL
    );
    CREATE INDEX gateways_by_seen ON posthaste.gateways (seen);

    CREATE TABLE posthaste.charges (
        number bigint PRIMARY KEY,
        at bigint NOT NULL,
        started bigint NOT NULL,   -- of the period
        gateway bytea NOT NULL,
        sequence bigint NOT NULL,
        account text COLLATE "C" NOT NULL,
        amount bigint NOT NULL,
        requests bigint NOT NULL,
        currency text NOT NULL
    );
    CREATE INDEX charges_by_account ON posthaste.charges (account, number);
    CREATE TABLE posthaste.charge_log (last bigint NOT NULL);
    INSERT INTO posthaste.charge_log (last) VALUES (0);
"#,
    "
    ALTER TABLE posthaste.gateways ADD COLUMN token bigint NOT NULL DEFAULT 0; -- that began it
",
];

/// Advisory lock for migrations: "phst".
const LOCK: i64 = 0x7068_7374;

/// Executes the missing steps.
pub(super) async fn migrate(client: &mut Client) -> Result<(), StoreError> {
    let transaction = client.transaction().await?;
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
    transaction.batch_execute(&lock).await?;
    let there = "SELECT to_regclass('posthaste.version') IS NOT NULL";
    let there = transaction.query_one(there, &[]).await?;
    if !there.get::<_, bool>(0) {
        let begin = "CREATE SCHEMA IF NOT EXISTS posthaste;
                     CREATE TABLE posthaste.version (steps integer NOT NULL);
                     INSERT INTO posthaste.version (steps) VALUES (0);";
        transaction.batch_execute(begin).await?;
    }
    let made = "SELECT steps FROM posthaste.version";
    let made: i32 = transaction.query_one(made, &[]).await?.get(0);
    let missing = usize::try_from(made)
        .ok()
        .and_then(|made| STEPS.get(made..));
    let Some(missing) = missing else {
        return Err(StoreError::later_version(made, STEPS.len()));
    };
    for step in missing {
        transaction.batch_execute(step).await?;
    }
    if !missing.is_empty() {
        let known = format!("UPDATE posthaste.version SET steps = {}", STEPS.len());
        transaction.batch_execute(&known).await?;
    }
    Ok(transaction.commit().await?)
}
