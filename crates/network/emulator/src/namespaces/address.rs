//! Addresses of an emulation. They are the same in every run unless a [`Subnet`] replaces them, so that scripts, patterns
//! and captures of different runs are comparable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::namespaces::netlink::Mac;
use crate::namespaces::subnet::{Subnet, SubnetError};

/// Addresses of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4, in the IPv4 network of [`Subnets`].
    pub v4: Ipv4Addr,
    /// IPv6, in the IPv6 network of [`Subnets`]. Set up only if the kernel has IPv6.
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

/// The networks of both ends, with the lengths of their prefixes. The client has the first address of each, the server
/// the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnets {
    v4: (Ipv4Addr, u8),
    v6: (Ipv6Addr, u8),
}

/// The client's end by default, from where connections usually begin.
pub const CLIENT: Addresses = Subnets::DEFAULT.client();

/// The server's end by default.
pub const SERVER: Addresses = Subnets::DEFAULT.server();

impl Subnets {
    /// 10.0.0.0/24 and fd00::/64.
    pub const DEFAULT: Self = Self {
        v4: (Ipv4Addr::new(10, 0, 0, 0), 24),
        v6: (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 64),
    };

    /// These networks, at most one of each IP version. The other one is that of [`Subnets::DEFAULT`].
    pub fn new(replacements: &[Subnet]) -> Result<Self, SubnetError> {
        let of_v4 = |subnet: &&Subnet| subnet.address().is_ipv4();
        let v4 = replacements.iter().filter(of_v4).count();
        if v4 > 1 || replacements.len() - v4 > 1 {
            return Err(SubnetError::Several);
        }
        let mut subnets = Self::DEFAULT;
        for subnet in replacements {
            match subnet.address() {
                IpAddr::V4(address) => subnets.v4 = (address, subnet.prefix()),
                IpAddr::V6(address) => subnets.v6 = (address, subnet.prefix()),
            }
        }
        Ok(subnets)
    }

    /// The client's addresses.
    pub const fn client(&self) -> Addresses {
        self.host(1)
    }

    /// The server's addresses.
    pub const fn server(&self) -> Addresses {
        self.host(2)
    }

    /// Both networks, IPv4 first.
    pub(crate) fn both(&self) -> [(IpAddr, u8); 2] {
        [(self.v4.0.into(), self.v4.1), (self.v6.0.into(), self.v6.1)]
    }

    const fn host(&self, number: u8) -> Addresses {
        Addresses {
            v4: Ipv4Addr::from_bits(self.v4.0.to_bits() | number as u32),
            v6: Ipv6Addr::from_bits(self.v6.0.to_bits() | number as u128),
            mac: [2, 0, 0, 0, 0, number],
        }
    }
}

impl Default for Subnets {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnets(texts: &[&str]) -> Result<Subnets, SubnetError> {
        let read: Vec<Subnet> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Subnets::new(&read)
    }

    #[test]
    fn hosts_have_the_first_addresses_of_their_networks() {
        for (texts, client, server) in [
            (&[][..], ["10.0.0.1", "fd00::1"], ["10.0.0.2", "fd00::2"]),
            (
                &["192.168.77.8/30"],
                ["192.168.77.9", "fd00::1"],
                ["192.168.77.10", "fd00::2"],
            ),
            (
                &["2001:db8:7::/126", "172.16.0.0/12"],
                ["172.16.0.1", "2001:db8:7::1"],
                ["172.16.0.2", "2001:db8:7::2"],
            ),
        ] {
            let subnets = subnets(texts).unwrap();
            let texts = |host: Addresses| host.both().map(|address| address.to_string());
            assert_eq!(texts(subnets.client()), client);
            assert_eq!(texts(subnets.server()), server);
            assert_eq!(subnets.client().mac, CLIENT.mac);
        }
    }

    #[test]
    fn a_version_has_one_network() {
        for texts in [["10.1.0.0/24", "10.2.0.0/24"], ["fd01::/64", "fd01::/64"]] {
            assert_eq!(subnets(&texts), Err(SubnetError::Several));
        }
    }
}
