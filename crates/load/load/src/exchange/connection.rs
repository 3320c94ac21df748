//! One connection: bytes between the socket and the reply reader of HTTP/1, or the streams of HTTP/2 and HTTP/3.
//!
//! Time limits, pools and histograms belong to the event loop. It acts on the events that a connection returns.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use posthaste_units::Instant;
use rustix::io::Errno;

use crate::exchange::OpenExchange;
use crate::exchange::slots::{ConnectionId, ExchangeId, ExchangeSlot};
use crate::exchange::stream_client::StreamClient;
use crate::reply::http::{ReplyProgress, ReplyReader, Violation};
use crate::transport::quic::QuicConnection;
use crate::transport::socket;
use crate::transport::tls::TlsStream;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// A SYN is on its way.
    Connecting,
    /// The TLS handshake is under way.
    Securing,
    /// A request is being sent or its reply awaited.
    Exchanging,
    /// Ready for the next request.
    Idle,
    /// Its one exchange is over. The server has to close first, so that the server keeps TIME_WAIT.
    Closing,
}

/// A socket with its state.
pub(crate) struct HttpConnection {
    pub(crate) socket: OwnedFd,
    pub(crate) origin: usize,
    /// The address of the server that it uses.
    pub(crate) address: SocketAddr,
    pub(crate) id: ConnectionId,
    pub(crate) state: ConnectionState,
    /// True if it was idle before its exchange.
    pub(crate) is_reused: bool,
    /// Slot of the exchange in progress.
    pub(crate) exchange: Option<ExchangeSlot>,
    pub(crate) reader: ReplyReader,
    /// Streams and their compression state, if the connection has several.
    pub(crate) streams: Option<Box<StreamState>>,
    secure: Option<Box<TlsStream>>,
    unsent: Vec<u8>,
}

/// The streams of a connection.
pub(crate) struct StreamState {
    pub(crate) client: StreamClient,
    /// Number of the queue whose requests it carries.
    pub(crate) queue: usize,
    /// Exchanges with a head or the end of a body in the output.
    pub(crate) written: Vec<ExchangeId>,
    /// True if it is in the list of connections with output.
    pub(crate) is_listed: bool,
    /// True once the server has sent its SETTINGS, or has completed the handshake of QUIC.
    pub(crate) is_confirmed: bool,
}

/// Maximum number of bytes read from one connection per turn, so that others are not delayed.
pub(crate) const TURN: usize = 256 << 10;

/// Result of reading.
pub(crate) enum ReceiveStatus {
    /// The reply is not complete.
    Partial,
    /// The reply is not complete, and more may be readable at once.
    More,
    /// The reply is complete.
    Complete {
        /// True if bytes followed the end of the reply.
        surplus: bool,
    },
    /// The reply is invalid.
    Wrong(Violation),
    /// TLS records that cannot be decrypted.
    Broken(io::Error),
    /// The peer closed, or reset, before the reply was complete.
    Ended,
}

impl HttpConnection {
    pub(crate) fn new(
        socket: OwnedFd,
        origin: usize,
        address: SocketAddr,
        id: ConnectionId,
        secure: Option<TlsStream>,
    ) -> Self {
        Self {
            socket,
            origin,
            address,
            id,
            state: ConnectionState::Connecting,
            is_reused: false,
            exchange: None,
            reader: ReplyReader::default(),
            streams: None,
            secure: secure.map(Box::new),
            unsent: Vec::new(),
        }
    }

