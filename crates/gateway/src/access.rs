//! The access log: a line of JSON for each reply, written by a thread of its own.
//!
//! A disk that is slow or full takes no request's time: what finds no room, in memory or on the disk, is
//! dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::HeaderValue;
use hyper::{Method, Request, StatusCode, Uri};
use posthaste_units::Span;
use posthaste_wsqos::{Preference, Reason};
use serde::Serialize;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Where lines go.
pub(crate) struct AccessLog {
    writer: NonBlocking,
    dropped: ErrorCounter,
    failed: Arc<AtomicU64>,
    /// Writes what is left when it is dropped.
    _worker: WorkerGuard,
}

/// What was decided about a reply: by whose wish, and why.
pub(crate) type Decided = (Preference, Reason);

/// What a line needs of a request, kept while it is served.
pub(crate) struct Entry<'a> {
    log: &'a AccessLog,
    method: Method,
    uri: Uri,
    /// As it came (W3C Trace Context).
    trace: Option<HeaderValue>,
}

/// One reply.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time: f64,
    client: IpAddr,
    method: &'a str,
    path: &'a str,
    status: u16,
    /// From the request's head to the reply's.
    milliseconds: f64,
    wish: Option<&'static str>,
    origin: Option<&'static str>,
    reason: Option<&'static str>,
    traceparent: Option<&'a str>,
}

impl<'a> Entry<'a> {
    pub(crate) fn of<B>(log: &'a AccessLog, request: &Request<B>) -> Self {
        Self {
            log,
            method: request.method().clone(),
            uri: request.uri().clone(),
            trace: request.headers().get("traceparent").cloned(),
        }
    }

    /// Writes the line of a reply whose head is ready.
    pub(crate) fn write(
        &self,
        client: IpAddr,
        time: Span,
        status: StatusCode,
        decided: Option<Decided>,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let trace = self.trace.as_ref();
        let line = Line {
            time: now.unwrap_or_default().as_secs_f64(),
            client,
            method: self.method.as_str(),
            path: self.uri.path(),
            status: status.as_u16(),
            milliseconds: time.as_millis_f64(),
            wish: decided.map(|(preference, _)| preference.wish.name()),
            origin: decided.map(|(preference, _)| preference.origin.name()),
            reason: decided.map(|(_, reason)| reason.name()),
            traceparent: trace.and_then(|trace| trace.to_str().ok()),
        };
        self.log.write(&line);
    }
}

impl AccessLog {
    /// Appends to `file`.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(file)?;
        let failed = Arc::<AtomicU64>::default();
        let (writer, worker) = NonBlockingBuilder::default()
            .lossy(true)
            .thread_name("access-log")
            .finish(Counting {
                file,
                failed: failed.clone(),
            });
        Ok(Self {
            failed,
            dropped: writer.error_counter(),
            writer,
            _worker: worker,
        })
    }

    fn write(&self, line: &Line<'_>) {
        // Such a line can always be written as JSON; where it goes cannot say that it failed.
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.writer.clone().write(&text);
        }
    }

    /// Lines that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped.dropped_lines() as u64 + self.failed.load(Relaxed)
    }
}

/// A file that counts what it could not take, since nobody else would hear of it.
struct Counting {
    file: File,
    failed: Arc<AtomicU64>,
}

impl Write for Counting {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.file.write(line).or_else(|_| {
            self.failed.fetch_add(1, Relaxed);
            Ok(line.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
