//! The protocol of a plan's connections, with its options.

use serde::{Deserialize, Serialize};

use crate::transport::quic::QuicOptions;

/// The protocol of all connections of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2 (RFC 9113): with prior knowledge on `http://`, by ALPN on `https://`.
    Http2(Multiplexing),
    /// HTTP/3 (RFC 9114) over QUIC, on `https://` only.
    Http3 {
        /// Connections and streams.
        multiplexing: Multiplexing,
        /// Options of QUIC.
        quic: QuicOptions,
    },
}

/// Connections and streams of a protocol that carries several requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multiplexing {
    /// Connections to each server, of all event loops together: a multiple of the threads. Request n uses connection
    /// n mod N. In a closed loop, client n does.
    pub connections: usize,
    /// Maximum number of concurrent requests on a connection. The limit of the server holds too.
    pub streams: Option<usize>,
    /// Treatment of a request whose connection is full.
    pub when_full: WhenFull,
    /// Treatment of a request that the server rejects without processing it.
    pub rejected: WhenRejected,
}

/// Treatment of a request whose connection has no free stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It waits for a stream. The wait is part of its response time.
    #[default]
    Wait,
    /// It uses another connection. A new one is opened if all are full, up to the limit of open connections.
    Open,
    /// It is dropped.
    Drop,
}

/// Treatment of a request that the server rejected without processing it (RFC 9113, section 8.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenRejected {
    /// It ends with the outcome `rejected`.
    Count,
    /// It is sent once more, as another attempt. Its due time stays, and `--retries` does not count it.
    #[default]
    Resend,
}

impl Default for Multiplexing {
    fn default() -> Self {
        Self {
            connections: 1,
            streams: None,
            when_full: WhenFull::default(),
            rejected: WhenRejected::default(),
        }
    }
}

impl Protocol {
    /// Options of a protocol that carries several requests on a connection.
    pub const fn multiplexing(&self) -> Option<&Multiplexing> {
        match self {
            Self::Http1 => None,
            Self::Http2(multiplexing) | Self::Http3 { multiplexing, .. } => Some(multiplexing),
        }
    }

    /// Options of QUIC, if the protocol uses it.
    pub const fn quic(&self) -> Option<&QuicOptions> {
        match self {
            Self::Http3 { quic, .. } => Some(quic),
            Self::Http1 | Self::Http2(_) => None,
        }
    }

    /// True if connections send their first requests as early data.
    pub fn has_early_data(&self) -> bool {
        self.quic().is_some_and(|options| options.early_data)
    }

    /// Options of a protocol that carries several requests on a connection, to be changed.
    pub const fn multiplexing_mut(&mut self) -> Option<&mut Multiplexing> {
        match self {
            Self::Http1 => None,
            Self::Http2(multiplexing) | Self::Http3 { multiplexing, .. } => Some(multiplexing),
        }
    }

    /// Name of the protocol in TLS (ALPN, RFC 7301).
    pub(crate) const fn alpn(&self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2(_) => b"h2",
            Self::Http3 { .. } => b"h3",
        }
    }

    /// Name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2(_) => "HTTP/2",
            Self::Http3 { .. } => "HTTP/3",
        }
    }
}
