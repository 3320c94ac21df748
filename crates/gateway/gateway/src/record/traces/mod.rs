//! Distributed tracing: a trace span for each request and one for its upstream's part, for an OpenTelemetry collector.
//!
//! The sender decides whether a request is traced (`traceparent`, W3C Trace Context); without a decision it is sampled
//! at random. Ended trace spans wait in a queue for a separate thread, which exports them once a second. A slow or
//! absent collector loses trace spans, which are counted, and delays no request.

mod context;
mod otlp;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use posthaste_broker_client::Sink;
use posthaste_gateway_config::Traces as Config;
use posthaste_serve::{Background, environment};
use posthaste_units::{Instant, Span};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use self::context::TraceContext;
use super::access_log::Decided;
use crate::client_address::ClientAddress;
use crate::clock::{now, wall_clock};

const FIELD: HeaderName = HeaderName::from_static("traceparent");

/// Capacity of the queue in requests, and maximum size of a batch.
const CAPACITY: usize = 2048;
/// Interval between exports.
const EVERY: Duration = Duration::from_secs(1);
/// Time limit for the final export.
const LAST_EXPORT: Duration = Duration::from_secs(2);

/// The tracer of a gateway.
pub(crate) struct Traces {
    share: f64,
    draws: Mutex<Xoshiro256PlusPlus>,
    /// Present until the end.
    queue: Option<Sender<EndedRequest>>,
    pub(crate) counters: Arc<TraceCounters>,
    exporter: Background,
}

/// Requests whose trace spans were exported or lost.
#[derive(Debug, Default)]
pub(crate) struct TraceCounters {
    pub(crate) exported: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// A traced request in service.
pub(crate) struct TracedRequest<'t> {
    traces: &'t Traces,
    /// Trace context with this request's own trace span.
    context: TraceContext,
    parent: Option<u64>,
    /// Trace span of the request to the upstream.
    upstream_span: u64,
    upstream: Cell<Option<UpstreamSpan>>,
    method: Method,
    path: String,
    began: (SystemTime, Instant),
}

/// The upstream's part of a request.
#[derive(Clone, Copy, Debug)]
struct UpstreamSpan {
    span: u64,
    after: Span,
    time: Span,
    /// `None` without a reply.
    status: Option<u16>,
}

/// A traced request that has ended.
#[derive(Debug)]
struct EndedRequest {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    method: Method,
    path: String,
    client: ClientAddress,
    start: SystemTime,
    time: Span,
    status: u16,
    decided: Option<Decided>,
    upstream: Option<UpstreamSpan>,
}

impl Traces {
    /// Starts the tracer. It exports until it is dropped.
    pub(crate) fn start(sink: Sink, config: &Config) -> io::Result<Self> {
        let counters = Arc::<TraceCounters>::default();
        let (queue, ended) = channel(CAPACITY);
        let (service, counted) = (config.service.clone(), counters.clone());
        let exporter = Background::start("traces", move || export(sink, service, ended, counted))?;
        let seed = environment::random("traces")?;
        Ok(Self {
            share: config.share.get(),
            draws: Mutex::new(Xoshiro256PlusPlus::from_seed(seed)),
            queue: Some(queue),
            counters,
            exporter,
        })
    }

    /// Starts tracing a request if it is sampled, and sets `traceparent` for the upstream.
    pub(crate) fn begin<B>(&self, request: &mut Request<B>) -> Option<TracedRequest<'_>> {
        let parent = read(request.headers());
        let mut draws = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sampled = match parent {
            Some(parent) => parent.is_sampled,
            None => draws.random::<f64>() < self.share,
        };
        if !is_sampled {
            return None;
        }
        let trace = parent.map_or_else(|| draws.random(), |parent| parent.trace);
        let [span, upstream_span] = draws.random();
        drop(draws);
        let context = TraceContext {
            trace,
            span,
            is_sampled,
        };
        let onward = TraceContext {
            span: upstream_span,
            ..context
        };
        if let Ok(value) = HeaderValue::try_from(onward.to_string()) {
            request.headers_mut().insert(FIELD, value);
        }
        Some(TracedRequest {
            traces: self,
            context,
            parent: parent.map(|parent| parent.span),
            upstream_span,
            upstream: Cell::default(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            began: (wall_clock(), now()),
        })
    }
}

impl TracedRequest<'_> {
    /// Records that an upstream has replied with this status, or failed.
    pub(crate) fn replied(&self, since: Instant, status: Option<StatusCode>) {
        self.upstream.set(Some(UpstreamSpan {
            span: self.upstream_span,
            after: since.since(self.began.1),
            time: now().since(since),
            status: status.map(|status| status.as_u16()),
        }));
    }

    /// Ends the trace span when the head of the reply is ready.
    pub(crate) fn end(self, client: ClientAddress, status: StatusCode, decided: Option<Decided>) {
        let (start, began) = self.began;
        let ended = EndedRequest {
            trace: self.context.trace,
            span: self.context.span,
            parent: self.parent,
            method: self.method,
            path: self.path,
            client,
            start,
            time: now().since(began),
            status: status.as_u16(),
            decided,
            upstream: self.upstream.get(),
        };
        let queue = self.traces.queue.as_ref();
        if queue.is_none_or(|queue| queue.try_send(ended).is_err()) {
            self.traces.counters.lost.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        drop(self.queue.take());
        // Either finished or out of time.
        let _ = self.exporter.finish(LAST_EXPORT);
    }
}

/// Returns the context from a single field line. Repeated fields are ignored as unreliable.
fn read(headers: &HeaderMap) -> Option<TraceContext> {
    let mut lines = headers.get_all(FIELD).iter();
    let (only, more) = (lines.next()?, lines.next());
    more.is_none()
        .then(|| TraceContext::read(only.to_str().ok()?))?
}

/// Exports ended requests until the tracer is dropped.
async fn export(
    sink: Sink,
    service: String,
    mut ended: Receiver<EndedRequest>,
    counters: Arc<TraceCounters>,
) {
    let mut batch = Vec::with_capacity(CAPACITY);
    let mut succeeds = true;
    while ended.recv_many(&mut batch, CAPACITY).await > 0 {
        let outcome = sink.put(otlp::document(&service, &batch)).await;
        let (counter, succeeded) = match &outcome {
            Ok(()) => (&counters.exported, std::mem::replace(&mut succeeds, true)),
            Err(_) => (&counters.lost, std::mem::replace(&mut succeeds, false)),
        };
        counter.fetch_add(batch.len() as u64, Relaxed);
        match outcome {
            Err(error) if succeeded => tracing::warn!(%error, "traces are lost"),
            Ok(()) if !succeeded => tracing::info!("traces are taken again"),
            _ => {}
        }
        batch.clear();
        if !ended.is_closed() {
            sleep(EVERY).await;
        }
    }
}
