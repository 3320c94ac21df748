//! The script of a server: its answers to requests, its greeting, its line.

use std::time::Duration;

use posthaste_units::Seed;

use super::frames::{CONTROL, reply};

/// The act of a server for a complete request.
#[derive(Clone)]
pub(super) enum ReplyAct {
    /// Sends these bytes after a time, and ends the stream.
    Send(Vec<u8>, Duration),
    /// Sends these bytes and leaves the stream open.
    Begin(Vec<u8>),
    /// Sends these bytes, and resets the stream with this code.
    Reset(Vec<u8>, u32),
    /// Sends these bytes on the control stream, and answers with a whole reply.
    Control(Vec<u8>),
    /// Sends these bytes on a new unidirectional stream, and answers with a whole reply.
    Stream(Vec<u8>),
    /// Sends STOP_SENDING and a whole reply.
    Stop(u32),
    /// Closes the connection with this code.
    Close(u32),
    /// Forgets all connections and accepts no others: answers to their datagrams are stateless resets.
    Forget,
    /// Forgets all connections, as a server that was started again: it accepts others.
    Restart,
    /// Sends these bytes and then zeros without an end.
    Endless(Vec<u8>),
    /// Sends these bytes and then zeros without an end on a new unidirectional stream.
    EndlessStream(Vec<u8>),
    /// Nothing.
    Ignore,
}

/// One request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedRequest {
    pub(super) connection: usize,
    /// Number of the request on its connection, from 0.
    pub(super) number: usize,
    /// Bytes of its stream.
    pub(super) length: usize,
    /// True if it arrived before the end of the handshake.
    pub(super) is_early: bool,
}

/// Treatment of tickets for early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tickets {
    /// The server issues tickets for resumption only.
    #[default]
    None,
    /// The server accepts early data with its tickets.
    Accepted,
    /// The server issues tickets for early data and forgets them, as after a restart.
    Rejected,
}

/// Probabilities of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossyLine {
    pub(super) loss: f64,
    pub(super) duplication: f64,
    /// A datagram is held back until a later one.
    pub(super) reordering: f64,
}

/// Probabilities of answers to Initial packets, other than to accept the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Greeting {
    /// A Retry, unless the packet has the token of an earlier one.
    pub(super) retry: f64,
    /// Version Negotiation without the version of the client. The packet is lost.
    pub(super) other_version: f64,
}

impl Greeting {
    /// A Retry to each new client.
    pub(super) fn retries() -> Self {
        Self {
            retry: 1.0,
            ..Self::default()
        }
    }
}

/// Behaviour of a server.
pub(super) struct ServerScript {
    /// Bytes that begin its control stream. None if it opens none.
    pub(super) control: Option<Vec<u8>>,
    /// Requests at a time.
    pub(super) streams: u32,
    /// Bytes of a request's stream that it accepts ahead of reading.
    pub(super) window: u32,
    pub(super) line: Box<dyn Fn() -> LossyLine + Send>,
    /// Called for each new connection.
    pub(super) tickets: Box<dyn Fn() -> Tickets + Send>,
    /// Called for each Initial packet of a client.
    pub(super) greeting: Box<dyn Fn() -> Greeting + Send>,
    pub(super) alpn: &'static [u8],
    pub(super) seed: Seed,
    pub(super) act: Box<dyn Fn(&ArrivedRequest) -> ReplyAct + Send>,
}

impl ServerScript {
    /// A good server that acts so.
    pub(super) fn new(act: impl Fn(&ArrivedRequest) -> ReplyAct + Send + 'static) -> Self {
        Self {
            control: Some(CONTROL.to_vec()),
            streams: 100,
            window: 1 << 20,
            line: Box::new(LossyLine::default),
            tickets: Box::new(Tickets::default),
            greeting: Box::new(Greeting::default),
            alpn: b"h3",
            seed: Seed(1),
            act: Box::new(act),
        }
    }

    /// A good server that answers each request with `hello` after `delay`.
    pub(super) fn answering(delay: Duration) -> Self {
        Self::new(move |_| ReplyAct::Send(reply(b"hello"), delay))
    }
}
