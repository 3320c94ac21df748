//! The administrative endpoints, on a separate address: `/metrics`, `/status`, `/status.json`, `/healthz`.

mod exposition;
mod history;
mod host;
mod reading;
mod route_reading;
mod status;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::exposition::negotiated;
use posthaste_serve::{Handler, Incoming, Peer, spawn_task};
use tokio::time::MissedTickBehavior;

use self::history::{EVERY, History};
use self::host::foreign_host;
use self::reading::Reading;
use crate::context::GatewayContext;

/// Handler of the administrative endpoints.
pub(crate) struct AdminHandler {
    context: Arc<GatewayContext>,
    history: Rc<RefCell<History>>,
}

/// The page has no script and loads nothing. Its style sheet and the styles of its charts are in the document.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const TEXT: &str = "text/plain; charset=utf-8";

impl AdminHandler {
    /// Creates the handler, and spawns the task that records the history on this thread.
    pub(crate) fn new(context: Arc<GatewayContext>) -> Self {
        let history = Rc::new(RefCell::new(History::new(Reading::take(&context))));
        spawn_task(record_history(context.clone(), history.clone()));
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
        history.borrow_mut().push(Reading::take(&context), busy);
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
            let message = "use GET\n".to_owned();
            return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, message);
        }
        let path = request.uri().path();
        let resolved = self.context.resolved();
        let names = &resolved.config.admin_hosts;
        // Probes may use any name: /healthz discloses nothing.
        if let Some(host) = foreign_host(request.uri(), request.headers(), names)
            && path != "/healthz"
        {
            let message = format!(
                "the host is {host:?}: use an IP address, or add the name to admin_hosts\n"
            );
            return reply(StatusCode::MISDIRECTED_REQUEST, TEXT, message);
        }
        match path {
            "/metrics" => {
                let text = exposition::text(&self.context);
                let (kind, text) = negotiated(request.headers(), text);
                reply(StatusCode::OK, kind, text)
            }
            "/status" | "/" => {
                let page = status::page(&self.context, &self.history.borrow());
                let mut reply = reply(StatusCode::OK, "text/html; charset=utf-8", page);
                let policy = HeaderValue::from_static(CONTENT_POLICY);
                reply.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                reply
            }
            "/status.json" => {
                let document = status::json(&self.context, &self.history.borrow());
                reply(StatusCode::OK, "application/json", document)
            }
            "/healthz" if self.context.is_stopping.load(Relaxed) => {
                let message = "stopping\n".to_owned();
                reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, message)
            }
            "/healthz" => reply(StatusCode::OK, TEXT, "ok\n".to_owned()),
            _ => {
                let message = "there are /status, /status.json, /metrics and /healthz\n".to_owned();
                reply(StatusCode::NOT_FOUND, TEXT, message)
            }
        }
    }
}

fn reply(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
