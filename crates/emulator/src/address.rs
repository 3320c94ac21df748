//! Fixed addresses of an emulation, so that scripts, patterns and captures of different runs are comparable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::Mac;

/// Addresses of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4, in [`NETWORK_V4`].
    pub v4: Ipv4Addr,
    /// IPv6, in [`NETWORK_V6`]. Set up only if the kernel has IPv6.
    pub v6: Ipv6Addr,
    /// MAC address of its device `eth0`; locally administered.
    pub mac: Mac,
}

impl Addresses {
    /// Both IP addresses, IPv4 first.
    pub fn both(&self) -> [IpAddr; 2] {
        [IpAddr::V4(self.v4), IpAddr::V6(self.v6)]
    }
}

/// The client's end, from where connections usually begin.
pub const CLIENT: Addresses = host(1);

/// The server's end.
pub const SERVER: Addresses = host(2);

/// IPv4 network of both ends, and the length of its prefix.
pub const NETWORK_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 24);

/// IPv6 network of both ends, and the length of its prefix.
pub const NETWORK_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 64);

const fn host(number: u8) -> Addresses {
    Addresses {
        v4: Ipv4Addr::new(10, 0, 0, number),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number as u16),
        mac: [2, 0, 0, 0, 0, number],
    }
}
