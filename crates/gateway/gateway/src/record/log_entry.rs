//! The entry of one request in the access log, from the head of the request to the end of the reply.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use hyper::header::{HOST, HeaderName, HeaderValue, REFERER, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri, Version};
use posthaste_gateway_config::{Log, LogFormat};
use posthaste_serve::Rejection;
use posthaste_units::{Instant, Span};

use super::access_log::{AccessLog, Decided};
use super::log_line::{self, AccessLine, Phases, RequestText, query, text};
use super::times::RouteTimes;
use crate::client_address::ClientAddress;
use crate::clock::{now, wall_clock};
use crate::upload_progress::UploadProgress;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Status in the line of a request whose client left before the reply, as in nginx. It is never sent.
const CLIENT_LEFT: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => unreachable!(),
};

/// The entry of one request.
pub(crate) struct LogEntry {
    log: Arc<AccessLog>,
    settings: Log,
    client: ClientAddress,
    request: LoggedRequest,
    start: Instant,
    pub(super) admitted: Cell<Option<Instant>>,
    /// Reason for which a dry run would have rejected the request.
    pub(super) would_reject: Cell<Option<&'static str>>,
    pub(super) sent: Cell<Option<Instant>>,
    pub(super) replied: Cell<Option<Instant>>,
    /// Body of the request, if there is one.
    upload: OnceCell<Rc<UploadProgress>>,
    upstream: OnceCell<String>,
    tier: OnceCell<String>,
    /// The offer that has selected the upstream.
    offer: OnceCell<String>,
    /// Name of the account, if one was identified.
    account: OnceCell<Arc<str>>,
    /// The rule that the request violates, if it was rejected below the gateway.
    error: Cell<Option<&'static str>>,
    /// The client left before the reply.
    is_cancelled: Cell<bool>,
    reply: Option<Reply>,
}

/// The head of a request, as received.
struct LoggedRequest {
    method: Method,
    uri: Uri,
    version: Version,
    host: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    /// W3C Trace Context.
    traceparent: Option<HeaderValue>,
}

/// The head of a reply.
pub(super) struct Reply {
    /// From the head of the request.
    pub(super) time: Span,
    pub(super) status: StatusCode,
    /// `None` if the reply is not an upstream's.
    pub(super) decided: Option<Decided>,
    pub(super) route: Option<Arc<RouteTimes>>,
}

impl LogEntry {
    pub(super) fn new<B>(
        log: Arc<AccessLog>,
        settings: Log,
        request: &Request<B>,
        client: ClientAddress,
        start: Instant,
    ) -> Self {
        let field = |name| request.headers().get(name).cloned();
        Self {
            log,
            settings,
            client,
            request: LoggedRequest {
                method: request.method().clone(),
                uri: request.uri().clone(),
                version: request.version(),
                host: field(HOST),
                user_agent: field(USER_AGENT),
                referer: field(REFERER),
                traceparent: field(TRACEPARENT),
            },
            start,
            admitted: Cell::new(None),
            would_reject: Cell::new(None),
            sent: Cell::new(None),
            replied: Cell::new(None),
            upload: OnceCell::new(),
            upstream: OnceCell::new(),
            tier: OnceCell::new(),
            offer: OnceCell::new(),
            account: OnceCell::new(),
            error: Cell::new(None),
            is_cancelled: Cell::new(false),
            reply: None,
        }
    }

    /// Counts the bytes of the request's body.
    pub(super) fn receives(&self, progress: Rc<UploadProgress>) {
        let is_first = self.upload.set(progress).is_ok();
        debug_assert!(is_first, "a request has one body");
    }

    /// Names the account of the request.
    pub(super) fn account(&self, name: Arc<str>) {
        let _ = self.account.set(name);
    }

    /// Names the upstream of the reply, and the offer that has selected it.
    pub(super) fn upstream(&self, name: &str, offer: Option<&str>) {
        let _ = self.upstream.set(name.to_owned());
        if let Some(offer) = offer {
            let _ = self.offer.set(offer.to_owned());
        }
    }

    /// Names the tier of the request.
    pub(super) fn tier(&self, name: &str) {
        let _ = self.tier.set(name.to_owned());
    }

    /// The head of the reply is ready.
    pub(super) fn end(&mut self, reply: Reply) {
        self.reply = Some(reply);
    }

    /// True if the reply has a body (RFC 9110, section 6.4.1).
    pub(crate) fn expects_body(&self) -> bool {
        let status = self.reply.as_ref().map(|reply| reply.status);
        let is_empty =
            |status: StatusCode| status.is_informational() || matches!(status.as_u16(), 204 | 304);
        self.request.method != Method::HEAD && !status.is_some_and(is_empty)
    }

