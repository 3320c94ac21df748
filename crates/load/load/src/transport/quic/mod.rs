//! QUIC (RFC 9000) for HTTP/3: a state machine of quinn-proto over a UDP socket for each connection.
//!
//! The state machine has no socket and no clock. The event loop passes it datagrams and the time, sends its datagrams,
//! and calls it when its timer expires. A socket for each connection gives each a port of its own, like TCP: servers
//! with several threads distribute connections by port.
//!
//! | module | content |
//! |---|---|
//! | `connection` | a connection: datagrams on one side, the streams of HTTP/3 on the other |
//! | `datagrams` | the socket: several datagrams in one call (GSO, GRO) |
//! | `early` | early data of a connection: offered, accepted, rejected |
//! | `loss` | the outcome of a connection that ended |
//! | `qlog` | files with the events of connections |

mod connection;
mod datagrams;
mod early;
mod loss;
mod qlog;

use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, EndpointConfig, TransportConfig, VarInt};
use rustls::client::Resumption;
use serde::{Deserialize, Serialize};

pub(crate) use connection::{QuicConnection, QuicEnd, QuicServer};
pub(crate) use qlog::QlogDirectory;
pub use qlog::{QlogOptions, QlogReport};

use crate::transport::tls::TlsError;

/// Window of a stream in bytes: as over HTTP/2.
const STREAM_WINDOW: u32 = 16 << 20;
/// Window of a connection in bytes: as over HTTP/2.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// UDP payload of a datagram in bytes, the least that every path carries (RFC 9000, section 14). The generator does not
/// probe for more, because probes are datagrams that the plan does not state.
pub const QUIC_DATAGRAM: u16 = 1_200;
/// Unidirectional streams of the server: its control stream, two of QPACK, and some of unknown types.
const SERVER_STREAMS: u32 = 16;
/// Sessions stored for resumption. A store is for one server, and rustls keeps up to eight tickets of it.
const SESSIONS: usize = 2;

/// Options of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuicOptions {
    /// Several datagrams leave in one system call (GSO), if the kernel permits. A burst then is one event for the
    /// network.
    pub segmentation_offload: bool,
    /// Connections resume earlier ones, and send their first requests as early data (0-RTT) if they have a ticket that
    /// permits it.
    pub early_data: bool,
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            segmentation_offload: true,
            early_data: false,
        }
    }
}

/// Configuration of all connections of a run.
pub(crate) struct QuicConfig {
    endpoint: Arc<EndpointConfig>,
    /// By server: the tickets of one are of no use to another.
    clients: Vec<ClientConfig>,
    has_early_data: bool,
    qlog: Option<Arc<QlogDirectory>>,
}

impl QuicConfig {
    /// Creates the configuration for this number of servers, with a folder for qlog files if they are wanted.
    pub(crate) fn new(
        tls: &rustls::ClientConfig,
        options: QuicOptions,
        servers: usize,
        qlog: Option<Arc<QlogDirectory>>,
    ) -> Result<Self, TlsError> {
        let transport = Arc::new(transport(options));
        let client = |_| -> Result<ClientConfig, TlsError> {
            let mut tls = tls.clone();
            if options.early_data {
                tls.resumption = Resumption::in_memory_sessions(SESSIONS);
            }
            tls.enable_early_data = options.early_data;
            let tls = QuicClientConfig::try_from(tls).map_err(|_| TlsError::Quic)?;
            let mut client = ClientConfig::new(Arc::new(tls));
            client.transport_config(Arc::clone(&transport));
            Ok(client)
        };
        Ok(Self {
            endpoint: Arc::new(EndpointConfig::default()),
            clients: (0..servers).map(client).collect::<Result<_, _>>()?,
            has_early_data: options.early_data,
            qlog,
        })
    }
}

fn transport(options: QuicOptions) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        // A server must not open bidirectional streams (RFC 9114, section 6.1).
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(SERVER_STREAMS))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        // The timeout of the plan ends requests, and the server's idle timeout connections.
        .max_idle_timeout(None)
        .initial_mtu(QUIC_DATAGRAM)
        .mtu_discovery_config(None)
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(options.segmentation_offload);
    transport
}
