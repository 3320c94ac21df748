//! Handling of requests: the routes, and error replies in each form.

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::{BodyError, Handler, Incoming, Peer, read_body};
use posthaste_soap::{Limits, Refusal, Version, http, xml};

use crate::body::ShopBody;
use crate::catalogue::{LookupError, Size};
use crate::compress::{Gzip, accepts_gzip};
use crate::law::LawServer;
use crate::metrics::ReplyForm;
use crate::selection::select;
use crate::service::{BUSY, JSON, LawReply, MAX_BODY, PROBLEM, ShopService, TEXT, plain};
use crate::{events, home, json, page, rpc, soap};

/// Minimum size of a reply for compression. Shorter ones hardly shrink.
const MIN_COMPRESSED: usize = 512;

const HTML: &str = "text/html; charset=utf-8";

/// The handler of one thread.
pub(crate) struct ShopHandler {
    service: Rc<ShopService>,
    gzip: Option<Gzip>,
}

/// A reply before its conversion to HTTP.
struct ShopReply {
    form: ReplyForm,
    status: StatusCode,
    kind: &'static str,
    body: String,
    allow: Option<&'static str>,
}

impl ShopHandler {
    pub(crate) fn new(service: ShopService, compression: Option<u32>) -> Self {
        Self {
            service: Rc::new(service),
            gzip: compression.map(Gzip::new),
        }
    }

    async fn answer(&self, parts: &Parts, body: Incoming, peer: &Peer) -> ShopReply {
        let path = parts.uri.path();
        if path == "/soap" {
            return self.soap(parts, body, peer).await;
        }
        if let Some(isbn) = path.strip_prefix("/page/") {
            return self
                .get(parts, ReplyForm::Page)
                .unwrap_or_else(|| self.page(isbn, parts));
        }
        if let Some(isbn) = path.strip_prefix("/json/") {
            return self
                .get(parts, ReplyForm::Json)
                .unwrap_or_else(|| self.json(isbn, parts));
        }
        self.get(parts, ReplyForm::Other)
            .unwrap_or_else(|| self.other(path, parts))
    }

    /// Rejects every method except GET and HEAD.
    fn get(&self, parts: &Parts, form: ReplyForm) -> Option<ShopReply> {
        if matches!(parts.method, Method::GET | Method::HEAD) {
            return None;
        }
        let message = format!("{} is not allowed here: use GET or HEAD", parts.method);
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut reply = match form {
            ReplyForm::Page => ShopReply::new(
                form,
                status,
                HTML,
                page::problem("Method not allowed", &message),
            ),
            ReplyForm::Json => {
                let body = json::problem("method-not-allowed", "Method not allowed", 405, &message);
                ShopReply::new(form, status, PROBLEM, body)
            }
            _ => ShopReply::new(form, status, TEXT, message + "\n"),
        };
        reply.allow = Some("GET, HEAD");
        Some(reply)
    }

    fn page(&self, isbn: &str, parts: &Parts) -> ShopReply {
        let refuse = |status, title, message: &str| {
            ShopReply::new(ReplyForm::Page, status, HTML, page::problem(title, message))
        };
        let size = match size(parts.uri.query()) {
            Ok(size) => size,
            Err(message) => return refuse(StatusCode::BAD_REQUEST, "No such size", &message),
        };
        match self.service.shared.catalogue.find(isbn) {
            Ok(number) => {
                let body = page::reply(&select(&self.service.shared.catalogue, number, size));
                ShopReply::new(ReplyForm::Page, StatusCode::OK, HTML, body)
            }
            Err(error) => {
                let (status, title, _) = describe(&error);
                refuse(status, title, &error.to_string())
            }
        }
    }

