//! Client and server programs: requests, processing times, replies, and closing.
//!
//! The simulator calls each program after an event at its end and at the time that the program requests. Both read all
//! available data at once.

use posthaste_tcp::{Endpoint, TcpState};
use posthaste_units::{Instant, Span};

/// Service of the server on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedService {
    /// Requests and their replies in sequence. More than one means a persistent connection.
    pub exchanges: Vec<SimulatedExchange>,
    /// Start of the processing time.
    pub clock: ProcessingClock,
    /// End that closes the connection first.
    pub closer: Closer,
}

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedExchange {
    /// Delay of the client before the request, after the connection is established or after the previous reply.
    pub pause: Span,
    /// Bytes of the request.
    pub request: u64,
    /// Processing time of the server.
    pub processing: Span,
    /// Bytes of the reply.
    pub reply: u64,
}

/// Start of the processing time of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessingClock {
    /// From the arrival of the whole request.
    #[default]
    Request,
    /// From the acceptance of the connection: a request that takes longer to arrive than the processing time is
    /// answered at once. Applies only to the first reply of a connection; later ones count from the request.
    Accept,
}

/// End that closes a connection first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closer {
    /// The server, as soon as it has written the last reply. By then all data that the window allows has left, so the
    /// FIN is sent with the last data only if it has to wait.
    #[default]
    Server,
    /// The server, with the end of its last reply withheld until it closes (TCP_CORK). The FIN always leaves with the
    /// last data.
    ServerWithReply,
    /// The client, after it has received the last reply.
    Client,
}

impl SimulatedService {
    /// Creates a service with one request and one reply on a connection that the server closes.
    pub fn single(request: u64, processing: Span, reply: u64) -> Self {
        let exchange = SimulatedExchange {
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

/// The client program: sends requests and reads replies.
#[derive(Debug, Default)]
pub(crate) struct ClientProgram {
    stage: Asking,
    exchange: usize,
    /// Bytes of the request that the endpoint has not accepted.
    unwritten: u64,
    /// Bytes of the replies up to the current one, since the connection began.
    awaited: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Asking {
    #[default]
    Begins,
    Pauses(Instant),
    Expects,
}

/// The server program: reads, processes, replies.
#[derive(Debug, Default)]
pub(crate) struct ServerProgram {
    stage: Answering,
    exchange: usize,
    /// Time of acceptance of the connection.
    accepted: Option<Instant>,
    /// Bytes of the requests before this one.
    before: u64,
    /// Bytes of the reply that the endpoint has not accepted.
    unwritten: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Answering {
    #[default]
    Reads,
    Processes(Instant),
    Writes,
}

impl ClientProgram {
    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Asking::Pauses(until) => Some(until),
            _ => None,
        }
    }

    /// Runs the program after an event at its end.
    #[inline(always)]
    pub(crate) fn act(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        service: &SimulatedService,
    ) {
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

    /// Returns true if the client closes, after its written data has left.
    pub(crate) fn closes(&self, endpoint: &Endpoint, service: &SimulatedService) -> bool {
        let is_done = self.exchange == service.exchanges.len();
        let first = is_done && service.closer == Closer::Client;
        (first || endpoint.peer_has_closed()) && can_close(endpoint)
    }
}

impl ServerProgram {
    /// Time of the next step without an event.
    pub(crate) const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Answering::Processes(until) => Some(until),
            _ => None,
        }
    }

    /// Runs the program after an event at its end.
    #[inline(always)]
    pub(crate) fn act(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        service: &SimulatedService,
    ) {
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

    /// Returns true if the server closes, after its written data has left.
    pub(crate) fn closes(&self, endpoint: &Endpoint, service: &SimulatedService) -> bool {
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
        let written = endpoint.write(now, *unwritten);
        debug_assert!(
            written <= *unwritten,
            "an endpoint accepted more than was written"
        );
        *unwritten -= written;
    }
}

fn can_close(endpoint: &Endpoint) -> bool {
    matches!(
        endpoint.state(),
        TcpState::Established | TcpState::CloseWait
    )
}
