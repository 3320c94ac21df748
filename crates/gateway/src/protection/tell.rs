//! What clients are told: why they are not let in, what holds now, and whether promises were kept.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use posthaste_serve::Peer;
use posthaste_soap::{Code, Detail, Fault, Version};
use posthaste_wsqos::market::{Report, Verdict, Why};
use posthaste_wsqos::qos::Money;
use serde::Serialize;
use serde_json::{Value, json};

use super::ask::client;
use super::counts::Reason;
use super::{By, Protection, Turned};
use crate::body::ReplyBody;
use crate::preference::soap_media;
use crate::refusal::Refusal;
use crate::workshop::now;

/// Where a client asks for the present offer, and for what became of what was promised.
const PLACE: &str = "/.well-known/wsqos";

/// Of the elements in a fault.
const NAMESPACE: &str = posthaste_wsqos::NAMESPACE;

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

/// A refusal that says what would do: in a SOAP fault where the request is a SOAP message.
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

/// As it stands in a field: `0.40 EUR`.
pub(super) fn price(money: Money) -> String {
    format!("{} {}", money.amount(), money.currency())
}

#[derive(Serialize)]
struct Delivered {
    offer: String,
    served: u64,
    late: u64,
    failed: u64,
    refused: u64,
    seconds: f64,
    verdict: Value,
}

impl Protection {
    /// The present offer, and what became of each promise: to the client that asks, and to all.
    /// Where that is what it asks for.
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
        let current =
            json!({ "offer": market.current().name, "price": price(market.current().price) });
        let mut offers: Vec<String> = door.monitor.offers().map(str::to_owned).collect();
        offers.sort_unstable();
        let mut told = |client: Option<&str>| -> Vec<Delivered> {
            let reports = offers.iter().filter_map(|offer| {
                let report = door.monitor.report(at, offer, client)?;
                Some(delivered(offer, &report))
            });
            reports
                .filter(|seen| seen.served + seen.failed + seen.refused > 0)
                .collect()
        };
        let (yours, all) = (told(Some(&client)), told(None));
        let text = json!({ "current": current, "you": yours, "all": all }).to_string();
        let mut reply = Response::new(ReplyBody::Whole(text.into()));
        let json = HeaderValue::from_static("application/json");
        reply.headers_mut().insert(CONTENT_TYPE, json);
        let now = HeaderValue::from_static("no-store");
        reply.headers_mut().insert(CACHE_CONTROL, now);
        Some(reply)
    }
}

fn delivered(offer: &str, report: &Report) -> Delivered {
    let word = |verdict: Verdict| match verdict {
        Verdict::Kept => "kept",
        Verdict::Broken => "broken",
        Verdict::Unknown => "unknown",
    };
    let verdicts = [
        ("processingTime", report.processing_time),
        ("requestsPerSecond", report.rate),
        ("reliability", report.reliability),
        ("availability", report.availability),
    ];
    let verdicts = verdicts.into_iter().filter_map(|(name, verdict)| {
        let verdict = verdict.map(word)?;
        Some((name.to_owned(), Value::from(verdict)))
    });
    Delivered {
        offer: offer.to_owned(),
        served: report.served,
        late: report.late,
        failed: report.failed,
        refused: report.refused,
        seconds: report.over.as_secs_f64(),
        verdict: Value::Object(verdicts.collect()),
    }
}