    /// Writes the line at the end of the reply's body.
    pub(crate) fn write(&mut self, bytes: u64, complete: bool) {
        if let Some(reply) = self.reply.take() {
            self.write_line(&reply, Some(bytes), Some(complete));
        }
    }

    /// Writes the line of a request whose client left before the reply.
    pub(super) fn cancelled(&self, route: Option<Arc<RouteTimes>>) {
        let reply = Reply {
            time: now().saturating_since(self.start),
            status: CLIENT_LEFT,
            decided: None,
            route,
        };
        self.is_cancelled.set(true);
        self.write_line(&reply, Some(0), Some(false));
    }

    /// Writes the line of a request that was rejected below the gateway.
    pub(super) fn rejected(&self, rejection: Rejection) {
        let reply = Reply {
            time: Span::ZERO,
            status: rejection.status,
            decided: None,
            route: None,
        };
        self.error.set(Some(rejection.reason));
        self.write_line(&reply, None, None);
    }

    fn write_line(&self, reply: &Reply, bytes: Option<u64>, complete: Option<bool>) {
        let time = wall_clock().duration_since(UNIX_EPOCH);
        let field = |field: &'_ Option<HeaderValue>| {
            let field = field.as_ref()?;
            Some(text(field.as_bytes()).into_owned().into())
        };
        let request = &self.request;
        let host = request.uri.authority().map(|authority| {
            // Without credentials.
            let host = authority.as_str().rsplit('@').next();
            text(host.unwrap_or_default().as_bytes())
        });
        let referer = request.referer.as_ref();
        let path = match (request.uri.path(), &host, self.settings.format) {
            // CONNECT has no path.
            ("", Some(host), LogFormat::Combined) => host.clone(),
            (path, _, _) => text(path.as_bytes()),
        };
        let wish = reply.decided.map(|(preference, _)| preference);
        let line = AccessLine {
            time: time.unwrap_or_default().as_secs_f64(),
            client: self.client,
            account: self.account.get().map(|name| &**name),
            request: RequestText {
                method: Some(text(request.method.as_str().as_bytes())),
                path: Some(path),
                query: query(request.uri.query(), self.settings.query),
                version: version(request.version),
                host: host.or_else(|| field(&request.host)),
                user_agent: field(&request.user_agent),
                referer: referer
                    .map(|field| log_line::referer(field.as_bytes(), self.settings.query)),
            },
            status: reply.status.as_u16(),
            request_bytes: self.upload.get().map_or(0, |upload| upload.bytes()),
            bytes,
            complete,
            route: reply.route.as_ref().map(|route| &*route.name),
            tier: self.tier.get().map(|name| &**name),
            upstream: self.upstream.get().map(|name| &**name),
            offer: self.offer.get().map(|name| &**name),
            milliseconds: reply.time.as_millis_f64(),
            phases: self.phases(reply, bytes.is_some()),
            wish: wish.map(|wish| wish.wish.name()),
            origin: wish.map(|wish| wish.origin.name()),
            reason: reply.decided.map(|(_, reason)| reason.name()),
            error: self.error.get().map(Cow::Borrowed),
            dry_run: self.would_reject.get(),
            traceparent: field(&request.traceparent),
        };
        self.log.write(&line.text(self.settings.format));
    }

    /// Times of the phases. A phase in which the request ended lasts until the head of the reply. `has_body` is false if
    /// another part of the server sends the body.
    fn phases(&self, reply: &Reply, has_body: bool) -> Phases {
        let (start, head) = (self.start, self.start + reply.time);
        let end = now().max(head);
        let [admitted, sent, replied] = [&self.admitted, &self.sent, &self.replied].map(Cell::get);
        let from = |since: Option<Instant>, until: Option<Instant>| {
            let until = until.unwrap_or(head);
            since.map(|since| until.saturating_since(since).as_millis_f64())
        };
        let has_body = has_body && !self.is_cancelled.get();
        Phases {
            receive: from(Some(start), admitted),
            queue: from(admitted, sent),
            upstream: from(sent, replied),
            compress: from(replied, None),
            body: has_body.then(|| end.saturating_since(head).as_millis_f64()),
            total: end.saturating_since(start).as_millis_f64(),
        }
    }
}

/// Name of a version. The minor version of HTTP/2 is not part of it (RFC 9113, section 1).
pub(super) const fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}
