//! Accounts and charges in PostgreSQL.
//!
//! The holder of the row lock on `account_log` is the only writer of accounts and charges, so that versions and numbers
//! appear in the order of their commits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, ChargeQuery, ChargeRecord, ChargeReport, Hex, NewAccount,
};
use posthaste_qos::{Currency, MoneyError};
use tokio_postgres::Row;

use super::session::Session;
use super::writing::Value;
use super::{Postgres, number};
use crate::store::accounts::plan::{self, Booking, KnownGateway};
use crate::store::accounts::{
    AccountCounts, AccountOutcome, AccountStore, GATEWAY_LIFE, PAGE, ReportOutcome, StoredAccount,
    money, time,
};
use crate::store::{AT_ONCE, StoreError};

impl AccountStore for Postgres {
    fn account(&mut self, name: &str) -> Result<Option<StoredAccount>, StoreError> {
        self.call(async |session| session.find_account(name).await)
    }

    fn accounts(&mut self, after: &str, limit: usize) -> Result<Vec<StoredAccount>, StoreError> {
        self.call(async |Session { client, statements }| {
            let values: [Value<'_>; 2] = [&after, &(limit as i64)];
            let rows = client.query(&statements.accounts, &values).await?;
            rows.iter().map(account).collect()
        })
    }

    fn add_account(
        &mut self,
        new: &NewAccount,
        now: Timestamp,
        most: usize,
    ) -> Result<AccountOutcome, StoreError> {
        self.call(async |session| {
            let version = session.begin_accounts().await?;
            let added = StoredAccount::new(new, now);
            let count = session
                .client
                .query_one(&session.statements.account_total, &[]);
            let outcome = if session.find_account(&new.name).await?.is_some() {
                AccountOutcome::Exists
            } else if number(&count.await?, 0) as usize >= most {
                AccountOutcome::Full
            } else {
                session.put_account(added, version).await?
            };
            session.end_accounts(outcome).await
        })
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
        let at = now.as_microsecond();
        self.call(async |session| {
            let mut is_repeated = false;
            match plan::booking(report, token, session.gateway(report).await?, at) {
                Booking::Refuse => return Ok(ReportOutcome::Unknown),
                Booking::Nothing => {}
                Booking::Begin | Booking::Note | Booking::Book | Booking::Repeat => {
                    let version = session.begin_accounts().await?;
                    let booking = plan::booking(report, token, session.gateway(report).await?, at);
                    let wrong = match booking {
                        Booking::Refuse => Some(ReportOutcome::Unknown),
                        Booking::Book => session.book(report, at, version).await?,
                        Booking::Begin | Booking::Note | Booking::Nothing | Booking::Repeat => None,
                    };
                    if let Some(wrong) = wrong {
                        session.end("ROLLBACK").await?;
                        return Ok(wrong);
                    }
                    is_repeated = booking == Booking::Repeat;
                    session.note_gateway(report, token, at).await?;
                    session.end("COMMIT").await?;
                }
            }
            session.changed_accounts(report.known, is_repeated).await
        })
    }

    fn charges(&mut self, query: &ChargeQuery) -> Result<Vec<ChargeRecord>, StoreError> {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::as_microsecond);
        let (from, until) = (micros(query.from), micros(query.until));
        let (after, limit) = (query.after as i64, query.limit as i64);
        self.call(async |Session { client, statements }| {
            let values: [Value<'_>; 5] = [&query.account, &after, &from, &until, &limit];
            let rows = client.query(&statements.charges, &values).await?;
            rows.iter().map(charge).collect()
        })
    }

    fn count_accounts(&mut self, now: Timestamp) -> Result<AccountCounts, StoreError> {
        self.call(async |Session { client, statements }| {
            let now = now.as_microsecond();
            let values: [Value<'_>; 1] = [&now];
            let row = client
                .query_one(&statements.account_counts, &values)
                .await?;
            Ok(AccountCounts {
                open: number(&row, 0),
                closed: number(&row, 1),
                overdrawn: number(&row, 2),
            })
        })
    }

    fn tidy_accounts(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        let silent = now.as_microsecond().saturating_sub(GATEWAY_LIFE);
        let keep = keep.max(1) as i64;
        self.call(async |session| {
            let untidy = &session.statements.untidy_accounts;
            let untidy = session.client.query_one(untidy, &[&keep, &silent]).await?;
            if !untidy.get::<_, bool>(0) {
                return Ok(false);
            }
            session.begin_accounts().await?;
            let Session { client, statements } = &*session;
            let most = AT_ONCE as i64;
            let charges = client
                .execute(&statements.forget_charges, &[&keep, &most])
                .await?;
            client
                .execute(&statements.forget_gateways, &[&silent])
                .await?;
            session.end("COMMIT").await?;
            Ok(charges == AT_ONCE as u64)
        })
    }
}

impl Postgres {
    fn edit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut StoredAccount) -> Result<(), AccountOutcome>,
    ) -> Result<AccountOutcome, StoreError> {
        self.call(async |session| {
            let version = session.begin_accounts().await?;
            let outcome = match session.find_account(name).await? {
                None => AccountOutcome::Absent,
                Some(mut account) => match edit(&mut account) {
                    Err(outcome) => outcome,
                    Ok(()) => session.put_account(account, version).await?,
                },
            };
            session.end_accounts(outcome).await
        })
    }
}

