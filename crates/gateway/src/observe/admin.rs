//! The administrative endpoints, on a separate address: `/metrics`, `/status`, `/status.json`, `/healthz`.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::{Handler, Incoming, Peer};

use super::{exposition, status};
use crate::context::GatewayContext;

/// Handler of the administrative endpoints.
pub(crate) struct AdminHandler(pub(crate) Arc<GatewayContext>);

const TEXT: &str = "text/plain; charset=utf-8";

impl Handler for AdminHandler {
    type Body = Full<Bytes>;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        _: Rc<Peer>,
    ) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let words = "use GET\n".to_owned();
            return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, words);
        }
        match request.uri().path() {
            "/metrics" => reply(
                StatusCode::OK,
                posthaste_serve::exposition::MEDIA_TYPE,
                exposition::text(&self.0),
            ),
            "/status" | "/" => {
                let page = status::page(&self.0);
                reply(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            "/status.json" => reply(StatusCode::OK, "application/json", status::json(&self.0)),
            "/healthz" => reply(StatusCode::OK, TEXT, "ok\n".to_owned()),
            _ => {
                let words = "there are /status, /status.json, /metrics and /healthz\n".to_owned();
                reply(StatusCode::NOT_FOUND, TEXT, words)
            }
        }
    }
}

fn reply(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
