//! Client and server programs: requests, processing times and replies, each pair on a stream of its own.
//!
//! The simulator calls a program after an event at its end and at the time that the program requests. Both read all
//! available data at once.

use bytes::Bytes;
use posthaste_sim::{ResponseClock, SimulatedExchange};
use posthaste_units::Instant;
use quinn_proto::{Connection, Dir, StreamId, VarInt};

use crate::EndBehaviour;
use crate::end::QuicEnd;
use crate::epoch::StdInstant;

/// Content of requests and replies. Response times depend on lengths only.
static CONTENT: [u8; 1 << 14] = [0; 1 << 14];

/// The client program: connects, sends requests, reads replies, closes.
#[derive(Debug, Default)]
pub(crate) struct ClientProgram {
    behaviour: EndBehaviour,
    is_opened: bool,
    stage: Asking,
    /// Bytes of the current reply that have been read.
    read: u64,
    /// Time of a PING, unless bytes of the reply come before.
    ping: Option<Instant>,
    exchange: usize,
    /// Bytes of the request that the connection has not accepted.
    unwritten: u64,
    /// Number of requests begun.
    requests: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Asking {
    #[default]
    Begins,
    Pauses(Instant),
    Expects(StreamId),
    Closed,
}

/// The server program: reads, processes, replies.
#[derive(Debug, Default)]
pub(crate) struct ServerProgram {
    opening: ServerOpening,
    /// Bytes behind each reply.
    padding: u32,
    stage: Answering,
    exchange: usize,
    /// Bytes of the reply that the connection has not accepted.
    unwritten: u64,
    /// Number of replies begun.
    answered: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Answering {
    #[default]
    Accepts,
    Reads(StreamId),
    Processes(StreamId, Instant),
    Writes(StreamId),
}

/// The stream that the server opens first.
#[derive(Clone, Copy, Debug, Default)]
enum ServerOpening {
    #[default]
    None,
    /// The handshake is not complete.
    Unconnected(u32),
    /// The connection sends its own packets first.
    Due(Instant, u32),
}

/// The present, in both forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present {
    pub(crate) at: Instant,
    pub(crate) quinn: StdInstant,
}

impl ClientProgram {
    /// Creates a client with this behaviour.
    pub(crate) fn new(behaviour: EndBehaviour) -> Self {
        Self {
            behaviour,
            ..Self::default()
        }
    }

    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Asking::Pauses(until) => Some(until),
            Asking::Expects(_) => self.ping,
            Asking::Begins | Asking::Closed => None,
        }
    }

    /// Number of requests begun.
    pub(crate) const fn requests(&self) -> usize {
        self.requests
    }

    /// Runs the program after an event at its end.
    pub(crate) fn act(
        &mut self,
        now: Present,
        end: &mut QuicEnd,
        exchanges: &[SimulatedExchange],
        clock: &mut ResponseClock,
    ) {
        if end.lost().is_some() {
            self.stage = Asking::Closed;
        }
        if !end.is_connected() || matches!(self.stage, Asking::Closed) {
            return;
        }
        clock.connected(now.at);
        let Some(connection) = end.connection() else {
            return;
        };
        if !std::mem::replace(&mut self.is_opened, true) {
            open(connection, self.behaviour.openings[0]);
        }
        while let Some(exchange) = exchanges.get(self.exchange) {
            match self.stage {
                Asking::Begins => self.stage = Asking::Pauses(now.at + exchange.pause),
                Asking::Pauses(until) if until > now.at => return,
                Asking::Pauses(_) => {
                    let Some(stream) = connection.streams().open(Dir::Bi) else {
                        return;
                    };
                    self.unwritten = exchange.request;
                    self.requests += 1;
                    self.stage = Asking::Expects(stream);
                }
                Asking::Expects(stream) => {
                    write(connection, stream, &mut self.unwritten);
                    let (bytes, is_ended) = read(connection, stream);
                    self.read += bytes;
                    let has_all = self.behaviour.padding > 0 && self.read >= exchange.reply;
                    if !is_ended && !has_all {
                        self.probe(now.at, bytes, connection);
                        return;
                    }
                    clock.reply_delivered(now.at);
                    (self.read, self.ping) = (0, None);
                    self.exchange += 1;
                    self.stage = Asking::Begins;
                }
                Asking::Closed => return,
            }
        }
        connection.close(now.quinn, VarInt::from_u32(0), Bytes::new());
        self.stage = Asking::Closed;
    }

    /// Sends a PING if it is due. New bytes of a reply put it off.
    fn probe(&mut self, now: Instant, new_bytes: u64, connection: &mut Connection) {
        let is_due = self.ping.is_some_and(|at| at <= now);
        if is_due {
            connection.ping();
        }
        if is_due || new_bytes > 0 {
            self.ping = self.behaviour.receiver_probe.map(|wait| now + wait);
        }
    }
}

