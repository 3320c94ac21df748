//! Exchanges in progress: an attempt of a request and the reply to it, apart from the connection that carries them.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use posthaste_units::Instant;

use crate::reply::{Budget, Reply};
use crate::source::Due;
use crate::tally::Moments;

/// One sending of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Planned time of sending: that of the request, or the end of a back-off.
    pub(crate) due: Instant,
}

/// An attempt of a request, and its moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) due: Due,
    pub(crate) request: usize,
    pub(crate) attempt: Attempt,
    /// Status of the reply, once it is complete.
    pub(crate) status: Option<u16>,
    pub(crate) moments: Moments,
    /// True if the request carries a quote.
    pub(crate) quoted: bool,
}

/// An exchange in progress.
pub(crate) struct OpenExchange {
    pub(crate) exchange: Exchange,
    /// Slot of the connection that carries it.
    pub(crate) connection: u32,
    pub(crate) reply: Reply,
    is_open: bool,
}

/// The exchanges in progress, by slot. A slot keeps the memory of its reply for the next exchange.
pub(crate) struct Exchanges {
    slots: Vec<OpenExchange>,
    free: Vec<u32>,
    /// Memory for coded replies, if they are kept.
    budget: Option<Arc<Budget>>,
}

impl Exchanges {
    pub(crate) fn new(budget: Option<Arc<Budget>>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            budget,
        }
    }

    /// Assigns a slot.
    pub(crate) fn insert(&mut self, exchange: Exchange, connection: u32) -> u32 {
        if let Some(slot) = self.free.pop() {
            let open = &mut self.slots[slot as usize];
            debug_assert!(!open.is_open, "the slot of an open exchange is free");
            open.exchange = exchange;
            open.connection = connection;
            open.is_open = true;
            return slot;
        }
        let budget = self.budget.clone();
        self.slots.push(OpenExchange {
            exchange,
            connection,
            reply: budget.map_or_else(Reply::default, Reply::keeping_coded),
            is_open: true,
        });
        (self.slots.len() - 1) as u32
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Exchange {
        let open = &mut self[slot];
        open.is_open = false;
        open.reply.release_body();
        let exchange = open.exchange;
        self.free.push(slot);
        exchange
    }

    /// Frees all slots.
    pub(crate) fn drain(&mut self) -> Vec<Exchange> {
        let open = self.slots.drain(..).filter(|open| open.is_open);
        let exchanges = open.map(|open| open.exchange).collect();
        self.free.clear();
        exchanges
    }
}

impl Index<u32> for Exchanges {
    type Output = OpenExchange;

    fn index(&self, slot: u32) -> &OpenExchange {
        let open = &self.slots[slot as usize];
        debug_assert!(open.is_open, "an exchange has ended");
        open
    }
}

impl IndexMut<u32> for Exchanges {
    fn index_mut(&mut self, slot: u32) -> &mut OpenExchange {
        let open = &mut self.slots[slot as usize];
        debug_assert!(open.is_open, "an exchange has ended");
        open
    }
}
