//! Accounts and charges in SQLite.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, ChargeQuery, ChargeRecord, ChargeReport, Hex, NewAccount,
};
use posthaste_qos::{Currency, MoneyError};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

use super::Sqlite;
use crate::store::accounts::plan::{self, Booking, KnownGateway};
use crate::store::accounts::{
    AccountCounts, AccountOutcome, AccountStore, GATEWAY_LIFE, PAGE, ReportOutcome, StoredAccount,
    money, time,
};
use crate::store::{AT_ONCE, StoreError};

/// Columns of an account, in the order of [`account`].
const COLUMNS: &str =
    "name, key, certificate, currency, budget, period, max_price, made, closed, spent_in, spent";

impl AccountStore for Sqlite {
    fn account(&mut self, name: &str) -> Result<Option<StoredAccount>, StoreError> {
        Ok(find(&self.connection, name)?)
    }

    fn accounts(&mut self, after: &str, limit: usize) -> Result<Vec<StoredAccount>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM accounts WHERE name > ?1 ORDER BY name LIMIT ?2");
        let mut page = self.connection.prepare_cached(&sql)?;
        let page = page.query_map(params![after, limit as i64], account)?;
        Ok(page.collect::<Result<_, _>>()?)
    }

    fn add_account(
        &mut self,
        new: &NewAccount,
        now: Timestamp,
        most: usize,
    ) -> Result<AccountOutcome, StoreError> {
        let transaction = self.begin()?;
        let count: i64 =
            transaction.query_row("SELECT count(*) FROM accounts", [], |row| row.get(0))?;
        if find(&transaction, &new.name)?.is_some() {
            return Ok(AccountOutcome::Exists);
        }
        if count as usize >= most {
            return Ok(AccountOutcome::Full);
        }
        let added = StoredAccount::new(new, now);
        if let Some(taken) = taken(&transaction, &added)? {
            return Ok(taken);
        }
        put(&transaction, &added)?;
        transaction.commit()?;
        Ok(AccountOutcome::Made(Box::new(added)))
    }

    fn change_account(
        &mut self,
        name: &str,
        change: &AccountChange,
        now: Timestamp,
    ) -> Result<AccountOutcome, StoreError> {
        self.edit(name, |account| {
            plan::change(account, change, now.as_microsecond())
        })
    }

    fn close_account(&mut self, name: &str, now: Timestamp) -> Result<AccountOutcome, StoreError> {
        self.edit(name, |account| plan::close(account, now.as_microsecond()))
    }

    fn report(
        &mut self,
        report: &ChargeReport,
        token: u64,
        now: Timestamp,
    ) -> Result<ReportOutcome, StoreError> {
        let (gateway, at) = (report.gateway.0, now.as_microsecond());
        let mut is_repeated = false;
        match plan::booking(report, token, known(&self.connection, report)?, at) {
            Booking::Refuse => return Ok(ReportOutcome::Unknown),
            Booking::Nothing => {}
            Booking::Begin | Booking::Note | Booking::Book | Booking::Repeat => {
                let transaction = self.begin()?;
                let booking = plan::booking(report, token, known(&transaction, report)?, at);
                if booking == Booking::Refuse {
                    return Ok(ReportOutcome::Unknown);
                }
                if booking == Booking::Book
                    && let Some(wrong) = book(&transaction, report, at)?
                {
                    return Ok(wrong);
                }
                is_repeated = booking == Booking::Repeat;
                let sql = "INSERT INTO gateways (gateway, last, seen, token) VALUES (?1, ?2, ?3, ?4)
                           ON CONFLICT DO UPDATE SET last = max(last, excluded.last), seen = excluded.seen,
                               token = excluded.token";
                let values = params![gateway, report.sequence as i64, at, token as i64];
                transaction.execute(sql, values)?;
                transaction.commit()?;
            }
        }
        self.changed(report.known, is_repeated)
    }

    fn charges(&mut self, query: &ChargeQuery) -> Result<Vec<ChargeRecord>, StoreError> {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::as_microsecond);
        // The index on (account, number) serves queries for one account.
        let condition = match query.account {
            Some(_) => "charges.account = ?1",
            None => "?1 IS NULL",
        };
        let sql = format!(
            "SELECT number, at, started, gateway, sequence, account, amount, requests, currency
             FROM charges WHERE {condition} AND number > ?2 AND (?3 IS NULL OR at >= ?3) AND (?4 IS NULL OR at < ?4)
             ORDER BY number LIMIT ?5"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let values = params![
            query.account,
            query.after as i64,
            micros(query.from),
            micros(query.until),
            query.limit as i64
        ];
        let rows = select.query_map(values, charge)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn count_accounts(&mut self, now: Timestamp) -> Result<AccountCounts, StoreError> {
        let sql = "SELECT count(*) FILTER (WHERE closed IS NULL), count(closed),
                       count(*) FILTER (WHERE closed IS NULL AND spent > budget AND ?1 / period <= spent_in)
                   FROM accounts";
        let mut count = self.connection.prepare_cached(sql)?;
        let number = |row: &Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let counted = count.query_row([now.as_microsecond()], |row| {
            Ok(AccountCounts {
                open: number(row, 0)?,
                closed: number(row, 1)?,
                overdrawn: number(row, 2)?,
            })
        });
        Ok(counted?)
    }

    fn tidy_accounts(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        let silent = now.as_microsecond().saturating_sub(GATEWAY_LIFE);
        let untidy = "SELECT EXISTS (SELECT 1 FROM charges WHERE number <= (SELECT max(number) FROM charges) - ?1)
                          OR EXISTS (SELECT 1 FROM gateways WHERE seen <= ?2)";
        let keep = keep.max(1) as i64;
        let untidy: bool = self
            .connection
            .query_row(untidy, params![keep, silent], |row| row.get(0))?;
        if !untidy {
            return Ok(false);
        }
        let transaction = self.begin()?;
        let charges = "DELETE FROM charges WHERE number IN (SELECT number FROM charges
                           WHERE number <= (SELECT max(number) FROM charges) - ?1 ORDER BY number LIMIT ?2)";
        let charges = transaction.execute(charges, params![keep, AT_ONCE as i64])?;
        transaction.execute("DELETE FROM gateways WHERE seen <= ?1", [silent])?;
        transaction.commit()?;
        Ok(charges == AT_ONCE)
    }
}

