//! Controls of the demo, and their bounds.

use posthaste_compression::{Policy, Wish};
use posthaste_link::profile::{Profile, named};
use posthaste_units::Dscp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Capacity of the shop in requests per second: it takes 10 ms per request, one after the other.
pub const CAPACITY: u32 = 100;
/// Maximum demand, in requests per second.
pub const MOST_DEMAND: u32 = 400;
/// Maximum budget, in cents. Clients that pay any price have no budget.
pub const MOST_BUDGET: u32 = 100;
/// Kinds of clients, in the order of [`Controls::clients`].
pub const KINDS: [&str; 4] = ["Phone", "Tablet", "Laptop", "Desktop"];
/// Compression policies that differ in the demo. `link` is not among them: it queries the kernel about a client's
/// connection, and here all connections are on loopback.
pub const COMPRESSIONS: [Policy; 4] = [
    Policy::Threshold,
    Policy::Ladder,
    Policy::Always,
    Policy::Never,
];

/// Marks that clients can request; the first means none.
pub const MARKS: [Dscp; 5] = [Dscp::DEFAULT, Dscp::EF, Dscp::AF21, Dscp::AF11, Dscp::LE];

/// Everything that can be changed while the demo runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controls {
    /// Demand in requests per second, at most [`MOST_DEMAND`]; a quarter from each kind of client.
    pub demand: u32,
    /// Admission policy of the gateway.
    pub protection: AdmissionPolicy,
    /// Compression policy: one of [`COMPRESSIONS`].
    #[serde(serialize_with = "in_words", deserialize_with = "policy")]
    pub compression: Policy,
    /// Kinds of clients, as in [`KINDS`].
    pub clients: [ClientControls; 4],
}

/// One kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Client", deny_unknown_fields)]
pub struct ClientControls {
    /// Maximum price of a request in cents, up to [`MOST_BUDGET`]; null pays any price.
    pub budget: Option<u32>,
    /// Network between client and gateway.
    pub network: ClientNetwork,
    /// Compression preference.
    #[serde(serialize_with = "in_words", deserialize_with = "wish")]
    pub wish: Wish,
    /// Requested mark for the packets of its replies: one of [`MARKS`].
    pub mark: Dscp,
}

/// Admission policy of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Protection", rename_all = "kebab-case")]
pub enum AdmissionPolicy {
    /// A price, set by a fast proportional-integral controller.
    ProportionalIntegral,
    /// A price that moves in the thesis's steps, ten times as fast.
    Steps,
    /// A price that moves by RAJOMON's rules.
    Rajomon,
    /// An adaptive limit on requests in service.
    Limit,
    /// A fixed rate of nine tenths of the shop's capacity.
    Rate,
    /// None: all requests are admitted.
    None,
}

/// Network between a client and the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Network")]
pub enum ClientNetwork {
    /// GPRS.
    #[serde(rename = "gprs")]
    Gprs,
    /// Bluetooth 1.1.
    #[serde(rename = "bluetooth")]
    Bluetooth,
    /// 802.11b.
    #[serde(rename = "wlan-802.11b")]
    Wlan,
    /// LTE.
    #[serde(rename = "lte")]
    Lte,
    /// Ethernet.
    #[serde(rename = "lan")]
    Lan,
}

/// Invalid controls.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutOfBounds {
    /// Demand above the maximum.
    #[error("demand is from 0 to {MOST_DEMAND} requests per second, not {0}")]
    Demand(u32),
    /// Budget above the maximum.
    #[error("a budget is from 0 to {MOST_BUDGET} cents, or null for any price, not {0}")]
    Budget(u32),
    /// Compression policy without effect in the demo.
    #[error("compression is threshold, ladder, always or never here, not {0}")]
    Compression(Policy),
    /// Mark that the gateway does not allow.
    #[error("marks are {list} here, not {0}", list = MARKS.map(|mark| mark.to_string()).join(", "))]
    Mark(Dscp),
}

impl Default for Controls {
    /// Demand below the capacity, and clients as in figure 70 of the thesis: three with budgets and one without.
    fn default() -> Self {
        let client = |budget, network, wish, mark| ClientControls {
            budget,
            network,
            wish,
            mark,
        };
        Self {
            demand: 60,
            protection: AdmissionPolicy::ProportionalIntegral,
            compression: Policy::Threshold,
            clients: [
                client(Some(10), ClientNetwork::Gprs, Wish::Always, Dscp::AF21),
                client(
                    Some(40),
                    ClientNetwork::Bluetooth,
                    Wish::IfPossible,
                    Dscp::DEFAULT,
                ),
                client(Some(50), ClientNetwork::Wlan, Wish::Unstated, Dscp::AF11),
                client(None, ClientNetwork::Lan, Wish::Never, Dscp::LE),
            ],
        }
    }
}

