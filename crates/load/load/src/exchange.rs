//! Exchanges in progress: an attempt of a request and the reply to it, apart from the connection that carries them.

pub(crate) mod attempt_recorder;
pub(crate) mod connection;
pub(crate) mod fifo;
pub(crate) mod slots;
pub(crate) mod stream_client;

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use posthaste_http::grpc::Code;
use posthaste_units::Instant;

use crate::exchange::fifo::Fifo;
use crate::exchange::slots::{ConnectionSlot, ExchangeId, ExchangeSlot, Slot as _};
use crate::plan::source::Due;
use crate::reply::events::{EventPlan, EventSummary, EventTally};
use crate::reply::{Budget, HttpReply};
use crate::tally::phases::Moments;

/// One sending of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Planned time of sending: that of the request, or the end of a back-off.
    pub(crate) due: Instant,
    /// Attempts before it that the server rejected without processing them, and that were sent again at once. The client
    /// does not count them as retries.
    pub(crate) resent: u32,
}

/// An attempt of a request, and its moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpExchange {
    pub(crate) due: Due,
    pub(crate) request: usize,
    pub(crate) attempt: Attempt,
    /// Status of the reply, once it is complete.
    pub(crate) status: Option<u16>,
    /// Status of a gRPC call, once its reply is complete.
    pub(crate) code: Option<Code>,
    pub(crate) moments: Moments,
    /// True if the request carries a quote.
    pub(crate) quoted: bool,
    /// Events of the reply, once the exchange has ended.
    pub(crate) events: EventSummary,
    /// Addresses of the server that have refused its connection.
    pub(crate) refusals: u32,
    /// True if its stream was rejected, and it was sent once more.
    pub(crate) is_resent: bool,
}

impl HttpExchange {
    /// Creates an attempt that is sent at `sent`.
    pub(crate) fn new(due: Due, request: usize, attempt: Attempt, sent: Instant) -> Self {
        let moments = Moments {
            intended: due.at,
            begun: sent,
            sent,
            written: sent,
            ..Moments::default()
        };
        Self {
            due,
            request,
            attempt,
            status: None,
            code: None,
            moments,
            quoted: false,
            events: EventSummary::default(),
            refusals: 0,
            is_resent: false,
        }
    }

    /// Numbers of the request and of its attempt.
    pub(crate) fn numbers(&self) -> (u64, u32) {
        (self.due.number, self.attempt.number)
    }
}

/// An exchange in progress.
pub(crate) struct OpenExchange {
    pub(crate) exchange: HttpExchange,
    /// Slot of the connection that carries it. `None` while it waits for one.
    pub(crate) connection: Option<ConnectionSlot>,
    /// Its stream, on a connection with several.
    pub(crate) stream: Option<OpenStream>,
    pub(crate) reply: HttpReply,
    /// Number of its queue, if it is sent on a stream.
    pub(crate) queue: usize,
    /// Its rendered body, if it is sent on a stream.
    pub(crate) body: Vec<u8>,
    pub(crate) id: ExchangeId,
    is_open: bool,
}

/// The stream of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenStream {
    /// Its identifier in the protocol.
    pub(crate) id: u64,
    /// Bytes of the request's body passed to the connection.
    pub(crate) body_sent: usize,
    /// True if the kernel has accepted the head of the request.
    pub(crate) is_sent: bool,
}

/// The exchanges in progress, by slot. A slot keeps the memory of its reply for the next exchange.
pub(crate) struct Exchanges {
    slots: Vec<OpenExchange>,
    free: Vec<ExchangeSlot>,
    deadlines: Fifo<ExchangeSlot>,
    /// Memory for coded replies, if they are kept.
    budget: Option<Arc<Budget>>,
    /// Events expected in the replies.
    events: Option<EventPlan>,
    /// The requests are gRPC calls.
    has_calls: bool,
}

