//! Who is who inside an emulation: fixed addresses, so that scripts, patterns and captures of
//! one day read like those of another.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::Mac;

/// The addresses of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4, in [`NETWORK_V4`].
    pub v4: Ipv4Addr,
    /// IPv6, in [`NETWORK_V6`]; there only where the kernel has IPv6.
    pub v6: Ipv6Addr,
    /// Of its device `eth0`; locally administered.
    pub mac: Mac,
}

impl Addresses {
    /// Both, IPv4 first.
    pub fn both(&self) -> [IpAddr; 2] {
        [IpAddr::V4(self.v4), IpAddr::V6(self.v6)]
    }
}

/// The client's end: where connections usually begin.
pub const CLIENT: Addresses = host(1);

/// The server's end.
pub const SERVER: Addresses = host(2);

/// The network that both ends are in, and the length of its prefix.
pub const NETWORK_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 24);

/// The same for IPv6.
pub const NETWORK_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 64);

const fn host(number: u8) -> Addresses {
    Addresses {
        v4: Ipv4Addr::new(10, 0, 0, number),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number as u16),
        mac: [2, 0, 0, 0, 0, number],
    }
}