    /// Sends `bytes` and keeps the bytes that the kernel does not accept for [`HttpConnection::flush`].
    ///
    /// `Err(AGAIN)` means that the connection is not established yet and nothing was sent.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        if let Some(secure) = &mut self.secure {
            secure.queue(bytes).map_err(errno)?;
            return secure.flush(&self.socket).map_err(errno);
        }
        debug_assert!(
            self.unsent.is_empty(),
            "a request follows one that is not sent"
        );
        let sent = socket::send(&self.socket, bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Sends kept bytes, as many as the kernel accepts.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        if let Some(secure) = &mut self.secure {
            return secure.flush(&self.socket).map_err(errno);
        }
        while !self.unsent.is_empty() {
            match socket::send(&self.socket, &self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// True if part of a request waits for space in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        let secure = self.secure.as_ref();
        secure.map_or(!self.unsent.is_empty(), |secure| secure.has_unsent())
    }

    /// True if the connection uses TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// Continues the TLS handshake. Returns true when it is complete.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        let Some(secure) = &mut self.secure else {
            return Ok(true);
        };
        secure.flush(&self.socket)?;
        let open = secure.fill(&self.socket)?;
        secure.flush(&self.socket)?;
        if !open && secure.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(!secure.is_handshaking())
    }

    /// The protocol that the server chose by ALPN. `None` without TLS, and if the server chose none.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.secure.as_ref()?.protocol()
    }

    /// Reads bytes of several streams. `Err(AGAIN)` if there are none; 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.secure {
            Some(secure) => secure.receive(&self.socket, buffer).map_err(errno),
            None => socket::receive(&self.socket, buffer),
        }
    }

    /// The streams of a connection with several.
    pub(crate) fn streams(&self) -> &StreamState {
        self.streams.as_ref().expect("the connection has streams")
    }

    /// The streams of a connection with several.
    pub(crate) fn streams_mut(&mut self) -> &mut StreamState {
        self.streams.as_mut().expect("the connection has streams")
    }

    /// True if the connection uses QUIC.
    pub(crate) fn is_quic(&self) -> bool {
        let streams = self.streams.as_ref();
        streams.is_some_and(|streams| matches!(streams.client, StreamClient::Http3(_)))
    }

    /// The connection's QUIC, if it uses it.
    pub(crate) fn quic(&mut self) -> Option<&mut QuicConnection> {
        match &mut self.streams.as_mut()?.client {
            StreamClient::Http3(quic) => Some(quic),
            StreamClient::Http2(_) => None,
        }
    }

    /// Reads a buffer of datagrams. Returns its bytes.
    pub(crate) fn receive_datagrams(
        &mut self,
        buffer: &mut [u8],
        scratch: &mut Vec<u8>,
        now: std::time::Instant,
    ) -> Result<usize, Errno> {
        let Self {
            socket, streams, ..
        } = self;
        let streams = streams.as_mut().expect("the connection has streams");
        match &mut streams.client {
            StreamClient::Http3(quic) => quic.receive(socket, buffer, scratch, now).map_err(errno),
            StreamClient::Http2(_) => unreachable!("a connection of HTTP/2 has no datagrams"),
        }
    }

    /// Passes the output of streams to the kernel. Returns the bytes taken from it, and true if the kernel has all.
    pub(crate) fn flush_streams(
        &mut self,
        scratch: &mut Vec<u8>,
        now: std::time::Instant,
    ) -> Result<(usize, bool), Errno> {
        let streams = self.streams.as_mut().expect("the connection has streams");
        let client = match &mut streams.client {
            StreamClient::Http2(client) => client,
            StreamClient::Http3(quic) => {
                return quic.flush(&self.socket, scratch, now).map_err(errno);
            }
        };
        let mut taken = 0;
        loop {
            if let Some(secure) = &mut self.secure {
                secure.flush(&self.socket).map_err(errno)?;
                if secure.has_unsent() {
                    return Ok((taken, false));
                }
            }
            let output = client.output();
            if output.is_empty() {
                return Ok((taken, true));
            }
            let sent = match &mut self.secure {
                Some(secure) => secure.queue(output).map(|()| output.len()).map_err(errno),
                None => socket::send(&self.socket, output),
            };
            match sent {
                Ok(length) => {
                    client.sent(length);
                    taken += length;
                }
                Err(Errno::AGAIN) => return Ok((taken, false)),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Reads the reply of `open` until the socket is empty, the reply is complete, or [`TURN`] bytes were read.
    /// `closing` states that the peer has closed, so a short read is not the last. `arrived` returns the time; it is
    /// called at the first bytes, and at each read if the reply is a stream of events.
    pub(crate) fn receive(
        &mut self,
        open: &mut OpenExchange,
        buffer: &mut [u8],
        closing: bool,
        bytes_received: &mut u64,
        arrived: impl Fn() -> Instant,
    ) -> ReceiveStatus {
        let mut taken = 0;
        while taken < TURN {
            let read = match &mut self.secure {
                Some(secure) => match secure.receive(&self.socket, buffer) {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        return ReceiveStatus::Broken(error);
                    }
                    read => read.map_err(errno),
                },
                None => socket::receive(&self.socket, buffer),
            };
            let length = match read {
                Ok(0) => return self.end_of_stream(open),
                Ok(length) => length,
                Err(Errno::AGAIN) => return ReceiveStatus::Partial,
                // A TLS stream may end without its closing alert. The reply decides.
                Err(Errno::IO) => return self.end_of_stream(open),
                Err(_) => return ReceiveStatus::Ended,
            };
            debug_assert!(length <= buffer.len(), "more bytes than the buffer holds");
            *bytes_received += length as u64;
            taken += length;
            let moments = &mut open.exchange.moments;
            moments.first_byte = moments.first_byte.or_else(|| Some(arrived()));
            if let Some(events) = open.reply.events() {
                events.arrive(arrived());
            }
            match self.reader.feed(&buffer[..length], &mut open.reply) {
                Ok(ReplyProgress::Complete { used }) => {
                    return ReceiveStatus::Complete {
                        surplus: used < length,
                    };
                }
                Ok(ReplyProgress::Partial) => {}
                Err(violation) => return ReceiveStatus::Wrong(violation),
            }
            if length < buffer.len() && !closing && self.secure.is_none() {
                return ReceiveStatus::Partial;
            }
        }
        ReceiveStatus::More
    }

    /// Closes the connection with a reset. Over QUIC, CONNECTION_CLOSE states the end to a server that has answered.
    pub(crate) fn abort(mut self, now: std::time::Instant) {
        match self.streams.as_mut().map(|streams| &mut streams.client) {
            Some(StreamClient::Http3(quic)) => quic.close(&self.socket, now),
            _ => socket::abort(self.socket),
        }
    }

    fn end_of_stream(&mut self, open: &OpenExchange) -> ReceiveStatus {
        let any_byte = open.exchange.moments.first_byte.is_some();
        match self.reader.closed() {
            Ok(()) => ReceiveStatus::Complete { surplus: false },
            Err(violation) if any_byte => ReceiveStatus::Wrong(violation),
            Err(_) => ReceiveStatus::Ended,
        }
    }
}

/// Returns the system's error number for an error of the standard library.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}
