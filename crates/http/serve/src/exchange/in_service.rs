//! Requests in service.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use crate::connection::peer::Peer;
use crate::connection::timer::ConnectionPhase;
use crate::counters::add_one;

/// A request in service, from its head to the end of its reply or the client's cancellation (HTTP/2 resets a stream and
/// keeps its connection).
pub(crate) struct InService(Rc<Peer>);

impl InService {
    pub(crate) fn begin(peer: Rc<Peer>) -> Self {
        let (thread, connection) = (&peer.thread, &peer.connection);
        if connection.begin_request(&peer.timer, thread.ticks.get()) {
            thread.candidates.remove_silent(peer.number);
        }
        add_one(&thread.server.counters.in_service);
        peer.reading(false);
        Self(peer)
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.0
    }

    #[cfg(feature = "http3")]
    pub(crate) fn shared_peer(&self) -> Rc<Peer> {
        self.0.clone()
    }

    /// The client has just taken data; a ready part of the reply waits for it again.
    pub(crate) fn progressed(&self) {
        self.enter(ConnectionPhase::Replying);
    }

    pub(crate) fn enter(&self, phase: ConnectionPhase) {
        self.0.enter(phase);
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        let Peer {
            connection,
            thread,
            timer,
            ..
        } = &*self.0;
        connection.end_request(timer, thread.ticks.get());
        let before = thread.server.counters.in_service.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a request in service ends once");
    }
}