    fn json(&self, isbn: &str, parts: &Parts) -> ShopReply {
        let refuse = |status: StatusCode, title, kind, message: &str| {
            let body = json::problem(kind, title, status.as_u16(), message);
            ShopReply::new(ReplyForm::Json, status, PROBLEM, body)
        };
        let size = match size(parts.uri.query()) {
            Ok(size) => size,
            Err(message) => {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "No such size",
                    "unknown-size",
                    &message,
                );
            }
        };
        match self.service.shared.catalogue.find(isbn) {
            Ok(number) => {
                let body = json::reply(&select(&self.service.shared.catalogue, number, size));
                ShopReply::new(ReplyForm::Json, StatusCode::OK, JSON, body)
            }
            Err(error) => {
                let (status, title, kind) = describe(&error);
                refuse(status, title, kind, &error.to_string())
            }
        }
    }

    fn other(&self, path: &str, parts: &Parts) -> ShopReply {
        let shared = &*self.service.shared;
        let ok = |kind, body| ShopReply::new(ReplyForm::Other, StatusCode::OK, kind, body);
        match path {
            "/" => match self.base(parts) {
                Some(base) => {
                    let books = shared.catalogue.books();
                    ok(HTML, home::page(&base, &books[0], books.len()))
                }
                None => bad_host(),
            },
            "/isbns.csv" => {
                let mut list = String::from("isbn\n");
                for book in shared.catalogue.books() {
                    list.push_str(&book.isbn);
                    list.push('\n');
                }
                ok("text/csv; charset=utf-8", list)
            }
            "/bookshop.proto" => ok(TEXT, rpc::BOOKSHOP_PROTO.1.to_owned()),
            "/healthz" => ok(TEXT, "ok\n".to_owned()),
            "/metrics" => {
                let text = shared.metrics.text(&shared.counters.snapshot());
                ok("text/plain; version=0.0.4; charset=utf-8", text)
            }
            _ => {
                let message = "there is nothing here: GET / lists the resources\n".to_owned();
                ShopReply::new(ReplyForm::Other, StatusCode::NOT_FOUND, TEXT, message)
            }
        }
    }

    async fn soap(&self, parts: &Parts, body: Incoming, peer: &Peer) -> ShopReply {
        let plain =
            |status, message: String| ShopReply::new(ReplyForm::Soap, status, TEXT, message + "\n");
        if parts.method != Method::POST {
            return self.describe_soap(parts);
        }
        let field = |name| {
            parts
                .headers
                .get(name)
                .map(|value: &HeaderValue| value.to_str().unwrap_or("?"))
        };
        let headers = http::media_type(field(header::CONTENT_TYPE).unwrap_or_default());
        let headers = headers.and_then(|media| match media.version {
            Version::Soap11 => {
                http::soap_action(field(SOAP_ACTION)).map(|action| (media.version, action))
            }
            Version::Soap12 => Ok((media.version, media.action.unwrap_or_default())),
        });
        let (version, action) = match headers {
            Ok(headers) => headers,
            Err(error) => {
                let status =
                    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
                return plain(status, error.to_string());
            }
        };
        match read_body(body, MAX_BODY, peer).await {
            Ok(body) if body.is_empty() => {
                plain(StatusCode::BAD_REQUEST, "there is no envelope".to_owned())
            }
            Ok(body) => self.call(&body, version, action),
            Err(error @ BodyError::TooLong(_)) => {
                plain(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
            }
            Err(error) => plain(StatusCode::BAD_REQUEST, error.to_string()),
        }
    }

    /// Answers an envelope.
    fn call(&self, body: &[u8], version: Version, action: &str) -> ShopReply {
        let kind = http::content_type(version);
        match self.look_up(body, version, action) {
            Ok((number, size)) => {
                let content = select(&self.service.shared.catalogue, number, size);
                ShopReply::new(
                    ReplyForm::Soap,
                    StatusCode::OK,
                    kind,
                    soap::reply(&content, size, version),
                )
            }
            Err(fault) => {
                let status = StatusCode::from_u16(fault.status(version));
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                ShopReply::new(ReplyForm::Soap, status, kind, fault.envelope(version))
            }
        }
    }

    fn look_up(
        &self,
        body: &[u8],
        version: Version,
        action: &str,
    ) -> Result<(usize, Size), posthaste_soap::Fault> {
        let limits = Limits::default();
        let client =
            |message: String| posthaste_soap::Fault::new(posthaste_soap::Code::Client, message);
        let text = xml::decode(body, &limits).map_err(|error| Refusal::from(error).fault())?;
        let request = posthaste_soap::Request::read(&text, version, &limits, &[])
            .map_err(|error| error.fault())?;
        let size = Size::ALL
            .into_iter()
            .find(|size| request.operation.is(soap::NAMESPACE, size.operation()));
        let Some(size) = size else {
            let known = Size::ALL.map(Size::operation).join(", ");
            let operation = &request.operation;
            return Err(client(format!(
                "there is no operation {:?} in {:?}: there are {known} in {:?}",
                operation.local,
                operation.namespace,
                soap::NAMESPACE
            )));
        };
        // R2744, R2745: the description's action, or an empty one.
        if !action.is_empty() && !is_action(action, size) {
            return Err(client(format!(
                "the action {action:?} does not belong to {}: send {:?} or \"\" (R2744, R2745)",
                size.operation(),
                self.service.shared.service.action(size.operation())
            )));
        }
        let isbn = request
            .field("isbn")
            .ok_or_else(|| client("there is no isbn in the request".to_owned()))?;
        let number = self
            .service
            .shared
            .catalogue
            .find(isbn)
            .map_err(|error| soap::fault(&error))?;
        Ok((number, size))
    }

    /// Answers requests to `/soap` that are not POST: the service description, or instructions.
    fn describe_soap(&self, parts: &Parts) -> ShopReply {
        let get = matches!(parts.method, Method::GET | Method::HEAD);
        let wsdl = parts
            .uri
            .query()
            .is_some_and(|query| query.split('&').any(|p| p.eq_ignore_ascii_case("wsdl")));
        if get && wsdl {
            return match self.base(parts) {
                Some(base) => {
                    let body = self.service.shared.service.wsdl(&format!("{base}/soap"));
                    ShopReply::new(
                        ReplyForm::Soap,
                        StatusCode::OK,
                        "text/xml; charset=utf-8",
                        body,
                    )
                }
                None => bad_host(),
            };
        }
        let message =
            "POST an envelope here, or GET /soap?wsdl for the description (R1132)\n".to_owned();
        let mut reply = ShopReply::new(
            ReplyForm::Soap,
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            message,
        );
        reply.allow = Some("POST");
        reply
    }

    /// The client's address of the shop. `None` if its Host field is invalid.
    fn base(&self, parts: &Parts) -> Option<String> {
        let host = match (parts.headers.get(header::HOST), parts.uri.authority()) {
            (_, Some(authority)) => Cow::Borrowed(authority.as_str()),
            (Some(host), None) => Cow::Borrowed(host.to_str().ok()?),
            (None, None) => Cow::Owned(self.service.shared.address.to_string()),
        };
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b".:-_[]".contains(&b);
        let good = !host.is_empty() && host.bytes().all(allowed);
        good.then(|| format!("{}://{host}", self.service.shared.scheme))
    }

    fn finish(
        &self,
        reply: ShopReply,
        parts: &Parts,
        busy: Option<HeaderValue>,
    ) -> Response<ShopBody> {
        self.service
            .shared
            .metrics
            .count(reply.form, reply.status.as_u16());
        let mut response = Response::new(ShopBody::Whole(Full::default()));
        *response.status_mut() = reply.status;
        let fields = response.headers_mut();
        fields.extend(busy.map(|share| (BUSY, share)));
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.kind));
        if let Some(allow) = reply.allow {
            fields.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        let compressed = self
            .gzip
            .as_ref()
            .filter(|_| reply.body.len() >= MIN_COMPRESSED)
            .and_then(|gzip| {
                fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
                let accepts = parts.headers.get_all(header::ACCEPT_ENCODING).iter();
                let mut accepts = accepts.filter_map(|value| value.to_str().ok());
                accepts
                    .any(accepts_gzip)
                    .then(|| gzip.compress(reply.body.as_bytes()))
                    .flatten()
            });
        if compressed.is_some() {
            fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.body_mut() = ShopBody::Whole(Full::new(Bytes::from(
            compressed.unwrap_or_else(|| reply.body.into_bytes()),
        )));
        self.service.pay();
        response
    }

    /// Answers a request of an event stream, which costs one service time before its head.
    async fn events(
        &self,
        form: ReplyForm,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Response<ShopBody> {
        let mut reply = match form {
            ReplyForm::Chat => events::chat(&self.service, parts, body, peer).await,
            _ => events::orders(&self.service, parts),
        };
        let served = self.service.serve_law(parts, peer).await;
        if let Some(status) = served.refusal {
            reply = plain(status, LawReply::message(status));
        }
        self.service
            .shared
            .metrics
            .count(form, reply.status().as_u16());
        let busy = served.busy.map(|share| (BUSY, share));
        reply.headers_mut().extend(busy);
        self.service.pay();
        reply
    }
}

/// True if a path is exempt from a service law. Monitoring must neither wait in its queue nor lengthen it.
fn is_monitoring(path: &str) -> bool {
    matches!(path, "/healthz" | "/metrics")
}

const CHAT: &str = "/v1/chat/completions";

const SOAP_ACTION: header::HeaderName = header::HeaderName::from_static("soapaction");

impl Handler for ShopHandler {
    type Body = ShopBody;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<Self::Body> {
        let (parts, body) = request.into_parts();
        if rpc::is_call(&parts) {
            return rpc::answer(&self.service, &parts, body, &peer).await;
        }
        match parts.uri.path() {
            "/orders" => return self.events(ReplyForm::Orders, &parts, body, &peer).await,
            CHAT => return self.events(ReplyForm::Chat, &parts, body, &peer).await,
            _ => {}
        }
        let mut reply = self.answer(&parts, body, &peer).await;
        if is_monitoring(parts.uri.path()) {
            LawServer::pass(&peer.note);
            return self.finish(reply, &parts, None);
        }
        let served = self.service.serve_law(&parts, &peer).await;
        if let Some(status) = served.refusal {
            reply = ShopReply::new(reply.form, status, TEXT, LawReply::message(status));
        }
        self.finish(reply, &parts, served.busy)
    }
}

impl ShopReply {
    fn new(form: ReplyForm, status: StatusCode, kind: &'static str, body: String) -> Self {
        Self {
            form,
            status,
            kind,
            body,
            allow: None,
        }
    }
}

/// Compares an action with namespace, slash and operation, without an allocation.
fn is_action(action: &str, size: Size) -> bool {
    let rest = action
        .strip_prefix(soap::NAMESPACE)
        .and_then(|rest| rest.strip_prefix('/'));
    rest == Some(size.operation())
}

/// The size requested by a query. Default lite.
fn size(query: Option<&str>) -> Result<Size, String> {
    let mut pairs = query
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    match pairs.find(|(name, _)| *name == "size") {
        Some((_, value)) => value.parse(),
        None => Ok(Size::Lite),
    }
}

fn describe(error: &LookupError) -> (StatusCode, &'static str, &'static str) {
    match error {
        LookupError::Invalid { .. } => (StatusCode::BAD_REQUEST, "Not an ISBN", "invalid-isbn"),
        LookupError::Unknown(_) => (StatusCode::NOT_FOUND, "No such book", "unknown-isbn"),
    }
}

fn bad_host() -> ShopReply {
    ShopReply::new(
        ReplyForm::Other,
        StatusCode::BAD_REQUEST,
        TEXT,
        "the Host header names no host\n".to_owned(),
    )
}
