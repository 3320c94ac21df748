//! HTTP interface: the page, its style and script, the event stream, and changes of the controls.

mod origin;
mod page;
mod reply;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Empty};
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use posthaste_serve::{Handler, Incoming, Peer, read_body};

use self::reply::{Body, HttpRefusal, events, text};
use crate::controls::Controls;
use crate::event_log::{EventLog, LogProgress};

/// Maximum bytes of controls, which need about 500.
const LIMIT: usize = 4096;
/// Maximum number of pieces queued for a reader of the event stream.
const WAITING: usize = 4;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// HTTP handler of the demo.
pub(crate) struct DemoService {
    log: Arc<EventLog>,
    wanted: SyncSender<Controls>,
    page: String,
}

impl DemoService {
    pub(crate) fn new(log: Arc<EventLog>, wanted: SyncSender<Controls>) -> Self {
        Self {
            log,
            wanted,
            page: page::page(),
        }
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<Response<Body>, HttpRefusal> {
        origin::check(parts)?;
        match (parts.uri.path(), &parts.method) {
            ("/controls", &Method::POST) => self.want(parts, body, peer).await,
            ("/controls", _) => Err(HttpRefusal::method("POST")),
            (path, &Method::GET) => match path {
                "/" => Ok(text(HTML, self.page.clone())),
                "/demo.css" => Ok(text(CSS, include_str!("../../assets/demo.css"))),
                "/demo.js" => Ok(text(SCRIPT, include_str!("../../assets/demo.js"))),
                "/events" => Ok(self.tell(parts)),
                _ => Err(HttpRefusal::new(
                    StatusCode::NOT_FOUND,
                    "there is only / here".to_owned(),
                )),
            },
            _ => Err(HttpRefusal::method("GET, HEAD")),
        }
    }

    /// Queues a visitor's change if it is valid.
    async fn want(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<Response<Body>, HttpRefusal> {
        let bad = |message: String| HttpRefusal::new(StatusCode::BAD_REQUEST, message);
        let kind = parts.headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            let message = "send application/json".to_owned();
            return Err(HttpRefusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                message,
            ));
        }
        let body = read_body(body, LIMIT, peer).await;
        let body = body.map_err(|error| bad(error.to_string()))?;
        let controls: Controls =
            serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
        controls.check().map_err(|error| bad(error.to_string()))?;
        self.wanted.try_send(controls).map_err(|_| {
            let message = "too many changes wait: try again in a second".to_owned();
            HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })?;
        let mut reply = text("application/json", "");
        *reply.status_mut() = StatusCode::ACCEPTED;
        Ok(reply)
    }

    /// Starts an event stream after the reader's last event, as far as the events are kept.
    fn tell(&self, parts: &Parts) -> Response<Body> {
        let last = parts.headers.get("last-event-id");
        let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
        let (sender, pieces) = Channel::new(WAITING);
        tokio::task::spawn_local(tell(self.log.clone(), last.unwrap_or(0), sender));
        events(pieces.boxed_unsync())
    }
}

impl Handler for DemoService {
    type Body = Body;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<Self::Body> {
        let (mut parts, body) = request.into_parts();
        let is_head = parts.method == Method::HEAD;
        if is_head {
            parts.method = Method::GET;
        }
        let reply = self.answer(&parts, body, &peer).await;
        let mut reply = reply.unwrap_or_else(|refusal| {
            tracing::warn!(path = parts.uri.path(), "refused: {}", refusal.message());
            refusal.into()
        });
        if is_head {
            *reply.body_mut() = Empty::<Bytes>::new().boxed_unsync();
        }
        reply
    }
}

/// Sends events until the reader disconnects or the event log ends.
async fn tell(log: Arc<EventLog>, mut last: u64, mut to: Sender<Bytes>) {
    let mut newest = log.follow();
    loop {
        // The event log may have ended before its first reader subscribed.
        let is_over = *newest.borrow_and_update() == LogProgress::Over;
        let (text, number) = log.since(last);
        last = number;
        if !text.is_empty() && to.send_data(text.into()).await.is_err() {
            return;
        }
        if is_over || newest.changed().await.is_err() {
            return;
        }
    }
}
