//! gRPC: `bookshop.v1.Bookshop`, health and server reflection.
//!
//! A call costs one service time, like a request of every other form, between its request and the head of its reply;
//! with a stream of requests and replies, before the head. Health and reflection cost none. A deadline ends a call in
//! each phase, also while it waits for its service, and counts from the earliest time at which the call can have
//! arrived, so that a reply counted as OK is not late for its client. Messages are not compressed.

mod call;
mod messages;
mod methods;
mod reflection;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode, Version};
use posthaste_http::fields::grpc_timeout;
use posthaste_http::grpc::{Code, Status, encode_message};
use posthaste_serve::{Incoming, Peer};
use tokio::time::{Instant, timeout_at};

pub use reflection::schema;

pub(crate) use reflection::BOOKSHOP_PROTO;

use crate::body::{Outlet, ShopBody, StreamBody};
use crate::clock::now;
use crate::service::{BUSY, LawReply, ShopService, plain};
use call::{CallCount, Messages};
use methods::{Route, run};

const GRPC: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The successful outcome of a call's first phase.
enum CallOutcome {
    /// The only reply, with its prefix.
    Message(Vec<u8>),
    /// The producer of a stream of replies.
    Stream(Box<dyn FnOnce(Outlet) -> Replies>),
}

/// The production of a stream of replies.
type Replies = std::pin::Pin<Box<dyn Future<Output = Result<(), Status>>>>;

/// True for a request of gRPC, by its content type. Those of gRPC-Web are none.
pub(crate) fn is_call(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.as_bytes().strip_prefix(GRPC.as_bytes()))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// Answers a call.
pub(crate) async fn answer(
    shop: &Rc<ShopService>,
    parts: &Parts,
    body: Incoming,
    peer: &Peer,
) -> Response<ShopBody> {
    if let Some(refusal) = refuse_http(parts) {
        return refusal;
    }
    let waited = Duration::from_nanos(now().saturating_sub(shop.earliest_arrival()));
    let begin = Instant::now();
    let deadline = deadline(&parts.headers, begin.checked_sub(waited).unwrap_or(begin));
    let count = CallCount::begin(shop, deadline.as_ref().ok().copied().flatten());
    let (deadline, outcome) = match deadline {
        Ok(deadline) => {
            let messages = Messages::new(body, shop.message_wait());
            (deadline, first_phase(shop, parts, messages, deadline).await)
        }
        Err(status) => (None, Err(status)),
    };
    let (outcome, busy) = match Route::from_path(parts.uri.path()) {
        Ok(route) if route.is_monitoring() => (outcome, None),
        _ => pay(shop, parts, peer, deadline, outcome).await,
    };
    shop.pay();
    let mut reply = match in_time(deadline, outcome) {
        Ok(CallOutcome::Message(message)) => {
            count.end(Code::Ok);
            Response::new(ShopBody::Message {
                message: Some(message.into()),
                trailers: Some(trailers(&Ok(()))),
            })
        }
        Ok(CallOutcome::Stream(produce)) => {
            Response::new(ShopBody::Stream(StreamBody::new(|outlet| async move {
                let end = until(deadline, produce(outlet)).await.and_then(|end| end);
                let end = in_time(deadline, end);
                count.end(
                    end.as_ref()
                        .map_or_else(|status| status.code, |()| Code::Ok),
                );
                Some(trailers(&end))
            })))
        }
        Err(status) => {
            count.end(status.code);
            // A call without a message has its status in the head (Trailers-Only).
            let mut reply = Response::new(ShopBody::Whole(Full::default()));
            *reply.headers_mut() = trailers(&Err(status));
            reply
        }
    };
    let fields = reply.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    fields.extend(busy.map(|busy| (BUSY, busy)));
    reply
}

