//! The events of one connection (`draft-ietf-quic-qlog-quic-events`).
//!
//! quinn-proto shows datagrams and counts, and no packets. So there are no `packet_sent`, no `packet_received` and no
//! `packet_lost`; the number of lost packets is a further field of `recovery_metrics_updated`.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use quinn_proto::{ConnectionError, ConnectionStats};
use serde_json::json;

use super::QlogDirectory;

/// Events in memory before they are written, in bytes.
const PIECE: usize = 64 << 10;
/// Round-trip time before the first measurement (RFC 9002, section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Direction of datagrams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum QlogDirection {
    Sent,
    Received,
}

/// Reason of a connection's end.
pub(in super::super) enum QlogClosing<'e> {
    /// The transport has ended.
    Lost(&'e ConnectionError),
    /// The generator sends CONNECTION_CLOSE with this code of HTTP/3.
    Closed(u64),
    /// The generator ends a connection on which the server has not answered.
    Abandoned,
}

/// Metrics of `recovery_metrics_updated`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct RecoveryMetrics {
    congestion_window: u64,
    /// Smoothed and minimum, once measured.
    rtt: Option<(Duration, Duration)>,
    packets_lost: u64,
}

/// The file of a connection.
pub(in super::super) struct ConnectionLog {
    directory: Arc<QlogDirectory>,
    number: u64,
    /// None after an error.
    file: Option<File>,
    buffer: String,
    /// Beginning of the connection. Times count from here.
    origin: Instant,
    metrics: RecoveryMetrics,
    is_closed: bool,
}

impl ConnectionLog {
    /// Begins the file of a new connection. None beyond the limit of files.
    pub(in super::super) fn begin(
        directory: &Arc<QlogDirectory>,
        socket: &OwnedFd,
        server: SocketAddr,
        now: Instant,
    ) -> Option<Self> {
        let (number, file) = directory.open()?;
        let mut log = Self {
            directory: Arc::clone(directory),
            number,
            file: Some(file),
            buffer: String::new(),
            origin: now,
            metrics: RecoveryMetrics::default(),
            is_closed: false,
        };
        let head = json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": format!("posthaste load, connection {number}"),
            "trace": {
                "vantage_point": { "type": "client" },
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": {
                        "clock_type": "monotonic",
                        "epoch": "unknown",
                        "wall_clock_time": Timestamp::now().to_string(),
                    },
                },
                "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
            },
        });
        log.record(format_args!("{head}"));
        let local = rustix::net::getsockname(socket).ok();
        let local = local.and_then(|address| SocketAddr::try_from(address).ok());
        let ends = json!({ "local": endpoint(local), "remote": endpoint(Some(server)) });
        log.event(now, "connection_started", format_args!("{ends}"));
        Some(log)
    }

    /// Records datagrams of one buffer: its length, and the size of each datagram but the last.
    pub(in super::super) fn datagrams(
        &mut self,
        direction: QlogDirection,
        length: usize,
        size: usize,
        now: Instant,
    ) {
        let name = match direction {
            QlogDirection::Sent => "udp_datagrams_sent",
            QlogDirection::Received => "udp_datagrams_received",
        };
        let sizes = Datagrams { length, size };
        let count = length.div_ceil(size);
        self.event(
            now,
            name,
            format_args!(r#"{{"count":{count},"raw":[{sizes}]}}"#),
        );
    }

    /// Records the metrics of congestion control and loss detection, if they have changed.
    pub(in super::super) fn metrics(&mut self, stats: &ConnectionStats, now: Instant) {
        let path = &stats.path;
        let is_measured = path.min_rtt != INITIAL_RTT || path.rtt != INITIAL_RTT;
        let metrics = RecoveryMetrics {
            congestion_window: path.cwnd,
            rtt: is_measured.then_some((path.rtt, path.min_rtt)),
            packets_lost: path.lost_packets,
        };
        if self.is_closed || metrics == self.metrics {
            return;
        }
        self.metrics = metrics;
        self.event(now, "recovery_metrics_updated", format_args!("{metrics}"));
    }

    /// Records the end of the connection, the first time.
    pub(in super::super) fn close(&mut self, closing: &QlogClosing<'_>, now: Instant) {
        if !std::mem::replace(&mut self.is_closed, true) {
            let data = closing.data();
            self.event(now, "connection_closed", format_args!("{data}"));
        }
    }

    fn event(&mut self, now: Instant, name: &str, data: fmt::Arguments<'_>) {
        let time = now.saturating_duration_since(self.origin).as_secs_f64() * 1e3;
        self.record(format_args!(
            r#"{{"time":{time:.6},"name":"quic:{name}","data":{data}}}"#
        ));
    }

    /// Adds a record: the record separator, a line of JSON and its end (RFC 7464).
    fn record(&mut self, json: fmt::Arguments<'_>) {
        if self.file.is_none() {
            return;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(self.buffer, "\u{1e}{json}");
        if self.buffer.len() >= PIECE {
            self.write();
        }
    }

    fn write(&mut self) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = file.write_all(self.buffer.as_bytes()) {
            self.directory.fail(self.number, &error);
            self.file = None;
        }
        self.buffer.clear();
    }
}

