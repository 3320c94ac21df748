//! Distributed tracing: a trace span for each request and one for its upstream's part, for an OpenTelemetry collector.
//!
//! The sender decides whether a request is traced (`traceparent`, W3C Trace Context); without a decision it is sampled
//! at random. Ended trace spans wait in a queue for a separate thread, which exports them once a second. A slow or
//! absent collector loses trace spans, which are counted, and delays no request.

mod context;
mod otlp;

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, SystemTime};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use posthaste_broker_client::Sink;
use posthaste_serve::Background;
use posthaste_units::{Instant, Span};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use self::context::Context;
use crate::access::Decided;
use crate::clock::now;
use crate::config::Traces as Config;

const FIELD: HeaderName = HeaderName::from_static("traceparent");

/// Capacity of the queue in requests, and maximum size of a batch.
const ROOM: usize = 2048;
/// Interval between exports.
const EVERY: Duration = Duration::from_secs(1);
/// Time limit for the final export.
const FAREWELL: Duration = Duration::from_secs(2);

/// The tracer of a gateway.
pub(crate) struct Traces {
    share: f64,
    draws: Mutex<Xoshiro256PlusPlus>,
    /// Present until the end.
    queue: Option<Sender<Ended>>,
    pub(crate) counts: Arc<Counts>,
    /// Disconnected after the final export.
    handing_over: Mutex<mpsc::Receiver<()>>,
    _exporter: Background,
}

/// Requests whose trace spans were exported or lost.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) exported: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// A traced request in service.
pub(crate) struct Trace<'t> {
    traces: &'t Traces,
    /// Trace context with this request's own trace span.
    context: Context,
    parent: Option<u64>,
    /// Trace span of the request to the upstream.
    question: u64,
    asked: Cell<Option<Asked>>,
    method: Method,
    path: String,
    began: (SystemTime, Instant),
}

/// The upstream's part of a request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    span: u64,
    after: Span,
    time: Span,
    /// `None` without a reply.
    status: Option<u16>,
}

/// A traced request that has ended.
#[derive(Debug)]
struct Ended {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    method: Method,
    path: String,
    client: IpAddr,
    start: SystemTime,
    time: Span,
    status: u16,
    decided: Option<Decided>,
    asked: Option<Asked>,
}

impl Traces {
    /// Starts the tracer. It exports until it is dropped.
    pub(crate) fn start(sink: Sink, config: &Config) -> io::Result<Self> {
        let counts = Arc::<Counts>::default();
        let (queue, ended) = channel(ROOM);
        let (service, counted) = (config.service.clone(), counts.clone());
        let (over, handing_over) = mpsc::channel();
        let exporter = Background::start("traces", move || async move {
            export(sink, service, ended, counted).await;
            drop(over);
        })?;
        let mut seed = [0; 32];
        getrandom(&mut seed, GetRandomFlags::empty())?;
        Ok(Self {
            share: config.share.get(),
            draws: Mutex::new(Xoshiro256PlusPlus::from_seed(seed)),
            queue: Some(queue),
            counts,
            handing_over: Mutex::new(handing_over),
            _exporter: exporter,
        })
    }

    /// Starts tracing a request if it is sampled, and sets `traceparent` for the upstream.
    pub(crate) fn begin<B>(&self, request: &mut Request<B>) -> Option<Trace<'_>> {
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
        let [span, question] = draws.random();
        drop(draws);
        let context = Context {
            trace,
            span,
            is_sampled,
        };
        let onward = Context {
            span: question,
            ..context
        };
        if let Ok(value) = HeaderValue::try_from(onward.to_string()) {
            request.headers_mut().insert(FIELD, value);
        }
        Some(Trace {
            traces: self,
            context,
            parent: parent.map(|parent| parent.span),
            question,
            asked: Cell::default(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            began: (SystemTime::now(), now()),
        })
    }
}

impl Trace<'_> {
    /// Records that an upstream has replied with this status, or failed.
    pub(crate) fn asked(&self, since: Instant, status: Option<StatusCode>) {
        self.asked.set(Some(Asked {
            span: self.question,
            after: since.since(self.began.1),
            time: now().since(since),
            status: status.map(|status| status.as_u16()),
        }));
    }

    /// Ends the trace span when the head of the reply is ready.
    pub(crate) fn end(self, client: IpAddr, status: StatusCode, decided: Option<Decided>) {
        let (start, began) = self.began;
        let ended = Ended {
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
            asked: self.asked.get(),
        };
        let queue = self.traces.queue.as_ref();
        if queue.is_none_or(|queue| queue.try_send(ended).is_err()) {
            self.traces.counts.lost.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        drop(self.queue.take());
        let over = self.handing_over.get_mut();
        // Either finished or out of time.
        let _ = over.map(|over| over.recv_timeout(FAREWELL));
    }
}

/// Returns the context from a single field line. Repeated fields are ignored as unreliable.
fn read(headers: &HeaderMap) -> Option<Context> {
    let mut lines = headers.get_all(FIELD).iter();
    let (only, more) = (lines.next()?, lines.next());
    more.is_none().then(|| Context::read(only.to_str().ok()?))?
}

/// Exports ended requests until the tracer is dropped.
async fn export(sink: Sink, service: String, mut ended: Receiver<Ended>, counts: Arc<Counts>) {
    let mut batch = Vec::with_capacity(ROOM);
    let mut is_well = true;
    while ended.recv_many(&mut batch, ROOM).await > 0 {
        let outcome = sink.put(otlp::document(&service, &batch)).await;
        let (counter, was_well) = match &outcome {
            Ok(()) => (&counts.exported, std::mem::replace(&mut is_well, true)),
            Err(_) => (&counts.lost, std::mem::replace(&mut is_well, false)),
        };
        counter.fetch_add(batch.len() as u64, Relaxed);
        match outcome {
            Err(error) if was_well => tracing::warn!(%error, "traces are lost"),
            Ok(()) if !was_well => tracing::info!("traces are taken again"),
            _ => {}
        }
        batch.clear();
        if !ended.is_closed() {
            sleep(EVERY).await;
        }
    }
}