impl Exchanges {
    pub(crate) fn new(
        budget: Option<Arc<Budget>>,
        events: Option<EventPlan>,
        has_calls: bool,
    ) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            deadlines: Fifo::new(),
            budget,
            events,
            has_calls,
        }
    }

    /// Assigns a slot to an exchange whose reply has to be complete by `deadline`.
    pub(crate) fn insert(
        &mut self,
        exchange: HttpExchange,
        connection: Option<ConnectionSlot>,
        deadline: Instant,
    ) -> ExchangeSlot {
        let slot = self.assign_slot(exchange, connection);
        self.deadlines.push(slot, deadline);
        slot
    }

    fn assign_slot(
        &mut self,
        exchange: HttpExchange,
        connection: Option<ConnectionSlot>,
    ) -> ExchangeSlot {
        if let Some(slot) = self.free.pop() {
            let open = &mut self.slots[slot.index()];
            debug_assert!(!open.is_open, "the slot of an open exchange is free");
            open.exchange = exchange;
            open.connection = connection;
            open.stream = None;
            open.id.serial = open.id.serial.wrapping_add(1);
            open.is_open = true;
            return slot;
        }
        let slot = ExchangeSlot::from_index(self.slots.len());
        self.slots.push(OpenExchange {
            exchange,
            connection,
            stream: None,
            queue: 0,
            body: Vec::new(),
            id: ExchangeId { slot, serial: 0 },
            reply: HttpReply::new(self.budget.clone(), self.events.as_ref(), self.has_calls),
            is_open: true,
        });
        slot
    }

    /// Takes the next exchange whose reply is not complete by its deadline.
    pub(crate) fn pop_late(&mut self, now: Instant) -> Option<ExchangeSlot> {
        self.deadlines.pop_due(now)
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next_due()
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, slot: ExchangeSlot) -> HttpExchange {
        self.deadlines.remove(slot);
        let open = &mut self[slot];
        open.is_open = false;
        if let Some(events) = open.reply.events() {
            open.exchange.events = events.summary();
        }
        open.reply.clear();
        let exchange = open.exchange;
        self.free.push(slot);
        exchange
    }

    /// Returns an exchange if its slot was not used again since.
    pub(crate) fn get(&mut self, id: ExchangeId) -> Option<&mut OpenExchange> {
        let open = self.slots.get_mut(id.slot.index())?;
        (open.is_open && open.id == id).then_some(open)
    }

    /// True if an exchange is in progress.
    pub(crate) fn contains(&self, id: ExchangeId) -> bool {
        let open = self.slots.get(id.slot.index());
        open.is_some_and(|open| open.is_open && open.id == id)
    }

    /// Frees all slots.
    pub(crate) fn drain(&mut self) -> Vec<HttpExchange> {
        self.deadlines = Fifo::new();
        let open = self.slots.drain(..).filter(|open| open.is_open);
        let exchanges = open.map(|mut open| {
            let events = open.reply.events().map(|events| events.summary());
            HttpExchange {
                events: events.unwrap_or_default(),
                ..open.exchange
            }
        });
        let exchanges = exchanges.collect();
        self.free.clear();
        exchanges
    }
}

impl OpenExchange {
    /// Records the gaps between events since the last call.
    #[inline]
    pub(crate) fn record_gaps(&mut self, tally: &mut EventTally, start: Instant) {
        let due = self.exchange.due.at;
        let Some(events) = self.reply.events() else {
            return;
        };
        for gap in events.take_gaps() {
            if due >= start {
                tally.gap(due.since(start), gap);
            }
        }
    }
}

impl Index<ExchangeSlot> for Exchanges {
    type Output = OpenExchange;

    fn index(&self, slot: ExchangeSlot) -> &OpenExchange {
        let open = &self.slots[slot.index()];
        debug_assert!(open.is_open, "an exchange has ended");
        open
    }
}

impl IndexMut<ExchangeSlot> for Exchanges {
    fn index_mut(&mut self, slot: ExchangeSlot) -> &mut OpenExchange {
        let open = &mut self.slots[slot.index()];
        debug_assert!(open.is_open, "an exchange has ended");
        open
    }
}
