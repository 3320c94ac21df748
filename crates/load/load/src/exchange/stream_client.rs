//! The client's end of a connection with several streams: HTTP/2, or HTTP/3 over QUIC.
//!
//! Both have the same calls here. The stages of the event loop know the protocol only where they read from sockets and
//! write to them.

use std::sync::Arc;

use posthaste_http::streams::catalogue::FieldCatalogue;
use posthaste_http::streams::http2::hpack;
use posthaste_http::streams::http3::qpack;
use posthaste_http::streams::{OpenError, StreamRequest, http2, http3};

use crate::exchange::slots::ExchangeSlot;
use crate::plan::protocol::Protocol;
use crate::transport::multiplexed::StreamCounts;
use crate::transport::quic::{QlogDirectory, QuicConfig, QuicConnection};
use crate::transport::tls::TlsError;

/// Set-up shared by all connections with streams of a run.
pub(crate) enum StreamSetUp {
    Http2(Arc<hpack::FieldPlan>),
    Http3 {
        fields: Arc<qpack::FieldPlan>,
        config: QuicConfig,
    },
}

impl StreamSetUp {
    /// Compresses the fields of a plan's requests, and configures QUIC for this number of servers.
    pub(crate) fn new(
        protocol: Protocol,
        catalogue: &FieldCatalogue,
        tls: Option<&rustls::ClientConfig>,
        servers: usize,
        qlog: Option<Arc<QlogDirectory>>,
    ) -> Result<Self, TlsError> {
        let Some(options) = protocol.quic() else {
            return Ok(Self::Http2(Arc::new(hpack::FieldPlan::new(catalogue))));
        };
        let tls = tls.expect("all servers of HTTP/3 have TLS");
        Ok(Self::Http3 {
            fields: Arc::new(qpack::FieldPlan::new(catalogue)),
            config: QuicConfig::new(tls, *options, servers, qlog)?,
        })
    }
}

/// State machine of a connection's streams.
pub(crate) enum StreamClient {
    Http2(Box<http2::Http2StreamClient>),
    Http3(Box<QuicConnection>),
}

/// Calls a method that both protocols have.
macro_rules! either {
    ($client:expr, $method:ident ( $($argument:expr),* )) => {
        match $client {
            StreamClient::Http2(client) => client.$method($($argument),*),
            StreamClient::Http3(quic) => quic.client.$method($($argument),*),
        }
    };
}

impl StreamClient {
    /// Opens a stream for an exchange, and returns its identifier.
    pub(crate) fn open(
        &mut self,
        exchange: ExchangeSlot,
        request: &StreamRequest<'_>,
    ) -> Result<u64, OpenError> {
        match self {
            Self::Http2(client) => client
                .open(exchange.token(), request)
                .map(|id| id.number().into()),
            Self::Http3(quic) => quic.open(exchange.token(), request),
        }
    }

    /// Streams that may be opened now.
    pub(crate) fn room(&self) -> usize {
        either!(self, room())
    }

    /// True if a stream can be opened on this connection now or later.
    pub(crate) fn is_usable(&self) -> bool {
        either!(self, is_usable())
    }

    /// Number of open streams.
    pub(crate) fn open_streams(&self) -> usize {
        either!(self, open_streams())
    }

    /// True if no stream is open.
    pub(crate) fn is_idle(&self) -> bool {
        either!(self, is_idle())
    }

    /// Exchanges of the open streams, in no order.
    pub(crate) fn open_exchanges(&self) -> Vec<ExchangeSlot> {
        let tokens: Vec<u32> = match self {
            Self::Http2(client) => client.open_tokens().map(|(_, token)| token).collect(),
            Self::Http3(quic) => quic.client.open_tokens().map(|(_, token)| token).collect(),
        };
        tokens.into_iter().map(ExchangeSlot::from_token).collect()
    }

    /// Passes bytes of a request's body on, as far as flow control permits. `is_last` states that they are its last.
    pub(crate) fn send_body(&mut self, stream: u64, bytes: &[u8], is_last: bool) -> usize {
        match self {
            Self::Http2(client) => client.send_body(http2_id(stream), bytes, is_last),
            Self::Http3(quic) => {
                quic.client
                    .send_body(http3::StreamId::new(stream), bytes, is_last)
            }
        }
    }

    /// Returns the exchange of a stream whose body can continue.
    pub(crate) fn next_writable(&mut self) -> Option<ExchangeSlot> {
        let token = match self {
            Self::Http2(client) => client.next_writable().map(|(_, token)| token),
            Self::Http3(quic) => quic.client.next_writable().map(|(_, token)| token),
        };
        token.map(ExchangeSlot::from_token)
    }

    /// True if output waits for the socket.
    pub(crate) fn has_output(&mut self) -> bool {
        match self {
            Self::Http2(client) => !client.output().is_empty(),
            Self::Http3(quic) => quic.has_output(),
        }
    }

    /// Resets a stream whose request has ended for the generator.
    pub(crate) fn cancel(&mut self, stream: u64) {
        match self {
            Self::Http2(client) => client.reset(http2_id(stream), http2::ErrorCode::CANCEL),
            Self::Http3(quic) => quic.cancel(stream),
        };
    }

    /// Announces the end of the connection. No stream can be opened afterwards.
    pub(crate) fn close(&mut self) {
        either!(self, close());
    }

    /// Streams opened since the beginning of the connection.
    pub(crate) fn opened(&self) -> u64 {
        either!(self, counters()).opened
    }

    /// Adds the counts of the connection.
    pub(crate) fn add_counts(&self, counts: &mut StreamCounts) {
        match self {
            Self::Http2(client) => counts.add(client.counters()),
            Self::Http3(quic) => quic.add_counts(counts),
        }
    }
}

fn http2_id(stream: u64) -> http2::StreamId {
    http2::StreamId::new(u32::try_from(stream).expect("identifiers of HTTP/2 have 31 bits"))
}
