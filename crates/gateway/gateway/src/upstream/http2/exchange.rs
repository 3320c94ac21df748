//! One request over HTTP/2, up to the head of its reply.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use h2::{Reason, RecvStream};
use hyper::body::Body as _;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::connection::Lease;
use super::upload::{RunningUpload, Upload};
use crate::request::body::RequestBody;
use crate::request::field_syntax::check_fields;
use crate::upstream::early_hints::HintReceiver;
use crate::upstream::error::UpstreamError;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// A failed request.
pub(in crate::upstream) struct FailedExchange {
    pub(in crate::upstream) error: UpstreamError,
    /// The body, if the upstream has not processed the request.
    pub(in crate::upstream) unprocessed: Option<RequestBody>,
    /// The connection has closed before any part of the reply.
    pub(in crate::upstream) is_closed: bool,
}

/// The parts of a reply whose head has arrived.
pub(in crate::upstream) struct Received {
    pub(in crate::upstream) reply: Response<RecvStream>,
    pub(in crate::upstream) upload: Option<RunningUpload>,
}

/// Returns the head of a request for HTTP/2: scheme and authority in the target, no field of the connection.
pub(in crate::upstream) fn head_for_http2(
    head: &Parts,
    default_host: &HeaderValue,
    is_https: bool,
) -> Result<Request<()>, UpstreamError> {
    let host = head.headers.get(HOST).filter(|host| !host.is_empty());
    let authority = Authority::try_from(host.unwrap_or(default_host).as_bytes());
    let scheme = if is_https {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    };
    let path = head.uri.path_and_query().cloned();
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(authority.map_err(|_| UpstreamError::Authority)?)
        .path_and_query(path.unwrap_or(PathAndQuery::from_static("/")))
        .build();
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = uri.map_err(|_| UpstreamError::Authority)?;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = head.headers.clone();
    remove_connection_fields(request.headers_mut());
    Ok(request)
}

/// Removes the fields that HTTP/2 forbids (RFC 9113, section 8.2.2), and Host, which `:authority` replaces.
fn remove_connection_fields(headers: &mut HeaderMap) {
    for name in [
        HOST,
        CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
    ] {
        headers.remove(name);
    }
}

/// True if the upstream guarantees that it has not processed a request: a refused stream, or one beyond the last in a
/// GOAWAY (RFC 9113, section 8.7). `h2` reports GOAWAY only for those.
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (error.is_go_away() || is_refused)
}

/// Sends a request and waits for the head of its reply. `limit` bounds the time without progress that the upstream is
/// responsible for.
pub(in crate::upstream) async fn exchange(
    lease: &mut Lease,
    head: Request<()>,
    body: RequestBody,
    limit: Duration,
    hints: Option<&HintReceiver<'_>>,
) -> Result<Received, FailedExchange> {
    let progress = body.progress();
    let (mut reply, stream) = match lease.sender().send_request(head, body.is_end_stream()) {
        Ok(sent) => sent,
        Err(error) => return Err(FailedExchange::unsent(error, body)),
    };
    let mut upload = Upload::new(body, stream);
    let mut pieces = 0;
    lease.timeout.begin(limit);
    let replied = poll_fn(|cx| {
        if let Poll::Ready(Err(error)) = upload.poll(cx) {
            return Poll::Ready(Err(UpstreamError::Client(error)));
        }
        while let Poll::Ready(Some(Ok(interim))) = reply.poll_informational(cx) {
            if let Some(hints) = hints
                && interim.status() == StatusCode::EARLY_HINTS
            {
                hints.send(interim.into_parts().0.headers);
            }
        }
        if let Poll::Ready(reply) = Pin::new(&mut reply).poll(cx) {
            return Poll::Ready(checked(reply));
        }
        if let Some(progress) = &progress {
            if progress.waits_for_client() || progress.pieces() != pieces {
                pieces = progress.pieces();
                lease.timeout.renew();
            }
            if progress.waits_for_client() {
                return Poll::Pending;
            }
        }
        ready!(lease.timeout.poll(cx));
        Poll::Ready(Err(UpstreamError::ReplyTimeout))
    })
    .await;
    match replied {
        Ok(reply) => Ok(Received {
            reply,
            upload: upload.continue_in_task(),
        }),
        Err(error) => Err(FailedExchange::new(error, upload)),
    }
}

/// Checks the head of a reply.
fn checked(
    reply: Result<Response<RecvStream>, h2::Error>,
) -> Result<Response<RecvStream>, UpstreamError> {
    let reply = reply.map_err(UpstreamError::Http2)?;
    check_fields(reply.headers())?;
    Ok(reply)
}

impl FailedExchange {
    fn unsent(error: h2::Error, body: RequestBody) -> Self {
        Self {
            error: UpstreamError::Http2(error),
            unprocessed: Some(body),
            is_closed: false,
        }
    }

    fn new(error: UpstreamError, upload: Upload) -> Self {
        let (is_unprocessed, is_closed) = match &error {
            UpstreamError::Http2(error) => (is_unprocessed(error), error.is_io()),
            _ => (false, false),
        };
        Self {
            error,
            unprocessed: is_unprocessed.then(|| upload.into_unsent()).flatten(),
            is_closed,
        }
    }
}
