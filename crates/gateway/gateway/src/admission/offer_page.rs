//! The page with the current offer and the delivery of promises.

use std::borrow::Cow;

use hyper::ext::Protocol;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response};
use posthaste_admission::accounts::AccountHandle;
use posthaste_admission::{Judged, PROCESSING_TIME, Promise, Published, Report};
use posthaste_gateway_config::Protection;
use posthaste_units::Span;
use serde_json::{Value, json};

use super::Admission;
use super::offer_fields::{client, price_text};
use super::state::AdmissionPolicy;
use crate::clock::now;
use crate::error::Rejection;
use crate::request::client::ClientIdentity;
use crate::response::body::ReplyBody;

/// Path of the page.
const PATH: &str = "/.well-known/wsqos";

impl Admission {
    /// Answers a request for [`PATH`] with the current offer and the delivery of each promise, to this client and to
    /// all. `None` for other requests, and in a dry run, of which clients see nothing. `account` finds the client's
    /// account.
    pub(crate) fn offer_page(
        &self,
        config: &Protection,
        head: &Parts,
        identity: &ClientIdentity,
        account: impl FnOnce() -> Result<Option<AccountHandle>, Rejection>,
    ) -> Result<Option<Response<ReplyBody>>, Rejection> {
        // An extended CONNECT has become a GET: a success would open a tunnel.
        let switches = || head.extensions.get::<Protocol>().is_some();
        if head.uri.path() != PATH || head.method != Method::GET || switches() {
            return Ok(None);
        }
        let account = account()?;
        let client = match &account {
            Some(account) => Cow::Borrowed(&*account.name),
            None => client(head, identity, config),
        };
        let at = now();
        let mut state = self.state();
        let AdmissionPolicy::Prices(market) = &state.policy else {
            return Ok(None);
        };
        if state.is_dry {
            return Ok(None);
        }
        let promise = state.promise;
        let current = |open| {
            let Published {
                name, price: due, ..
            } = market.current(open);
            json!({ "offer": name, "price": price_text(*due) })
        };
        let (current, open) = (current(false), current(true));
        let offers = state.monitor.offers();
        let mut offers: Vec<String> = offers.map(|(name, _)| name.to_owned()).collect();
        offers.sort_unstable();
        let mut known = |client: Option<&str>| -> Vec<(String, Report)> {
            let report = |offer: &String| {
                let report = state.monitor.report(at, offer, client)?;
                (report.seen.requests() > 0).then(|| (offer.clone(), report))
            };
            offers.iter().filter_map(report).collect()
        };
        let (yours, all) = (known(Some(&client)), known(None));
        // Formatting does not hold the lock.
        drop(state);
        let formatted = |reports: Vec<(String, Report)>| -> Vec<Value> {
            let each = |(offer, report): &(String, Report)| outcome(offer, report, &promise);
            reports.iter().map(each).collect()
        };
        let (yours, all) = (formatted(yours), formatted(all));
        let text =
            json!({ "current": current, "open": open, "you": yours, "all": all }).to_string();
        let mut reply = Response::new(ReplyBody::Whole(text.into()));
        let json = HeaderValue::from_static("application/json");
        reply.headers_mut().insert(CONTENT_TYPE, json);
        let now = HeaderValue::from_static("no-store");
        reply.headers_mut().insert(CACHE_CONTROL, now);
        Ok(Some(reply))
    }
}

/// Formats one offer's delivery, to one client or to all. Times are in milliseconds, as in the offer vocabulary.
fn outcome(offer: &str, report: &Report, promise: &Promise) -> Value {
    let each = |value: fn(Judged) -> Option<Value>| -> Value {
        let judged = report.judged().into_iter();
        let known = judged.filter_map(|(name, judged)| Some((name.to_owned(), value(judged)?)));
        Value::Object(known.collect())
    };
    let mut promised = each(|judged| judged.promised.map(Value::from));
    let mut delivered = each(|judged| judged.delivered.map(Value::from));
    let millis = |time: Span| Value::from(time.as_secs_f64() * 1e3);
    if let Some(most) = promise.processing_time {
        promised[PROCESSING_TIME] = millis(most);
    }
    if let Some(mean) = report.seen.mean() {
        delivered[PROCESSING_TIME] = millis(mean);
    }
    let seen = &report.seen;
    json!({
        "offer": offer,
        "served": seen.served,
        "late": seen.late,
        "failed": seen.failed,
        "refused": seen.refused,
        "seconds": report.over.as_secs_f64(),
        "promised": promised,
        "delivered": delivered,
        "verdict": each(|judged| judged.verdict.map(|verdict| verdict.name().into())),
    })
}