impl Drop for ConnectionLog {
    fn drop(&mut self) {
        self.write();
    }
}

/// Lengths of datagrams as a list of `RawInfo`.
struct Datagrams {
    length: usize,
    size: usize,
}

impl fmt::Display for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.length;
        while rest > 0 {
            let length = rest.min(self.size);
            rest -= length;
            let comma = if rest > 0 { "," } else { "" };
            write!(f, r#"{{"length":{length}}}{comma}"#)?;
        }
        Ok(())
    }
}

impl fmt::Display for RecoveryMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            congestion_window,
            rtt,
            packets_lost,
        } = self;
        write!(f, r#"{{"congestion_window":{congestion_window},"#)?;
        if let Some((smoothed, min)) = rtt {
            let [smoothed, min] = [smoothed, min].map(|rtt| rtt.as_secs_f64() * 1e3);
            write!(f, r#""smoothed_rtt":{smoothed:.6},"min_rtt":{min:.6},"#)?;
        }
        write!(f, r#""packets_lost":{packets_lost}}}"#)
    }
}

impl QlogClosing<'_> {
    fn data(&self) -> serde_json::Value {
        use ConnectionError as End;
        let error = match self {
            Self::Closed(code) => {
                return json!({
                    "initiator": "local", "application_error": "unknown", "error_code": code,
                    "trigger": "application",
                });
            }
            Self::Abandoned => return json!({ "initiator": "local", "trigger": "aborted" }),
            Self::Lost(error) => error,
        };
        let reason = error.to_string();
        let transport = |initiator: &str, code: u64| {
            json!({
                "initiator": initiator, "connection_error": "unknown", "error_code": code,
                "reason": reason, "trigger": "error",
            })
        };
        let ended =
            |initiator: &str, trigger: &str| json!({ "initiator": initiator, "trigger": trigger });
        match error {
            End::TransportError(error) => transport("local", error.code.into()),
            End::ConnectionClosed(close) => transport("remote", close.error_code.into()),
            End::ApplicationClosed(close) => json!({
                "initiator": "remote", "application_error": "unknown",
                "error_code": u64::from(close.error_code), "reason": reason, "trigger": "application",
            }),
            End::VersionMismatch => ended("local", "version_mismatch"),
            End::Reset => ended("remote", "stateless_reset"),
            End::TimedOut => ended("local", "idle_timeout"),
            End::LocallyClosed => ended("local", "application"),
            End::CidsExhausted => ended("local", "error"),
        }
    }
}

/// `PathEndpointInfo` of an address. Connection identifiers are absent, because quinn-proto does not state them.
fn endpoint(address: Option<SocketAddr>) -> serde_json::Value {
    match address {
        None => json!({}),
        Some(SocketAddr::V4(address)) => {
            json!({ "ip_v4": address.ip().to_string(), "port_v4": address.port() })
        }
        Some(SocketAddr::V6(address)) => {
            json!({ "ip_v6": address.ip().to_string(), "port_v6": address.port() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::QlogOptions;
    use super::*;

    #[test]
    fn a_file_that_takes_no_bytes_is_incomplete() {
        let folder = tempfile::tempdir().unwrap();
        let options = QlogOptions {
            directory: folder.path().to_owned(),
            connections: 1,
        };
        let directory = Arc::new(QlogDirectory::create(&options).unwrap());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = socket.local_addr().unwrap();
        let now = Instant::now();
        let log = ConnectionLog::begin(&directory, &socket.into(), server, now);
        let mut log = log.unwrap();
        // As on a full disk.
        log.file = Some(File::create("/dev/full").unwrap());
        for _ in 0..2_000 {
            log.datagrams(QlogDirection::Sent, 2_500, 1_200, now);
        }
        assert!(log.file.is_none() && log.buffer.is_empty());
        drop(log);
        let report = directory.report();
        assert_eq!((report.files, report.incomplete), (1, 1));
        let failure = report.failure_in_words().unwrap();
        assert!(failure.contains("1.sqlog: No space left"), "{failure}");
    }

    #[test]
    fn lengths_are_those_of_each_datagram() {
        let lengths = |length, size| Datagrams { length, size }.to_string();
        assert_eq!(lengths(5, 5), r#"{"length":5}"#);
        assert_eq!(
            lengths(2_500, 1_200),
            r#"{"length":1200},{"length":1200},{"length":100}"#
        );
    }
}