/// Refuses a request of gRPC that cannot get a reply of gRPC.
fn refuse_http(parts: &Parts) -> Option<Response<ShopBody>> {
    let refuse = |status, message: &str| plain(status, format!("{message}\n"));
    if parts.version != Version::HTTP_2 {
        let message = "gRPC needs HTTP/2: use it with prior knowledge, or HTTPS with ALPN h2";
        return Some(refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, message));
    }
    if parts.method != Method::POST {
        let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, "a call of gRPC is a POST");
        let allow = HeaderValue::from_static("POST");
        reply.headers_mut().insert(header::ALLOW, allow);
        return Some(reply);
    }
    let kind = parts.headers.get(header::CONTENT_TYPE)?.as_bytes();
    let format = kind[GRPC.len()..].split(|byte| *byte == b';').next()?;
    let is_known = matches!(format.trim_ascii(), b"" | b"+proto");
    (!is_known).then(|| {
        let message = "the messages here are Protocol Buffers: use application/grpc or application/grpc+proto";
        refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    })
}

/// Runs a call up to the head of its reply.
async fn first_phase(
    shop: &Rc<ShopService>,
    parts: &Parts,
    messages: Messages,
    deadline: Option<Instant>,
) -> Result<CallOutcome, Status> {
    let route = Route::from_path(parts.uri.path())?;
    in_time(deadline, Ok(()))?;
    until(deadline, run(shop, route, messages)).await?
}

/// Waits for the service time of a call. Returns the busy share as the value of a field. A call whose deadline passes
/// before its service begins gets none.
async fn pay(
    shop: &Rc<ShopService>,
    parts: &Parts,
    peer: &Peer,
    deadline: Option<Instant>,
    outcome: Result<CallOutcome, Status>,
) -> (Result<CallOutcome, Status>, Option<HeaderValue>) {
    if is_late(deadline) {
        return (Err(late()), None);
    }
    let service = shop.serve_unless(parts, peer, || is_late(deadline));
    match until(deadline, service).await {
        Ok(Some(served)) => match served.refusal {
            Some(status) => (Err(refused(status)), served.busy),
            None => (outcome, served.busy),
        },
        Ok(None) => (Err(late()), None),
        Err(status) => (Err(status), None),
    }
}

/// The status of a call that the emulated service refuses with a status of HTTP.
fn refused(status: StatusCode) -> Status {
    let code = match status.as_u16() {
        429 => Code::ResourceExhausted,
        502..=504 => Code::Unavailable,
        500..600 => Code::Internal,
        _ => Code::FailedPrecondition,
    };
    Status::new(code, LawReply::message(status).trim_end())
}

/// The deadline of a call that begins now. `None` without a timeout, or with one beyond the range of the clock.
fn deadline(headers: &HeaderMap, begin: Instant) -> Result<Option<Instant>, Status> {
    let mut lines = headers.get_all(TIMEOUT).into_iter();
    let Some(first) = lines.next() else {
        return Ok(None);
    };
    match grpc_timeout(first.as_bytes()) {
        Some(timeout) if lines.next().is_none() => Ok(begin.checked_add(timeout)),
        _ => {
            let message = "grpc-timeout is not one to eight digits and a unit (H, M, S, m, u or n)";
            Err(Status::new(Code::Internal, message))
        }
    }
}

/// Runs `work` until the deadline.
async fn until<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Result<T, Status> {
    match deadline {
        None => Ok(work.await),
        Some(deadline) => timeout_at(deadline, work).await.map_err(|_| late()),
    }
}

/// The outcome of a call, unless its deadline has passed.
fn in_time<T>(deadline: Option<Instant>, outcome: Result<T, Status>) -> Result<T, Status> {
    if is_late(deadline) {
        return Err(late());
    }
    outcome
}

fn is_late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

fn late() -> Status {
    Status::new(
        Code::DeadlineExceeded,
        "the deadline of the call has passed",
    )
}

/// The fields of a status.
fn trailers(end: &Result<(), Status>) -> HeaderMap {
    let (code, text) = match end {
        Ok(()) => (Code::Ok, ""),
        Err(status) => (status.code, status.message.as_str()),
    };
    let mut fields = HeaderMap::with_capacity(4);
    fields.insert(STATUS, HeaderValue::from(u16::from(code.number())));
    if !text.is_empty() {
        let text = Bytes::from(encode_message(text).into_owned());
        let text = HeaderValue::from_maybe_shared(text);
        fields.insert(MESSAGE, text.expect("encoded messages are printable ASCII"));
    }
    fields
}
