//! Charges: reports of gateways, and the audit record for operators, as JSON and CSV.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use hyper::StatusCode;
use hyper::header;
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountState, ChargeQuery, ChargeRecord, ChargeReport, MOST_CHARGES, ReportReply,
    fault_of_account_name,
};
use posthaste_serve::{Incoming, Peer};
use serde_json::json;

use super::BrokerHandler;
use super::authenticate::unstored;
use super::body::{from_json, read};
use super::problem::ProblemDetails;
use super::query::Query;
use super::reply::BrokerReply;
use crate::store::accounts::ReportOutcome;
use crate::token::TokenRole;

/// Maximum bytes of a report.
const BYTES: usize = 512 << 10;

/// Usual and maximum number of charges in a list.
const LISTED: (usize, usize) = (1_000, 10_000);

/// First line of the list as CSV.
const COLUMNS: &str = "number,at,period,gateway,sequence,account,amount,currency,requests\n";

impl BrokerHandler {
    /// Books a report of a gateway.
    pub(super) async fn report(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let token = self.authenticate(parts, TokenRole::Gateway).await?.number;
        let body = read(parts, body, BYTES, peer).await?;
        let report: ChargeReport = from_json(&body)?;
        check(&report).map_err(ProblemDetails::senseless)?;
        let booked = self.writer()?.call(move |store| {
            let outcome = store.report(&report, token, Timestamp::now())?;
            Ok((outcome, report.charges))
        });
        let (outcome, charges) = booked.await.map_err(unstored)?;
        let metrics = &self.context.metrics.accounts;
        let refuse = |status, detail: String| {
            metrics.batches[2].fetch_add(1, Relaxed);
            Err(ProblemDetails::new(status, detail))
        };
        match outcome {
            ReportOutcome::Booked {
                is_repeated,
                known,
                more,
                accounts,
            } => {
                if is_repeated {
                    metrics.batches[1].fetch_add(1, Relaxed);
                } else if !charges.is_empty() {
                    metrics.booked(&charges);
                }
                let now = Timestamp::now();
                let accounts: Vec<AccountState> =
                    accounts.iter().map(|account| account.state(now)).collect();
                Ok(BrokerReply::serialized(&ReportReply {
                    known,
                    more,
                    accounts,
                }))
            }
            ReportOutcome::Unknown => {
                let detail = "this is not the next batch of a known gateway, and might be booked: begin as a new gateway \
                             with an empty report";
                refuse(StatusCode::CONFLICT, detail.to_owned())
            }
            ReportOutcome::Wrong(account) => {
                let detail = format!(
                    "there is no account {account:?} in this currency: `posthaste accounts list` shows all; the prices \
                     of the gateway and the budget have one currency"
                );
                refuse(StatusCode::UNPROCESSABLE_ENTITY, detail)
            }
        }
    }

    /// Lists booked charges.
    pub(super) async fn charges(&self, parts: &Parts) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate(parts, TokenRole::Operator).await?;
        let query = Query::from_parts(parts);
        let time = |name| query.parsed::<Timestamp>(name, "a time as 2026-01-31T00:00:00Z");
        let account = query.text("account");
        if let Some(detail) = account.as_deref().and_then(fault_of_account_name) {
            return Err(ProblemDetails::bad(detail));
        }
        let selection = ChargeQuery {
            account,
            from: time("from")?,
            until: time("until")?,
            after: query.number("after", 0)?,
            limit: query.number("limit", LISTED.0)?.min(LISTED.1),
        };
        let wants_csv = match query.text("format").as_deref() {
            None => accepts_csv(parts),
            Some("csv") => true,
            Some("json") => false,
            Some(other) => {
                let detail = format!("format is {other:?}: write csv or json");
                return Err(ProblemDetails::bad(detail));
            }
        };
        let found = self.writer()?.call(move |store| store.charges(&selection));
        let charges = found.await.map_err(unstored)?;
        Ok(if wants_csv {
            BrokerReply::new(StatusCode::OK, "text/csv; charset=utf-8", csv(&charges))
        } else {
            BrokerReply::serialized(&json!({ "charges": charges }))
        })
    }
}

/// Rejects a report that no gateway would send.
fn check(report: &ChargeReport) -> Result<(), String> {
    let charges = &report.charges;
    if charges.len() > MOST_CHARGES {
        let count = charges.len();
        return Err(format!(
            "{count} charges in a report: {MOST_CHARGES} at most"
        ));
    }
    if report.sequence == 0 && !charges.is_empty() {
        return Err("batches are numbered from 1".to_owned());
    }
    if report.sequence > i64::MAX as u64 {
        return Err("the number of the batch is too large".to_owned());
    }
    if charges
        .iter()
        .any(|charge| charge.requests > i64::MAX as u64)
    {
        return Err("the number of requests is too large".to_owned());
    }
    let mut names = charges.iter().map(|charge| &*charge.account);
    names.find_map(fault_of_account_name).map_or(Ok(()), Err)
}

fn accepts_csv(parts: &Parts) -> bool {
    let accepted = parts.headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    accepted.is_some_and(|value| value.trim_start().starts_with("text/csv"))
}

/// The records as CSV (RFC 4180). Names of accounts need no quotes.
fn csv(charges: &[ChargeRecord]) -> String {
    let mut text = COLUMNS.to_owned();
    for record in charges {
        let ChargeRecord {
            number,
            at,
            period,
            gateway,
            sequence,
            account,
            charge,
            requests,
        } = record;
        let (amount, currency) = (charge.amount(), charge.currency());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{number},{at},{period},{gateway},{sequence},{account},{amount},{currency},{requests}"
        );
    }
    text
}
