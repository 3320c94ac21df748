//! Accounts, for operators: add, list, change, close.

use hyper::StatusCode;
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, AccountState, NewAccount, fault_of_account_name, fault_of_subject,
};
use posthaste_serve::{Incoming, Peer};
use posthaste_units::Span;
use serde_json::json;

use super::BrokerHandler;
use super::authenticate::unstored;
use super::body::{from_json, read};
use super::problem::ProblemDetails;
use super::query::Query;
use super::reply::BrokerReply;
use crate::store::accounts::AccountOutcome;
use crate::store::{Store, StoreError};
use crate::token::TokenRole;

/// Maximum bytes of a request about an account.
const BYTES: usize = 16 << 10;

/// Usual and maximum number of accounts in a list.
pub(super) const LISTED: (usize, usize) = (1_000, 10_000);

/// Shortest and longest period.
const PERIODS: (Span, Span) = (Span::from_secs(1), Span::from_secs(10 * 366 * 86_400));

impl BrokerHandler {
    /// Adds an account.
    pub(super) async fn add_account(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        let body = read(parts, body, BYTES, peer).await?;
        let new: NewAccount = from_json(&body)?;
        check_new(&new).map_err(ProblemDetails::senseless)?;
        let most = self.context.most_accounts;
        let added = self.edit(move |store| store.add_account(&new, Timestamp::now(), most));
        Ok(added.await?.with_status(StatusCode::CREATED))
    }

    /// Returns an account.
    pub(super) async fn get_account(
        &self,
        name: String,
        parts: &Parts,
    ) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        let found = self.writer()?.call(move |store| store.account(&name));
        match found.await.map_err(unstored)? {
            Some(found) => Ok(BrokerReply::serialized(&found.state(Timestamp::now()))),
            None => Err(absent()),
        }
    }

    /// Lists accounts by name.
    pub(super) async fn list_accounts(&self, parts: &Parts) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        let limit = Query::from_parts(parts)
            .number("limit", LISTED.0)?
            .min(LISTED.1);
        let accounts = self.accounts_after(parts, limit).await?;
        Ok(BrokerReply::serialized(&json!({ "accounts": accounts })))
    }

    /// At most `limit` accounts by name, after the name `after` of the query.
    pub(super) async fn accounts_after(
        &self,
        parts: &Parts,
        limit: usize,
    ) -> Result<Vec<AccountState>, ProblemDetails> {
        let after = Query::from_parts(parts).text("after").unwrap_or_default();
        if !after.is_empty()
            && let Some(detail) = fault_of_account_name(&after)
        {
            return Err(ProblemDetails::bad(detail));
        }
        let found = self
            .writer()?
            .call(move |store| store.accounts(&after, limit));
        let (found, now) = (found.await.map_err(unstored)?, Timestamp::now());
        Ok(found.iter().map(|account| account.state(now)).collect())
    }

    /// Changes an account.
    pub(super) async fn change_account(
        &self,
        name: String,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        let body = read(parts, body, BYTES, peer).await?;
        let change: AccountChange = from_json(&body)?;
        check_change(&change).map_err(ProblemDetails::senseless)?;
        self.edit(move |store| store.change_account(&name, &change, Timestamp::now()))
            .await
    }

    /// Closes an account.
    pub(super) async fn close_account(
        &self,
        name: String,
        parts: &Parts,
    ) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        self.edit(move |store| store.close_account(&name, Timestamp::now()))
            .await
    }

    /// Changes an account in the store.
    async fn edit(
        &self,
        edit: impl FnOnce(&mut dyn Store) -> Result<AccountOutcome, StoreError> + Send + 'static,
    ) -> Result<BrokerReply, ProblemDetails> {
        let edited = self.writer()?.call(edit);
        self.changed(edited.await.map_err(unstored)?)
    }

    fn changed(&self, outcome: AccountOutcome) -> Result<BrokerReply, ProblemDetails> {
        let conflict = |detail: &str| Err(ProblemDetails::new(StatusCode::CONFLICT, detail));
        match outcome {
            AccountOutcome::Made(account) => {
                Ok(BrokerReply::serialized(&account.state(Timestamp::now())))
            }
            AccountOutcome::Exists => conflict(
                "there is an account of that name: give it a new key by `posthaste accounts change NAME --new-key`, \
                 or take another name if it is closed",
            ),
            AccountOutcome::Absent => Err(absent()),
            AccountOutcome::Closed => conflict(
                "the account is closed and cannot be opened again: add one with another name",
            ),
            AccountOutcome::KeyTaken => {
                conflict("another account has this key: make a new one for each account")
            }
            AccountOutcome::CertificateTaken => conflict(
                "another account has this certificate's subject: change or close that one first",
            ),
            AccountOutcome::OtherCurrency(currency) => Err(ProblemDetails::senseless(format!(
                "the account is kept in {currency}: write the amount in it, or add an account of another name"
            ))),
            AccountOutcome::Full => {
                let most = self.context.most_accounts;
                Err(ProblemDetails::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    format!(
                        "there are {most} accounts, closed ones included: raise accounts.most of the broker"
                    ),
                ))
            }
        }
    }
}

fn absent() -> ProblemDetails {
    ProblemDetails::not_found("there is no such account: `posthaste accounts list` shows all")
}

/// Rejects a new account that could not be used.
fn check_new(new: &NewAccount) -> Result<(), String> {
    if let Some(detail) = fault_of_account_name(&new.name) {
        return Err(detail);
    }
    if new.key_sha256.is_none() && new.certificate.is_none() {
        return Err(
            "nothing identifies the account: state key_sha256, certificate or both".to_owned(),
        );
    }
    let is_other = |price: posthaste_qos::Money| price.currency() != new.budget.currency();
    if new.max_price.is_some_and(is_other) {
        return Err("budget and max_price are of one currency".to_owned());
    }
    check_parts(new.certificate.as_deref(), Some(new.period))
}

fn check_change(change: &AccountChange) -> Result<(), String> {
    let certificate = change.certificate.as_ref().and_then(Option::as_deref);
    check_parts(certificate, change.period)
}

fn check_parts(certificate: Option<&str>, period: Option<Span>) -> Result<(), String> {
    if let Some(detail) = certificate.and_then(fault_of_subject) {
        return Err(detail);
    }
    let (least, most) = PERIODS;
    match period {
        Some(period) if period < least || period > most => Err(format!(
            "the period is {period}: write one from {least} to {most}"
        )),
        _ => Ok(()),
    }
}
