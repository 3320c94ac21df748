//! One connection and the exchange on it: bytes between the socket and the reply reader.
//!
//! Nothing here knows of time limits, pools or histograms; the engine decides those from
//! what a connection says has happened.

use std::io;
use std::os::fd::OwnedFd;

use posthaste_units::Instant;
use rustix::io::Errno;

use crate::http::{Progress, ReplyReader, Violation};
use crate::socket;
use crate::source::Due;
use crate::tally::Moments;
use crate::tls::Secure;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A SYN is on its way.
    Connecting,
    /// The TLS handshake is under way.
    Securing,
    /// A request is being sent or its reply awaited.
    Exchanging,
    /// Ready for the next request.
    Idle,
    /// Its one exchange is over; the server is to close first, so that it keeps TIME_WAIT.
    Closing,
}

/// The request a connection is busy with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) due: Due,
    pub(crate) request: usize,
    pub(crate) moments: Moments,
    /// Whether it carries a quote.
    pub(crate) quoted: bool,
}

/// A socket with what belongs to it.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) origin: usize,
    pub(crate) serial: u32,
    pub(crate) state: State,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) reader: ReplyReader,
    secure: Option<Box<Secure>>,
    unsent: Vec<u8>,
}

/// Bytes that are taken from one connection before others have their turn.
const TURN: usize = 256 << 10;

/// What came of reading.
pub(crate) enum Received {
    /// The reply is not complete.
    Partial,
    /// Nor is it, and there may be more to read at once.
    More,
    /// The reply is complete; whether bytes followed it that nobody asked for.
    Complete {
        /// Bytes behind the end of the reply.
        surplus: bool,
    },
    /// The reply is wrong.
    Wrong(Violation),
    /// TLS records that cannot be decrypted.
    Broken(io::Error),
    /// The peer closed, or reset, before the reply was complete.
    Ended,
}

impl Connection {
    pub(crate) fn new(
        socket: OwnedFd,
        origin: usize,
        serial: u32,
        reader: ReplyReader,
        secure: Option<Secure>,
    ) -> Self {
        Self {
            socket,
            origin,
            serial,
            state: State::Connecting,
            exchange: None,
            reader,
            secure: secure.map(Box::new),
            unsent: Vec::new(),
        }
    }

    /// Sends `bytes`, keeping what the kernel does not take for [`Connection::flush`].
    ///
    /// `Err(AGAIN)` means that the connection is not established yet and nothing was sent.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        if let Some(secure) = &mut self.secure {
            secure.queue(bytes).map_err(errno)?;
            return secure.flush(&self.socket).map_err(errno);
        }
        let sent = socket::send(&self.socket, bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Sends what was kept, as far as the kernel takes it.
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

    /// Whether part of a request waits for room in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        let secure = self.secure.as_ref();
        secure.map_or(!self.unsent.is_empty(), |secure| secure.has_unsent())
    }

    /// Whether the connection is to be encrypted.
    pub(crate) const fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// Goes on with the TLS handshake; true when it is done.
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

    /// Reads until the socket is empty, the reply complete, or others have waited long enough. `closing`
    /// says that the peer is known to have closed, so that a short read is not the last. `arrived` is called once,
    /// when there are bytes at all, and tells the time.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        closing: bool,
        bytes_received: &mut u64,
        arrived: impl Fn() -> Instant,
    ) -> Received {
        let mut taken = 0;
        while taken < TURN {
            let read = match &mut self.secure {
                Some(secure) => match secure.receive(&self.socket, buffer) {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        return Received::Broken(error);
                    }
                    read => read.map_err(errno),
                },
                None => socket::receive(&self.socket, buffer),
            };
            let length = match read {
                Ok(0) => return self.end_of_stream(),
                Ok(length) => length,
                Err(Errno::AGAIN) => return Received::Partial,
                // A TLS stream may end without its closing alert; the reply decides.
                Err(Errno::IO) => return self.end_of_stream(),
                Err(_) => return Received::Ended,
            };
            *bytes_received += length as u64;
            taken += length;
            if let Some(exchange) = &mut self.exchange
                && exchange.moments.first_byte.is_none()
            {
                exchange.moments.first_byte = Some(arrived());
            }
            match self.reader.feed(&buffer[..length]) {
                Ok(Progress::Complete { used }) => {
                    return Received::Complete {
                        surplus: used < length,
                    };
                }
                Ok(Progress::Partial) => {}
                Err(violation) => return Received::Wrong(violation),
            }
            if length < buffer.len() && !closing && self.secure.is_none() {
                return Received::Partial;
            }
        }
        Received::More
    }

    fn end_of_stream(&mut self) -> Received {
        let any_byte = self
            .exchange
            .is_some_and(|exchange| exchange.moments.first_byte.is_some());
        match self.reader.closed() {
            Ok(()) => Received::Complete { surplus: false },
            Err(violation) if any_byte => Received::Wrong(violation),
            Err(_) => Received::Ended,
        }
    }
}

/// The system's word for an error of the standard library.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}
