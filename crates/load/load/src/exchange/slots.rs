//! Slots of open connections and of exchanges in progress, and their ids. A slot is used again after its end; an id is
//! not.

/// An index into a table whose entries are used again.
pub(crate) trait Slot: Copy {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Slot of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionSlot(u32);

/// A connection: its slot, and a serial number to tell it from other connections in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId {
    pub(crate) slot: ConnectionSlot,
    pub(crate) serial: u32,
}

/// Slot of an exchange in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExchangeSlot(u32);

/// An exchange: its slot, and the number of exchanges in the slot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangeId {
    pub(crate) slot: ExchangeSlot,
    pub(crate) serial: u32,
}

impl Slot for ConnectionSlot {
    fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Slot for ExchangeSlot {
    fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl ConnectionId {
    /// The connection of an event of epoll.
    pub(crate) const fn from_token(token: u64) -> Self {
        Self {
            slot: ConnectionSlot(token as u32),
            serial: (token >> 32) as u32,
        }
    }

    /// The token that epoll returns with each event of the connection.
    pub(crate) fn token(self) -> u64 {
        u64::from(self.serial) << 32 | u64::from(self.slot.0)
    }
}

impl ExchangeSlot {
    /// The exchange of a stream.
    pub(crate) const fn from_token(token: u32) -> Self {
        Self(token)
    }

    /// The token by which a client of HTTP/2 or HTTP/3 names the stream of the exchange.
    pub(crate) const fn token(self) -> u32 {
        self.0
    }
}
