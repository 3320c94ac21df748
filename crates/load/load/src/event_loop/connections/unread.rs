//! Connections with more to read than one turn permits. They get no further event, because epoll reports changes only.

use super::LoopConnections;
use crate::exchange::slots::{ConnectionId, ConnectionSlot};

/// A connection that is read on in the next turn.
pub(in super::super) struct Unread {
    pub(in super::super) id: ConnectionId,
    /// True if the server has closed it.
    pub(in super::super) closing: bool,
}

impl LoopConnections<'_> {
    /// Reads on in the next turn.
    pub(in super::super) fn read_later(&mut self, slot: ConnectionSlot, closing: bool) {
        let id = self[slot].id;
        match self.unread.iter_mut().find(|unread| unread.id == id) {
            Some(unread) => unread.closing |= closing,
            None => self.unread.push(Unread { id, closing }),
        }
    }

    /// True if a connection is read on in the next turn.
    pub(in super::super) const fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Takes the connections that were left for this turn.
    pub(in super::super) fn take_unread(&mut self) -> Vec<Unread> {
        std::mem::take(&mut self.unread)
    }
}
