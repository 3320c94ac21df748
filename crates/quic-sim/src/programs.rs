//! Client and server programs: requests, processing times and replies, each pair on a stream of its own.
//!
//! The simulator calls a program after an event at its end and at the time that the program requests. Both read all
//! available data at once.

use bytes::Bytes;
use posthaste_sim::{ResponseClock, SimulatedExchange};
use posthaste_units::Instant;
use quinn_proto::{Connection, Dir, StreamId, VarInt};

use crate::end::QuicEnd;
use crate::epoch::StdInstant;

/// Content of requests and replies. Response times depend on lengths only.
static CONTENT: [u8; 1 << 14] = [0; 1 << 14];

/// The client program: connects, sends requests, reads replies, closes.
#[derive(Debug, Default)]
pub(crate) struct ClientProgram {
    stage: Asking,
    exchange: usize,
    /// Bytes of the request that the connection has not accepted.
    unwritten: u64,
    /// Number of requests begun.
    asked: usize,
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

/// The present, in both forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present {
    pub(crate) at: Instant,
    pub(crate) quinn: StdInstant,
}

impl ClientProgram {
    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Asking::Pauses(until) => Some(until),
            _ => None,
        }
    }

    /// Number of requests begun.
    pub(crate) const fn asked(&self) -> usize {
        self.asked
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
        while let Some(exchange) = exchanges.get(self.exchange) {
            match self.stage {
                Asking::Begins => self.stage = Asking::Pauses(now.at + exchange.pause),
                Asking::Pauses(until) if until > now.at => return,
                Asking::Pauses(_) => {
                    let Some(stream) = connection.streams().open(Dir::Bi) else {
                        return;
                    };
                    self.unwritten = exchange.request;
                    self.asked += 1;
                    self.stage = Asking::Expects(stream);
                }
                Asking::Expects(stream) => {
                    write(connection, stream, &mut self.unwritten);
                    if !is_read(connection, stream) {
                        return;
                    }
                    clock.reply_delivered(now.at);
                    self.exchange += 1;
                    self.stage = Asking::Begins;
                }
                Asking::Closed => return,
            }
        }
        connection.close(now.quinn, VarInt::from_u32(0), Bytes::new());
        self.stage = Asking::Closed;
    }
}

impl ServerProgram {
    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Answering::Processes(_, until) => Some(until),
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
            return;
        }
        let Some(connection) = end.connection() else {
            return;
        };
        while let Some(exchange) = exchanges.get(self.exchange) {
            match self.stage {
                Answering::Accepts => {
                    let Some(stream) = connection.streams().accept(Dir::Bi) else {
                        return;
                    };
                    self.stage = Answering::Reads(stream);
                }
                Answering::Reads(stream) => {
                    if !is_read(connection, stream) {
                        return;
                    }
                    clock.request_delivered(now.at);
                    self.stage = Answering::Processes(stream, now.at + exchange.processing);
                }
                Answering::Processes(_, until) if until > now.at => return,
                Answering::Processes(stream, _) => {
                    self.unwritten = exchange.reply;
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

/// Reads all available data. True once the stream has ended.
fn is_read(connection: &mut Connection, stream: StreamId) -> bool {
    let mut received = connection.recv_stream(stream);
    let Ok(mut chunks) = received.read(true) else {
        return false;
    };
    let is_ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    // The simulator asks the connection for datagrams in any case.
    let _ = chunks.finalize();
    is_ended
}
