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
use posthaste_grpc::SchemaError;
use posthaste_grpc::reflection::ReflectionServer;
use posthaste_serve::{ConnectionCounters, Peer, Slowness};
use posthaste_soap::wsdl::Service;
use tokio::sync::Mutex;

use crate::body::ShopBody;
use crate::catalogue::Catalogue;
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

/// The shop of one thread.
pub(crate) struct ShopService {
    pub(crate) shared: Arc<Shared>,
    law: Option<LawServer>,
    /// The turn of the law's server, for the streams of HTTP/2 and HTTP/3.
    turn: Mutex<()>,
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
            turn: Mutex::new(()),
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

    /// Waits for the departure of a request under a law. Returns the busy share as the value of a field.
    pub(crate) async fn serve_law(&self, parts: &Parts, peer: &Peer) -> Option<HeaderValue> {
        let law = self.law.as_ref()?;
        let busy = match parts.version {
            HttpVersion::HTTP_2 | HttpVersion::HTTP_3 => {
                // In order, and each reply is written before the next service: the streams of a connection share its
                // socket. They wait in its queue, so that none arrives after a reply of another.
                let _turn = self.turn.lock().await;
                tokio::task::yield_now().await;
                law.serve(&Cell::new(law.earliest()))
            }
            _ => law.serve(&peer.note),
        };
        // Digits and a point are always valid.
        HeaderValue::from_str(&format!("{busy:.2}")).ok()
    }
}

/// A reply in plain text.
pub(crate) fn plain(status: StatusCode, words: String) -> Response<ShopBody> {
    let mut reply = Response::new(ShopBody::Whole(Full::new(Bytes::from(words))));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(TEXT);
    reply.headers_mut().insert(header::CONTENT_TYPE, kind);
    reply
}
