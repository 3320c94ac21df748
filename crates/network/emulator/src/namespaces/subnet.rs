//! An IP network for both ends of an emulation, as given by a user.
//!
//! Refused are networks in which the two hosts would not work: too small, or with addresses that kernels treat in
//! another way, or with those that the resolvers have inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// Addresses of the resolvers inside, of a network for documentation (RFC 5737). The C library uses at most three.
pub(crate) const RESOLVERS: [Ipv4Addr; 3] = [
    Ipv4Addr::new(192, 0, 2, 53),
    Ipv4Addr::new(192, 0, 2, 54),
    Ipv4Addr::new(192, 0, 2, 55),
];

/// An IP network, in the form `192.168.77.0/24` or `fd12:3456::/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// Reason against a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubnetError {
    /// Not an address with the length of a prefix.
    #[error(
        "write a network with the length of its prefix, for example 192.168.77.0/24 or fd12:3456::/64"
    )]
    Syntax,
    /// Fewer than two addresses for hosts.
    #[error("{0} has no room for two hosts; the length of the prefix is at most {1}")]
    Small(Subnet, u8),
    /// An address inside the network, instead of its first.
    #[error("the address has bits after the prefix; write {0}")]
    HostBits(Subnet),
    /// Addresses with another use.
    #[error("{0} has addresses {1}; choose another, for example 192.168.77.0/24 or fd12:3456::/64")]
    Reserved(Subnet, &'static str),
    /// Two networks of one IP version.
    #[error("name at most one network of IPv4 and one of IPv6")]
    Several,
}

/// Networks with another use: address, length of the prefix, use. RFC 6890, and RFC 4291, section 2.4.
const RESERVED: &[(IpAddr, u8, &str)] = &[
    (v4(0), 8, "of no host (0.0.0.0/8)"),
    (v4(127), 8, "of loopback (127.0.0.0/8)"),
    (v4(224), 4, "of groups (multicast, 224.0.0.0/4)"),
    (v4(240), 4, "reserved by the IETF (240.0.0.0/4)"),
    (v6(0), 8, "reserved by the IETF, such as loopback (::/8)"),
    (v6(0xfe80), 10, "that need a device (link-local, fe80::/10)"),
    (v6(0xff00), 8, "of groups (multicast, ff00::/8)"),
];

const fn v4(first: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(first, 0, 0, 0))
}

const fn v6(first: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0))
}

impl Subnet {
    /// The network's own address: the first.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Length of the prefix in bits.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// True if an address belongs to both.
    fn overlaps(&self, other: &Self) -> bool {
        let shorter = self.prefix.min(other.prefix);
        self.address.is_ipv4() == other.address.is_ipv4()
            && masked(self.address, shorter) == masked(other.address, shorter)
    }

    /// The use of some of its addresses that excludes it.
    fn reserved(&self) -> Option<&'static str> {
        let resolvers = RESOLVERS.map(|address| {
            (
                address.into(),
                32,
                "of the resolvers inside (192.0.2.53 to 192.0.2.55)",
            )
        });
        RESERVED
            .iter()
            .copied()
            .chain(resolvers)
            .find(|&(address, prefix, _)| self.overlaps(&Self { address, prefix }))
            .map(|(.., purpose)| purpose)
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let read = || {
            let (address, prefix) = text.split_once('/')?;
            Some((address.parse().ok()?, prefix.parse().ok()?))
        };
        let (address, prefix): (IpAddr, u8) = read().ok_or(SubnetError::Syntax)?;
        let bits = bits(address);
        if prefix > bits {
            return Err(SubnetError::Syntax);
        }
        let subnet = Self {
            address: masked(address, prefix),
            prefix,
        };
        // Two hosts, the network's own address, and the one of broadcasts.
        if prefix > bits - 2 {
            Err(SubnetError::Small(subnet, bits - 2))
        } else if subnet.address != address {
            Err(SubnetError::HostBits(subnet))
        } else if let Some(purpose) = subnet.reserved() {
            Err(SubnetError::Reserved(subnet, purpose))
        } else {
            Ok(subnet)
        }
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Bits of an address.
const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with only the first `prefix` bits.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let zeros = u32::from(bits(address) - prefix);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(zeros).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(zeros).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        let refusal = text.parse::<Subnet>().expect_err(text);
        refusal.to_string()
    }

    #[test]
    fn networks_are_read_and_written() {
        for text in [
            "10.0.0.0/24",
            "192.168.77.252/30",
            "192.0.2.0/27",
            "192.0.2.128/25",
            "169.254.0.0/16",
            "fd12:3456::/64",
            "2001:db8::/126",
        ] {
            let subnet: Subnet = text.parse().unwrap();
            assert_eq!(subnet.to_string(), text);
        }
    }

    #[test]
    fn unsuitable_networks_are_refused_with_the_reason() {
        for (text, purpose) in [
            ("", "for example"),
            ("10.0.0.0", "192.168.77.0/24"),
            ("10.0.0/24", "for example"),
            ("10.0.0.0/33", "for example"),
            ("fd00::/129", "for example"),
            ("fd00::%1/64", "for example"),
            ("10.0.0.0/-1", "for example"),
            ("10.0.0.0/31", "at most 30"),
            ("10.0.0.1/32", "at most 30"),
            ("fd00::/127", "at most 126"),
            ("192.168.77.5/24", "write 192.168.77.0/24"),
            ("fd00::1/64", "write fd00::/64"),
            ("0.0.0.0/0", "0.0.0.0/8"),
            ("0.0.0.0/1", "0.0.0.0/8"),
            ("127.0.7.0/24", "loopback"),
            ("126.0.0.0/7", "loopback"),
            ("239.1.0.0/16", "multicast"),
            ("255.255.255.0/24", "reserved"),
            ("192.0.2.0/24", "resolvers"),
            ("192.0.2.52/30", "resolvers"),
            ("::/64", "loopback"),
            ("::ffff:0.0.0.0/120", "reserved"),
            ("fe80::/64", "link-local"),
            ("ff02::/64", "multicast"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(purpose), "{text}: {refusal}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f:./%+-]{0,24}") {
            if let Ok(subnet) = text.parse::<Subnet>() {
                prop_assert_eq!(subnet.to_string().parse(), Ok(subnet));
                prop_assert!(subnet.prefix() <= bits(subnet.address()) - 2);
            }
        }

        #[test]
        fn the_advice_against_host_bits_is_accepted(
            address in any::<IpAddr>(),
            prefix in 0_u8..=126,
        ) {
            let text = format!("{address}/{prefix}");
            if let Err(SubnetError::HostBits(advice)) = text.parse::<Subnet>() {
                let again = advice.to_string().parse::<Subnet>();
                let is_free = advice.reserved().is_none();
                prop_assert_eq!(again.is_ok(), is_free, "{} {:?}", advice, again);
            }
        }
    }
}