impl Sqlite {
    fn edit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut StoredAccount) -> Result<(), AccountOutcome>,
    ) -> Result<AccountOutcome, StoreError> {
        let transaction = self.begin()?;
        let Some(mut account) = find(&transaction, name)? else {
            return Ok(AccountOutcome::Absent);
        };
        if let Err(outcome) = edit(&mut account) {
            return Ok(outcome);
        }
        if let Some(taken) = taken(&transaction, &account)? {
            return Ok(taken);
        }
        put(&transaction, &account)?;
        transaction.commit()?;
        Ok(AccountOutcome::Made(Box::new(account)))
    }

    /// Accounts changed after a version, as the outcome of a report that is booked. All, after a version that this
    /// store has not reached, as one restored from a copy.
    fn changed(&mut self, known: u64, is_repeated: bool) -> Result<ReportOutcome, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, version FROM accounts
             WHERE version > (SELECT iif(?1 > last, 0, ?1) FROM account_log) ORDER BY version LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let since = i64::try_from(known).unwrap_or(i64::MAX);
        let rows = select.query_map(params![since, PAGE as i64], |row| {
            Ok((account(row)?, row.get::<_, i64>(11)?))
        })?;
        let rows: Vec<(StoredAccount, i64)> = rows.collect::<Result<_, _>>()?;
        let newest = rows.last().map(|(_, version)| version.unsigned_abs());
        Ok(ReportOutcome::Booked {
            is_repeated,
            known: newest.unwrap_or(known),
            more: rows.len() == PAGE,
            accounts: rows.into_iter().map(|(account, _)| account).collect(),
        })
    }
}

/// Books the charges of a report. Returns an outcome if one of them is wrong.
fn book(
    transaction: &Transaction<'_>,
    report: &ChargeReport,
    at: i64,
) -> rusqlite::Result<Option<ReportOutcome>> {
    let mut accounts: BTreeMap<String, StoredAccount> = BTreeMap::new();
    for reported in &report.charges {
        if let Some(account) = find(transaction, &reported.account)? {
            accounts.insert(reported.account.clone(), account);
        }
    }
    let started = match plan::charge_all(&mut accounts, report, at) {
        Ok(started) => started,
        Err(name) => return Ok(Some(ReportOutcome::Wrong(name))),
    };
    let mut insert = transaction.prepare_cached(
        "INSERT INTO charges (at, started, gateway, sequence, account, amount, requests, currency)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (reported, started) in report.charges.iter().zip(started) {
        insert.execute(params![
            at,
            started,
            report.gateway.0,
            report.sequence as i64,
            reported.account,
            reported.charge.micros() as i64,
            reported.requests as i64,
            reported.charge.currency().code()
        ])?;
    }
    for account in accounts.values() {
        put(transaction, account)?;
    }
    Ok(None)
}

