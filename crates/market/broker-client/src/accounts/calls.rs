//! Calls about accounts. Those that change or list accounts need an operator's token, reports a gateway's.

use bytes::Bytes;
use hyper::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::Serializer;

use super::{AccountChange, AccountState, ChargeRecord, ChargeReport, NewAccount, ReportReply};
use crate::client::{BrokerClient, JSON, encoded};
use crate::error::Error;

/// Selection of booked charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeQuery {
    /// Only those of this account.
    pub account: Option<String>,
    /// Only those booked at this time or later.
    pub from: Option<Timestamp>,
    /// Only those booked before this time.
    pub until: Option<Timestamp>,
    /// Only those with a greater number.
    pub after: u64,
    /// Maximum number of records.
    pub limit: usize,
}

impl ChargeQuery {
    /// The query as part of a URL.
    fn text(&self) -> String {
        let mut pairs = Serializer::new(String::new());
        if let Some(account) = &self.account {
            pairs.append_pair("account", account);
        }
        for (name, time) in [("from", self.from), ("until", self.until)] {
            if let Some(time) = time {
                pairs.append_pair(name, &time.to_string());
            }
        }
        pairs.append_pair("after", &self.after.to_string());
        pairs.append_pair("limit", &self.limit.to_string());
        pairs.finish()
    }
}

impl BrokerClient {
    /// Adds an account.
    pub async fn add_account(&self, account: &NewAccount) -> Result<AccountState, Error> {
        let body = json(account);
        self.ask(Method::POST, "/v1/accounts", JSON, body).await
    }

    /// Lists accounts by name, at most `most`, after the name `after`.
    pub async fn accounts(&self, after: &str, most: usize) -> Result<Vec<AccountState>, Error> {
        #[derive(Deserialize)]
        struct AccountList {
            accounts: Vec<AccountState>,
        }
        let path = format!("/v1/accounts?after={}&limit={most}", encoded(after));
        let list: AccountList = self.ask(Method::GET, &path, JSON, Bytes::new()).await?;
        Ok(list.accounts)
    }

    /// Changes an account.
    pub async fn change_account(
        &self,
        name: &str,
        change: &AccountChange,
    ) -> Result<AccountState, Error> {
        let path = format!("/v1/accounts/{}", encoded(name));
        self.ask(Method::PATCH, &path, JSON, json(change)).await
    }

    /// Closes an account. It cannot be opened again.
    pub async fn close_account(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/accounts/{}", encoded(name));
        self.tell(Method::DELETE, &path, JSON, Bytes::new()).await
    }

    /// Lists booked charges by number.
    pub async fn charges(&self, query: &ChargeQuery) -> Result<Vec<ChargeRecord>, Error> {
        #[derive(Deserialize)]
        struct ChargeList {
            charges: Vec<ChargeRecord>,
        }
        let path = format!("/v1/charges?{}", query.text());
        let list: ChargeList = self.ask(Method::GET, &path, JSON, Bytes::new()).await?;
        Ok(list.charges)
    }

    /// Reports charges. After an error it is unknown if they are booked: send the same report again. Status 409
    /// ([`Error::Refused`]) means that the broker cannot tell if it has booked the batch, and does not.
    pub async fn report_charges(&self, report: &ChargeReport) -> Result<ReportReply, Error> {
        debug_assert!(
            report.sequence > 0 || report.charges.is_empty(),
            "batches with charges are numbered from 1"
        );
        self.ask(Method::POST, "/v1/charges", JSON, json(report))
            .await
    }
}

fn json(value: &impl Serialize) -> Bytes {
    let body = serde_json::to_vec(value).expect("texts and numbers are JSON");
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        let query = ChargeQuery {
            account: Some("a&b".to_owned()),
            from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            until: None,
            after: 7,
            limit: 10,
        };
        assert_eq!(
            query.text(),
            "account=a%26b&from=2026-01-01T00%3A00%3A00Z&after=7&limit=10"
        );
    }
}
