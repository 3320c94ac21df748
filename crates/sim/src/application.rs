//! The programs at both ends: what is asked, how long it takes, what is answered, who closes.
//!
//! Each is called when something has happened at its end, and says when it wants to be called
//! without that. Both read at once whatever has come.

use posthaste_tcp::{Endpoint, State};
use posthaste_units::{Instant, Span};

/// What the server offers, on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Requests and their replies, one after the other: more than one is a connection kept alive.
    pub exchanges: Vec<Exchange>,
    /// From when processing is reckoned.
    pub clock: ProcessingClock,
    /// Who closes the connection first.
    pub closer: Closer,
}

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// How long the client waits before it asks: after it is connected, or after the reply before.
    pub pause: Span,
    /// Bytes of the request.
    pub request: u64,
    /// How long the server takes.
    pub processing: Span,
    /// Bytes of the reply.
    pub reply: u64,
}

/// From when a server's processing is reckoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessingClock {
    /// From when the whole request has come.
    #[default]
    Request,
    /// From when the connection is accepted: a request that takes longer than the processing is
    /// answered at once. Only the first reply of a connection; later ones as from the request.
    Accept,
}

/// Who closes a connection first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closer {
    /// The server, as soon as it has written the last reply: what the window lets go has left by
    /// then, and the FIN rides on the last data only where that has to wait.
    #[default]
    Server,
    /// The server, which holds the end of its last reply back until it closes (TCP_CORK): the FIN
    /// rides on the last data in any case.
    ServerWithReply,
    /// The client, once it has the last reply.
    Client,
}

impl Service {
    /// One request and one reply on a connection that the server closes.
    pub fn single(request: u64, processing: Span, reply: u64) -> Self {
        let exchange = Exchange {
            pause: Span::ZERO,
            request,
            processing,
            reply,
        };
        Self {
            exchanges: vec![exchange],
            clock: ProcessingClock::default(),
            closer: Closer::default(),
        }
    }

    /// Bytes of all requests and replies.
    pub(crate) fn bytes(&self) -> u64 {
        let exchanges = self.exchanges.iter();
        exchanges.fold(0, |sum, exchange| {
            sum.saturating_add(exchange.request)
                .saturating_add(exchange.reply)
        })
    }
}

/// The client's program: asks, and reads what comes.
#[derive(Debug, Default)]
pub(crate) struct Client {
    stage: Asking,
    exchange: usize,
    /// Bytes of the request that the endpoint has not taken.
    unwritten: u64,
    /// Bytes of replies that are to come, since the connection began.
    awaited: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Asking {
    #[default]
    Begins,
    Pauses(Instant),
    Expects,
}

/// The server's program: reads, takes its time, answers.
#[derive(Debug, Default)]
pub(crate) struct Server {
    stage: Answering,
    exchange: usize,
    /// When it accepted the connection.
    accepted: Option<Instant>,
    /// Bytes of the requests before this one.
    before: u64,
    /// Bytes of the reply that the endpoint has not taken.
    unwritten: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Answering {
    #[default]
    Reads,
    Processes(Instant),
    Writes,
}

impl Client {
    /// When it goes on by itself.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Asking::Pauses(until) => Some(until),
            _ => None,
        }
    }

    /// Its turn: something has happened at its end.
    #[inline(always)]
    pub(crate) fn act(&mut self, now: Instant, endpoint: &mut Endpoint, service: &Service) {
        if !endpoint.state().is_synchronised() {
            return;
        }
        read(endpoint);
        while let Some(exchange) = service.exchanges.get(self.exchange) {
            match self.stage {
                Asking::Begins => self.stage = Asking::Pauses(now + exchange.pause),
                Asking::Pauses(until) if until > now => break,
                Asking::Pauses(_) => {
                    self.unwritten = exchange.request;
                    self.awaited += exchange.reply;
                    self.stage = Asking::Expects;
                }
                Asking::Expects => {
                    write(now, endpoint, &mut self.unwritten);
                    if self.unwritten > 0 || endpoint.received() < self.awaited {
                        break;
                    }
                    self.exchange += 1;
                    self.stage = Asking::Begins;
                }
            }
        }
    }

    /// Whether it closes, now that what it wrote has left.
    pub(crate) fn closes(&self, endpoint: &Endpoint, service: &Service) -> bool {
        let is_done = self.exchange == service.exchanges.len();
        let first = is_done && service.closer == Closer::Client;
        (first || endpoint.peer_has_closed()) && can_close(endpoint)
    }
}

impl Server {
    /// When it goes on by itself.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Answering::Processes(until) => Some(until),
            _ => None,
        }
    }

    /// Its turn: something has happened at its end.
    #[inline(always)]
    pub(crate) fn act(&mut self, now: Instant, endpoint: &mut Endpoint, service: &Service) {
        if !endpoint.state().is_synchronised() {
            return;
        }
        let accepted = *self.accepted.get_or_insert(now);
        read(endpoint);
        while let Some(exchange) = service.exchanges.get(self.exchange) {
            match self.stage {
                Answering::Reads => {
                    if endpoint.received() < self.before + exchange.request {
                        break;
                    }
                    let since = match service.clock {
                        ProcessingClock::Accept if self.exchange == 0 => accepted,
                        _ => now,
                    };
                    self.stage = Answering::Processes(now.max(since + exchange.processing));
                }
                Answering::Processes(until) if until > now => break,
                Answering::Processes(_) => {
                    self.before += exchange.request;
                    self.unwritten = exchange.reply;
                    self.stage = Answering::Writes;
                }
                Answering::Writes => {
                    write(now, endpoint, &mut self.unwritten);
                    if self.unwritten > 0 {
                        break;
                    }
                    self.exchange += 1;
                    self.stage = Answering::Reads;
                }
            }
        }
        if service.closer == Closer::ServerWithReply && self.closes(endpoint, service) {
            endpoint.leave(now);
        }
    }

    /// Whether it closes, now that what it wrote has left.
    pub(crate) fn closes(&self, endpoint: &Endpoint, service: &Service) -> bool {
        let is_done = self.exchange == service.exchanges.len();
        let first = is_done && service.closer != Closer::Client;
        (first || endpoint.peer_has_closed()) && can_close(endpoint)
    }
}

fn read(endpoint: &mut Endpoint) {
    let readable = endpoint.readable();
    if readable > 0 {
        endpoint.read(readable);
    }
}

fn write(now: Instant, endpoint: &mut Endpoint, unwritten: &mut u64) {
    if *unwritten > 0 {
        *unwritten -= endpoint.write(now, *unwritten);
    }
}

fn can_close(endpoint: &Endpoint) -> bool {
    matches!(endpoint.state(), State::Established | State::CloseWait)
}
