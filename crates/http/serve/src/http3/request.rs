//! A received request: its stream, and the form for handlers.

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri, Version};
use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::server::{
    RequestError, RequestHead, RequestPiece, RequestReader,
};
use quinn::RecvStream;

use super::closing::code;
use crate::exchange::incoming::Incoming;
use crate::framing::check::Rejection;

/// Longest piece of a stream that is read at once, in bytes.
pub(super) const PIECE: usize = 64 << 10;

/// Reasons why a request gets no reply of a handler.
pub(super) enum RequestFailure {
    /// A reply of the server. The rest of the request is not read.
    Rejected(Rejection),
    /// The request violates the protocol.
    Invalid(RequestError),
    /// The head did not arrive in time.
    Late,
    /// The client has reset the stream, or the connection has ended.
    Gone,
}

impl From<RequestError> for RequestFailure {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

/// The request for handlers.
pub(super) fn to_request(head: RequestHead, body: Bytes) -> Result<Request<Incoming>, Rejection> {
    let invalid = |reason| Rejection {
        status: StatusCode::BAD_REQUEST,
        reason,
    };
    let mut target = Uri::builder();
    if let Some(authority) = head.authority {
        if let Some(scheme) = head.scheme {
            target = target.scheme(&scheme[..]);
        }
        target = target.authority(&authority[..]);
    }
    if let Some(path) = head.path {
        target = target.path_and_query(&path[..]);
    }
    let target = target.build();
    let mut request = Request::new(Incoming::whole(body));
    *request.version_mut() = Version::HTTP_3;
    *request.uri_mut() = target.map_err(|_| invalid("the target is no URL"))?;
    *request.method_mut() =
        Method::from_bytes(&head.method).map_err(|_| invalid("the method is no token"))?;
    for (name, value) in &head.fields {
        let name = HeaderName::from_bytes(name);
        let name = name.map_err(|_| invalid("a field's name has letters, digits and few signs"))?;
        let value = HeaderValue::from_bytes(value);
        let value = value.map_err(|_| invalid("a field's value has a control character"))?;
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

/// The received part of a request's stream.
pub(super) struct RequestStream {
    receive: RecvStream,
    reader: RequestReader,
    /// Received bytes that have not been read.
    chunk: Bytes,
    has_ended: bool,
}

/// A part of a request that is passed on.
enum Part {
    Head(RequestHead),
    Content(Bytes),
}

impl RequestStream {
    pub(super) fn new(receive: RecvStream) -> Self {
        Self {
            receive,
            reader: RequestReader::default(),
            chunk: Bytes::new(),
            has_ended: false,
        }
    }

    /// Reads the head.
    pub(super) async fn head(&mut self) -> Result<RequestHead, RequestFailure> {
        match self.next().await {
            Ok(Some(Part::Head(head))) => Ok(head),
            Ok(_) => unreachable!("a head comes first, and a stream without one is invalid"),
            Err(RequestFailure::Invalid(RequestError::Stream {
                code: ErrorCode::H3_EXCESSIVE_LOAD,
                reason,
            })) => Err(RequestFailure::Rejected(Rejection {
                status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                reason,
            })),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the body, at most `limit` bytes. `None` if it is longer.
    pub(super) async fn body(&mut self, limit: usize) -> Result<Option<Bytes>, RequestFailure> {
        let mut all = BytesMut::new();
        while let Some(part) = self.next().await? {
            let Part::Content(content) = part else {
                unreachable!("a request has one head");
            };
            if all.len() + content.len() > limit {
                return Ok(None);
            }
            all.extend_from_slice(&content);
        }
        debug_assert!(all.len() <= limit, "the limit holds");
        Ok(Some(all.freeze()))
    }

    /// The next part, or `None` at the end of the request.
    async fn next(&mut self) -> Result<Option<Part>, RequestFailure> {
        loop {
            let mut input = &self.chunk[..];
            let part = match self.reader.next(&mut input)? {
                Some(RequestPiece::Head(head)) => Some(Part::Head(head)),
                Some(RequestPiece::Content(piece)) => {
                    Some(Part::Content(self.chunk.slice_ref(piece)))
                }
                Some(RequestPiece::Trailers) | None => None,
            };
            let left = input.len();
            self.chunk.advance(self.chunk.len() - left);
            if part.is_some() {
                return Ok(part);
            }
            if !self.chunk.is_empty() {
                continue;
            }
            match self.receive.read_chunk(PIECE, true).await {
                Ok(Some(chunk)) => self.chunk = chunk.bytes,
                Ok(None) => {
                    self.has_ended = true;
                    self.reader.end()?;
                    return Ok(None);
                }
                Err(_) => {
                    self.has_ended = true;
                    return Err(RequestFailure::Gone);
                }
            }
        }
    }

    /// States that the rest of the stream is not read.
    pub(super) fn stop(&mut self, error: ErrorCode) {
        if !self.has_ended {
            // The client may have closed it already.
            let _ = self.receive.stop(code(error));
        }
    }
}