impl ServerProgram {
    /// Creates a server with this behaviour.
    pub(crate) fn new(behaviour: EndBehaviour) -> Self {
        let opening = match behaviour.openings[1] {
            0 => ServerOpening::None,
            bytes => ServerOpening::Unconnected(bytes),
        };
        Self {
            opening,
            padding: behaviour.padding,
            ..Self::default()
        }
    }

    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match (self.opening, self.stage) {
            (ServerOpening::Due(at, _), _) => Some(at),
            (_, Answering::Processes(_, until)) => Some(until),
            _ => None,
        }
    }

    /// Number of replies begun.
    pub(crate) const fn answered(&self) -> usize {
        self.answered
    }

    /// Runs the program after an event at its end.
    pub(crate) fn act(
        &mut self,
        now: Present,
        end: &mut QuicEnd,
        exchanges: &[SimulatedExchange],
        clock: &mut ResponseClock,
    ) {
        if end.lost().is_some() {
            self.stage = Answering::Accepts;
            self.opening = ServerOpening::None;
            return;
        }
        let is_connected = end.is_connected();
        let Some(connection) = end.connection() else {
            return;
        };
        match self.opening {
            ServerOpening::Unconnected(bytes) if is_connected => {
                self.opening = ServerOpening::Due(now.at, bytes);
                return;
            }
            ServerOpening::Due(_, bytes) => {
                open(connection, bytes);
                self.opening = ServerOpening::None;
            }
            ServerOpening::Unconnected(_) | ServerOpening::None => {}
        }
        while let Some(exchange) = exchanges.get(self.exchange) {
            match self.stage {
                Answering::Accepts => {
                    let Some(stream) = connection.streams().accept(Dir::Bi) else {
                        return;
                    };
                    self.stage = Answering::Reads(stream);
                }
                Answering::Reads(stream) => {
                    if !read(connection, stream).1 {
                        return;
                    }
                    clock.request_delivered(now.at);
                    self.stage = Answering::Processes(stream, now.at + exchange.processing);
                }
                Answering::Processes(_, until) if until > now.at => return,
                Answering::Processes(stream, _) => {
                    self.unwritten = exchange.reply + u64::from(self.padding);
                    self.answered += 1;
                    self.stage = Answering::Writes(stream);
                }
                Answering::Writes(stream) => {
                    write(connection, stream, &mut self.unwritten);
                    if self.unwritten > 0 {
                        return;
                    }
                    self.exchange += 1;
                    self.stage = Answering::Accepts;
                }
            }
        }
    }
}

/// Opens a unidirectional stream with this number of bytes, and leaves it open.
fn open(connection: &mut Connection, bytes: u32) {
    if bytes == 0 {
        return;
    }
    let Some(stream) = connection.streams().open(Dir::Uni) else {
        return;
    };
    let content = Bytes::from_static(&CONTENT[..CONTENT.len().min(bytes as usize)]);
    // It fails only on a connection that is lost, whose programs do nothing more.
    let _ = connection.send_stream(stream).write_chunks(&mut [content]);
}

/// Writes as much as the connection accepts, and ends the stream behind the last byte.
fn write(connection: &mut Connection, stream: StreamId, unwritten: &mut u64) {
    while *unwritten > 0 {
        let length =
            usize::try_from(*unwritten).map_or(CONTENT.len(), |all| all.min(CONTENT.len()));
        let mut content = [Bytes::from_static(&CONTENT[..length])];
        let Ok(written) = connection.send_stream(stream).write_chunks(&mut content) else {
            // Blocked, or the connection is lost.
            return;
        };
        *unwritten -= written.bytes as u64;
        if *unwritten == 0 {
            // It fails only on a stream that the other end has stopped, and none does.
            let _ = connection.send_stream(stream).finish();
        }
    }
}

/// Reads all available data. Returns its length, and true once the stream has ended.
fn read(connection: &mut Connection, stream: StreamId) -> (u64, bool) {
    let mut received = connection.recv_stream(stream);
    let mut bytes = 0;
    let Ok(mut chunks) = received.read(true) else {
        return (bytes, false);
    };
    let is_ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    // The simulator asks the connection for datagrams in any case.
    let _ = chunks.finalize();
    (bytes, is_ended)
}
