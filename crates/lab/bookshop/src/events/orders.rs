//! `GET /orders`: orders of the shop, as server-sent events or JSON lines.

use std::rc::Rc;

use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use posthaste_serve::sse::write_event;
use serde::Serialize;

use super::law::EventLaw;
use super::{DONE, EventMoment, StreamCount, read_law, stream, whole};
use crate::body::ShopBody;
use crate::catalogue::Catalogue;
use crate::json;
use crate::metrics::ReplyForm;
use crate::service::{PROBLEM, ShopService};

/// Number of events without a parameter.
const EVENTS: u32 = 10;

#[derive(Serialize)]
struct OrderJson<'a> {
    number: u32,
    sent_ns: u64,
    due_ns: u64,
    isbn: &'a str,
    title: &'a str,
    copies: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Events,
    Lines,
}

/// Answers a request for orders.
pub(crate) fn orders(shop: &Rc<ShopService>, parts: &Parts) -> Response<ShopBody> {
    let refuse = |status: StatusCode, kind, title, message: &str| {
        let body = json::problem(kind, title, status.as_u16(), message);
        whole(status, PROBLEM, body)
    };
    if parts.method != Method::GET {
        let message = format!("{} is not allowed here: use GET", parts.method);
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut reply = refuse(status, "method-not-allowed", "Method not allowed", &message);
        let allow = HeaderValue::from_static("GET");
        reply.headers_mut().insert(header::ALLOW, allow);
        return reply;
    }
    let mut format = accepted_format(parts);
    let law = read_law(parts.uri.query(), EventLaw::new(EVENTS), |name, value| {
        match (name, value) {
            ("format", "sse") => format = Format::Events,
            ("format", "ndjson") => format = Format::Lines,
            _ => return false,
        }
        true
    });
    let law = match law {
        Ok(law) => law,
        Err(message) => {
            let status = StatusCode::BAD_REQUEST;
            return refuse(status, "invalid-parameter", "Invalid parameter", &message);
        }
    };
    let kind = match format {
        Format::Events => "text/event-stream",
        Format::Lines => "application/x-ndjson",
    };
    let shop = shop.clone();
    stream(kind, |outlet| async move {
        let count = StreamCount::begin(&shop, ReplyForm::Orders);
        let write = |moment: &EventMoment| order(shop.catalogue(), moment, format);
        count.send(law, &outlet, write).await;
        if format == Format::Events {
            outlet.send(DONE.to_vec()).await;
        }
        count.complete();
    })
}

/// JSON lines for a client that names them in Accept.
fn accepted_format(parts: &Parts) -> Format {
    let accepts = parts.headers.get_all(header::ACCEPT).iter();
    let lines = accepts
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("application/x-ndjson"));
    if lines { Format::Lines } else { Format::Events }
}

fn order(catalogue: &Catalogue, moment: &EventMoment, format: Format) -> Vec<u8> {
    let books = catalogue.books();
    let book = &books[moment.number as usize * 7 % books.len()];
    let order = OrderJson {
        number: moment.number,
        sent_ns: moment.sent_ns,
        due_ns: moment.due_ns,
        isbn: &book.isbn,
        title: &book.title,
        copies: 1 + moment.number % 3,
    };
    let mut bytes = Vec::with_capacity(256);
    let write = |to: &mut Vec<u8>| {
        serde_json::to_writer(to, &order).expect("strings and numbers serialise");
    };
    match format {
        Format::Events => write_event(&mut bytes, "order", Some(u64::from(moment.number)), write),
        Format::Lines => {
            write(&mut bytes);
            bytes.push(b'\n');
        }
    }
    bytes
}
