//! Sets of IP networks.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A set of IP networks, written as `10.0.0.0/8`, `2001:db8::/32` or single addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Returns the set of one network or address. `None` if `text` is neither.
    pub fn one(text: &str) -> Option<Self> {
        read(text).map(|network| Self(vec![network]))
    }

    /// True if no address belongs to the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the address belongs to one of the networks. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl<'de> Deserialize<'de> for Networks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let networks = texts.iter().map(|text| {
            read(text).ok_or_else(|| {
                D::Error::custom(format!(
                    "{text:?} is no network: write an address, or an address and the length of the prefix, such as 10.0.0.0/8"
                ))
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }
}

fn read(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().ok().map(IpNet::from);
    address.or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct NetworkTable {
        networks: Networks,
    }

    fn networks(list: &str) -> Result<Networks, toml::de::Error> {
        let table = toml::from_str::<NetworkTable>(&format!("networks = {list}"))?;
        Ok(table.networks)
    }

    #[test]
    fn addresses_belong_to_networks() {
        let set = networks("[\"10.1.0.0/16\", \"192.0.2.7\", \"2001:db8::/32\"]").unwrap();
        for (address, belongs) in [
            ("10.1.255.1", true),
            ("10.2.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:10.1.2.3", true),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(set.contains(address.parse().unwrap()), belongs, "{address}");
        }
        assert!(!networks("[]").unwrap().contains([127, 0, 0, 1].into()));
        let one = Networks::one("10.1.0.0/16").unwrap();
        assert!(one.contains([10, 1, 2, 3].into()) && !one.contains([10, 2, 0, 1].into()));
        assert_eq!(Networks::one("10.1.0"), None);
    }

    #[test]
    fn errors_name_the_text() {
        for text in ["10.0.0.0/33", "shop.example", ""] {
            let error = networks(&format!("[{text:?}]")).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
