//! The record of an accepted connection, from its accept to its end.

use std::rc::Rc;

use tokio::sync::OwnedSemaphorePermit;

use crate::connection::peer::Peer;

/// An accepted connection. Its end is recorded when it is dropped, because a task may panic.
pub(crate) struct OpenConnection {
    peer: Rc<Peer>,
    _slot: Option<OwnedSemaphorePermit>,
}

impl OpenConnection {
    pub(crate) const fn new(peer: Rc<Peer>, slot: Option<OwnedSemaphorePermit>) -> Self {
        Self { peer, _slot: slot }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.peer.thread.close(self.peer.number);
    }
}
