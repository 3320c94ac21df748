//! Event streams with a known law of gaps: orders, and tokens of a chat.
//!
//! Each event states its number, when it was sent and when it was due, in ns of CLOCK_MONOTONIC. A client on the same
//! machine compares them with its own clock.

mod chat;
mod law;
mod orders;

use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

pub use law::{EventLaw, EventLawError, GapLaw};

pub(crate) use chat::chat;
pub(crate) use orders::orders;

use crate::body::{Outlet, ShopBody, StreamBody};
use crate::clock::now;
use crate::metrics::{ReplyForm, StreamEnd};
use crate::service::ShopService;

/// The end mark of server-sent events.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// An event that is about to be sent.
pub(crate) struct EventMoment {
    /// From 1.
    pub(crate) number: u32,
    /// CLOCK_MONOTONIC now, in ns.
    pub(crate) sent_ns: u64,
    /// Time at which it was due.
    pub(crate) due_ns: u64,
}

/// Counts the end of a stream; one that is dropped before its end was cancelled by its client.
pub(crate) struct StreamCount {
    shop: Rc<ShopService>,
    form: ReplyForm,
    end: StreamEnd,
}

impl StreamCount {
    pub(crate) fn begin(shop: &Rc<ShopService>, form: ReplyForm) -> Self {
        Self {
            shop: shop.clone(),
            form,
            end: StreamEnd::Cancelled,
        }
    }

    /// Sends events by their law. `write` makes the bytes of an event.
    pub(crate) async fn send(
        &self,
        law: EventLaw,
        outlet: &Outlet,
        mut write: impl FnMut(&EventMoment) -> Vec<u8>,
    ) {
        let start = now();
        for (number, offset) in (1..).zip(law.offsets()) {
            let due_ns = start.saturating_add(offset);
            self.shop.pacer.until(due_ns).await;
            let sent_ns = now();
            debug_assert!(sent_ns >= due_ns, "an event is not early");
            let piece = write(&EventMoment {
                number,
                sent_ns,
                due_ns,
            });
            self.shop.metrics().count_event(self.form);
            self.shop.pay();
            outlet.send(piece).await;
        }
    }

    /// The stream is complete.
    pub(crate) fn complete(mut self) {
        self.end = StreamEnd::Complete;
    }
}

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.shop.metrics().count_stream(self.form, self.end);
    }
}

/// A reply whose events `produce` sends.
fn stream<F>(kind: &'static str, produce: impl FnOnce(Outlet) -> F) -> Response<ShopBody>
where
    F: Future<Output = ()> + 'static,
{
    let body = StreamBody::new(|outlet| {
        let events = produce(outlet);
        async move {
            events.await;
            None
        }
    });
    let mut reply = Response::new(ShopBody::Stream(body));
    let fields = reply.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// A whole reply.
fn whole(status: StatusCode, kind: &'static str, body: String) -> Response<ShopBody> {
    let mut reply = Response::new(ShopBody::Whole(Full::new(Bytes::from(body))));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    reply.headers_mut().insert(header::CONTENT_TYPE, kind);
    reply
}

/// Reads a law from a query. Parameters for which `other` returns true are allowed beside those of the law.
fn read_law(
    query: Option<&str>,
    mut law: EventLaw,
    mut other: impl FnMut(&str, &str) -> bool,
) -> Result<EventLaw, String> {
    let pairs = query.unwrap_or_default().split('&');
    let mut seen: Vec<&str> = Vec::new();
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if seen.contains(&name) {
            return Err(format!("{name} occurs twice in the query: once is enough"));
        }
        let is_known = law.set(name, value).map_err(|error| error.to_string())?;
        if !is_known && !other(name, value) {
            let name: String = name.chars().take(64).collect();
            return Err(format!(
                "the parameter {name:?} is unknown or has a wrong value: there are events, first, gap, seed and, for \
                 /orders, format=sse or format=ndjson"
            ));
        }
        seen.push(name);
    }
    law.check().map_err(|error| error.to_string())
}
