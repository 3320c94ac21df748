//! The administrative endpoints, on a separate address: `/metrics`, `/status`, `/status.json`, `/healthz`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::{Handler, Incoming, Peer};
use tokio::time::MissedTickBehavior;

use super::history::{EVERY, History};
use super::{exposition, status};
use crate::context::GatewayContext;

/// Handler of the administrative endpoints.
pub(crate) struct AdminHandler {
    context: Arc<GatewayContext>,
    history: Rc<RefCell<History>>,
}

const TEXT: &str = "text/plain; charset=utf-8";

impl AdminHandler {
    /// Creates the handler, and spawns the task that records the history on this thread.
    pub(crate) fn new(context: Arc<GatewayContext>) -> Self {
        let history = Rc::new(RefCell::new(History::new(context.reading())));
        tokio::task::spawn_local(record_history(context.clone(), history.clone()));
        Self { context, history }
    }
}

/// Reads the counters once a second.
async fn record_history(context: Arc<GatewayContext>, history: Rc<RefCell<History>>) {
    let mut ticks = tokio::time::interval(EVERY.into());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let estimate = context.estimate();
        let busy = estimate.is_known.then_some(f64::from(estimate.busy));
        history.borrow_mut().push(context.reading(), busy);
    }
}

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
                exposition::text(&self.context),
            ),
            "/status" | "/" => {
                let page = status::page(&self.context, &self.history.borrow());
                reply(StatusCode::OK, "text/html; charset=utf-8", page)
            }
            "/status.json" => {
                let document = status::json(&self.context, &self.history.borrow());
                reply(StatusCode::OK, "application/json", document)
            }
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
