//! Marking of a connection's packets: differentiated services (RFC 2474), one mark for each reply.
//!
//! A socket has one mark, and retransmissions carry the socket's current mark. So the mark changes only between two
//! replies, after the peer has acknowledged the previous one. A client that sends its next request after the reply
//! acknowledges it thereby, without delay. With pipelining, a reply with another mark waits for a round trip. HTTP/2
//! streams share a connection, so it keeps the mark of its first reply.

use std::time::Duration;

use posthaste_units::Dscp;
use tokio::time::sleep;

use crate::connection::peer::Peer;
use crate::counters::add_one;
use crate::exchange::in_service::InService;

/// First and maximum pause between checks for acknowledgements.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));

/// Sets the connection's mark for a reply that is about to begin, after the previous reply is acknowledged. The write
/// timeout ends a peer that acknowledges nothing meanwhile.
pub(crate) async fn begin_reply(in_service: &InService, mark: Dscp) {
    let peer = in_service.peer();
    let (current, counters) = (&peer.connection.mark, &peer.thread.server.counters);
    let begun = current.begun.replace(true);
    if mark != current.present.get() {
        if begun && peer.connection.is_multiplexed() {
            add_one(&counters.marks_shared);
        } else {
            if begun {
                wait_for_acknowledgement(in_service).await;
            }
            change(peer, mark);
        }
    }
}

/// Waits until all written data is acknowledged. It is all in the socket, because hyper starts a request after flushing
/// the previous reply.
async fn wait_for_acknowledgement(in_service: &InService) {
    let Peer {
        connection, thread, ..
    } = in_service.peer();
    let left = || connection.unacknowledged();
    let (mut last, mut pause) = (left(), PAUSE.0);
    if last > 0 {
        add_one(&thread.server.counters.marks_waited);
        in_service.progressed();
    }
    while last > 0 {
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
        let now = left();
        if now < last {
            in_service.progressed();
        }
        last = now;
    }
}

/// Changes the mark. If the kernel refuses, the mark stays and the reply is sent.
fn change(peer: &Peer, mark: Dscp) {
    let (connection, counters) = (&peer.connection, &peer.thread.server.counters);
    let Some(socket) = connection.socket() else {
        return;
    };
    match socket.mark(peer.sender().ip(), mark) {
        Ok(()) => {
            connection.mark.present.set(mark);
            add_one(&counters.marks_set);
        }
        Err(error) => {
            if add_one(&counters.marks_refused) == 0 {
                tracing::warn!(%error, %mark, "the kernel refuses to mark packets");
            }
        }
    }
}