/// The account whose key or certificate the given one would share.
fn taken(
    connection: &Connection,
    account: &StoredAccount,
) -> rusqlite::Result<Option<AccountOutcome>> {
    let exists = |column: &str, value: &dyn rusqlite::ToSql| {
        let sql = format!("SELECT 1 FROM accounts WHERE {column} = ?1 AND name <> ?2");
        let mut find = connection.prepare_cached(&sql)?;
        find.exists(params![value, account.name])
    };
    Ok(if exists("key", &account.key)? {
        Some(AccountOutcome::KeyTaken)
    } else if exists("certificate", &account.certificate)? {
        Some(AccountOutcome::CertificateTaken)
    } else {
        None
    })
}

/// Inserts or replaces an account, with the next version.
fn put(transaction: &Transaction<'_>, account: &StoredAccount) -> rusqlite::Result<()> {
    let next = "UPDATE account_log SET last = last + 1 RETURNING last";
    let version: i64 = transaction.query_row(next, [], |row| row.get(0))?;
    let sql = format!(
        "INSERT INTO accounts ({COLUMNS}, version)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (name) DO UPDATE SET key = excluded.key, certificate = excluded.certificate,
             budget = excluded.budget, period = excluded.period, max_price = excluded.max_price,
             closed = excluded.closed, spent_in = excluded.spent_in, spent = excluded.spent,
             version = excluded.version"
    );
    let mut insert = transaction.prepare_cached(&sql)?;
    let changed = insert.execute(params![
        account.name,
        account.key,
        account.certificate,
        account.currency.code(),
        account.budget,
        account.period,
        account.max_price,
        account.made,
        account.closed,
        account.spent_in,
        account.spent,
        version
    ])?;
    debug_assert_eq!(changed, 1, "an account is not stored");
    Ok(())
}

/// The gateway of a report.
fn known(connection: &Connection, report: &ChargeReport) -> rusqlite::Result<Option<KnownGateway>> {
    let sql = "SELECT last, seen, token FROM gateways WHERE gateway = ?1";
    let mut find = connection.prepare_cached(sql)?;
    let gateway = |row: &Row<'_>| {
        Ok(KnownGateway {
            last: super::number(row, 0)?,
            seen: row.get(1)?,
            token: super::number(row, 2)?,
        })
    };
    find.query_row([report.gateway.0], gateway).optional()
}

fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<StoredAccount>> {
    let sql = format!("SELECT {COLUMNS} FROM accounts WHERE name = ?1");
    let mut find = connection.prepare_cached(&sql)?;
    find.query_row([name], account).optional()
}

fn account(row: &Row<'_>) -> rusqlite::Result<StoredAccount> {
    Ok(StoredAccount {
        name: row.get(0)?,
        key: row.get(1)?,
        certificate: row.get(2)?,
        currency: currency(row, 3)?,
        budget: row.get(4)?,
        period: row.get(5)?,
        max_price: row.get(6)?,
        made: row.get(7)?,
        closed: row.get(8)?,
        spent_in: row.get(9)?,
        spent: row.get(10)?,
    })
}

fn charge(row: &Row<'_>) -> rusqlite::Result<ChargeRecord> {
    Ok(ChargeRecord {
        number: super::number(row, 0)?,
        at: time(row.get(1)?),
        period: time(row.get(2)?),
        gateway: Hex(row.get(3)?),
        sequence: super::number(row, 4)?,
        account: row.get(5)?,
        charge: money(row.get(6)?, currency(row, 8)?),
        requests: super::number(row, 7)?,
    })
}

fn currency(row: &Row<'_>, column: usize) -> rusqlite::Result<Currency> {
    let code = row.get_ref(column)?.as_str()?;
    code.parse().map_err(|error: MoneyError| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
