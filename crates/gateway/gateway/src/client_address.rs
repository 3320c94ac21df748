//! The address of a client, which a trusted proxy may not have named.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use posthaste_serve::Networks;
use serde::{Serialize, Serializer};

/// Address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientAddress {
    /// An IPv4 address in IPv6 notation is given as IPv4.
    Known(IpAddr),
    /// A trusted proxy sent a field that names no client. Such clients are in no network, and share their limits.
    Unknown,
}

impl ClientAddress {
    /// The name of the client for limits, fairness and prices: an IPv4 address, or the first `bits` of an IPv6 address.
    pub(crate) fn name(self, bits: u8) -> String {
        match self {
            Self::Known(IpAddr::V6(address)) if bits < 128 => {
                let kept = u128::MAX << (128 - u32::from(bits.max(1)));
                let network = Ipv6Addr::from_bits(address.to_bits() & kept);
                format!("{network}/{bits}")
            }
            address => address.to_string(),
        }
    }

    /// True if the address is known and in one of the networks.
    pub(crate) fn is_in(self, networks: &Networks) -> bool {
        match self {
            Self::Known(address) => networks.contains(address),
            Self::Unknown => false,
        }
    }
}

impl Serialize for ClientAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => address.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ipv6_is_named_by_its_network() {
        for (address, bits, wanted) in [
            ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"),
            ("2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::/48"),
            ("2001:db8::1", 128, "2001:db8::1"),
            ("2001:db8::1", 1, "::/1"),
            ("192.0.2.1", 64, "192.0.2.1"),
        ] {
            let address = ClientAddress::Known(address.parse().unwrap());
            assert_eq!(address.name(bits), wanted);
        }
        assert_eq!(ClientAddress::Unknown.name(64), "unknown");
    }
}
