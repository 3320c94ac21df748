//! The access log: one line of JSON for each reply, written by a separate thread.
//!
//! A slow or full disk delays no request. Lines that fit neither in memory nor on the disk are dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::HeaderValue;
use hyper::{Method, Request, StatusCode, Uri};
use posthaste_compression::{Preference, Reason};
use posthaste_units::Span;
use serde::Serialize;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Writer of the access log, with counters of lost lines.
pub(crate) struct AccessLog {
    writer: NonBlocking,
    dropped: ErrorCounter,
    failed: Arc<AtomicU64>,
    /// Flushes the remaining lines when it is dropped.
    _worker: WorkerGuard,
}

/// The compression decision about a reply: the client's preference and the reason.
pub(crate) type Decided = (Preference, Reason);

/// Parts of a request that its log line needs.
pub(crate) struct AccessEntry<'a> {
    log: &'a AccessLog,
    method: Method,
    uri: Uri,
    /// The `traceparent` field as received (W3C Trace Context).
    trace: Option<HeaderValue>,
}

/// The log line of one reply.
#[derive(Debug, Serialize)]
struct AccessLine<'a> {
    /// Seconds since 1970.
    time: f64,
    client: IpAddr,
    method: &'a str,
    path: &'a str,
    status: u16,
    /// From the head of the request to the head of the reply.
    milliseconds: f64,
    wish: Option<&'static str>,
    origin: Option<&'static str>,
    reason: Option<&'static str>,
    traceparent: Option<&'a str>,
}

impl<'a> AccessEntry<'a> {
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
        let line = AccessLine {
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
    /// Opens `file` for appending.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(file)?;
        let failed = Arc::<AtomicU64>::default();
        let (writer, worker) = NonBlockingBuilder::default()
            .lossy(true)
            .thread_name("access-log")
            .finish(CountingFile {
                file,
                failed: failed.clone(),
                is_cut_off: false,
            });
        Ok(Self {
            failed,
            dropped: writer.error_counter(),
            writer,
            _worker: worker,
        })
    }

    fn write(&self, line: &AccessLine<'_>) {
        // Serialisation of this type cannot fail, and the writer reports no errors.
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.writer.clone().write(&text);
        }
    }

    /// Lines lost, in memory or on the disk.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped.dropped_lines() as u64 + self.failed.load(Relaxed)
    }
}

/// A file that counts failed writes, because the caller does not see them.
struct CountingFile<F> {
    file: F,
    failed: Arc<AtomicU64>,
    /// The last line was written in part. A disk can become full within a line.
    is_cut_off: bool,
}

impl<F: Write> CountingFile<F> {
    /// Writes the line, after a line break if the previous line is incomplete.
    fn take(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_cut_off {
            self.file.write_all(b"\n")?;
            self.is_cut_off = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            let taken = self.file.write(rest)?;
            rest = &rest[taken..];
            self.is_cut_off = !rest.is_empty();
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl<F: Write> Write for CountingFile<F> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.take(line).is_err() {
            self.failed.fetch_add(1, Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts `room` bytes and then fails until `room` is raised.
    struct Disk {
        room: usize,
        holds: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.holds.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_a_full_disk_cut_off_does_not_spoil_the_next() {
        let mut log = CountingFile {
            file: Disk {
                room: 6,
                holds: Vec::new(),
            },
            failed: Arc::default(),
            is_cut_off: false,
        };
        for line in [&b"one\n"[..], b"two\n", b"three\n"] {
            assert_eq!(log.write(line).unwrap(), line.len());
        }
        log.file.room = 100;
        assert_eq!(log.write(b"four\n").unwrap(), 5);
        assert_eq!(log.file.holds, b"one\ntw\nfour\n");
        assert_eq!(log.failed.load(Relaxed), 2);
    }
}
