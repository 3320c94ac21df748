//! The mark of one socket's packets: differentiated services (RFC 2474).

use std::cell::Cell;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use posthaste_units::Dscp;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};

/// The mark of one connection's packets.
#[derive(Debug, Default)]
pub(crate) struct SocketMark {
    pub(crate) present: Cell<Dscp>,
    /// A reply has been started.
    pub(crate) begun: Cell<bool>,
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