impl Controls {
    /// Rejects values that the types allow and the demo does not.
    pub fn check(&self) -> Result<(), OutOfBounds> {
        if self.demand > MOST_DEMAND {
            return Err(OutOfBounds::Demand(self.demand));
        }
        if !COMPRESSIONS.contains(&self.compression) {
            return Err(OutOfBounds::Compression(self.compression));
        }
        let mut marks = self.clients.iter().map(|client| client.mark);
        if let Some(mark) = marks.find(|mark| !MARKS.contains(mark)) {
            return Err(OutOfBounds::Mark(mark));
        }
        let mut budgets = self.clients.iter().filter_map(|client| client.budget);
        match budgets.find(|budget| *budget > MOST_BUDGET) {
            Some(budget) => Err(OutOfBounds::Budget(budget)),
            None => Ok(()),
        }
    }
}

/// Formats cents as a price in EUR.
pub(crate) fn euros(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

impl AdmissionPolicy {
    /// All policies, in the order of the page.
    pub const ALL: [Self; 6] = [
        Self::ProportionalIntegral,
        Self::Steps,
        Self::Rajomon,
        Self::Limit,
        Self::Rate,
        Self::None,
    ];

    /// Returns true if requests have a price.
    pub const fn is_priced(self) -> bool {
        matches!(
            self,
            Self::ProportionalIntegral | Self::Steps | Self::Rajomon
        )
    }

    /// Label on the page.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ProportionalIntegral => "price, moved by proportional-integral",
            Self::Steps => "price, moved in the thesis's steps",
            Self::Rajomon => "price, moved by RAJOMON's rules",
            Self::Limit => "a limit that adapts, without prices",
            Self::Rate => "a fixed rate, 90 requests/s",
            Self::None => "none: every request is admitted",
        }
    }
}

impl ClientNetwork {
    /// All networks, slowest first.
    pub const ALL: [Self; 5] = [
        Self::Gprs,
        Self::Bluetooth,
        Self::Wlan,
        Self::Lte,
        Self::Lan,
    ];

    /// Label on the page.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gprs => "GPRS",
            Self::Bluetooth => "Bluetooth",
            Self::Wlan => "Wi-Fi (802.11b)",
            Self::Lte => "LTE",
            Self::Lan => "LAN",
        }
    }

    /// Link profile of the network.
    pub fn profile(self) -> &'static Profile {
        let name = match self {
            Self::Gprs => "gprs",
            Self::Bluetooth => "bluetooth",
            Self::Wlan => "wlan-802.11b",
            Self::Lte => "lte",
            Self::Lan => "lan",
        };
        named(name).expect("a profile of the link crate")
    }
}

fn in_words<S: Serializer>(value: &impl ToString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&value.to_string())
}

fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<Policy, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn wish<'de, D: Deserializer<'de>>(from: D) -> Result<Wish, D::Error> {
    let name = String::deserialize(from)?;
    let found = Wish::ALL.into_iter().find(|wish| wish.name() == name);
    found.ok_or_else(|| {
        let all = Wish::ALL.map(Wish::name).join(", ");
        D::Error::custom(format!("there is no wish {name:?}: write one of {all}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: impl FnOnce(&mut serde_json::Value)) -> Result<Controls, String> {
        let mut value = serde_json::to_value(Controls::default()).unwrap();
        change(&mut value);
        let controls: Controls =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        controls.check().map_err(|error| error.to_string())?;
        Ok(controls)
    }

    #[test]
    fn controls_are_read_back_with_networks_by_profile_name() {
        assert_eq!(read(|_| {}), Ok(Controls::default()));
        for network in ClientNetwork::ALL {
            let written = serde_json::to_value(network).unwrap();
            assert_eq!(written, network.profile().name);
        }
    }

    #[test]
    fn bounds_are_part_of_the_range_and_nothing_beyond_is() {
        let at_the_bound = read(|all| {
            all["demand"] = MOST_DEMAND.into();
            all["clients"][0]["budget"] = MOST_BUDGET.into();
            all["clients"][1]["budget"] = 0.into();
            all["clients"][2]["budget"] = serde_json::Value::Null;
        });
        assert_eq!(at_the_bound.unwrap().clients[2].budget, None);
        for (pointer, value, message) in [
            ("/demand", 401.into(), "0 to 400"),
            ("/demand", (-1).into(), "u32"),
            ("/demand", "60".into(), "u32"),
            ("/protection", "luck".into(), "unknown variant"),
            ("/compression", "link".into(), "threshold, ladder"),
            ("/compression", "zip".into(), "no policy"),
            ("/clients/0/budget", 101.into(), "0 to 100"),
            ("/clients/0/network", "3g".into(), "unknown variant"),
            ("/clients/0/wish", "perhaps".into(), "no wish"),
            ("/clients/0/mark", "va".into(), "ef, af21"),
            ("/clients/0/mark", "gold".into(), "gold"),
        ] {
            let found: serde_json::Value = value;
            let error = read(|all| *all.pointer_mut(pointer).unwrap() = found).unwrap_err();
            assert!(error.contains(message), "{pointer}: {error}");
        }
        let three = read(|all| drop(all["clients"].as_array_mut().unwrap().pop()));
        assert!(
            three.unwrap_err().contains("length"),
            "four kinds, no fewer"
        );
        let more = read(|all| all["colour"] = "red".into());
        assert!(more.unwrap_err().contains("unknown field"));
    }
}