impl Session {
    /// Begins an exclusive transaction about accounts. Returns the last version.
    async fn begin_accounts(&self) -> Result<i64, StoreError> {
        let Self { client, statements } = self;
        let begun = tokio::try_join!(
            biased;
            client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
            client.query_one(&statements.lock_accounts, &[]),
        );
        let ((), last) = begun?;
        Ok(last.get(0))
    }

    /// Commits if something was stored.
    async fn end_accounts(&self, outcome: AccountOutcome) -> Result<AccountOutcome, StoreError> {
        let is_made = matches!(outcome, AccountOutcome::Made(_));
        self.end(if is_made { "COMMIT" } else { "ROLLBACK" })
            .await?;
        Ok(outcome)
    }

    async fn find_account(&self, name: &str) -> Result<Option<StoredAccount>, StoreError> {
        let Self { client, statements } = self;
        let found = client.query(&statements.account, &[&vec![name]]).await?;
        found.first().map(account).transpose()
    }

    /// Inserts or replaces an account with the version after `last`, unless another has its key or certificate.
    async fn put_account(
        &self,
        stored: StoredAccount,
        last: i64,
    ) -> Result<AccountOutcome, StoreError> {
        let Self { client, statements } = self;
        let key = stored.key.as_ref().map(|key| &key[..]);
        let same: [Value<'_>; 3] = [&stored.name, &key, &stored.certificate];
        let taken = client.query_one(&statements.account_taken, &same).await?;
        if taken.get(0) {
            return Ok(AccountOutcome::KeyTaken);
        }
        if taken.get(1) {
            return Ok(AccountOutcome::CertificateTaken);
        }
        let version = last + 1;
        let values: [Value<'_>; 12] = [
            &stored.name,
            &key,
            &stored.certificate,
            &stored.currency.code(),
            &stored.budget,
            &stored.period,
            &stored.max_price,
            &stored.made,
            &stored.closed,
            &stored.spent_in,
            &stored.spent,
            &version,
        ];
        client.execute(&statements.put_account, &values).await?;
        client
            .execute(&statements.account_version, &[&version])
            .await?;
        Ok(AccountOutcome::Made(Box::new(stored)))
    }

    /// The gateway of a report.
    async fn gateway(&self, report: &ChargeReport) -> Result<Option<KnownGateway>, StoreError> {
        let Self { client, statements } = self;
        let gateway = &report.gateway.0[..];
        let found = client.query(&statements.gateway, &[&gateway]).await?;
        Ok(found.first().map(|row| KnownGateway {
            last: number(row, 0),
            seen: row.get(1),
            token: number(row, 2),
        }))
    }

    async fn note_gateway(
        &self,
        report: &ChargeReport,
        token: u64,
        at: i64,
    ) -> Result<(), StoreError> {
        let Self { client, statements } = self;
        let gateway = &report.gateway.0[..];
        let (last, token) = (report.sequence as i64, token as i64);
        let values: [Value<'_>; 4] = [&gateway, &last, &at, &token];
        client.execute(&statements.note_gateway, &values).await?;
        Ok(())
    }

    /// Books the charges of a report. Returns an outcome if one of them is wrong.
    async fn book(
        &self,
        report: &ChargeReport,
        at: i64,
        last: i64,
    ) -> Result<Option<ReportOutcome>, StoreError> {
        let Self { client, statements } = self;
        let names: Vec<&str> = report
            .charges
            .iter()
            .map(|charge| &*charge.account)
            .collect();
        let rows = client.query(&statements.account, &[&names]).await?;
        let found = rows.iter().map(account);
        let found: Vec<StoredAccount> = found.collect::<Result<_, _>>()?;
        let mut accounts: BTreeMap<String, StoredAccount> = found
            .into_iter()
            .map(|account| (account.name.clone(), account))
            .collect();
        let started = match plan::charge_all(&mut accounts, report, at) {
            Ok(started) => started,
            Err(name) => return Ok(Some(ReportOutcome::Wrong(name))),
        };
        self.put_spent(accounts.values(), last).await?;
        let charges = &report.charges;
        let amounts = charges.iter().map(|charge| charge.charge.micros() as i64);
        let amounts: Vec<i64> = amounts.collect();
        let requests: Vec<i64> = charges
            .iter()
            .map(|charge| charge.requests as i64)
            .collect();
        let currencies = charges
            .iter()
            .map(|charge| charge.charge.currency().to_string());
        let currencies: Vec<String> = currencies.collect();
        let (gateway, sequence) = (&report.gateway.0[..], report.sequence as i64);
        let count = charges.len() as i64;
        let counted: [Value<'_>; 1] = [&count];
        let first = client.query_one(&statements.charge_numbers, &counted);
        let first: i64 = first.await?.get(0);
        let numbers: Vec<i64> = (first..).take(charges.len()).collect();
        let values: [Value<'_>; 9] = [
            &at,
            &gateway,
            &sequence,
            &numbers,
            &started,
            &names,
            &amounts,
            &requests,
            &currencies,
        ];
        let made = client.execute(&statements.add_charges, &values).await?;
        debug_assert_eq!(made, charges.len() as u64, "a charge is not stored");
        Ok(None)
    }

    /// Stores the money spent of accounts, with the versions after `last`.
    async fn put_spent(
        &self,
        accounts: impl Iterator<Item = &StoredAccount>,
        last: i64,
    ) -> Result<(), StoreError> {
        let Self { client, statements } = self;
        let (mut names, mut periods, mut spent) = (Vec::new(), Vec::new(), Vec::new());
        for account in accounts {
            names.push(&*account.name);
            periods.push(account.spent_in);
            spent.push(account.spent);
        }
        let versions: Vec<i64> = (last + 1..).take(names.len()).collect();
        let newest = last + names.len() as i64;
        let values: [Value<'_>; 4] = [&names, &periods, &spent, &versions];
        client.execute(&statements.put_spent, &values).await?;
        client
            .execute(&statements.account_version, &[&newest])
            .await?;
        Ok(())
    }

    /// Accounts changed after a version, as the outcome of a report that is booked. All, after a version that this
    /// store has not reached, as one restored from a copy.
    async fn changed_accounts(
        &self,
        known: u64,
        is_repeated: bool,
    ) -> Result<ReportOutcome, StoreError> {
        let Self { client, statements } = self;
        let since = i64::try_from(known).unwrap_or(i64::MAX);
        let values: [Value<'_>; 2] = [&since, &(PAGE as i64)];
        let rows = client.query(&statements.changed_accounts, &values).await?;
        Ok(ReportOutcome::Booked {
            is_repeated,
            known: rows.last().map_or(known, |row| number(row, 11)),
            more: rows.len() == PAGE,
            accounts: rows.iter().map(account).collect::<Result<_, _>>()?,
        })
    }
}

fn account(row: &Row) -> Result<StoredAccount, StoreError> {
    let wrong = |_| StoreError::Unusable("a key's digest has another length than ours".to_owned());
    let key: Option<&[u8]> = row.get(1);
    Ok(StoredAccount {
        name: row.get(0),
        key: key.map(TryInto::try_into).transpose().map_err(wrong)?,
        certificate: row.get(2),
        currency: currency(row, 3)?,
        budget: row.get(4),
        period: row.get(5),
        max_price: row.get(6),
        made: row.get(7),
        closed: row.get(8),
        spent_in: row.get(9),
        spent: row.get(10),
    })
}

fn charge(row: &Row) -> Result<ChargeRecord, StoreError> {
    let wrong =
        |_| StoreError::Unusable("a gateway's name has another length than ours".to_owned());
    let gateway: &[u8] = row.get(3);
    Ok(ChargeRecord {
        number: number(row, 0),
        at: time(row.get(1)),
        period: time(row.get(2)),
        gateway: Hex(gateway.try_into().map_err(wrong)?),
        sequence: number(row, 4),
        account: row.get(5),
        charge: money(row.get(6), currency(row, 8)?),
        requests: number(row, 7),
    })
}

fn currency(row: &Row, column: usize) -> Result<Currency, StoreError> {
    let code: &str = row.get(column);
    code.parse().map_err(|error: MoneyError| {
        StoreError::Unusable(format!("another program has written here: {error}"))
    })
}
