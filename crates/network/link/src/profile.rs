//! Named access networks and paths, as data with sources.
//!
//! Figures are for the whole path in one direction, without loss unless the source gives one. Values derived from a
//! source instead of read in it are marked (calc).

use std::fmt;

use posthaste_units::{BitRate, Span};
use thiserror::Error;

use crate::{Direction, Plan};

/// A named network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name on command lines.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of the numbers: title and publisher.
    pub source: &'static str,
    /// Direction from the client.
    pub up: ProfileDirection,
    /// Direction to the client.
    pub down: ProfileDirection,
}

/// One direction of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileDirection {
    /// Bandwidth in bit/s; zero if the path sets no limit.
    bits: u64,
    /// One-way delay.
    pub delay: Span,
    /// Bytes on the line in addition to each packet.
    pub overhead: u32,
}

const WEBPAGETEST: &str = "WebPageTest, connectivity.ini.sample (WPO Foundation, Catchpoint): rates, and half of its round-trip time each way";

const WSQOS: &str = "M. Tian, QoS integration in Web services with the WS-QoS framework (FU Berlin, 2005), chapter 7: 800 ms down and 500 ms up";

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "lan",
        about: "Ethernet at 100 Mbit/s through a switch or two",
        source: "IEEE 802.3, 100BASE-TX: preamble, header, check sequence and gap are 38 bytes a packet; J. Dean, Designs, Lessons and Advice from Building Large Distributed Systems (LADIS 2009): 0.5 ms round trip within a data centre",
        up: way(100_000_000, 250, 38),
        down: way(100_000_000, 250, 38),
    },
    Profile {
        name: "wlan-802.11b",
        about: "802.11b at 11 Mbit/s, alone on the air: 6.06 Mbit/s at 1,500 bytes",
        source: "J. Jun, P. Peddabachagari, M. Sichitiu, Theoretical Maximum Throughput of IEEE 802.11 and its Applications (IEEE NCA 2003): 890.7 us a packet for spacing, back-off, headers and acknowledgement, here as 1,225 bytes at 11 Mbit/s (calc); 1 ms for an access point and the wire behind it (calc)",
        up: way(11_000_000, 1_000, 1_225),
        down: way(11_000_000, 1_000, 1_225),
    },
    Profile {
        name: "bluetooth",
        about: "Bluetooth 1.1, asymmetric DH5 packets, the client as slave",
        source: "Specification of the Bluetooth System 1.1, baseband (Bluetooth SIG, 2001): 723.2 and 57.6 kbit/s; a packet waits for one turn of six slots of 625 us (calc)",
        up: way(57_600, 3_750, 0),
        down: way(723_200, 3_750, 0),
    },
    Profile {
        name: "gprs",
        about: "GPRS, good reception, as the WS-QoS study emulated it",
        source: WSQOS,
        up: way(13_400, 500_000, 0),
        down: way(40_200, 800_000, 0),
    },
    Profile {
        name: "gprs-poor",
        about: "GPRS, poor reception, as the WS-QoS study emulated it",
        source: WSQOS,
        up: way(4_000, 500_000, 0),
        down: way(12_800, 800_000, 0),
    },
    Profile {
        name: "3g",
        about: "UMTS, 1.6 Mbit/s and 768 kbit/s, 300 ms round trip",
        source: WEBPAGETEST,
        up: way(768_000, 150_000, 0),
        down: way(1_600_000, 150_000, 0),
    },
    Profile {
        name: "lte",
        about: "LTE, 12 Mbit/s, 70 ms round trip",
        source: WEBPAGETEST,
        up: way(12_000_000, 35_000, 0),
        down: way(12_000_000, 35_000, 0),
    },
    Profile {
        name: "dsl",
        about: "DSL, 1.5 Mbit/s and 384 kbit/s, 50 ms round trip",
        source: WEBPAGETEST,
        up: way(384_000, 25_000, 0),
        down: way(1_500_000, 25_000, 0),
    },
    Profile {
        name: "cable",
        about: "cable, 5 and 1 Mbit/s, 28 ms round trip",
        source: WEBPAGETEST,
        up: way(1_000_000, 14_000, 0),
        down: way(5_000_000, 14_000, 0),
    },
    Profile {
        name: "geo-satellite",
        about: "a household behind a geostationary satellite",
        source: "Ookla, Speedtest Intelligence, medians of Viasat in the United States: 18.13 and 3.38 Mbit/s (second quarter of 2021), 676 ms round trip (first quarter of 2022), half of it each way",
        up: way(3_380_000, 338_000, 0),
        down: way(18_130_000, 338_000, 0),
    },
    Profile {
        name: "transatlantic",
        about: "New York to London on a backbone that is nobody's bottleneck",
        source: "Verizon, service level agreement for its IP network: at most 90 ms mean round trip between its hubs in New York and London, half of it each way",
        up: way(0, 45_000, 0),
        down: way(0, 45_000, 0),
    },
];

const fn way(bits: u64, delay_us: u64, overhead: u32) -> ProfileDirection {
    ProfileDirection {
        bits,
        delay: Span::from_micros(delay_us),
        overhead,
    }
}

impl ProfileDirection {
    /// Bandwidth; `None` if the path sets no limit.
    pub const fn bandwidth(&self) -> Option<BitRate> {
        BitRate::per_second(self.bits)
    }
}

/// The name is not that of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no profile {name:?}: {}", names())]
pub struct UnknownProfile {
    name: String,
}

fn names() -> String {
    let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    format!("write one of {}", names.join(", "))
}

/// Returns the profile of that name.
pub fn named(name: &str) -> Result<&'static Profile, UnknownProfile> {
    PROFILES
        .iter()
        .find(|profile| profile.name == name)
        .ok_or_else(|| UnknownProfile {
            name: name.to_owned(),
        })
}

impl Profile {
    /// Plan of one direction, to which more can be added.
    pub fn plan(&self, direction: Direction) -> Plan {
        let way = match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        };
        Plan {
            bandwidth: way.bandwidth(),
            delay: way.delay,
            overhead: way.overhead,
            ..Plan::default()
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.about)
    }
}
