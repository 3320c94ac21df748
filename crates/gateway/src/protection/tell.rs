//! Information for clients: reasons of rejections, the current offer, and the delivery of promises.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use posthaste_admission::{Judged, PROCESSING_TIME, Published, Report, Why};
use posthaste_qos::Money;
use posthaste_serve::Peer;
use posthaste_soap::{Code, Detail, Fault, Version};
use posthaste_units::Span;
use serde_json::{Value, json};

use super::ask::client;
use super::counts::Reason;
use super::{By, Protection, Turned};
use crate::body::ReplyBody;
use crate::clock::now;
use crate::preference::soap_media;
use crate::refusal::Refusal;

/// Path with the current offer and the delivery of promises.
const PLACE: &str = "/.well-known/wsqos";

/// Namespace of the elements in a fault.
const NAMESPACE: &str = posthaste_soap::EXTENSION_NAMESPACE;

impl Turned {
    const fn words(&self) -> (StatusCode, &'static str) {
        const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
        const PAY: StatusCode = StatusCode::PAYMENT_REQUIRED;
        match self.why {
            Reason::Rate => (MANY, "more requests come than the rate that is set allows"),
            Reason::Limit => (
                BUSY,
                "as many requests are in service as the service can do",
            ),
            Reason::Price(why) => match why {
                Why::TooCheap => (PAY, "the price is above what the request accepts"),
                Why::Expired => (PAY, "the offer that the request selects has ended"),
                Why::Forged => (PAY, "the quote was not given to this client"),
                Why::NoOffer => (
                    PAY,
                    "a request states the offer that it selects, or Max-Price",
                ),
                Why::NotOpen => (
                    PAY,
                    "the price is for requests that leave it open whether the reply is compressed",
                ),
                Why::OtherCurrency => (PAY, "Max-Price is in another currency than the offer"),
                Why::Overused => (MANY, "the quote is used beyond its rate"),
                Why::Full => (
                    BUSY,
                    "the price is right, but there is no room at the moment",
                ),
            },
        }
    }
}

/// Builds the rejection with advice. SOAP requests get a SOAP fault.
pub(super) fn refusal(head: &Parts, turned: Turned) -> Refusal {
    let (status, words) = turned.words();
    let soap = soap_media(head).map(|media| media.version);
    let mut refusal = match soap {
        None => Refusal::new(status, words),
        Some(version) => fault(version, words, &turned),
    };
    let mut say = |name, value| refusal.fields.push((name, value));
    if let Some((offer, price)) = turned.current {
        say("current-offer", format!("{offer};price=\"{price}\""));
    }
    if let Some(later) = turned.later {
        let seconds = later.as_secs_f64().ceil().max(1.0);
        say("retry-after", format!("{seconds:.0}"));
    }
    refusal
}

fn fault(version: Version, words: &str, turned: &Turned) -> Refusal {
    let detail = turned.current.as_ref().map(|(offer, price)| Detail {
        namespace: NAMESPACE,
        name: "CurrentOffer",
        fields: vec![("name", offer.clone()), ("price", price.clone())],
    });
    let fault = Fault {
        detail,
        ..Fault::new(Code::Server, words)
    };
    Refusal::fault(version, &fault)
}

/// Formats a price for a field: `0.40 EUR`.
pub(super) fn price(money: Money) -> String {
    format!("{} {}", money.amount(), money.currency())
}

impl Protection {
    /// Answers a request for [`PLACE`] with the current offer and the delivery of each promise, to this client and to
    /// all. `None` for other requests.
    pub(crate) fn told(&self, head: &Parts, peer: &Peer) -> Option<Response<ReplyBody>> {
        if head.uri.path() != PLACE || head.method != Method::GET {
            return None;
        }
        let client = client(head, peer, self.config.client.as_deref());
        let at = now();
        let mut door = self.door();
        let By::Prices(_, market) = &door.by else {
            return None;
        };
        let current = |open| {
            let Published {
                name, price: due, ..
            } = market.current(open);
            json!({ "offer": name, "price": price(*due) })
        };
        let (current, open) = (current(false), current(true));
        let offers = door.monitor.offers();
        let mut offers: Vec<String> = offers.map(|(name, _)| name.to_owned()).collect();
        offers.sort_unstable();
        let mut known = |client: Option<&str>| -> Vec<(String, Report)> {
            let report = |offer: &String| {
                let report = door.monitor.report(at, offer, client)?;
                (report.seen.asked() > 0).then(|| (offer.clone(), report))
            };
            offers.iter().filter_map(report).collect()
        };
        let (yours, all) = (known(Some(&client)), known(None));
        // Formatting does not hold the lock.
        drop(door);
        let told = |reports: Vec<(String, Report)>| -> Vec<Value> {
            let outcome = |(offer, report): &(String, Report)| self.outcome(offer, report);
            reports.iter().map(outcome).collect()
        };
        let (yours, all) = (told(yours), told(all));
        let text =
            json!({ "current": current, "open": open, "you": yours, "all": all }).to_string();
        let mut reply = Response::new(ReplyBody::Whole(text.into()));
        let json = HeaderValue::from_static("application/json");
        reply.headers_mut().insert(CONTENT_TYPE, json);
        let now = HeaderValue::from_static("no-store");
        reply.headers_mut().insert(CACHE_CONTROL, now);
        Some(reply)
    }

    /// Formats one offer's delivery, to one client or to all. Times are in milliseconds, as in the offer vocabulary.
    fn outcome(&self, offer: &str, report: &Report) -> Value {
        let each = |value: fn(Judged) -> Option<Value>| -> Value {
            let judged = report.judged().into_iter();
            let known = judged.filter_map(|(name, judged)| Some((name.to_owned(), value(judged)?)));
            Value::Object(known.collect())
        };
        let mut promised = each(|judged| judged.promised.map(Value::from));
        let mut delivered = each(|judged| judged.delivered.map(Value::from));
        let millis = |time: Span| Value::from(time.as_secs_f64() * 1e3);
        if let Some(most) = self.promise.processing_time {
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
}
