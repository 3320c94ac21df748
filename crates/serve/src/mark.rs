//! Marking of a connection's packets: differentiated services (RFC 2474), one mark for each reply.
//!
//! A socket has one mark, and retransmissions carry the socket's current mark. So the mark changes only between two
//! replies, after the peer has acknowledged the previous one. A client that sends its next request after the reply
//! acknowledges it thereby, without delay. With pipelining, a reply with another mark waits for a round trip. HTTP/2
//! streams share a connection, so it keeps the mark of its first reply.

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use posthaste_units::Dscp;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
use tokio::time::sleep;

use crate::connection::{InService, Peer};
use crate::counters::add_one;
use crate::queues::unacknowledged;

/// First and maximum pause between checks for acknowledgements.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(16));

/// The mark of one connection's packets.
#[derive(Debug, Default)]
pub(crate) struct Marking {
    present: Cell<Dscp>,
    /// A reply has been started.
    begun: Cell<bool>,
}

/// Sets the connection's mark for a reply that is about to begin, after the previous reply is acknowledged. The write
/// timeout ends a peer that acknowledges nothing meanwhile.
pub(crate) async fn begin_reply(in_service: &InService, mark: Dscp) {
    let peer = in_service.peer();
    let (marking, counters) = (&peer.connection.marking, &peer.thread.server.counters);
    let begun = marking.begun.replace(true);
    if mark != marking.present.get() {
        if begun && peer.connection.is_http2() {
            add_one(&counters.marks_shared);
        } else {
            if begun {
                settle(in_service).await;
            }
            change(peer, mark);
        }
    }
}

/// Waits until all written data is acknowledged. It is all in the socket, because hyper starts a request after flushing
/// the previous reply.
async fn settle(in_service: &InService) {
    let Peer {
        connection, thread, ..
    } = in_service.peer();
    let left = || connection.socket().map_or(0, unacknowledged);
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
    // SAFETY: a connection forgets its socket before that is closed.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    match set_mark(socket, peer.address.ip(), mark) {
        Ok(()) => {
            connection.marking.present.set(mark);
            add_one(&counters.marks_set);
        }
        Err(error) => {
            if add_one(&counters.marks_refused) == 0 {
                tracing::warn!(%error, %mark, "the kernel refuses to mark packets");
            }
        }
    }
}

/// Marks all further packets of a TCP socket to `peer`, by IPv4's TOS byte or IPv6's traffic class. The kernel keeps
/// the two ECN bits. An IPv4-mapped IPv6 address counts as IPv4.
pub(crate) fn set_mark(socket: impl AsFd, peer: IpAddr, mark: Dscp) -> io::Result<()> {
    let byte = mark.traffic_class();
    match peer.to_canonical() {
        IpAddr::V4(_) => set_ip_tos(socket, byte)?,
        IpAddr::V6(_) => set_ipv6_tclass(socket, byte.into())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use rustix::net::sockopt::{ip_tos, ipv6_tclass};

    use super::*;

    #[test]
    fn each_kind_of_address_is_marked_where_its_packets_say_it() {
        let both = TcpListener::bind("[::]:0").unwrap();
        let port = both.local_addr().unwrap().port();
        let accepted = |address: &str| {
            let client = TcpStream::connect((address, port)).unwrap();
            let (server, peer) = both.accept().unwrap();
            (client, server, peer.ip())
        };
        let (_client, mapped, peer) = accepted("127.0.0.1");
        assert!(peer.is_ipv6());
        set_mark(&mapped, peer, Dscp::AF11).unwrap();
        assert_eq!(ip_tos(&mapped).unwrap(), 0x28);
        let (_client, v6, peer) = accepted("::1");
        set_mark(&v6, peer, Dscp::EF).unwrap();
        assert_eq!(ipv6_tclass(&v6).unwrap(), 0xb8);
        set_mark(&v6, peer, Dscp::DEFAULT).unwrap();
        assert_eq!(ipv6_tclass(&v6).unwrap(), 0);
    }
}
