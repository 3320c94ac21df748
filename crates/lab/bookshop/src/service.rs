//! The parts of a shop that every form of a reply uses: books, counters, and the capacity of the emulated server.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode, Version as HttpVersion};
use posthaste_grpc_schema::SchemaError;
use posthaste_grpc_schema::reflection::ReflectionServer;
use posthaste_serve::{ConnectionCounters, Peer, Slowness};
use posthaste_soap::wsdl::Service;
use tokio::sync::Mutex;

use crate::body::ShopBody;
use crate::catalogue::Catalogue;
use crate::clock::now;
use crate::law::LawServer;
use crate::metrics::ShopMetrics;
use crate::pace::Pacer;

/// Maximum size of a request's body, and of a message of gRPC. An envelope with an ISBN needs half a kilobyte.
pub(crate) const MAX_BODY: usize = 256 << 10;

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const PROBLEM: &str = "application/problem+json";
/// Busy share of the law's server, for the gateway or proxy that protects it.
pub(crate) const BUSY: header::HeaderName = header::HeaderName::from_static("x-busy");

/// State shared by the threads of one shop.
pub(crate) struct Shared {
    pub(crate) catalogue: Catalogue,
    pub(crate) service: Service,
    pub(crate) metrics: ShopMetrics,
    /// Made when reflection is first asked.
    pub(crate) reflection: OnceLock<Result<ReflectionServer, SchemaError>>,
    /// Maximum wait for a message of gRPC.
    pub(crate) message_wait: Duration,
    pub(crate) counters: Arc<ConnectionCounters>,
    pub(crate) address: SocketAddr,
    pub(crate) scheme: &'static str,
}

/// The outcome of a request under a law.
#[derive(Default)]
pub(crate) struct LawReply {
    /// The status that replaces the reply, after a refusal or an error of the emulated service.
    pub(crate) refusal: Option<StatusCode>,
    /// Busy share of the servers, as the value of a field. `None` without a law.
    pub(crate) busy: Option<HeaderValue>,
}

/// The shop of one thread.
pub(crate) struct ShopService {
    pub(crate) shared: Arc<Shared>,
    law: Option<LawServer>,
    /// The turn of the law's server, for the streams of HTTP/2 and HTTP/3.
    law_order: Mutex<()>,
    slowness: Option<Slowness>,
    pub(crate) pacer: Pacer,
}

impl ShopService {
    pub(crate) fn new(
        shared: Arc<Shared>,
        law: Option<LawServer>,
        slowness: Option<Slowness>,
    ) -> Self {
        Self {
            shared,
            law,
            law_order: Mutex::new(()),
            slowness,
            pacer: Pacer::default(),
        }
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.shared.catalogue
    }

    pub(crate) fn metrics(&self) -> &ShopMetrics {
        &self.shared.metrics
    }

    pub(crate) fn reflection(&self) -> &OnceLock<Result<ReflectionServer, SchemaError>> {
        &self.shared.reflection
    }

    pub(crate) fn message_wait(&self) -> Duration {
        self.shared.message_wait
    }

    /// Charges the CPU time since the last call on a slower machine.
    pub(crate) fn pay(&self) {
        if let Some(slowness) = &self.slowness {
            slowness.pay();
        }
    }

    /// The earliest arrival of a request that is read now, in ns of CLOCK_MONOTONIC.
    pub(crate) fn earliest_arrival(&self) -> u64 {
        self.law
            .as_ref()
            .map_or_else(now, LawServer::earliest_unread)
    }

    /// Waits for the departure of a request under a law.
    pub(crate) async fn serve_law(&self, parts: &Parts, peer: &Peer) -> LawReply {
        let served = self.serve_unless(parts, peer, || false).await;
        served.expect("nothing ends the request before its service")
    }

    /// Like [`Self::serve_law`]. `None`, without a service, if `is_over` when the turn of the request comes. A service
    /// that has begun is not stopped, and neither is one whose departure was planned at the arrival.
    pub(crate) async fn serve_unless(
        &self,
        parts: &Parts,
        peer: &Peer,
        is_over: impl Fn() -> bool,
    ) -> Option<LawReply> {
        let Some(law) = &self.law else {
            return Some(LawReply::default());
        };
        let outcome = match parts.version {
            _ if !law.is_exact() => law.attend(&self.pacer).await,
            HttpVersion::HTTP_2 | HttpVersion::HTTP_3 => {
                // In order, and each reply is written before the next service: the streams of a connection share its
                // socket. They wait in its queue, so that none arrives after a reply of another.
                let _guard = self.law_order.lock().await;
                tokio::task::yield_now().await;
                if is_over() {
                    return None;
                }
                law.serve(&Cell::new(law.earliest()))
            }
            _ => law.serve(&peer.note),
        };
        let status = StatusCode::from_u16(outcome.status).expect("a spec has valid statuses");
        Some(LawReply {
            refusal: (status != StatusCode::OK).then_some(status),
            // Digits and a point are always valid.
            busy: HeaderValue::from_str(&format!("{:.2}", outcome.busy)).ok(),
        })
    }
}

impl LawReply {
    /// Words for a client that gets the status instead of its reply.
    pub(crate) fn message(status: StatusCode) -> String {
        format!("the emulated service answers with {status}\n")
    }
}

/// A reply in plain text.
pub(crate) fn plain(status: StatusCode, text: String) -> Response<ShopBody> {
    let mut reply = Response::new(ShopBody::Whole(Full::new(Bytes::from(text))));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(TEXT);
    reply.headers_mut().insert(header::CONTENT_TYPE, kind);
    reply
}
